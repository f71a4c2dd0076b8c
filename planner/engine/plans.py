"""The plans of a run as they stand after all edits, and whether a plan file is still one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.engine.state import State, TodoRecord
    from planner.model.plan import Plan


def current_plan(state: State, within: str = "") -> Plan:
    """Return a plan of a run with every edit that was applied, without what was temporary and has ended.

    ``within`` is the qualified id of the parent whose sub-plan is meant. Branches stand behind their todo,
    steps in front of what waits for them.
    """
    part = state.parts[within]
    records = sorted((each for each in state.records.values() if each.within == within), key=_rank)
    items = tuple(
        each.todo for each in records if not (each.todo.is_temporary and _is_useless(state, each))
    )
    return part.plan.model_copy(update={"items": items})


def is_plan_of(state: State, plan: Plan, within: str = "") -> bool:
    """Return whether a plan file is what a run has begun with, or what it has made of it.

    Temporary todos of the run may be in it or not.
    """
    part = state.parts.get(within)
    if part is None:
        return True  # it is not loaded yet
    before = {todo.id: todo for todo in part.plan.items}
    now = {each.todo.id: each.todo for each in state.records.values() if each.within == within}
    seen: set[str] = set()
    for todo in plan.items:
        if todo.id not in now:
            return False
        if not todo.is_temporary and todo not in (before.get(todo.id), now[todo.id]):
            return False
        seen.add(todo.id)
    if any(name not in seen and not todo.is_temporary for name, todo in before.items()):
        return False
    # The policy of a sub-plan is kept as it is under that of the plan above it.
    return within != "" or plan.metadata == part.plan.metadata


def _is_useless(state: State, record: TodoRecord) -> bool:
    """Return whether a temporary todo has come to its end, and nothing rests on it any more."""
    if record.parent_id is not None:
        return state.records[record.parent_id].life.is_final
    waiting = (state.records[name] for name in state.dependents.get(record.id, ()))
    return record.life.is_final and all(each.life.is_final for each in waiting)


def _rank(record: TodoRecord) -> tuple[int, ...]:
    return record.rank
