"""The summary of a run on the terminal: one line for each todo, details of what is open, root causes.

This module lays out the lines of the todos in columns; :mod:`.details` writes what belongs below a todo,
and the root causes. Column widths are computed for all todos of a plan before the first line is written.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import CheckKind, TestOutcome, Verdict
from planner.policy.outcomes import failures_of
from planner.text.display import cells, counted, padded, wrapped
from pytest_planverify.reports.details import CAUSE_LABEL, Details, headline, write_causes
from pytest_planverify.reports.screen import GAP, INDENT, ReportScreen, Style, StyledText, widest
from pytest_planverify.reports.words import (
    TESTS_SINCE,
    UNCOUNTED,
    WORDS,
    Standing,
    duration,
    number,
    ratio,
    standing,
)

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from planner.model.outcome import Outcome, OutcomeDocument, RunInfo, Summary
    from planner.planfile.loader import LoadedPlan

CheckKey = tuple[str, str, str]
"""Plan id, todo id, check id."""

Longreprs = Mapping[CheckKey, Sequence[tuple[str, str]]]
"""By check, the failed node ids, each with pytest's own rendering of the failure."""

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
"""Word that an exit status adds to the final line, and the colour of that line."""


def render_summary(
    tw: TerminalWriter,
    document: OutcomeDocument,
    *,
    plans: Sequence[LoadedPlan] = (),
    verbosity: int = 0,
    outcomes_path: str | None = None,
    longreprs: Longreprs | None = None,
) -> None:
    """Write the summary of a run.

    ``plans`` provide the names of the plans. ``verbosity`` is pytest's: below zero only open todos are
    written, above zero also every check and the tracebacks in ``longreprs``. ``outcomes_path`` is shown as
    the file with all outcomes.
    """
    screen = ReportScreen(tw)
    if verbosity < 0:
        _write_quietly(document, screen)
    else:
        if verbosity > 0 and longreprs:
            _write_tracebacks(longreprs, screen)
        details = Details(
            screen=screen, verbosity=verbosity, outcomes_path=outcomes_path, causes=document.causes
        )
        _write_plans(document, screen, details, {loaded.plan.todo_list_id: loaded for loaded in plans})
        write_causes(document.causes, screen, verbosity=verbosity)
        _write_comparison(document.summary, screen)
        _write_notes(document.run, screen, outcomes_path)
    text, style = final_line(document)
    screen.rule(text, style)


def final_line(document: OutcomeDocument) -> tuple[str, Style]:
    """Return the final line, as ``3 done, 1 failed, 2 blocked in 1.24s``, and its style.

    An accepted run is shown in green only if all todos are done.
    """
    tally = Counter(standing(outcome) for outcome in document.outcomes)
    word, style = EXIT_WORDS.get(
        document.run.exit_status, (f"exit status {document.run.exit_status}", Style.BAD)
    )
    parts = [word, *(f"{tally[name]} {WORDS[name].text}" for name in Standing if tally[name])]
    counts = ", ".join(part for part in parts if part) or "no todos"
    if style is Style.GOOD and tally[Standing.DONE] < len(document.outcomes):
        style = Style.WARN
    return f"{counts} in {duration(document.run.duration_ms)}", style


def _write_quietly(document: OutcomeDocument, screen: ReportScreen) -> None:
    """Write one line for each open todo with its first reason, which goes below if it does not fit."""
    for outcome in document.outcomes:
        name = standing(outcome)
        if not name.is_open:
            continue
        failures = list(failures_of(outcome))
        reasons = [
            check.reason or check.title for check in outcome.checks if check.verdict.value != "passed"
        ]
        explanation = headline(failures[0]) if failures else next(filter(None, reasons), "")
        word, explanation = WORDS[name], screen.text(explanation)
        shown, todo_id = word.shown(screen.glyphs), screen.text(outcome.todo_id)
        # Without a terminal any line fits, so that programs find one for each todo.
        fits = cells(f"{shown} {todo_id}: {explanation}") <= (screen.columns or sys.maxsize)
        screen.line(
            StyledText(f"{shown} ", word.style),
            StyledText(todo_id, Style.STRONG),
            StyledText(f": {explanation}" if fits and explanation else ":" if explanation else ""),
        )
        if not fits:
            screen.paragraph(explanation, indent=INDENT)


