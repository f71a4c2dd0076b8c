"""What stands under the line of a todo: why it is red and what to do next, or what it is waiting for.

At ``-v`` every check follows with its verdict, at ``-vv`` every test.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import Isolation, Verdict
from pytest_planverify.reports.rows import GAP, INDENT, tests_of
from pytest_planverify.reports.screen import Screen, Span, Style, cells, padded, widest
from pytest_planverify.reports.words import (
    OWNERS,
    REPEATABILITY,
    SINCE,
    TEST_WORDS,
    VERDICT_WORDS,
    counted,
    duration,
    standing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from planner.model.outcome import Check, Failure, Location, Outcome, TestResult

LABEL = 7
"""The width of the column of labels, ``where`` and a gap."""

HEAD_LINES = 3
"""An assertion is quoted in at most this many lines."""

ADVICE_LINES = 4
NODE_LINES = 3
SHORTEST_TEXT = 32
"""Before a command is cut to fewer cells than this, the facts beside it are left out; where there is room
for not even half of it, it stands below."""

ISOLATIONS: Mapping[Isolation, str] = {
    Isolation.SESSION: "shared session",
    Isolation.FORKED: "own session",
    Isolation.SPAWNED: "own process",
    Isolation.PARENT: "supervisor",
}


class Detailing(NamedTuple):
    """How much is said under a todo, and where a person's answers go."""

    verbosity: int = 0
    answers_path: str | None = None


def write_details(outcome: Outcome, screen: Screen, how: Detailing) -> bool:
    """Everything under the line of one todo. Says whether the todo needs someone's attention."""
    if how.verbosity > 0:
        _write_checks(outcome.checks, screen, how.verbosity)
    if not standing(outcome).is_open:
        _write_notes(outcome, screen, how)
        return False
    failures = distinct_failures(outcome)
    if failures:
        _write_failure(failures[0], screen, how.verbosity)
    _write_notes(outcome, screen, how)
    _write_waiting(outcome, screen, how, {failure.check_id for failure in failures})
    for text, count in Counter(map(headline, failures[1:])).items():
        write_label("also", text if count == 1 else f"{count} times {text}", screen, most=1)
    if failures and failures[0].rerun:
        screen.line(Span("rerun", Style.QUIET), indent=INDENT)
        screen.whole(Span(screen.text(failures[0].rerun), Style.COMMAND), indent=INDENT)
    return True


def _write_notes(outcome: Outcome, screen: Screen, how: Detailing) -> None:
    """What there is to know about checks that pass, or whose answer changes."""
    if how.verbosity > 0:
        return  # it stands below the check itself
    notable = (
        check
        for check in outcome.checks
        if check.verdict is Verdict.PASSED or check.quarantined or check.quarantine_ended
    )
    for reason in dict.fromkeys(check.reason for check in notable if check.reason):
        write_label("note", reason, screen)


def distinct_failures(outcome: Outcome) -> list[Failure]:
    """The failures of the todo without repetition, the one that decides the route first."""
    deciding = outcome.failure_evidence
    rest = [failure for failure in outcome.failures if deciding is None or not _same(failure, deciding)]
    return rest if deciding is None else [deciding, *rest]


def headline(failure: Failure) -> str:
    """One line on one failure: category, what it says, who should act."""
    said = failure.stack_trace_head or failure.suggestion or failure.because or ""
    actor = f" ({failure.target_agent})" if failure.target_agent else ""
    first = said.strip().splitlines()
    return f"{failure.category}{actor}" + (f": {first[0]}" if first else "")


def place(location: Location) -> tuple[str, str]:
    """``indicators/rsi.py:31`` and ``in compute_rsi``, the second empty where no function is known."""
    line = "" if location.line is None else f":{location.line}"
    return f"{location.path}{line}", f"in {location.function}" if location.function else ""


def write_label(
    label: str, text: str, screen: Screen, *, style: Style = Style.PLAIN, most: int | None = ADVICE_LINES
) -> None:
    """A labelled line under a todo, its text made printable."""
    screen.labelled(label, screen.text(text), style=style, indent=INDENT, column=LABEL, most=most)


