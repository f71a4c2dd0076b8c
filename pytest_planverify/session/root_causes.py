"""The root causes of a run: the diagnosed failures of all its todos, put together over todos and plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.model.evidence import Evidence
    from planner.model.outcome import Cause, Diagnosis
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan

Diagnosed = tuple["FlatPlan", Iterable[tuple[str, "Evidence", "Diagnosis"]]]
"""A plan, and what was diagnosed in it: the todo, what was seen, what it was taken for."""


def root_causes(
    plans: Sequence[Diagnosed], todos: Mapping[tuple[str | None, str], Todo]
) -> tuple[Cause, ...]:
    """The causes, the first to mend first. ``todos`` are the run's by plan and id, in their order."""
    found = [(flat, each) for flat, diagnosed in plans for each in diagnosed]
    if not found:
        return ()
    from pytest_planverify.diagnosis.causes import Seen, find_causes  # a green run has no causes

    depends = {
        (plan, name): [(plan, dependency) for dependency in todo.dependencies]
        for (plan, name), todo in todos.items()
    }
    seen = [
        Seen((flat.loaded.plan.todo_list_id, todo), evidence, diagnosis, str(flat.owner(todo).root))
        for flat, (todo, evidence, diagnosis) in found
    ]
    return find_causes(seen, depends)
