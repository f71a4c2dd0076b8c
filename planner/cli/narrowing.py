"""The part of the decisions that concerns one todo."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.decision import Decisions


def narrowed(decisions: Decisions, todo_id: str) -> Decisions:
    """The decisions about one todo: its repair, what it waits for, what waits for it. A halt stays."""
    return decisions.model_copy(
        update={
            "repairs": tuple(
                each for each in decisions.repairs if todo_id in (each.todo_id, each.branch_id)
            ),
            "ready": tuple(each for each in decisions.ready if each.todo_id == todo_id),
            "blocked": tuple(
                each for each in decisions.blocked if each.todo_id == todo_id or todo_id in each.by
            ),
            "needs_human": tuple(each for each in decisions.needs_human if each.todo_id in (None, todo_id)),
            "notices": tuple(each for each in decisions.notices if each.todo_id in (None, todo_id)),
        }
    )