def _write_plans(
    document: OutcomeDocument, screen: ReportScreen, details: Details, loaded: Mapping[str, LoadedPlan]
) -> None:
    """Write the todos of each plan under the plan's name (that of the workflow, else its id) and path."""
    screen.blank()
    known = {ref.todo_list_id: ref.path for ref in document.plans}
    # With one plan, outcomes without a plan belong to it.
    only_plan = next(iter(known)) if len(known) == 1 else ""
    for plan_id in dict.fromkeys([*known, *(outcome.plan or "" for outcome in document.outcomes)]):
        outcomes = [outcome for outcome in document.outcomes if (outcome.plan or only_plan) == plan_id]
        if not outcomes and plan_id not in known:
            continue
        named = loaded.get(plan_id)
        name = StyledText(screen.text((named and named.plan.workflow_name) or plan_id), Style.STRONG)
        path = StyledText(screen.text(known.get(plan_id) or ""), Style.QUIET)
        if cells(name.text) + len(GAP) + cells(path.text) <= screen.width:
            screen.line(name, StyledText(GAP), path)
        else:
            screen.line(name)
            screen.line(path)
        _write_todos(outcomes, screen, details)
        screen.blank()


def _write_todos(outcomes: Sequence[Outcome], screen: ReportScreen, details: Details) -> None:
    """Write the line and the details of each todo; a blank line follows one that needs attention."""
    parents = {above for outcome in outcomes for above in _above(outcome.todo_id)}
    # By todo, the todos below it that have no sub-plan themselves, as ``planner status`` counts them.
    below: dict[str, list[Outcome]] = {outcome.todo_id: [] for outcome in outcomes}
    for outcome in outcomes:
        for above in () if outcome.todo_id in parents else _above(outcome.todo_id):
            if above in below:
                below[above].append(outcome)
    rows = [_row_of(outcome, below, screen) for outcome in outcomes]
    columns = _fitted(rows, screen)
    detailed = False
    shown_tails: set[str] = set()
    for outcome, row in zip(outcomes, rows, strict=True):
        if detailed:
            screen.blank()
        # Many todos can be left out for one reason, which is shown with the first of them only.
        is_repeated = standing(outcome) is Standing.NOT_RUN and row.tail in shown_tails
        shown_tails.add(row.tail)
        _write_row(row._replace(tail="") if is_repeated else row, columns, screen)
        detailed = details.write(outcome)


class Row(NamedTuple):
    """The line of a todo: its texts by column, and the tail."""

    cells: dict[str, StyledText]
    tail: str
    """Skipped tests, metric values, the blocking todo, or the run that the verdicts are from; it is written
    below the line if it does not fit."""


SHORTEST_TITLE = 16
"""Cells. If the column of titles had fewer, other columns are left out first."""

_COUNTS = ("checks", "tests", "time")
"""Right-aligned columns, which are empty for a todo that was not run."""