def _same(one: Failure, other: Failure) -> bool:
    if one.signature and other.signature:
        return one.signature == other.signature
    return one == other


def _write_failure(failure: Failure, screen: Screen, verbosity: int) -> None:
    for write in _PARTS:
        write(failure, screen, verbosity)


def _write_diagnosis(failure: Failure, screen: Screen, verbosity: int) -> None:
    parts = [
        OWNERS[failure.owner] if failure.owner else "",
        f"{failure.confidence:.0%} sure" if failure.confidence is not None else "",
        REPEATABILITY[failure.repeatability] if failure.repeatability else "",
        SINCE.get(failure.since, ""),
    ]
    said = ", ".join(part for part in parts if part)
    write_label("why", f"{failure.category}" + (f": {said}" if said else ""), screen, style=Style.WARN)
    if verbosity > 0 and failure.rule:
        write_label("rule", failure.rule + (f": {failure.because}" if failure.because else ""), screen)
        write_label("more", f"planner explain {failure.rule}", screen)
    if verbosity > 0 and failure.runner_up:
        other = failure.runner_up
        write_label("or", f"{other.category} ({other.confidence:.0%})", screen)


def _write_tests(failure: Failure, screen: Screen, verbosity: int) -> None:
    tests = failure.tests or failure.top_failing_tests
    first = (failure.top_failing_tests or tests)[:1]
    if not first:
        if failure.check_id:
            write_label("check", failure.check_id, screen)
        return
    more = max(len(set(tests)), len(set(failure.top_failing_tests))) - 1
    rest = f" and {more} more" if more > 0 else ""
    write_label("test", first[0] + rest, screen, most=None if verbosity > 0 else NODE_LINES)


def _write_head(failure: Failure, screen: Screen, verbosity: int) -> None:
    if not failure.stack_trace_head:
        return
    most = HEAD_LINES if verbosity <= 0 else 12
    width = screen.width - INDENT - LABEL
    parts = [part for line in screen.texts(failure.stack_trace_head) for part in screen.wrap(line, width)]
    if len(parts) > most:
        parts = [*parts[: most - 1], screen.clip(parts[most - 1] + " " * width + ".", width)]
    for position, part in enumerate(parts):
        label = "says" if position == 0 else ""
        screen.whole(Span(label.ljust(LABEL), Style.QUIET), Span(part, Style.QUOTE), indent=INDENT)


def _write_place(failure: Failure, screen: Screen, verbosity: int) -> None:
    if not failure.location:
        return
    path, function = (screen.text(part) for part in place(failure.location))
    label = Span("where".ljust(LABEL), Style.QUIET)
    if INDENT + LABEL + cells(path) + cells(function) + 1 <= screen.width:
        screen.whole(label, Span(f"{path} {function}"), indent=INDENT)
        return
    screen.whole(label, Span(path), indent=INDENT)  # never cut: editors open it
    screen.line(Span(function), indent=INDENT + LABEL)


def _write_suggestion(failure: Failure, screen: Screen, verbosity: int) -> None:
    if failure.suggestion:
        write_label("fix", failure.suggestion, screen)


def _write_actor(failure: Failure, screen: Screen, verbosity: int) -> None:
    if failure.target_agent:
        write_label("who", failure.target_agent, screen, style=Style.STRONG)


_PARTS: tuple[Callable[[Failure, Screen, int], None], ...] = (
    _write_diagnosis,
    _write_tests,
    _write_head,
    _write_place,
    _write_suggestion,
    _write_actor,
)
"""What is said about the failure that decides, in the order of a reader's questions."""


