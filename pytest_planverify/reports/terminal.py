"""The summary of a run on the terminal: what holds, what does not and why, and what to do next."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import CheckKind, Verdict
from planner.text.display import cells, counted, padded, wrapped
from pytest_planverify.reports.details import Details, distinct_failures, headline, write_causes
from pytest_planverify.reports.screen import GAP, INDENT, ReportScreen, Style, StyledText, widest
from pytest_planverify.reports.words import (
    TESTS_SINCE,
    UNCOUNTED,
    WORDS,
    Standing,
    Word,
    duration,
    number,
    standing,
)

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from planner.model.outcome import Outcome, OutcomeDocument, RunInfo, Summary
    from planner.planfile.loader import LoadedPlan

CheckKey = tuple[str, str, str]
"""Plan id, todo id, check id."""

Longreprs = Mapping[CheckKey, Sequence[tuple[str, str]]]
"""For each check the node ids that failed, each with pytest's own rendering of the failure."""

SHORTEST_TITLE = 16
"""A column of fewer cells is no place for a title."""

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
    longreprs: Longreprs | None = None,
) -> None:
    """Write the summary of a run.

    ``plans`` give the plans their names. ``verbosity`` is pytest's: below zero only what is not done, above
    zero every check and the long tracebacks in ``longreprs``, above one every test. ``outcomes_path``
    is shown as the file to read.
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


def _write_quietly(document: OutcomeDocument, screen: ReportScreen) -> None:
    for outcome in document.outcomes:
        name = standing(outcome)
        if not name.is_open:
            continue
        failures = distinct_failures(outcome)
        reasons = [
            check.reason or check.title for check in outcome.checks if check.verdict.value != "passed"
        ]
        said = headline(failures[0]) if failures else next(filter(None, reasons), "")
        word, said = WORDS[name], screen.text(said)
        shown, todo_id = word.shown(screen.glyphs), screen.text(outcome.todo_id)
        fits = cells(f"{shown} {todo_id}: {said}") <= (screen.columns or sys.maxsize)
        screen.line(
            StyledText(f"{shown} ", word.style),
            StyledText(todo_id, Style.STRONG),
            StyledText(f": {said}" if fits and said else ":" if said else ""),
        )
        if not fits:
            screen.paragraph(said, indent=INDENT)


def _write_plans(
    document: OutcomeDocument, screen: ReportScreen, details: Details, loaded: Mapping[str, LoadedPlan]
) -> None:
    """The todos of each plan under its name; one plan's name is shown where there is one to show."""
    screen.blank()
    known = {ref.todo_list_id: ref.path for ref in document.plans}
    for plan_id in dict.fromkeys([*known, *(outcome.plan or "" for outcome in document.outcomes)]):
        only = next(iter(known)) if len(known) == 1 else ""
        outcomes = [outcome for outcome in document.outcomes if (outcome.plan or only) == plan_id]
        if not outcomes and plan_id not in known:
            continue
        path = known.get(plan_id)
        named = loaded.get(plan_id)
        name = (named.plan.workflow_name if named else None) or plan_id
        name, path = screen.text(name), screen.text(path or "")
        if cells(name) + 2 + cells(path) <= screen.width:
            screen.line(StyledText(name, Style.STRONG), StyledText(f"  {path}", Style.QUIET))
        else:
            screen.line(StyledText(name, Style.STRONG))
            if path:
                screen.line(StyledText(path, Style.QUIET))
        _write_todos(outcomes, screen, details)
        screen.blank()


def _write_todos(outcomes: Sequence[Outcome], screen: ReportScreen, details: Details) -> None:
    ranks = ranks_of(outcomes)
    rows = [_row_of(outcome, screen, ranks[outcome.todo_id]) for outcome in outcomes]
    columns = _fitted(rows, screen)
    detailed = False
    told: set[str] = set()
    for outcome, row in zip(outcomes, rows, strict=True):
        if detailed:
            screen.blank()
        # One run leaves out many todos for one reason: it is told with the first of them.
        is_told = row.word is WORDS[Standing.NOT_RUN] and row.tail in told
        told.add(row.tail)
        _write_row(row._replace(tail="") if is_told else row, columns, screen)
        detailed = details.write(outcome)


