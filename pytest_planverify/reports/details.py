"""Details of a todo (why it is red, the next action), and the root causes of the run.

At ``-v`` every check follows with its verdict, at ``-vv`` every test. Nothing is cut: prose is wrapped at
words; node ids, commands and paths stand whole, so that they can be copied.
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
    OWNERS,
    SINCE,
    TEST_WORDS,
    VERDICT_WORDS,
    duration,
    standing,
    suggestion_label,
    tests_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.model.outcome import Candidate, Cause, Check, Failure, Location, Outcome, TestResult

LABEL = 7
"""The width of the column of labels under a todo: ``where`` and a gap."""

CAUSE_LABEL = 10
"""The width of the column of labels of the causes; that of the notes below them."""

MOST_LINES = 8
"""More lines of one error message are shown at ``-v`` only."""

MOST_OTHERS = 3
MOST_CHANGES = 3
MOST_CAUSES = 4

ISOLATIONS: Mapping[Isolation, str] = {
    Isolation.WORKER: "worker",
    Isolation.COLD: "worker, started cold",
    Isolation.SPAWNED: "own process",
    Isolation.PARENT: "parent process",
}


@dataclass(frozen=True, kw_only=True)
class Details:
    """Writes the details of the todos of one run; what two todos share is written in full once."""

    screen: ReportScreen
    verbosity: int = 0
    outcomes_path: str | None = None
    causes: Sequence[Cause] = ()
    _written: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])
    """What a failure says, to the todo under which it stands in full."""

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
            self.screen.line(StyledText("rerun", Style.QUIET), indent=INDENT)
            # What a reader copies has a line of its own.
            self.screen.line(StyledText(self.screen.text(failures[0].rerun), Style.COMMAND), indent=INDENT)
        return True

    # -- one failure -----------------------------------------------------------------------------

    def _write_failure(self, failure: Failure, todo_id: str) -> None:
        """Answer a reader's questions about a failure in their order."""
        said = (failure.category, failure.stack_trace_head, failure.suggestion, failure.location)
        first = self._written.setdefault(said, todo_id) if any(said[1:]) else todo_id
        if first != todo_id:
            self._label("why", f"{failure.category}: as under {first}", Style.WARN)
            self._write_tests(failure)
        else:
            self._write_diagnosis(failure)
            self._write_tests(failure)
            self._write_message(failure.stack_trace_head or "")
            if failure.location:
                self._whole("where", *place(failure.location))
            if failure.since is not Since.PRE_EXISTING:  # no change of this work has made it red
                self._write_changes(failure.candidates)
            if failure.suggestion:
                self._label(suggestion_label(failure.suggestion), failure.suggestion)
        if failure.target_agent:
            self._label("who", failure.target_agent, Style.STRONG)

    def _write_diagnosis(self, failure: Failure) -> None:
        parts = [
            OWNERS[failure.owner] if failure.owner else "",
            f"{failure.confidence:.0%} sure" if failure.confidence is not None else "",
            "" if failure.runs is None else f"red {failure.reds or 0} of {failure.runs}",
            SINCE.get(failure.since, ""),
        ]
        said = ", ".join(part for part in parts if part)
        self._label("why", f"{failure.category}" + (f": {said}" if said else ""), Style.WARN)
        if self._is_verbose and failure.rule:
            self._label("rule", failure.rule + (f": {failure.because}" if failure.because else ""))
            self._whole("more", f"planner explain {failure.rule}")
        if self._is_verbose and failure.runner_up:
            self._label("or", f"{failure.runner_up.category} ({failure.runner_up.confidence:.0%})")

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
        """Write what was changed in the functions most likely to be at fault."""
        for hunk in [each.hunk for each in candidates if each.hunk is not None][:MOST_CHANGES]:
            where = f" in {hunk.function}" if hunk.function else ""
            rest = f"{hunk.path}:{hunk.line} (+{hunk.added} -{hunk.removed}){where}"
            self.screen.line(
                StyledText("changed ", Style.QUIET), StyledText(self.screen.text(rest)), indent=INDENT
            )

    def _write_others(self, deciding: Failure, others: Sequence[Failure]) -> None:
        """Write a few of the todo's other failures, those of other causes first, and count the rest."""

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
        """Write what there is to know about checks that pass, or whose answer changes."""
        if self._is_verbose:
            return  # it stands below the check itself
        notable = (
            check
            for check in outcome.checks
            if check.verdict is Verdict.PASSED or check.quarantined or check.quarantine_ended
        )
        for reason in dict.fromkeys(check.reason for check in notable if check.reason):
            self._label("note", reason)

    def _write_unexplained(self, outcome: Outcome, failures: Sequence[Failure]) -> None:
        """Write for the checks without a diagnosis what they wait for, or why they prove nothing."""
        explained = {failure.check_id for failure in failures}
        written: set[str] = set()
        for check in outcome.checks:
            if check.verdict in (Verdict.PASSED, Verdict.BLOCKED) or check.id in explained:
                continue
            if check.verdict is Verdict.NEEDS_HUMAN:
                self._write_question(check)
                continue
            reason = f": {check.reason}" if check.reason else ""
            verb = "" if check.verdict is Verdict.FAILED else "is "
            said = f"{verb}{VERDICT_WORDS[check.verdict].text}{reason}"
            if said not in written and not (check.reason and self._is_verbose):
                written.add(said)
                self._label("why", f"{check.id} {said}")
        if not outcome.checks and not failures:
            self._label("why", "nothing was checked: the todo has no criterion, or none was run")

    def _write_question(self, check: Check) -> None:
        question = check.title or check.cmd or check.id
        self._label("asks", question, Style.STRONG)
        said, opening, command = (check.reason or "").partition("answer: ")
        if not opening:
            if said:
                self._label("", said)
            return
        if trouble := said.partition(question)[0].rpartition("; ")[0]:
            self._label("", trouble)
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
            else:  # what is copied stands whole
                screen.line(*head, indent=INDENT)
                if text:
                    screen.line(StyledText(text), indent=INDENT * 2)
                screen.paragraph(facts, style=Style.QUIET, indent=INDENT * 2)
            for remark in _remarks(check):
                screen.paragraph(screen.text(remark), style=Style.QUIET, indent=INDENT * 2)
            if self.verbosity > 1:
                self._write_results(check.tests)

    def _write_results(self, tests: Sequence[TestResult]) -> None:
        words = widest([TEST_WORDS[test.outcome].text for test in tests])
        times = widest([duration(test.duration_ms) for test in tests])
        for test in tests:
            word = TEST_WORDS[test.outcome]
            self.screen.line(
                StyledText(padded(word.text, words) + GAP, word.style),
                StyledText(padded(duration(test.duration_ms), times, right=True) + GAP, Style.QUIET),
                StyledText(self.screen.text(test.nodeid)),
                StyledText(f" ({self.screen.text(test.reason)})" if test.reason else "", Style.QUIET),
                indent=INDENT * 2,
            )

    # -- lines -------------------------------------------------------------------------------------

    def _label(self, label: str, text: str, style: Style = Style.PLAIN) -> None:
        """Write a label and its prose, wrapped."""
        self.screen.labelled(label, self.screen.text(text), style=style, indent=INDENT, column=LABEL)

    def _whole(self, label: str, text: str, rest: str = "") -> None:
        """Write a label, a text that is never broken, and what follows it, below where there is no room."""
        text, rest = self.screen.text(text), self.screen.text(rest)
        room = self.screen.width - INDENT - LABEL
        if cells(f"{text} {rest}".strip()) <= room:
            self._line(label, f"{text} {rest}")
        else:
            if cells(text) <= room:
                self._line(label, text)
            else:
                self._line(label, "")
                self.screen.line(StyledText(text), indent=INDENT)
            self.screen.paragraph(rest, indent=INDENT + LABEL)

    def _line(self, label: str, text: str, style: Style = Style.PLAIN) -> None:
        """Write a label and a printable text as it is."""
        self.screen.line(
            StyledText(label.ljust(LABEL), Style.QUIET), StyledText(text, style), indent=INDENT
        )


