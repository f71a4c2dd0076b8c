"""Details of a todo (why it failed, the next action), and the root causes of the run.

``-v`` adds every check with its verdict. No text is truncated: prose is wrapped at words, and node ids,
commands and paths are never broken, so that they can be copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.model.verdicts import Isolation, Since, Verdict
from planner.policy.outcomes import consequences, failures_of, is_worth_telling
from planner.policy.outcomes import place as place_of_cause
from planner.text.display import cells, counted, padded, wrapped
from pytest_planverify.reports.screen import GAP, INDENT, ReportScreen, Style, StyledText, widest
from pytest_planverify.reports.words import (
    UNCOUNTED,
    VERDICT_WORDS,
    duration,
    facts_of,
    ratio,
    standing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.model.outcome import Candidate, Cause, Check, Failure, Location, Outcome

LABEL = 7
"""Width of the label column under a todo: ``where`` and a gap."""

CAUSE_LABEL = 10
"""Width of the label column of the root causes, and of the notes below them."""

MOST_LINES = 8
"""Lines of one error message that are shown without ``-v``."""

MOST_OTHERS = 3
MOST_CHANGES = 3
MOST_CAUSES = 4

ISOLATIONS: Mapping[Isolation, str] = {
    Isolation.WORKER: "worker",
    Isolation.COLD: "new interpreter",
    Isolation.SPAWNED: "own process",
    Isolation.PARENT: "parent process",
}


@dataclass(frozen=True, kw_only=True)
class Details:
    """Writes the details of the todos of a run; a failure of several todos is written in full once."""

    screen: ReportScreen
    verbosity: int = 0
    outcomes_path: str | None = None
    causes: Sequence[Cause] = ()
    _written: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])
    """By the content of a failure, the todo under which it was written in full."""

    @property
    def _is_verbose(self) -> bool:
        return self.verbosity > 0

    def write(self, outcome: Outcome) -> bool:
        """Write everything under the line of one todo. Return whether the todo needs attention."""
        if self._is_verbose:
            self._write_checks(outcome.checks)
        if not standing(outcome).is_open:
            self._write_notes(outcome)
            return False
        failures = list(failures_of(outcome))
        if failures:
            self._write_failure(failures[0], outcome.todo_id)
        self._write_notes(outcome)
        self._write_unexplained(outcome, failures)
        if len(failures) > 1:
            self._write_others(failures[0], failures[1:])
        if failures and failures[0].rerun:
            self._line("rerun", "")
            # What a reader copies has a line of its own.
            self.screen.line(StyledText(self.screen.text(failures[0].rerun), Style.COMMAND), indent=INDENT)
        return True

    # -- one failure -----------------------------------------------------------------------------

    def _write_failure(self, failure: Failure, todo_id: str) -> None:
        """Write one failure: why, which test, the message, where, what changed, the remedy, who acts.

        Of a failure that is in full under another todo, only a reference and the test are written.
        """
        facts = facts_of(failure)
        content = (failure.category, failure.stack_trace_head, failure.suggestion, failure.location)
        # Two failures of which nothing but the category is known need not be the same.
        shown_under = self._written.setdefault(content, todo_id) if any(content[1:]) else todo_id
        if shown_under != todo_id:
            self._label("why", f"{failure.category}: as for {shown_under}", Style.WARN)
            self._write_tests(failure)
        else:
            self._label("why", facts["why"], Style.WARN)
            for label in ("rule", "or") if self._is_verbose else ():
                self._label(label, facts.get(label, ""))
            if self._is_verbose and failure.rule:
                self._whole("more", f"planner explain {failure.rule}")
            self._write_tests(failure)
            self._write_message(failure.stack_trace_head or "")
            if failure.location:
                self._whole("where", *place(failure.location))
            # A failure from before the work is not due to its changes.
            if failure.since is not Since.PRE_EXISTING:
                self._write_changes(failure.candidates)
            for label in ("fix", "found"):
                self._label(label, facts.get(label, ""))
        self._label("who", facts.get("who", ""), Style.STRONG)

    def _write_tests(self, failure: Failure) -> None:
        tests = failure.tests or failure.top_failing_tests
        first = (failure.top_failing_tests or tests)[:1]
        if not first:
            if failure.check_id:
                self._label("check", failure.check_id)
            return
        more = max(len(set(tests)), len(set(failure.top_failing_tests))) - 1
        self._whole("test", first[0], f"and {more} more" if more > 0 else "")

    def _write_message(self, message: str) -> None:
        # One line too many is shown: the line that counts the omitted ones would take the same room.
        screen = self.screen
        parts = [
            part for line in screen.texts(message) for part in wrapped(line, screen.width - INDENT - LABEL)
        ]
        most = len(parts) if self._is_verbose or len(parts) == MOST_LINES + 1 else MOST_LINES
        for label, part in zip(("says", *[""] * most), parts[:most], strict=False):
            self._line(label, part, Style.QUOTE)
        if parts[most:]:
            self._line("", f"and {len(parts) - most} more lines; -v shows them", Style.QUIET)

    def _write_changes(self, candidates: Sequence[Candidate]) -> None:
        """Write the changes in the functions most likely at fault."""
        for hunk in [each.hunk for each in candidates if each.hunk is not None][:MOST_CHANGES]:
            where = f" in {hunk.function}" if hunk.function else ""
            rest = f"{hunk.path}:{hunk.line} (+{hunk.added} -{hunk.removed}){where}"
            self._line("changed ", self.screen.text(rest))

    def _write_others(self, deciding: Failure, others: Sequence[Failure]) -> None:
        """Write a few of the todo's other failures, those of different causes first, and count the rest."""

        def is_same_cause(failure: Failure) -> bool:
            both = {failure.signature, deciding.signature}
            return any(both <= {*cause.signatures} for cause in self.causes)

        alike: dict[str, list[Failure]] = {}
        for failure in sorted(others, key=is_same_cause):
            alike.setdefault(headline(failure), []).append(failure)
        for text, failures in [*alike.items()][:MOST_OTHERS]:
            self._label("also", text if len(failures) == 1 else f"{len(failures)} times {text}")
        left = [failure for failures in [*alike.values()][MOST_OTHERS:] for failure in failures]
        if left:
            count = sum(max(len(failure.tests), 1) for failure in left)
            cause = ", same cause" if all(map(is_same_cause, left)) else ""
            where = f"; every node id is in {self.outcomes_path}" if self.outcomes_path else ""
            self._label("", f"and {count} more{cause}{where}")

    # -- what no diagnosis explains ----------------------------------------------------------------

    def _write_notes(self, outcome: Outcome) -> None:
        """Write the reasons of passed checks, and of checks whose quarantine applies or has ended."""
        if self._is_verbose:
            return  # already written below the check itself
        notable = (
            check
            for check in outcome.checks
            if check.verdict is Verdict.PASSED or check.quarantined or check.quarantine_ended
        )
        for reason in dict.fromkeys(check.reason for check in notable if check.reason):
            self._label("note", reason)

    def _write_unexplained(self, outcome: Outcome, failures: Sequence[Failure]) -> None:
        """Write for each open check without a diagnosis what it waits for, or why it is not passed."""
        explained = {failure.check_id for failure in failures}
        written: set[str] = set()
        for check in outcome.checks:
            if check.verdict in (Verdict.PASSED, Verdict.BLOCKED) or check.id in explained:
                continue
            if check.verdict is Verdict.NEEDS_HUMAN:
                self._write_question(check)
                continue
            reason = f": {check.reason}" if check.reason else ""
            # Several checks may wait for the same thing, which is said once.
            verb = "" if check.verdict is Verdict.FAILED else "is "
            statement = f"{verb}{VERDICT_WORDS[check.verdict].text}{reason}"
            if statement not in written and not (check.reason and self._is_verbose):
                written.add(statement)
                self._label("why", f"{check.id} {statement}")
        if not outcome.checks and not failures:
            self._label("why", "nothing was checked: the todo has no criteria, or none ran")

    def _write_question(self, check: Check) -> None:
        """Write the question of a manual check, a problem with an old answer, and the command to answer."""
        question = check.title or check.cmd or check.id
        self._label("asks", question, Style.STRONG)
        # As checks.manual words it: a problem with an old answer; the question; "answer: " and the command.
        # From the end, as the question may contain the word, too.
        problem, opening, command = (check.reason or "").rpartition("answer: ")
        if not opening:
            self._label("", command)
            return
        if old_problem := problem.partition(question)[0].rpartition("; ")[0]:
            self._label("", old_problem)
        self._whole("answer", command)

    # -- every check -------------------------------------------------------------------------------

    def _write_checks(self, checks: Sequence[Check]) -> None:
        screen = self.screen
        words = widest([VERDICT_WORDS[check.verdict].shown(screen.glyphs) for check in checks])
        ids = widest([screen.text(check.id) for check in checks])
        for check in checks:
            word, text = VERDICT_WORDS[check.verdict], screen.text(check.title or check.cmd or "")
            facts = GAP.join(_facts(check))
            head = (
                StyledText(padded(word.shown(screen.glyphs), words) + GAP, word.style),
                StyledText(padded(screen.text(check.id), ids) + GAP),
            )
            if INDENT + words + ids + 3 * len(GAP) + cells(text) + cells(facts) <= screen.width:
                screen.line(
                    *head,
                    StyledText(f"{text}{GAP}" if text else ""),
                    StyledText(facts, Style.QUIET),
                    indent=INDENT,
                )
            else:  # too wide: titles and commands get a line of their own, so that they can be copied
                screen.line(*head, indent=INDENT)
                if text:
                    screen.line(StyledText(text), indent=INDENT * 2)
                screen.paragraph(facts, style=Style.QUIET, indent=INDENT * 2)
            for remark in _remarks(check):
                screen.paragraph(screen.text(remark), style=Style.QUIET, indent=INDENT * 2)

    # -- lines -------------------------------------------------------------------------------------

    def _label(self, label: str, text: str, style: Style = Style.PLAIN) -> None:
        """Write a label and wrapped prose, nothing without a text."""
        if text:
            self.screen.labelled(label, self.screen.text(text), style=style, indent=INDENT, column=LABEL)

    def _whole(self, label: str, text: str, rest: str = "") -> None:
        """Write a label, a text that is never broken, and ``rest``, below it if there is no room."""
        text, rest = self.screen.text(text), self.screen.text(rest)
        room = self.screen.width - INDENT - LABEL
        if cells(f"{text} {rest}".strip()) <= room:
            self._line(label, f"{text} {rest}")
            return
        fits = cells(text) <= room
        self._line(label, text if fits else "")
        if not fits:
            self.screen.line(StyledText(text), indent=INDENT)
        self.screen.paragraph(rest, indent=INDENT + LABEL)

    def _line(self, label: str, text: str, style: Style = Style.PLAIN) -> None:
        """Write a label and a text that is already printable, without wrapping."""
        self.screen.line(
            StyledText(label.ljust(LABEL), Style.QUIET), StyledText(text, style), indent=INDENT
        )


