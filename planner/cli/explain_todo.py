"""Explain one todo of a plan: what it is, how it stands, what stands in its way, what comes next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.cli.next import open_run
from planner.cli.screen import Screen, counted
from planner.cli.status_screen import show_todo
from planner.engine.progress import status_tree
from planner.engine.rules import ENGINE_RULES

if TYPE_CHECKING:
    from pathlib import Path

    from planner.edges.explanations import Explanations
    from planner.engine.progress import Node
    from planner.store.plan_run import PlanRun

_COMES_NEXT = {
    "done": "Nothing: every criterion passed in the last run.",
    "testing": "Whatever keeps it undecided; then verify again.",
    "blocked": "Nothing of its own: repair what is in its way, and verify again.",
    "active": "The work that was asked for; of a parent, the todos of its sub-plan.",
    "ready": "Work on it, then verify.",
    "pending": "Work on it when all that it depends on is done.",
    "test_failed": "A repair.",
    "failed": "Nothing: it was given up.",
    "skipped": "Nothing: what it depends on was given up.",
    "halted": "Remove what has stopped everything, then verify again.",
}


def explain_todo(
    screen: Screen, path: Path, outcomes: Path | None, word: str, known: Explanations
) -> tuple[str, ...]:
    """Show the todo. Where the plan has none of that id, show nothing, and return all that has a name."""
    run = open_run(path, outcomes)
    tree = status_tree(run.state)
    node = tree.find(word)
    if node is None:
        return (*(each.id for each in tree.walk()), *known.words())
    show_todo(screen, run, node)
    _what_it_is(screen, run, node)
    _what_comes(screen, run, node, path)
    return ()


def _what_it_is(screen: Screen, run: PlanRun, node: Node) -> None:
    todo = run.state.records[node.id].todo
    if node.is_branch:
        depth = f", at depth {todo.branch_depth}" if todo.branch_depth else ""
        screen.labelled("is", f"a branch todo, made to repair {todo.parent_id}{depth}")
    elif node.is_parent:
        screen.labelled(
            "is", f"a parent: {node.done} of {counted(node.total, 'todo')} of its sub-plan are done"
        )
    else:
        criteria = run.tree.loaded.criteria.get(todo.id, ()) if "/" not in node.id else ()
        proved = f", proved by {counted(len(criteria), 'criterion')}" if criteria else ""
        screen.labelled("is", f"a unit of work{proved}")


def _what_comes(screen: Screen, run: PlanRun, node: Node, path: Path) -> None:
    """Say what is asked for, and the command that says it in full."""
    record = run.state.records[node.id]
    question = run.state.questions.get(record.question or "")
    if question is None:
        screen.labelled("next", _COMES_NEXT[node.state])
    else:
        sentence = ENGINE_RULES.get(question.rule, "")
        screen.labelled("next", f"{question.text} {question.because}. {sentence} [{question.rule}]")
    screen.line(f"           planner next {shlex.quote(str(path))} --todo {shlex.quote(node.id)}")