def _above(todo_id: str) -> list[str]:
    """Return the qualified ids of the parents of a todo, the topmost first."""
    parts = todo_id.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _row_of(outcome: Outcome, below: Mapping[str, Sequence[Outcome]], screen: ReportScreen) -> Row:
    """Return the row of one todo with printable texts."""
    name = standing(outcome)
    # All verdicts are from earlier runs: there is no news about the todo.
    is_quiet = name is Standing.DONE and bool(outcome.checks) and all(c.taken_from for c in outcome.checks)
    depth = sum(above in below for above in _above(outcome.todo_id))
    parts = [standing(each) is Standing.DONE for each in below[outcome.todo_id]]
    title = screen.text(outcome.title or "")
    progress = f"({sum(parts)}/{len(parts)})" if parts else ""
    texts = {
        "word": WORDS[name].shown(screen.glyphs),
        "id": GAP * depth + screen.text(outcome.todo_id.rpartition("/")[2] if depth else outcome.todo_id),
        "title": f"{'' if title == outcome.todo_id else title} {progress}".strip(),
    }
    if not is_quiet and name not in (Standing.BLOCKED, Standing.NOT_RUN):
        seen = {  # a test shared by two checks counts once
            test.nodeid: not test.outcome.is_red
            for check in outcome.checks
            for test in check.tests
            if test.outcome not in UNCOUNTED
        }
        spent = outcome.metrics.duration_ms
        texts["checks"] = _ratio([check.counts_as is Verdict.PASSED for check in outcome.checks], "check")
        texts["tests"] = _ratio(list(seen.values()), "test")
        texts["time"] = "" if spent is None else duration(spent)
    styles = {} if is_quiet else {"word": WORDS[name].style, "id": Style.STRONG}
    usual = Style.QUIET if is_quiet else Style.PLAIN
    spans = {column: StyledText(text, styles.get(column, usual)) for column, text in texts.items()}
    return Row(spans, screen.text(_tail(outcome, name)))


def _fitted(rows: Sequence[Row], screen: ReportScreen) -> dict[str, int]:
    """Return the columns that fit, with their widths; without a terminal all fit."""
    every = {
        name: widest([row.cells[name].text for row in rows if name in row.cells])
        for name in ("word", "id", "title", *_COUNTS)
    }
    every = {name: width for name, width in every.items() if width}
    title = every.get("title", 0)
    # The title is narrowed and wrapped in its column, then the count of tests is left out, and at last
    # title and counts move below the line.
    for columns in (every, {name: width for name, width in every.items() if name != "tests"}):
        total = sum(columns.values()) + len(GAP) * (len(columns) - 1)
        room = title + (screen.columns or total) - total
        if room >= min(title, SHORTEST_TITLE):
            return columns | {"title": min(title, room)} if title else columns
    return {name: width for name, width in every.items() if name in ("word", "id", "time")}


def _write_row(row: Row, columns: Mapping[str, int], screen: ReportScreen) -> None:
    """Write the line of one todo, and below it the texts that do not fit."""
    title, *titles = wrapped(row.cells["title"].text, columns.get("title", 1)) or [""]
    shown = row.cells | {"title": row.cells["title"]._replace(text=title)}
    line = [
        StyledText(padded(cell.text, columns[name], right=name in _COUNTS) + GAP, cell.style)
        for name, cell in shown.items()
        if name in columns
    ]
    is_narrow = "title" not in columns and "checks" not in columns
    below = [cell.text.strip() for name, cell in row.cells.items() if is_narrow and name not in columns]
    used = sum(cells(span.text) for span in line)
    if not any(below) and used + cells(row.tail) <= (screen.columns or sys.maxsize):
        line.append(StyledText(row.tail, Style.QUIET))
    else:
        below.append(row.tail)
    screen.line(*line)
    for text in titles if "title" in columns else ():
        screen.line(StyledText(text, shown["title"].style), indent=columns["word"] + columns["id"] + 4)
    screen.paragraph(", ".join(filter(None, below)), style=Style.QUIET, indent=INDENT)


def _metric_values(outcome: Outcome) -> str:
    """Return ``rows_min=250 (>= 10)`` for every recorded metric, with its condition if the plan has one."""
    conditions = {
        name: condition.strip()
        for check in outcome.checks
        if check.kind is CheckKind.METRIC and check.title
        for name, _, condition in [check.title.partition(" ")]
    }
    parts: list[str] = []
    for name, values in outcome.recorded.items():
        shown = [number(value) for value in dict.fromkeys(values)]
        listed = ", ".join([*shown[:4], "..."] if len(shown) > 4 else shown)
        condition = f" ({conditions[name]})" if conditions.get(name) else ""
        parts.append(f"{name}={listed if len(shown) == 1 else f'[{listed}]'}{condition}")
    return ", ".join(parts)