def headline(failure: Failure) -> str:
    """Return one line about a failure: category, who should act, first line of its message."""
    message = failure.stack_trace_head or failure.suggestion or failure.because or ""
    actor = f" ({failure.target_agent})" if failure.target_agent else ""
    first = message.strip().splitlines()
    return f"{failure.category}{actor}" + (f": {first[0]}" if first else "")


def place(location: Location) -> tuple[str, str]:
    """Return ``indicators/rsi.py:31`` and ``in compute_rsi``, the latter empty without a known function."""
    line = "" if location.line is None else f":{location.line}"
    return f"{location.path}{line}", f"in {location.function}" if location.function else ""


def write_causes(causes: Sequence[Cause], screen: ReportScreen, *, verbosity: int = 0) -> None:
    """Write the root causes in the order of repair, unless the todos already show all there is to know."""
    if not is_worth_telling(causes):
        return
    shown = causes if verbosity > 0 else causes[:MOST_CAUSES]
    number = len(str(shown[-1].rank))
    for cause in shown:
        _write_cause(cause, screen, number)
    if left := len(causes) - len(shown):
        text = f"and {counted(left, 'cause')} more; -v shows {'it' if left == 1 else 'them'}"
        screen.line(StyledText(text, Style.QUIET), indent=CAUSE_LABEL)
    screen.blank()


