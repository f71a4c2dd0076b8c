"""HTML: one self-contained page with the graph of each plan, the root causes and every todo."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import Since
from planner.policy.dependencies import waves
from pytest_planverify.reports.cases import TEMPLATES, render_template, safe
from pytest_planverify.reports.words import standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Outcome
    from planner.model.plan import Todo
    from pytest_planverify.reports.cases import ReportInput

# Pixels: width and height of a node, distance of columns, distance of rows.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 170, 30, 230, 42
_LONGEST_LABEL = 22
MOST_EDGES = 4_000
"""Edges that are drawn of one graph; with more the picture is unreadable."""


class GraphNode(NamedTuple):
    """A todo in the graph; ``x`` and ``y`` are its upper left corner."""

    todo_id: str
    label: str
    state: str
    x: int
    y: int
    is_branch: bool


class Graph(NamedTuple):
    """The todos of a plan, one column per wave; an edge is an SVG path from a dependency to its todo."""

    nodes: list[GraphNode]
    edges: list[str]
    width: int
    height: int


def render(data: ReportInput) -> str:
    """Return the page. Its script is inlined, and allowed by hash in the page's content security policy."""
    from markupsafe import Markup

    # Without the blanks at its ends: the browser hashes exactly the text between the tags.
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8").strip()
    document = data.document
    ran = [outcome for outcome in document.outcomes if not outcome.blocked_by]
    tests = [test for outcome in document.outcomes for check in outcome.checks for test in check.tests]
    return render_template(
        "page.html",
        data,
        graphs={plan: draw(todos, document.outcomes, plan) for plan, todos in data.todos.items()},
        since={each: sorted({test.nodeid for test in tests if test.since is each}) for each in Since},
        slowest=sorted(ran, key=lambda each: -(each.metrics.duration_ms or 0))[:15],
        style=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def draw(todos: Sequence[Todo], outcomes: Sequence[Outcome], plan: str) -> Graph:
    """Return the layout of the graph of one plan; the colours come from the todos' outcomes."""
    states = {each.todo_id: standing(each).value for each in outcomes if each.plan in (None, plan)}
    by_id = {todo.id: todo for todo in todos}
    nodes: dict[str, GraphNode] = {}
    columns = waves(todos)
    for column, ids in enumerate(columns):
        for row, todo_id in enumerate(ids):
            label = safe(todo_id)
            if len(label) > _LONGEST_LABEL:
                label = f"{label[: _LONGEST_LABEL - 1]}…"
            state = states.get(todo_id, "not_run").replace("_", "-")
            is_branch = by_id[todo_id].branch_reason is not None
            nodes[todo_id] = GraphNode(todo_id, label, state, column * _ACROSS, row * _DOWN, is_branch)
    ends = [(nodes[each], nodes[todo.id]) for todo in todos for each in todo.dependencies if each in nodes]
    rows = max((len(ids) for ids in columns), default=0)
    edges: list[str] = []
    for source, target in ends[:MOST_EDGES]:
        x, y, end_x, end_y = source.x + _WIDTH, source.y + _HEIGHT // 2, target.x, target.y + _HEIGHT // 2
        middle = (x + end_x) // 2
        edges.append(f"M{x} {y} C{middle} {y} {middle} {end_y} {end_x} {end_y}")
    return Graph(list(nodes.values()), edges, len(columns) * _ACROSS, rows * _DOWN)
