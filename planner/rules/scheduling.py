"""Which todos can be worked on now, and which branches may be opened beside those that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.decision import Move, ReadyTodo
from planner.model.plan import TodoStatus
from planner.model.verdicts import TodoState
from planner.rules.branching import open_branches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.rules.board import Board, Entry
    from planner.rules.triage import Ruling


def ready_todos(board: Board) -> Iterator[ReadyTodo]:
    """The primary todos that nothing stands before and that are not begun, in the order to take them up."""
    ready = [entry for entry in board.primaries() if _is_ready(board, entry)]
    for entry in sorted(ready, key=lambda entry: (entry.todo.priority, board.rank[entry.id])):
        yield ReadyTodo(
            todo_id=entry.id,
            title=entry.todo.title,
            role=entry.todo.agent_role,
            priority=entry.todo.priority,
            because=_why(entry),
        )


def deferred(board: Board, rulings: Iterable[Ruling], *, limit: int) -> set[str]:
    """The todos whose new branch has to wait, because ``limit`` branches are open by then.

    A branch that a person has to see to is no longer worked on, and takes no place.
    """
    given_up = {
        ruling.branch.id for ruling in rulings if ruling.move is Move.ESCALATE and ruling.branch is not None
    }
    places = limit - sum(branch.id not in given_up for branch in open_branches(board))
    wanted = [ruling for ruling in rulings if ruling.move is Move.BRANCH]
    first = sorted(wanted, key=lambda ruling: (ruling.entry.todo.priority, board.rank[ruling.entry.id]))
    return {ruling.entry.id for ruling in first[max(places, 0) :]}


def _is_ready(board: Board, entry: Entry) -> bool:
    todo = entry.todo
    if todo.has_sub_plan or entry.id in board.blocked or todo.status is TodoStatus.CLAIMED:
        return False
    begun = entry.state is not TodoState.PENDING and not entry.is_red_work
    if begun or entry.outcome is None or board.branches_of(entry):
        return False
    before = (board.entries.get(name) for name in entry.waits_for)
    return all(each is not None and each.state is TodoState.DONE for each in before)


def _why(entry: Entry) -> str:
    if entry.state is TodoState.TEST_FAILED:
        return "it is not claimed yet, and what it depends on is done"
    return "what it depends on is done" if entry.waits_for else "it depends on nothing"