class Row(NamedTuple):
    """The texts of a todo's line."""

    word: Word
    id: str
    title: str
    progress: str
    """Of a parent, how many todos of its sub-plan are done: ``(2/3)``. It ends the title."""
    checks: str
    tests: str
    time: str
    tail: str
    """Metric values, by whom the todo is blocked, or the run that its verdicts are from; below the line
    where it does not fit."""
    is_quiet: bool = False
    """Nothing about the todo is news."""

    @property
    def whole_title(self) -> str:
        return " ".join(part for part in (self.title, self.progress) if part)


class Rank(NamedTuple):
    """The place of a todo among those that are shown."""

    depth: int = 0
    """How many of its parents are shown above it."""
    parts: tuple[Outcome, ...] = ()
    """The todos below it that have no sub-plan themselves, as ``planner status`` counts them."""


def ranks_of(outcomes: Sequence[Outcome]) -> dict[str, Rank]:
    """Return the rank of each todo, by id."""
    shown = {outcome.todo_id for outcome in outcomes}
    parents = {outcome.todo_id.rpartition("/")[0] for outcome in outcomes}
    parts: dict[str, list[Outcome]] = {}
    depths: dict[str, int] = {}
    for outcome in outcomes:
        parent, _, _ = outcome.todo_id.rpartition("/")
        depths[outcome.todo_id] = depths[parent] + 1 if parent in shown and parent in depths else 0
        while parent and outcome.todo_id not in parents:
            parts.setdefault(parent, []).append(outcome)
            parent = parent.rpartition("/")[0]
    return {todo_id: Rank(depth, tuple(parts.get(todo_id, ()))) for todo_id, depth in depths.items()}


def _row_of(outcome: Outcome, screen: ReportScreen, rank: Rank) -> Row:
    """Return the row of one todo, every text in it made printable."""
    name = standing(outcome)
    is_quiet = name is Standing.DONE and bool(outcome.checks) and all(c.taken_from for c in outcome.checks)
    is_counted = not is_quiet and name not in (Standing.BLOCKED, Standing.NOT_RUN)
    title = screen.text(outcome.title or "")
    spent = outcome.metrics.duration_ms
    held = [check.counts_as is Verdict.PASSED for check in outcome.checks]
    done = sum(standing(part) is Standing.DONE for part in rank.parts)
    seen = {  # a test that two checks share counts once
        test.nodeid: not test.outcome.is_red
        for check in outcome.checks
        for test in check.tests
        if test.outcome not in UNCOUNTED
    }
    return Row(
        word=WORDS[name],
        id=GAP * rank.depth
        + screen.text(outcome.todo_id.rpartition("/")[2] if rank.depth else outcome.todo_id),
        title="" if title == outcome.todo_id else title,
        progress=f"({done}/{len(rank.parts)})" if rank.parts else "",
        checks=_ratio(held, "check") if is_counted else "",
        tests=_ratio(list(seen.values()), "test") if is_counted else "",
        time=duration(spent) if is_counted and spent is not None else "",
        tail=screen.text(_tail(outcome, name)),
        is_quiet=is_quiet,
    )


def _fitted(rows: Sequence[Row], screen: ReportScreen) -> dict[str, int]:
    """Return the widths of the columns that show these rows best; a column of none is left out.

    Without a terminal they are as wide as their content. On one the title gives way, which is then wrapped
    in its column; then the count of tests goes; at last title and counts stand below.
    """
    columns = {
        "word": widest([row.word.shown(screen.glyphs) for row in rows]),
        "id": widest([row.id for row in rows]),
        "title": widest([row.whole_title for row in rows]),
        "checks": widest([row.checks for row in rows]),
        "tests": widest([row.tests for row in rows]),
        "time": widest([row.time for row in rows]),
    }
    for fewer in (columns, columns | {"tests": 0}):
        shown = [width for width in fewer.values() if width]
        total, title = sum(shown) + len(GAP) * (len(shown) - 1), fewer["title"]
        room = max(title - total + (screen.columns or total), 0)
        if room >= min(title, SHORTEST_TITLE):
            return fewer | {"title": min(title, room)}
    return columns | {"title": 0, "checks": 0, "tests": 0}


