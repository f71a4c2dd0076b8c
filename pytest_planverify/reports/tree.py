"""What ``--collect-only`` shows: the todos of a plan, their criteria, and the tests that each selects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.model.outcome import CheckKind
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from pytest_planverify.reports.screen import Screen, Span, Style, cells
from pytest_planverify.reports.words import counted, number

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from planner.edges.plan_file import LoadedPlan
    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion

Selected = Mapping[tuple[str, str], Sequence[str]]
"""Todo id and check id to the node ids that the check selects."""


def render_tree(
    tw: TerminalWriter,
    plan: LoadedPlan,
    selected: Selected,
    problems: Mapping[tuple[str, str], Sequence[str]] | None = None,
    *,
    verbosity: int = 0,
    todo_ids: Collection[str] | None = None,
) -> None:
    """Write the tree. ``problems`` says of a check what is wrong with its selection, one sentence each.

    ``todo_ids`` are the todos that were asked for, all of the plan where it is ``None``.

    Below zero verbosity only the node ids are written, each once, so that they can be piped on.
    """
    screen = Screen(tw)
    if verbosity < 0:
        for nodeid in dict.fromkeys(nodeid for nodeids in selected.values() for nodeid in nodeids):
            screen.whole(Span(screen.text(nodeid)))
        return
    todos = [todo for todo in plan.plan.items if todo_ids is None or todo.id in todo_ids]
    name = plan.plan.workflow_name or plan.plan.todo_list_id
    _write_line(screen, name, _totals(len(todos), selected), Style.STRONG)
    for position, todo in enumerate(todos):
        _write_todo(screen, plan, todo, selected, problems or {}, is_last=position == len(todos) - 1)


def criterion_text(criterion: Criterion) -> str:
    """What a person calls the criterion: its command, path, comparison or question."""
    spec = criterion.spec
    if isinstance(spec, CommandSpec):
        return spec.cmd
    if isinstance(spec, ArtifactSpec):
        return spec.path
    if isinstance(spec, MetricSpec):
        return f"{spec.name} {spec.operator} {number(spec.value)}"
    if isinstance(spec, ManualSpec):
        return spec.question
    return spec


def _write_todo(
    screen: Screen,
    plan: LoadedPlan,
    todo: Todo,
    selected: Selected,
    problems: Mapping[tuple[str, str], Sequence[str]],
    *,
    is_last: bool,
) -> None:
    glyphs = screen.glyphs
    criteria = plan.criteria.get(todo.id, ())
    tests = len({nodeid for criterion in criteria for nodeid in selected.get((todo.id, criterion.id), ())})
    counts = ", ".join([counted(len(criteria), "criterion"), *([counted(tests, "test")] if tests else [])])
    prefix = glyphs.last if is_last else glyphs.branch
    title = "" if todo.title == todo.id else f"  {todo.title}"
    _write_line(screen, f"{todo.id}{title}", counts, Style.STRONG, prefix)
    stem = "   " if is_last else glyphs.stem
    for position, criterion in enumerate(criteria):
        ends = position == len(criteria) - 1
        nodeids = selected.get((todo.id, criterion.id), ())
        is_test = criterion.kind is CheckKind.TEST
        _write_line(
            screen,
            f"{criterion.id}  {criterion_text(criterion)}",
            counted(len(nodeids), "test") if is_test else "",
            Style.PLAIN,
            stem + (glyphs.last if ends else glyphs.branch),
        )
        below = stem + ("   " if ends else glyphs.stem) + "  "
        for problem in problems.get((todo.id, criterion.id), ()):
            for line in screen.wrap(screen.text(problem), screen.width - cells(below) - 2):
                screen.line(Span(below), Span("! ", Style.WARN), Span(line, Style.WARN))
        for nodeid in nodeids:
            screen.whole(Span(below), Span(screen.text(nodeid), Style.QUIET))


def _write_line(screen: Screen, text: str, counts: str, style: Style, prefix: str = "") -> None:
    """A line whose counts are never what is cut off."""
    tail = f"  ({counts})" if counts else ""
    room = screen.width - cells(prefix) - cells(tail)
    screen.line(
        Span(prefix, Style.QUIET),
        Span(screen.clip(screen.text(text), max(room, 4)), style),
        Span(tail, Style.QUIET),
    )


def _totals(todos: int, selected: Selected) -> str:
    tests = len({nodeid for nodeids in selected.values() for nodeid in nodeids})
    return f"{counted(todos, 'todo')}, {counted(tests, 'test')}"
