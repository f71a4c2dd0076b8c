"""Dependencies of todos: order, cycles, blockers and waves."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from planner.policy.allowed_files import claimed_files, claims_overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from planner.model.plan import Plan, Todo


def dependency_order(items: Iterable[Todo]) -> tuple[Todo, ...]:
    """Return the todos in topological order; ties are broken by priority, then by position in the plan.

    Dependencies outside of ``items`` are ignored. Raises ``ValueError`` on a cycle, naming it.
    """
    by_id = {todo.id: todo for todo in items}
    pending = dict(sorted(by_id.items(), key=lambda item: item[1].priority))
    order: list[Todo] = []
    while pending:
        ready = (todo for todo in pending.values() if pending.keys().isdisjoint(todo.dependencies))
        first = next(ready, None)
        if first is None:
            raise circle_among(by_id.values())
        order.append(pending.pop(first.id))
    return tuple(order)


def circle_among(items: Iterable[Todo]) -> ValueError:
    """Return the error for a cycle among todos, naming it."""
    return ValueError("the todos depend on each other in a circle: " + " -> ".join(find_cycle(items)))


def find_cycle(items: Iterable[Todo]) -> tuple[str, ...]:
    """Return the ids of one cycle with its first id repeated at the end (``a, b, a``).

    Each id depends on the next one; the first is the one that comes first in the plan. Empty if there is
    no cycle.
    """
    graph = {todo.id: todo.dependencies for todo in items}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]  # graphlib lists it from dependency to dependent
        first = next(cycle.index(name) for name in graph if name in cycle)
        return (*cycle[first:], *cycle[: first + 1])
    return ()


def reachable(start: Iterable[str], next_of: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield the ids of ``start`` and all that ``next_of`` leads to from there, nearest first, each once."""
    found = dict.fromkeys(start)
    # The list grows while it is iterated: a search in breadth.
    pending = list(found)
    for name in pending:
        yield name
        new = [each for each in dict.fromkeys(next_of(name)) if each not in found]
        found |= dict.fromkeys(new)
        pending += new


def with_dependencies(plan: Plan, todo_ids: Collection[str]) -> Plan:
    """Return the plan restricted to some todos and all their direct and indirect dependencies."""
    before = {todo.id: todo.dependencies for todo in plan.items}
    wanted = set(reachable(todo_ids, lambda name: before.get(name, ())))
    return plan.model_copy(update={"items": tuple(each for each in plan.items if each.id in wanted)})


def blockers(todo_id: str, failed: Collection[str], by_id: Mapping[str, Todo]) -> tuple[str, ...]:
    """Return the failed todos on which a todo depends, directly or indirectly, nearest first."""

    def next_of(name: str) -> tuple[str, ...]:
        # The search ends at a failed todo: that is the one to repair first, whatever it depends on.
        is_end = name not in by_id or (name in failed and name != todo_id)
        return () if is_end else by_id[name].dependencies

    return tuple(each for each in reachable((todo_id,), next_of) if each in failed and each != todo_id)


def waves(todos: Iterable[Todo]) -> tuple[tuple[str, ...], ...]:
    """Return the ids of the todos, wave by wave; in each, by priority, then by position in the plan.

    A wave is a set of todos that can be worked on at the same time. A todo gets the first wave after those
    of its dependencies in which no todo placed before it may write one of its files. Todos without
    unplaced dependencies are placed first, by priority, then those that wait for them. Dependencies that
    are not among the todos are ignored. Raises ``ValueError`` on a cycle.
    """
    by_id = {todo.id: todo for todo in todos}
    rank = {todo.id: (todo.priority, place) for place, todo in enumerate(by_id.values())}
    files = {todo.id: claimed_files(todo) for todo in by_id.values()}
    found: list[list[str]] = []
    wave_of: dict[str, int] = {}
    pending = dict(by_id)
    while pending:
        level = [name for name, todo in pending.items() if pending.keys().isdisjoint(todo.dependencies)]
        if not level:
            raise circle_among(by_id.values())
        for name in sorted(level, key=rank.__getitem__):
            before = pending.pop(name).dependencies
            wave = 1 + max((wave_of[each] for each in before if each in wave_of), default=-1)
            while wave < len(found) and any(
                claims_overlap(files[name], files[each]) for each in found[wave]
            ):
                wave += 1
            found += [[]] if wave == len(found) else []
            found[wave].append(name)
            wave_of[name] = wave
    return tuple(tuple(sorted(wave, key=rank.__getitem__)) for wave in found)
