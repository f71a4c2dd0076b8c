"""The part of the decisions that concerns some todos."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.model.decision import Decisions


def narrowed(decisions: Decisions, todo_ids: Collection[str]) -> Decisions:
    """The decisions about some todos: repairs, what they wait for, what waits for them. A halt stays."""
    wanted = frozenset(todo_ids)
    return decisions.model_copy(
        update={
            "repairs": tuple(each for each in decisions.repairs if wanted & {each.todo_id, each.branch_id}),
            "ready": tuple(each for each in decisions.ready if each.todo_id in wanted),
            "blocked": tuple(
                each for each in decisions.blocked if each.todo_id in wanted or wanted & set(each.by)
            ),
            "needs_human": tuple(each for each in decisions.needs_human if each.todo_id in {None, *wanted}),
            "notices": tuple(each for each in decisions.notices if each.todo_id in {None, *wanted}),
        }
    )