def _write_row(row: Row, columns: Mapping[str, int], screen: ReportScreen) -> None:
    """Write the line of one todo, and below it what there is no room for beside."""
    quiet = Style.QUIET if row.is_quiet else None
    room = columns["title"]
    titles = wrapped(row.whole_title, room) if room else []
    left = [
        StyledText(padded(row.word.shown(screen.glyphs), columns["word"]), quiet or row.word.style),
        StyledText(GAP + padded(row.id, columns["id"]), quiet or Style.STRONG),
    ]
    counts = ((row.checks, columns["checks"]), (row.tests, columns["tests"]), (row.time, columns["time"]))
    is_counted = any(text for text, _ in counts)
    if room:
        title = titles[0] if titles else ""
        is_last = not is_counted and not row.tail
        left.append(StyledText(GAP + (title if is_last else padded(title, room)), quiet or Style.PLAIN))
    if is_counted:
        left += [StyledText(GAP + padded(text, width, right=True)) for text, width in counts if width]
    below = [] if room else [row.whole_title, row.checks.strip(), row.tests.strip()]
    used = sum(cells(span.text) for span in left)
    if not any(below) and used + len(GAP) + cells(row.tail) <= (screen.columns or sys.maxsize):
        left.append(StyledText(GAP + row.tail, Style.QUIET))
    else:
        below.append(row.tail)
    screen.line(*left)
    for title in titles[1:]:
        indent = columns["word"] + columns["id"] + 2 * len(GAP)
        screen.line(StyledText(title, quiet or Style.PLAIN), indent=indent)
    screen.paragraph(", ".join(filter(None, below)), style=Style.QUIET, indent=INDENT)


def _metric_values(outcome: Outcome) -> str:
    """``rows_min=250 (>= 10)`` for every metric that was recorded, the condition where the plan has one."""
    conditions = {
        name: condition.strip()
        for check in outcome.checks
        if check.kind is CheckKind.METRIC and check.title
        for name, _, condition in [check.title.partition(" ")]
    }
    parts: list[str] = []
    for name, values in outcome.recorded.items():
        condition = f" ({conditions[name]})" if conditions.get(name) else ""
        parts.append(f"{name}={_values(values)}{condition}")
    return ", ".join(parts)


def _ratio(held: Sequence[bool], noun: str) -> str:
    good, of = sum(held), len(held)
    if not of:
        return "" if noun == "test" else f"no {noun}s"
    total = counted(of, noun).ljust(len(f"{of} {noun}s"))  # so that "1 check" ends where "2 checks" does
    return total if good == of else f"{good}/{total}"


def _tail(outcome: Outcome, name: Standing) -> str:
    if name is Standing.BLOCKED:
        nearest, *rest = outcome.blocked_by or ("a dependency",)
        return f"by {nearest}" + (f" and {len(rest)} more" if rest else "")
    if name is Standing.NOT_RUN:
        reasons = dict.fromkeys(check.reason for check in outcome.checks if check.reason)
        return "; ".join(reason for reason in reasons if reason)
    runs = [check.taken_from for check in outcome.checks if check.taken_from]
    if name is Standing.DONE and runs and len(runs) == len(outcome.checks):
        return f"from run {max(runs)} (unchanged since)"
    is_parent = any(check.kind is CheckKind.SUB_PLAN for check in outcome.checks)
    unproved = name is Standing.DONE and not outcome.verified and not is_parent
    parts = (
        "not verified" if unproved else "",
        f"{counted(len(runs), 'check')} from run {max(runs)}" if runs else "",
        _metric_values(outcome),
    )
    return ", ".join(filter(None, parts))


def _values(values: Sequence[float | str]) -> str:
    shown = [number(value) for value in dict.fromkeys(values)]
    return (
        shown[0] if len(shown) == 1 else "[" + ", ".join(shown[:4]) + (", ...]" if len(shown) > 4 else "]")
    )


def _write_tracebacks(longreprs: Longreprs, screen: ReportScreen) -> None:
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
                screen.line(StyledText(line, style))


def _write_comparison(summary: Summary, screen: ReportScreen) -> None:
    """The tests of the run beside the baseline: what was red before is counted apart."""
    if not summary.tests_since:
        return
    parts = [
        StyledText(f"{count} {text}", style)
        for since, (text, style) in TESTS_SINCE.items()
        if (count := summary.tests_since.get(since, 0))
    ]
    spans = [part for each in parts for part in (StyledText(", "), each)][1:]
    screen.line(
        StyledText("baseline".ljust(10), Style.QUIET),
        *(spans or [StyledText("nothing is red that was not")]),
    )


def _write_notes(run: RunInfo, screen: ReportScreen, outcomes_path: str | None) -> None:
    for note in dict.fromkeys(run.notes):
        screen.labelled("note", screen.text(note), style=Style.WARN, indent=0, column=10)
    if outcomes_path:
        screen.line(StyledText("outcomes".ljust(10), Style.QUIET), StyledText(screen.text(outcomes_path)))
