"""The tree printed by ``--collect-only``: todos, their criteria, and the tests that each selects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind
from planner.text.display import cells, counted, wrapped
from pytest_planverify.checks.result import title_of
from pytest_planverify.reports.screen import ReportScreen, Style, StyledText

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from planner.policy.criteria import Criterion

Selected = Mapping[tuple[str, str], Sequence[str]]
"""Node ids selected by each check, by todo id and check id."""


def render_tree(
    tw: TerminalWriter,
    plan: LoadedPlan,
    selected: Selected,
    problems: Mapping[tuple[str, str], Sequence[str]] | None = None,
    *,
    verbosity: int = 0,
    todo_ids: Collection[str] | None = None,
) -> None:
    """Write the tree of a plan.

    ``problems`` are sentences on what is wrong with the selection of a check, by todo id and check id.
    ``todo_ids`` limits the tree to the requested todos; ``None`` means the whole plan. With a negative
    verbosity only the node ids are written, each once, for use in a pipe.
    """
    screen = ReportScreen(tw)
    if verbosity < 0:
        for nodeid in dict.fromkeys(nodeid for nodeids in selected.values() for nodeid in nodeids):
            screen.line(StyledText(screen.text(nodeid)))
        return
    todos = [todo for todo in plan.plan.items if todo_ids is None or todo.id in todo_ids]
    name = plan.plan.workflow_name or plan.plan.todo_list_id
    tests = len({nodeid for nodeids in selected.values() for nodeid in nodeids})
    totals = f"{counted(len(todos), 'todo')}, {counted(tests, 'test')}"
    _write_line(screen, name, totals, Style.STRONG)
    shown = {todo.id for todo in todos}
    # Selected todos may be shown without their parents; they then stand at the top.
    nested: dict[str, list[Todo]] = {}
    """By id of a parent that is shown, the todos of its sub-plan; under ``""`` those at the top."""
    for todo in todos:
        parent, _, _ = todo.id.rpartition("/")
        nested.setdefault(parent if parent in shown else "", []).append(todo)
    glyphs = screen.glyphs

    def write_todos(parent: str, stem: str) -> None:
        """Write the todos of one plan, each followed by its criteria and the todos of its sub-plan.

        ``parent`` is the id of the parent, empty at the top; ``stem`` are the lines drawn left of them.
        """
        for todo in (todos := nested.get(parent, [])):
            is_last = todo is todos[-1]
            criteria, below = plan.criteria.get(todo.id, ()), nested.get(todo.id, ())
            tests = {nodeid for each in criteria for nodeid in selected.get((todo.id, each.id), ())}
            counts = [
                *([counted(len(below), "todo")] if below else []),
                *([] if below and not criteria else [counted(len(criteria), "criterion")]),
                *([counted(len(tests), "test")] if tests else []),
            ]
            name = todo.id.removeprefix(f"{parent}/") if parent else todo.id
            title = "" if todo.title == name else f"  {todo.title}"
            prefix = stem + (glyphs.last if is_last else glyphs.tee)
            _write_line(screen, f"{name}{title}", ", ".join(counts), Style.STRONG, prefix)
            inner = stem + ("   " if is_last else glyphs.stem)
            for criterion in criteria:
                ends = criterion is criteria[-1] and not below  # else todos follow in the same branch
                write_criterion(todo.id, criterion, inner, is_last=ends)
            write_todos(todo.id, inner)

    def write_criterion(todo_id: str, criterion: Criterion, stem: str, *, is_last: bool) -> None:
        nodeids = selected.get((todo_id, criterion.id), ())
        count = counted(len(nodeids), "test") if criterion.kind is CheckKind.TEST else ""
        text = f"{criterion.id}  {title_of(criterion)}"
        _write_line(screen, text, count, Style.PLAIN, stem + (glyphs.last if is_last else glyphs.tee))
        below = stem + ("   " if is_last else glyphs.stem) + "  "
        for problem in (problems or {}).get((todo_id, criterion.id), ()):
            for line in wrapped(screen.text(problem), screen.width - cells(below) - 2):
                screen.line(StyledText(below), StyledText("! ", Style.WARN), StyledText(line, Style.WARN))
        for nodeid in nodeids:
            screen.line(StyledText(below), StyledText(screen.text(nodeid), Style.QUIET))

    write_todos("", "")


def _write_line(screen: ReportScreen, text: str, counts: str, style: Style, prefix: str = "") -> None:
    screen.line(
        StyledText(prefix, Style.QUIET),
        StyledText(screen.text(text), style),
        StyledText(f"  ({counts})" if counts else "", Style.QUIET),
    )