def _write_waiting(outcome: Outcome, screen: Screen, how: Detailing, explained: set[str | None]) -> None:
    """The checks that no diagnosis explains: what they wait for, or why they prove nothing."""
    told: set[str] = set()
    for check in outcome.checks:
        if check.verdict in (Verdict.PASSED, Verdict.BLOCKED) or check.id in explained:
            continue
        word = VERDICT_WORDS[check.verdict]
        if check.verdict is Verdict.NEEDS_HUMAN:
            write_label("asks", check.title or check.cmd or check.id, screen, style=Style.STRONG)
            _write_how_to_answer(check, screen, how)
            continue
        said = f"{word.text}: {check.reason or 'no reason was given'}"
        if said not in told and not (check.reason and how.verbosity > 0):
            told.add(said)
            write_label("why", f"{check.id} is {said}", screen)
    if not outcome.checks and not distinct_failures(outcome):
        write_label("why", "nothing was checked: the todo has no criterion, or none was run", screen)


def _write_how_to_answer(check: Check, screen: Screen, how: Detailing) -> None:
    if check.reason:
        write_label("", check.reason, screen)
    if how.answers_path:
        path = screen.text(how.answers_path)
        screen.whole(Span("answer".ljust(LABEL), Style.QUIET), Span(f"{check.id} in {path}"), indent=INDENT)


def _write_checks(checks: Sequence[Check], screen: Screen, verbosity: int) -> None:
    words = widest([VERDICT_WORDS[check.verdict].shown(screen.glyphs) for check in checks])
    ids = widest([screen.text(check.id) for check in checks])
    for check in checks:
        word = VERDICT_WORDS[check.verdict]
        text = screen.text(check.title or check.cmd or "")
        beside = screen.width - INDENT - words - ids - 2 * len(GAP)
        below = beside < min(cells(text), SHORTEST_TEXT // 2)
        tail = _beside(list(_facts(check)), beside - (0 if below else min(cells(text), SHORTEST_TEXT)))
        screen.line(
            Span(padded(word.shown(screen.glyphs), words) + GAP, word.style),
            Span(padded(screen.text(check.id), ids) + GAP),
            Span("" if below else screen.clip(text, beside - cells(tail))),
            Span(tail, Style.QUIET),
            indent=INDENT,
        )
        if below:
            screen.paragraph(text, indent=INDENT * 2, most=2)
        for remark in _remarks(check):
            screen.paragraph(screen.text(remark), style=Style.QUIET, indent=INDENT * 2, most=ADVICE_LINES)
        if verbosity > 1:
            _write_tests_of(check.tests, screen)


def _facts(check: Check) -> Iterator[str]:
    good, of = tests_of(check)
    if of:
        yield counted(of, "test") if good == of else f"{good}/{counted(of, 'test')}"
    if check.duration_ms:
        yield duration(check.duration_ms)
    if check.isolation is not Isolation.PARENT and not check.isolation_reason:
        yield ISOLATIONS[check.isolation]


def _beside(facts: list[str], room: int) -> str:
    """As many of the facts as there is room for, from the first."""
    while facts and sum(len(GAP) + cells(fact) for fact in facts) > room:
        facts.pop()
    return "".join(GAP + fact for fact in facts)


def _remarks(check: Check) -> Iterator[str]:
    """Why the verdict is what it is and why the check was run as it was, as far as that needs saying."""
    if check.reason:
        yield check.reason
    if check.isolation_reason:
        yield f"{ISOLATIONS[check.isolation]}: {check.isolation_reason}"
    if check.exit_code:
        yield f"exit status {check.exit_code}"


def _write_tests_of(tests: tuple[TestResult, ...], screen: Screen) -> None:
    column = widest([TEST_WORDS[test.outcome].text for test in tests])
    indent = INDENT * 2
    for test in tests:
        word = TEST_WORDS[test.outcome]
        reason = f" ({screen.text(test.reason)})" if test.reason else ""
        time = duration(test.duration_ms)
        room = screen.width - indent - column - cells(time) - 2 * len(GAP)
        screen.line(
            Span(padded(word.text, column) + GAP, word.style),
            Span(screen.clip_middle(screen.text(test.nodeid) + reason, room) + GAP),
            Span(time, Style.QUIET),
            indent=indent,
        )
