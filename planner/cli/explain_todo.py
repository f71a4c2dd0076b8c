"""Explains one todo of a plan: what it is, how it stands, what stands in its way, what comes next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.cli import words
from planner.cli.loading import PlanView, load_view
from planner.cli.screen import Screen
from planner.cli.status_screen import show_todo
from planner.rules.deciding import DECISION_RULES
from planner.rules.progress import Standing, status_tree
from planner.rules.triage import triage
from planner.text.display import counted, listed

if TYPE_CHECKING:
    from pathlib import Path

    from planner.rules.progress import Node

_COMES_NEXT: dict[Standing, str] = {
    Standing.DONE: "Nothing: every criterion passed in the last run.",
    Standing.TESTING: "Whatever keeps it undecided; then verify again.",
    Standing.BLOCKED: "Nothing of its own: repair what is in its way, and verify again.",
    Standing.ACTIVE: "The todos of its sub-plan that are not done.",
    Standing.PENDING: "Work on it when all that it depends on is done, claim it, and verify.",
    Standing.FAILED: "A repair: planner next PLAN decides who makes it.",
}


def explain_todo(
    screen: Screen, path: Path, outcomes: Path | None, word: str, known: tuple[str, ...]
) -> tuple[str, ...]:
    """Show the todo. Where the plan has none of that id, show nothing, and return all that has a name."""
    view = load_view(path, outcomes)
    tree = status_tree(view.loaded.plan, view.board, view.since)
    node = tree.find(word)
    if node is None:
        return (*(each.id for each in tree.walk()), *known)
    for remark in view.remarks:
        screen.remark(remark)
    show_todo(screen, view, node)
    _what_it_is(screen, view, node)
    _what_comes(screen, view, node, path)
    return ()


def _what_it_is(screen: Screen, view: PlanView, node: Node) -> None:
    todo = view.board.entries[node.id].todo
    if node.is_branch:
        depth = f", at depth {todo.branch_depth}" if todo.branch_depth else ""
        screen.labelled("is", f"a branch todo, made to repair {todo.parent_id}{depth}")
    elif node.is_parent:
        screen.labelled(
            "is", f"a parent: {node.done} of {counted(node.total, 'todo')} of its sub-plan are done"
        )
    else:
        criteria = view.loaded.criteria.get(todo.id, ()) if "/" not in node.id else ()
        proved = f", proved by {counted(len(criteria), 'criterion')}" if criteria else ""
        screen.labelled("is", f"a unit of work{proved}")


def _what_comes(screen: Screen, view: PlanView, node: Node, path: Path) -> None:
    """What the planner would decide, and the command that says it in full."""
    ruling = next(
        (
            each
            for each in triage(view.board, view.document.run.finished_at)
            if node.id in (each.entry.id, each.branch.id if each.branch is not None else None)
        ),
        None,
    )
    waits = [
        name
        for name in view.board.entries[node.id].waits_for
        if name in view.board.entries and (view.board.entries[name].state or "") != "done"
    ]
    if node.standing is Standing.PENDING and waits:
        screen.labelled("next", f"It waits for {listed(waits)}.")
    elif ruling is None:
        screen.labelled("next", _COMES_NEXT[node.standing])
    else:
        sentence = DECISION_RULES.get(ruling.rule, "")
        about = (
            f" {ruling.failure.category}: {words.CATEGORIES[ruling.failure.category]}."
            if ruling.failure
            else ""
        )
        screen.labelled("next", f"{ruling.because}.{about} {sentence} [{ruling.rule}]")
        screen.line(
            f"           planner next {shlex.quote(str(path))} --todo {shlex.quote(ruling.entry.id)}"
        )