def _ratio(results: Sequence[bool], noun: str) -> str:
    """Return the results as :func:`ratio` does, in cells of one column."""
    if not results:
        return "" if noun == "test" else f"no {noun}s"
    text = ratio(sum(results), len(results), noun)
    return text + " " * (len(results) == 1)  # aligns "1 check" with "2 checks"


def _tail(outcome: Outcome, name: Standing) -> str:
    """Return what :attr:`Row.tail` is for a todo of that standing; may be empty."""
    if name is Standing.BLOCKED:
        nearest, *rest = outcome.blocked_by or ("a dependency",)
        return f"by {nearest}" + (f" and {len(rest)} more" if rest else "")
    if name is Standing.NOT_RUN:
        reasons = dict.fromkeys(check.reason for check in outcome.checks if check.reason)
        return "; ".join(reason for reason in reasons if reason)
    runs = [check.taken_from for check in outcome.checks if check.taken_from]
    # Ids of runs begin with their time, so that the greatest is that of the latest.
    if name is Standing.DONE and runs and len(runs) == len(outcome.checks):
        return f"from run {max(runs)} (unchanged since)"
    is_parent = any(check.kind is CheckKind.SUB_PLAN for check in outcome.checks)
    unproved = name is Standing.DONE and not outcome.verified and not is_parent
    tests = (test for check in outcome.checks for test in check.tests)
    skipped = {test.nodeid for test in tests if test.outcome is TestOutcome.SKIPPED}
    parts = (
        "not verified" if unproved else "",
        f"{len(skipped)} skipped" if skipped and name is Standing.DONE else "",
        f"{counted(len(runs), 'check')} from run {max(runs)}" if runs else "",
        _metric_values(outcome),
    )
    return ", ".join(filter(None, parts))


def _write_tracebacks(longreprs: Longreprs, screen: ReportScreen) -> None:
    """Write each failing test's traceback once, however many checks share it."""
    shown: set[tuple[str, str, str]] = set()
    for (plan_id, todo_id, _), failures in longreprs.items():
        # Another sub-plan may have another root, with tests of the same node ids.
        parent, _, _ = todo_id.rpartition("/")
        for nodeid, longrepr in failures:
            if (plan_id, parent, nodeid) in shown:
                continue
            shown.add((plan_id, parent, nodeid))
            screen.blank()
            screen.rule(screen.text(f"{todo_id}: {nodeid}"), Style.BAD, fill="_")
            for line in screen.texts(longrepr):
                style = Style.QUOTE if line.startswith(("E ", ">")) else Style.PLAIN
                screen.line(StyledText(line, style))


def _write_comparison(summary: Summary, screen: ReportScreen) -> None:
    """Write the comparison of the tests with the baseline; earlier failures are counted separately."""
    if not summary.tests_since:
        return
    parts = [
        StyledText(f"{count} {text}", style)
        for since, (text, style) in TESTS_SINCE.items()
        if (count := summary.tests_since.get(since, 0))
    ]
    spans = [part for each in parts for part in (StyledText(", "), each)][1:]
    label = StyledText("baseline".ljust(CAUSE_LABEL), Style.QUIET)
    screen.line(label, *(spans or [StyledText("no new failures")]))


def _write_notes(run: RunInfo, screen: ReportScreen, outcomes_path: str | None) -> None:
    for note in dict.fromkeys(run.notes):
        screen.labelled("note", screen.text(note), style=Style.WARN, indent=0, column=CAUSE_LABEL)
    if outcomes_path:
        label = StyledText("outcomes".ljust(CAUSE_LABEL), Style.QUIET)
        screen.line(label, StyledText(screen.text(outcomes_path)))