def headline(failure: Failure) -> str:
    """Return one line on one failure: category, who should act, what it says."""
    said = failure.stack_trace_head or failure.suggestion or failure.because or ""
    actor = f" ({failure.target_agent})" if failure.target_agent else ""
    first = said.strip().splitlines()
    return f"{failure.category}{actor}" + (f": {first[0]}" if first else "")


def place(location: Location) -> tuple[str, str]:
    """Return ``indicators/rsi.py:31`` and ``in compute_rsi``, which is empty where no function is known."""
    line = "" if location.line is None else f":{location.line}"
    return f"{location.path}{line}", f"in {location.function}" if location.function else ""


def write_causes(causes: Sequence[Cause], screen: ReportScreen, *, verbosity: int = 0) -> None:
    """Write the root causes in the order of repair, where the todos alone do not show it."""
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
    else:  # a path is never cut
        screen.line(*head)
        for span in facts:
            screen.line(StyledText(span.text.strip(), span.style), indent=indent)
    if cause.headline:
        screen.paragraph(screen.text(cause.headline), style=Style.QUOTE, indent=indent)
    if cause.because:
        screen.paragraph(screen.text(cause.because), style=Style.QUIET, indent=indent)


def _facts(check: Check) -> Iterator[str]:
    good, of = tests_of(check)
    if of:
        yield counted(of, "test") if good == of else f"{good}/{counted(of, 'test')}"
    if check.runs is not None and check.reds:
        yield f"red {check.reds} of {check.runs}"
    if check.duration_ms:
        yield duration(check.duration_ms)
    if check.taken_from:
        yield f"from run {check.taken_from}"
    elif check.isolation is not Isolation.PARENT and not check.isolation_reason:
        yield ISOLATIONS[check.isolation]


def _remarks(check: Check) -> Iterator[str]:
    """Say why the verdict is what it is and why the check was run as it was, where that needs saying."""
    if check.reason and check.verdict is not Verdict.NEEDS_HUMAN:  # its question stands below
        yield check.reason
    if check.isolation_reason:
        yield f"{ISOLATIONS[check.isolation]}: {check.isolation_reason}"
    if check.exit_code and not check.reason:
        yield f"exit status {check.exit_code}"
