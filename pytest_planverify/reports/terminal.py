"""The summary of a run on the terminal: what holds, what does not and why, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_planverify.reports.details import Detailing, distinct_failures, headline, write_details
from pytest_planverify.reports.rows import fitted, ranks_of, row_of, write_row
from pytest_planverify.reports.screen import Screen, Span, Style, cells
from pytest_planverify.reports.words import TESTS_SINCE, WORDS, Standing, duration, standing

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from planner.edges.plan_file import LoadedPlan
    from planner.model.outcome import Outcome, OutcomeDocument, RunInfo, Summary

CheckKey = tuple[str, str, str]
"""Plan id, todo id, check id."""

Longreprs = Mapping[CheckKey, Sequence[tuple[str, str]]]
"""For each check the node ids that failed, each with pytest's own rendering of the failure."""

EXIT_WORDS: Mapping[int, tuple[str, Style]] = {
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
"""What an exit status adds to the final line, and the colour of that line."""


def render_summary(
    tw: TerminalWriter,
    document: OutcomeDocument,
    *,
    plans: Sequence[LoadedPlan] = (),
    verbosity: int = 0,
    outcomes_path: str | None = None,
    answers_path: str | None = None,
    longreprs: Longreprs | None = None,
) -> None:
    """Write the summary of a run.

    ``plans`` give the plans their names. ``verbosity`` is pytest's: below zero only what is not done, above
    zero every check and the long tracebacks in ``longreprs``, above one every test. ``outcomes_path`` and
    ``answers_path`` are shown as the files to read and to answer in.
    """
    screen = Screen(tw)
    if verbosity < 0:
        _write_quietly(document, screen)
    else:
        if verbosity > 0 and longreprs:
            _write_tracebacks(longreprs, screen)
        how = Detailing(verbosity=verbosity, answers_path=answers_path)
        _write_plans(document, screen, how, {loaded.plan.todo_list_id: loaded for loaded in plans})
        if document.causes:
            from pytest_planverify.reports.causes import write_causes  # a green run has none

            write_causes(document, screen, verbosity=verbosity)
        _write_comparison(document.summary, screen)
        _write_notes(document.run, screen, outcomes_path)
    text, style = final_line(document)
    screen.rule(text, style)


def final_line(document: OutcomeDocument) -> tuple[str, Style]:
    """``3 done, 1 failed, 2 blocked in 1.24s`` and the colour that it has as a whole."""
    tally = Counter(standing(outcome) for outcome in document.outcomes)
    word, style = EXIT_WORDS.get(
        document.run.exit_status, (f"exit status {document.run.exit_status}", Style.BAD)
    )
    parts = [word, *(f"{tally[name]} {WORDS[name].text}" for name in Standing if tally[name])]
    said = ", ".join(part for part in parts if part) or "no todos"
    if style is Style.GOOD and tally[Standing.DONE] < len(document.outcomes):
        style = Style.WARN
    return f"{said} in {duration(document.run.duration_ms)}", style


def _write_quietly(document: OutcomeDocument, screen: Screen) -> None:
    for outcome in document.outcomes:
        name = standing(outcome)
        if not name.is_open:
            continue
        failures = distinct_failures(outcome)
        reasons = [
            check.reason or check.title for check in outcome.checks if check.verdict.value != "passed"
        ]
        said = headline(failures[0]) if failures else next(filter(None, reasons), "")
        word = WORDS[name]
        screen.line(
            Span(word.shown(screen.glyphs) + " ", word.style),
            Span(screen.text(outcome.todo_id), Style.STRONG),
            Span(f": {screen.text(said)}" if said else ""),
        )


def _write_plans(
    document: OutcomeDocument, screen: Screen, how: Detailing, loaded: Mapping[str, LoadedPlan]
) -> None:
    """The todos of each plan under its name; one plan's name is shown where there is one to show."""
    screen.blank()
    known = {ref.todo_list_id: ref.path for ref in document.plans}
    for plan_id in dict.fromkeys([*known, *(outcome.plan or "" for outcome in document.outcomes)]):
        outcomes = [outcome for outcome in document.outcomes if (outcome.plan or _only(known)) == plan_id]
        if not outcomes and plan_id not in known:
            continue
        path = known.get(plan_id)
        named = loaded.get(plan_id)
        name = (named.plan.workflow_name if named else None) or plan_id
        _write_heading(screen.text(name), screen.text(path or ""), screen)
        _write_todos(outcomes, screen, how)
        screen.blank()


def _write_heading(name: str, path: str, screen: Screen) -> None:
    """The plan's name and, beside or below it, its file."""
    if cells(name) + 2 + cells(path) <= screen.width:
        screen.line(Span(name, Style.STRONG), Span(f"  {path}", Style.QUIET))
        return
    screen.line(Span(name, Style.STRONG))
    if path:
        screen.whole(Span(path, Style.QUIET))


def _only(known: Mapping[str, str]) -> str:
    return next(iter(known)) if len(known) == 1 else ""


def _write_todos(outcomes: Sequence[Outcome], screen: Screen, how: Detailing) -> None:
    ranks = ranks_of(outcomes)
    rows = [row_of(outcome, screen, ranks[outcome.todo_id]) for outcome in outcomes]
    columns = fitted(rows, screen)
    detailed = False
    for outcome, row in zip(outcomes, rows, strict=True):
        if detailed:
            screen.blank()
        write_row(row, columns, screen)
        detailed = write_details(outcome, screen, how)


def _write_tracebacks(longreprs: Longreprs, screen: Screen) -> None:
    """Each failing test's traceback once, however many checks share it."""
    shown: set[tuple[str, str, str]] = set()
    for (plan_id, todo_id, _), failures in longreprs.items():
        parent, _, _ = todo_id.rpartition("/")  # another sub-plan's root may hold tests of the same names
        for nodeid, longrepr in failures:
            if (plan_id, parent, nodeid) in shown:
                continue
            shown.add((plan_id, parent, nodeid))
            screen.blank()
            screen.rule(screen.text(f"{todo_id}: {nodeid}"), Style.BAD, fill="_")
            for line in screen.texts(longrepr):
                style = Style.QUOTE if line.startswith(("E ", ">")) else Style.PLAIN
                screen.folded(line, style=style)


def _write_comparison(summary: Summary, screen: Screen) -> None:
    """The tests of the run beside the baseline: what was red before is counted apart."""
    if not summary.tests_since:
        return
    parts = [
        Span(f"{count} {text}", style)
        for since, (text, style) in TESTS_SINCE.items()
        if (count := summary.tests_since.get(since, 0))
    ]
    spans = [part for each in parts for part in (Span(", "), each)][1:]
    screen.whole(Span("baseline".ljust(10), Style.QUIET), *(spans or [Span("nothing is red that was not")]))


def _write_notes(run: RunInfo, screen: Screen, outcomes_path: str | None) -> None:
    for note in dict.fromkeys(run.notes):
        screen.labelled("note", screen.text(note), style=Style.WARN, indent=0, column=10)
    if outcomes_path:
        screen.whole(Span("outcomes".ljust(10), Style.QUIET), Span(screen.text(outcomes_path)))
