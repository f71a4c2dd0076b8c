"""One line a todo: how it stands, its id and title, what was counted and how long it took, in columns.

The columns are as wide as their content. Where the terminal is too narrow for that, the title gives way
first, then the count of tests, the title altogether, the count of checks, and at last the middle of ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import CheckKind, TestOutcome, Verdict
from pytest_planverify.reports.screen import Screen, Span, Style, cells, padded, widest
from pytest_planverify.reports.words import WORDS, Standing, Word, counted, duration, number, standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Check, Outcome

GAP = "  "
INDENT = 4
"""Where everything that belongs under a todo begins."""

SHORTEST_TITLE = 16
SHORTEST_ID = 8
_UNCOUNTED = (TestOutcome.SKIPPED, TestOutcome.NOT_RUN)


class Row(NamedTuple):
    """What the line of one todo says."""

    word: Word
    id: str
    title: str
    progress: str
    """Of a parent, how many todos of its sub-plan are done: ``(2/3)``. It ends the title."""
    checks: str
    tests: str
    time: str
    tail: str
    """Metric values, or by whom the todo is blocked; below the line where it does not fit."""

    @property
    def whole_title(self) -> str:
        return " ".join(part for part in (self.title, self.progress) if part)


class Columns(NamedTuple):
    """How many cells each column has; a column of none is left out."""

    word: int
    id: int
    title: int
    checks: int
    tests: int
    time: int

    @property
    def total(self) -> int:
        shown = [self.word, self.id, self.title, self.checks, self.tests, self.time]
        return sum(shown) + len(GAP) * (sum(1 for width in shown if width) - 1)


class Rank(NamedTuple):
    """Where a todo stands among those that are shown."""

    depth: int = 0
    """How many of its parents are shown above it."""
    children: tuple[Outcome, ...] = ()
    """The todos of its sub-plan."""


def ranks_of(outcomes: Sequence[Outcome]) -> dict[str, Rank]:
    """The rank of each todo, by id."""
    shown = {outcome.todo_id for outcome in outcomes}
    children: dict[str, list[Outcome]] = {}
    depths: dict[str, int] = {}
    for outcome in outcomes:
        parent, _, _ = outcome.todo_id.rpartition("/")
        children.setdefault(parent, []).append(outcome)
        depths[outcome.todo_id] = depths[parent] + 1 if parent in shown and parent in depths else 0
    return {todo_id: Rank(depth, tuple(children.get(todo_id, ()))) for todo_id, depth in depths.items()}


TOP = Rank()


def row_of(outcome: Outcome, screen: Screen, rank: Rank = TOP) -> Row:
    """The row of one todo, every text in it made printable."""
    name = standing(outcome)
    quiet = name in (Standing.BLOCKED, Standing.NOT_RUN)
    title = screen.text(outcome.title or "")
    spent = outcome.metrics.duration_ms
    return Row(
        word=WORDS[name],
        id=GAP * rank.depth
        + screen.text(outcome.todo_id.rpartition("/")[2] if rank.depth else outcome.todo_id),
        title="" if title == outcome.todo_id else title,
        progress=_progress(rank.children),
        checks="" if quiet else _ratio(*_checks_that_hold(outcome), "check"),
        tests="" if quiet else _ratio(*_tests_that_hold(outcome), "test"),
        time="" if quiet or spent is None else duration(spent),
        tail=screen.text(_tail(outcome, name)),
    )


def fitted(rows: Sequence[Row], screen: Screen) -> Columns:
    """The widths that show these rows best on this screen."""
    columns = Columns(
        word=widest([row.word.shown(screen.glyphs) for row in rows]),
        id=widest([row.id for row in rows]),
        title=widest([row.whole_title for row in rows]),
        checks=widest([row.checks for row in rows]),
        tests=widest([row.tests for row in rows]),
        time=widest([row.time for row in rows]),
    )
    columns = _shrunk(columns, "title", screen.width, least=min(columns.title, SHORTEST_TITLE))
    for column in ("tests", "title", "checks"):
        if columns.total > screen.width:
            columns = columns._replace(**{column: 0})
            if column == "tests":
                columns = _widened_title(columns, rows, screen.width)
    return _shrunk(columns, "id", screen.width, least=SHORTEST_ID)


def write_row(row: Row, columns: Columns, screen: Screen) -> None:
    """The line of one todo, and its tail below it where there is no room beside it."""
    left = [
        Span(padded(row.word.shown(screen.glyphs), columns.word), row.word.style),
        Span(GAP + padded(screen.clip_middle(row.id, columns.id), columns.id), Style.STRONG),
    ]
    if columns.title:
        room = columns.title - (cells(row.progress) + 1 if row.progress and row.title else 0)
        row = row._replace(title=screen.clip(row.title, room))
        left.append(Span(GAP + padded(screen.clip(row.whole_title, columns.title), columns.title)))
    used = sum(cells(span.text) for span in left)
    if row.checks:
        left += [
            Span(GAP + padded(text, width, right=right))
            for text, width, right in (
                (row.checks, columns.checks, True),
                (row.tests, columns.tests, True),
                (row.time, columns.time, True),
            )
            if width
        ]
        used = columns.total
    beside = row.tail and used + len(GAP) + cells(row.tail) <= screen.width
    if beside:
        left.append(Span(GAP + row.tail, Style.QUIET))
    screen.line(*left)
    if row.tail and not beside:
        screen.paragraph(row.tail, style=Style.QUIET, indent=INDENT)


def blocked_by(outcome: Outcome) -> str:
    """``blocked by t2_indicators``: the nearest todos that failed, the rest counted."""
    nearest, *rest = outcome.blocked_by or ("a dependency",)
    return f"by {nearest}" + (f" and {len(rest)} more" if rest else "")


def metric_values(outcome: Outcome) -> str:
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


def tests_of(check: Check) -> tuple[int, int]:
    """How many tests of the check hold, of how many that were run."""
    run = [test for test in check.tests if test.outcome not in _UNCOUNTED]
    return sum(1 for test in run if not test.outcome.is_red), len(run)


def _checks_that_hold(outcome: Outcome) -> tuple[int, int]:
    return sum(1 for check in outcome.checks if check.counts_as is Verdict.PASSED), len(outcome.checks)


def _tests_that_hold(outcome: Outcome) -> tuple[int, int]:
    """Over all checks; a test that two checks share counts once."""
    seen = {
        test.nodeid: not test.outcome.is_red
        for check in outcome.checks
        for test in check.tests
        if test.outcome not in _UNCOUNTED
    }
    return sum(seen.values()), len(seen)


def _progress(children: Sequence[Outcome]) -> str:
    done = sum(standing(child) is Standing.DONE for child in children)
    return f"({done}/{len(children)})" if children else ""


def _ratio(good: int, of: int, noun: str) -> str:
    if not of:
        return "" if noun == "test" else f"no {noun}s"
    total = counted(of, noun).ljust(len(f"{of} {noun}s"))  # so that "1 check" ends where "2 checks" does
    return total if good == of else f"{good}/{total}"


def _tail(outcome: Outcome, name: Standing) -> str:
    if name is Standing.BLOCKED:
        return blocked_by(outcome)
    if name is Standing.NOT_RUN:
        reasons = dict.fromkeys(check.reason for check in outcome.checks if check.reason)
        return "; ".join(reason for reason in reasons if reason)
    is_parent = any(check.kind is CheckKind.SUB_PLAN for check in outcome.checks)
    unproved = name is Standing.DONE and not outcome.verified and not is_parent
    return ", ".join(part for part in ("not verified" if unproved else "", metric_values(outcome)) if part)


def _values(values: Sequence[float | str]) -> str:
    shown = [number(value) for value in dict.fromkeys(values)]
    return (
        shown[0] if len(shown) == 1 else "[" + ", ".join(shown[:4]) + (", ...]" if len(shown) > 4 else "]")
    )


def _shrunk(columns: Columns, name: str, width: int, *, least: int) -> Columns:
    excess = max(columns.total - width, 0)
    current: int = getattr(columns, name)
    return columns._replace(**{name: max(current - excess, min(current, least))})


def _widened_title(columns: Columns, rows: Sequence[Row], width: int) -> Columns:
    """Gives the title the cells that the tests have left over."""
    room = columns.title + max(width - columns.total, 0)
    return columns._replace(
        title=min(room, widest([row.whole_title for row in rows])) if columns.title else 0
    )