def _write_cause(cause: Cause, screen: ReportScreen, number: int) -> None:
    label = "fix first" if cause.rank == 1 else "then"
    indent = CAUSE_LABEL + number + len(GAP)
    head = [
        StyledText(label.ljust(CAUSE_LABEL), Style.QUIET),
        StyledText(str(cause.rank).rjust(number) + GAP, Style.STRONG),
        StyledText(str(cause.category), Style.WARN),
    ]
    facts = [
        StyledText(GAP + screen.text(place_of_cause(cause))),
        StyledText(GAP + screen.text(consequences(cause)), Style.STRONG),
    ]
    facts = [span for span in facts if span.text.strip()]
    if sum(cells(span.text) for span in (*head, *facts)) <= screen.width:
        screen.line(*head, *facts)
    else:  # a path is never truncated or broken
        screen.line(*head)
        for span in facts:
            screen.line(StyledText(span.text.strip(), span.style), indent=indent)
    if cause.headline:
        screen.paragraph(screen.text(cause.headline), style=Style.QUOTE, indent=indent)
    if cause.because:
        screen.paragraph(screen.text(cause.because), style=Style.QUIET, indent=indent)


def _facts(check: Check) -> Iterator[str]:
    """Yield counts, duration and origin of a check, each a short text; only what is known and not 0."""
    if run := [test for test in check.tests if test.outcome not in UNCOUNTED]:
        yield ratio(sum(not test.outcome.is_red for test in run), len(run), "test")
    if check.runs is not None and check.reds:
        yield f"failed {check.reds} of {check.runs}"
    if check.duration_ms:
        yield duration(check.duration_ms)
    if check.taken_from:
        yield f"from run {check.taken_from}"
    elif check.isolation is not Isolation.PARENT:
        yield ISOLATIONS[check.isolation]


def _remarks(check: Check) -> Iterator[str]:
    """Yield the reason for the verdict, or an exit status that no reason explains."""
    if check.reason and check.verdict is not Verdict.NEEDS_HUMAN:  # written with its question instead
        yield check.reason
    if check.exit_code and not check.reason:
        yield f"exit status {check.exit_code}"
