"""The tree printed by ``--collect-only``: todos, their criteria, and the tests that each selects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind
from planner.text.display import counted
from pytest_planverify.checks.result import title_of
from pytest_planverify.reports.screen import GAP, ReportScreen, Style, StyledText

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan

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
    """Write the tree of a plan, in which each level is indented by two columns more.

    ``problems`` are sentences on what is wrong with the selection of a check, by todo id and check id.
    ``todo_ids`` limits the tree to the requested todos; ``None`` means the whole plan. With a negative
    verbosity only the node ids are written, each once, for use in a pipe.
    """
    screen = ReportScreen(tw)
    nodeids = dict.fromkeys(nodeid for found in selected.values() for nodeid in found)
    if verbosity < 0:
        for nodeid in nodeids:
            screen.line(StyledText(screen.text(nodeid)))
        return

    def write(level: int, text: str, counts: Sequence[str], style: Style = Style.STRONG) -> None:
        total = StyledText(f"  ({', '.join(counts)})" if counts else "", Style.QUIET)
        screen.line(StyledText(screen.text(text), style), total, indent=len(GAP) * level)

    todos = [todo for todo in plan.plan.items if todo_ids is None or todo.id in todo_ids]
    name = plan.plan.workflow_name or plan.plan.todo_list_id
    write(0, name, [counted(len(todos), "todo"), counted(len(nodeids), "test")])
    shown = {todo.id for todo in todos}
    nested: dict[str, list[Todo]] = {}
    """By id of a parent that is shown, the todos of its sub-plan; under ``""`` those at the top."""
    for todo in todos:
        above = todo.id.rpartition("/")[0]
        # Selected todos may be shown without their parents; they then stand at the top.
        nested.setdefault(above if above in shown else "", []).append(todo)

    def write_todos(parent: str, level: int) -> None:
        """Write the todos of one plan, each followed by its criteria and the todos of its sub-plan."""
        for todo in nested.get(parent, ()):
            criteria, below = plan.criteria.get(todo.id, ()), nested.get(todo.id, ())
            tests = {nodeid for each in criteria for nodeid in selected.get((todo.id, each.id), ())}
            counts = [
                *([counted(len(below), "todo")] if below else []),
                *([] if below and not criteria else [counted(len(criteria), "criterion")]),
                *([counted(len(tests), "test")] if tests else []),
            ]
            name = todo.id.removeprefix(f"{parent}/") if parent else todo.id
            write(level, name if todo.title == name else f"{name}{GAP}{todo.title}", counts)
            for criterion in criteria:
                key = todo.id, criterion.id
                found = selected.get(key, ())
                counts = [counted(len(found), "test")] if criterion.kind is CheckKind.TEST else []
                write(level + 1, f"{criterion.id}{GAP}{title_of(criterion)}", counts, Style.PLAIN)
                for problem in (problems or {}).get(key, ()):
                    write(level + 2, f"! {problem}", (), Style.WARN)
                for nodeid in found:
                    write(level + 2, nodeid, (), Style.QUIET)
            write_todos(todo.id, level + 1)

    write_todos("", 1)
