"""Wording of the reports: verdicts, standings, owners, comparison with the baseline, durations, numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import CheckKind, Since, TestOutcome, TodoState, Verdict
from planner.policy.outcomes import state_of
from planner.text.display import counted
from pytest_planverify.reports.screen import Style

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.outcome import Failure, Outcome, OutcomeDocument
    from planner.text.display import Glyphs


class Word(NamedTuple):
    """Presentation of a verdict or state: its mark, its word, and a colour that only repeats them."""

    glyph: str
    """Name of a field of :class:`Glyphs`, or the mark itself."""
    text: str
    style: Style

    def mark(self, glyphs: Glyphs) -> str:
        return str(getattr(glyphs, self.glyph, self.glyph))

    def shown(self, glyphs: Glyphs) -> str:
        return f"{self.mark(glyphs)} {self.text}"


class Standing(StrEnum):
    """State of a todo after a run, in the order of the counts in the final line."""

    DONE = "done"
    FAILED = "failed"
    FLAKY = "flaky"
    IN_PROGRESS = "in_progress"
    """A parent whose own criteria do not fail, but whose todos are not all done."""
    BLOCKED = "blocked"
    NEEDS_HUMAN = "needs_human"
    STALE = "stale"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not_run"

    @property
    def is_open(self) -> bool:
        """Return whether something is left to do on the todo itself."""
        return self not in (Standing.DONE, Standing.BLOCKED, Standing.NOT_RUN)


WORDS: Mapping[str, Word] = {
    name: Word(glyph, name.replace("_", " "), style)
    for name, glyph, style in (
        ("done", "done", Style.GOOD),
        ("passed", "done", Style.GOOD),
        ("failed", "failed", Style.BAD),
        ("flaky", "~", Style.BAD),
        ("in_progress", "!", Style.WARN),
        ("blocked", "blocked", Style.QUIET),
        ("needs_human", "?", Style.WARN),
        ("stale", "!", Style.WARN),
        ("inconclusive", "!", Style.WARN),
        ("not_run", "pending", Style.QUIET),
    )
}
"""Presentation of every :class:`Standing` and :class:`~planner.model.verdicts.Verdict`."""

_SINCE = {
    Since.NEW: "new since the baseline",
    Since.PRE_EXISTING: "failed before the work began",
    Since.FLAKY_AT_BASE: "flaky before the work began",
}

TESTS_SINCE = {
    Since.NEW: ("newly red", Style.BAD),
    Since.PRE_EXISTING: ("red before", Style.WARN),
    Since.FLAKY_AT_BASE: ("flaky before", Style.WARN),
    Since.FIXED: ("fixed", Style.GOOD),
}
"""Words for tests whose outcome differs from the baseline, or that failed or were flaky there already."""

EXIT_WORDS = {
    0: ("", Style.GOOD),
    1: ("", Style.BAD),
    2: ("interrupted", Style.BAD),
    3: ("internal error", Style.BAD),
    4: ("usage error", Style.BAD),
    5: ("nothing to verify", Style.WARN),
    10: ("", Style.WARN),
    11: ("", Style.WARN),
    12: ("budget exceeded", Style.BAD),
    13: ("violation", Style.BAD),
}
"""Word that an exit status adds to the final line, and the style of that line."""

UNCOUNTED = (TestOutcome.SKIPPED, TestOutcome.NOT_RUN)
"""Outcomes of tests that prove nothing, and so are not counted."""

_WAITING = (Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.NEEDS_HUMAN, Verdict.NOT_RUN)
"""Verdicts that keep a todo without failures from being done; the first that occurs names its standing."""

_STANDINGS: Mapping[TodoState, Standing] = {
    TodoState.DONE: Standing.DONE,
    TodoState.TEST_FAILED: Standing.FAILED,
    TodoState.BLOCKED: Standing.BLOCKED,
    TodoState.PENDING: Standing.NOT_RUN,
}


def standing(outcome: Outcome) -> Standing:
    """Return the standing of a todo."""
    state = state_of(outcome)
    seen = {check.counts_as for check in outcome.checks}
    if state is TodoState.TEST_FAILED and Verdict.FLAKY in seen and Verdict.FAILED not in seen:
        return Standing.FLAKY
    if state is not TodoState.TESTING:
        return _STANDINGS[state]
    # Of a parent whose own criteria pass, only the todos below it have something left to do.
    own = {check.counts_as for check in outcome.checks if check.kind is not CheckKind.SUB_PLAN}
    below = {check.counts_as for check in outcome.checks if check.kind is CheckKind.SUB_PLAN}
    if Verdict.FAILED in below or (below - {Verdict.PASSED} and own <= {Verdict.PASSED}):
        return Standing.IN_PROGRESS
    return Standing(next((each for each in _WAITING if each in seen), _WAITING[0]).value)


def name_of(outcome: Outcome, document: OutcomeDocument) -> str:
    """Return the id of a todo, in a run of several plans with that of its plan: ``shop::prices``."""
    several = len(document.plans) > 1
    return f"{outcome.plan}::{outcome.todo_id}" if several else outcome.todo_id


def ratio(good: int, of: int, noun: str) -> str:
    """Return ``3 tests`` if all of them are good, else ``2/3 tests``."""
    return counted(of, noun) if good == of else f"{good}/{counted(of, noun)}"


def suggestion_of(failure: Failure) -> str:
    """Return the suggestion; empty if the message says the same, as of many criteria other than tests."""
    suggestion = failure.suggestion or ""
    return "" if suggestion.rstrip(".") == failure.stack_trace_head else suggestion


def facts_of(failure: Failure | None) -> dict[str, str]:
    """Return what is known about a failure besides its message and place: by label, in the order to show.

    Screen, Markdown and HTML show the same texts. A suggestion that requests work is labelled ``fix``, one
    that states an observation ``found``.
    """
    if failure is None:
        return {}
    from planner.brief.instructions import asks_for_work  # late: a run without failures does not need it

    known = (
        f"the {failure.blamed} is at fault" if failure.blamed else "owner unknown" if failure.owner else "",
        "" if failure.confidence is None else f"{failure.confidence:.0%} sure",
        "" if failure.runs is None else f"failed {failure.reds or 0} of {failure.runs}",
        _SINCE.get(failure.since, ""),
    )
    details, runner_up = ", ".join(filter(None, known)), failure.runner_up
    suggestion = suggestion_of(failure)
    texts = {
        "why": f"{failure.category}: {details}" if details else f"{failure.category}",
        "rule": ": ".join(filter(None, (failure.rule, failure.because))),
        "or": runner_up and f"{runner_up.category} ({runner_up.confidence:.0%})",
        "fix" if asks_for_work(suggestion) else "found": suggestion,
        "who": failure.target_agent,
        "rerun": failure.rerun,
    }
    return {label: text for label, text in texts.items() if text}


def headline(failure: Failure) -> str:
    """Return one line about a failure: category, who should act, first line of its message."""
    message = failure.stack_trace_head or failure.suggestion or failure.because or ""
    actor = f" ({failure.target_agent})" if failure.target_agent else ""
    first = message.strip().splitlines()
    return f"{failure.category}{actor}" + (f": {first[0]}" if first else "")


def duration(milliseconds: int) -> str:
    """Return a duration as ``4ms``, ``0.21s``, ``12.3s``, ``2m 05s`` or ``1h 02m``."""
    if milliseconds < 10:
        return f"{milliseconds}ms"
    seconds = milliseconds / 1000
    # The limits are those at which rounding would show 10.00s and 60.0s.
    if seconds < 9.995:
        return f"{seconds:.2f}s"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m"


def number(value: float | str) -> str:
    """Return a recorded value as a person writes it: ``250``, not ``250.0``."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
