"""What must come before what: order, cycles, and which failures stand in a todo's way."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from planner.model.plan import Todo


def dependency_order(items: Iterable[Todo]) -> tuple[Todo, ...]:
    """The todos, each after those that it depends on; among equals by priority, then as in the plan.

    Dependencies that are not among the items are passed over. Raises ``ValueError`` on a cycle.
    """
    todos = list(items)
    index_of = {todo.id: index for index, todo in enumerate(todos)}
    waiting = [0] * len(todos)
    dependents: dict[int, list[int]] = {}
    for index, todo in enumerate(todos):
        for dependency in dict.fromkeys(todo.dependencies):
            if dependency in index_of:
                waiting[index] += 1
                dependents.setdefault(index_of[dependency], []).append(index)
    ready = [(todo.priority, index) for index, todo in enumerate(todos) if not waiting[index]]
    heapify(ready)
    order: list[Todo] = []
    while ready:
        _, index = heappop(ready)
        order.append(todos[index])
        for dependent in dependents.get(index, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heappush(ready, (todos[dependent].priority, dependent))
    if len(order) < len(todos):
        raise circle_among(todos)
    return tuple(order)


def circle_among(items: Iterable[Todo]) -> ValueError:
    """The error to raise where todos depend on each other in a circle."""
    return ValueError("the todos depend on each other in a circle: " + " -> ".join(find_cycle(items)))


def find_cycle(items: Iterable[Todo]) -> tuple[str, ...]:
    """The ids of one cycle, its first id also last (``a, b, a``); empty where there is none."""
    dependencies = {todo.id: todo.dependencies for todo in items}
    done: set[str] = set()
    for start in dependencies:
        if start in done:
            continue
        path: dict[str, None] = {start: None}
        pending = [iter(dependencies[start])]
        while pending:
            following = next(pending[-1], None)
            if following is None:
                pending.pop()
                done.add(path.popitem()[0])
            elif following in path:
                trail = list(path)
                return (*trail[trail.index(following) :], following)
            elif following in dependencies and following not in done:
                path[following] = None
                pending.append(iter(dependencies[following]))
    return ()


def blockers(
    todo_id: str, failed: Collection[str], items: Iterable[Todo] | Mapping[str, Todo]
) -> tuple[str, ...]:
    """The failed todos that a todo depends on, directly or not, the nearest first.

    What lies behind a failed todo is not searched: that todo is the one to mend first. Pass a mapping by
    id to ask of many todos.
    """
    by_id = cast("Mapping[str, Todo]", items) if isinstance(items, Mapping) else {t.id: t for t in items}
    found: list[str] = []
    seen = {todo_id}
    pending = deque([todo_id])
    while pending:
        todo = by_id.get(pending.popleft())
        for dependency in todo.dependencies if todo is not None else ():
            if dependency in seen:
                continue
            seen.add(dependency)
            if dependency in failed:
                found.append(dependency)
            else:
                pending.append(dependency)
    return tuple(found)
