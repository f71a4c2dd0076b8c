"""HTML: one page that needs no network, with the graph of the plan, the causes and every todo."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import Since
from planner.policy.dependencies import waves
from pytest_planverify.reports.cases import safe
from pytest_planverify.reports.template import FOLDER, render_template
from pytest_planverify.reports.words import standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Outcome
    from planner.model.plan import Todo
    from pytest_planverify.reports.cases import ReportInput

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 170, 30, 230, 42
_LONGEST_LABEL = 22
MOST_EDGES = 4_000
"""More lines of a graph show nothing to anybody."""


class GraphNode(NamedTuple):
    todo_id: str
    label: str
    state: str
    x: int
    y: int
    is_branch: bool


class Graph(NamedTuple):
    """The todos of a plan, a column a wave; an edge is a path from what a todo depends on."""

    nodes: list[GraphNode]
    edges: list[str]
    width: int
    height: int


def render(told: ReportInput) -> str:
    """Return the page."""
    from markupsafe import Markup

    script = (FOLDER / "page.js").read_text(encoding="utf-8").strip()
    document = told.document
    tests = [test for outcome in document.outcomes for check in outcome.checks for test in check.tests]
    return render_template(
        "page.html",
        told,
        graphs={plan: draw(todos, document.outcomes, plan) for plan, todos in told.todos.items()},
        since={each: sorted({test.nodeid for test in tests if test.since is each}) for each in Since},
        slowest=sorted(document.outcomes, key=lambda each: -(each.metrics.duration_ms or 0))[:15],
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def draw(todos: Sequence[Todo], outcomes: Sequence[Outcome], plan: str) -> Graph:
    """Return where the todos and what is between them stand."""
    states = {each.todo_id: standing(each).value for each in outcomes if each.plan in (None, plan)}
    by_id = {todo.id: todo for todo in todos}
    nodes: dict[str, GraphNode] = {}
    try:
        columns = waves(todos)
    except ValueError:  # a circle, which the plan's own validation tells of
        columns = (tuple(by_id),)
    for column, ids in enumerate(columns):
        for row, todo_id in enumerate(ids):
            label = safe(todo_id)
            if len(label) > _LONGEST_LABEL:
                label = f"{label[: _LONGEST_LABEL - 1]}…"
            state = states.get(todo_id, "not run").replace(" ", "-")
            is_branch = by_id[todo_id].branch_reason is not None
            nodes[todo_id] = GraphNode(todo_id, label, state, column * _ACROSS, row * _DOWN, is_branch)
    ends = [(nodes[each], nodes[todo.id]) for todo in todos for each in todo.dependencies if each in nodes]
    rows = max((len(ids) for ids in columns), default=0)
    edges: list[str] = []
    for one, other in ends[:MOST_EDGES]:
        x, y, end_x, end_y = one.x + _WIDTH, one.y + _HEIGHT // 2, other.x, other.y + _HEIGHT // 2
        middle = (x + end_x) // 2
        edges.append(f"M{x} {y} C{middle} {y} {middle} {end_y} {end_x} {end_y}")
    return Graph(list(nodes.values()), edges, len(columns) * _ACROSS, rows * _DOWN)
