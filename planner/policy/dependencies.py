"""Dependencies of todos: order, cycles, blockers and waves."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from planner.policy.allowed_files import claimed_files, claims_overlap, grants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from planner.model.plan import Plan, Todo


def dependency_order(items: Iterable[Todo]) -> tuple[Todo, ...]:
    """Return the todos in topological order; ties are broken by priority, then by position in the plan.

    Dependencies outside of ``items`` are ignored. Raises ``ValueError`` on a cycle, naming it.
    """
    by_id = {todo.id: todo for todo in items}
    rank = {todo.id: (todo.priority, index) for index, todo in enumerate(by_id.values())}
    sorter = _sorter(by_id.values())
    try:
        sorter.prepare()
    except CycleError:
        raise circle_among(by_id.values()) from None
    ready: list[tuple[tuple[int, int], str]] = []
    order: list[Todo] = []
    # One todo at a time is marked as done, so that what it makes ready competes by priority at once.
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, (rank[name], name))
        _, name = heappop(ready)
        order.append(by_id[name])
        sorter.done(name)
    return tuple(order)


def _sorter(items: Iterable[Todo]) -> TopologicalSorter[str]:
    """Return a sorter of the todos' ids, without dependencies outside of ``items``."""
    dependencies = {todo.id: todo.dependencies for todo in items}
    return TopologicalSorter(
        {name: [each for each in before if each in dependencies] for name, before in dependencies.items()}
    )


def circle_among(items: Iterable[Todo]) -> ValueError:
    """Return the error for a cycle among todos, naming it."""
    return ValueError("the todos depend on each other in a circle: " + " -> ".join(find_cycle(items)))


def find_cycle(items: Iterable[Todo]) -> tuple[str, ...]:
    """Return the ids of one cycle with its first id repeated at the end (``a, b, a``).

    Each id depends on the next one; the first is the one that comes first in the plan. Empty if there is
    no cycle.
    """
    todos = list(items)
    try:
        _sorter(todos).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]  # graphlib lists it from dependency to dependent
        first = next(cycle.index(todo.id) for todo in todos if todo.id in cycle)
        return (*cycle[first:], *cycle[: first + 1])
    return ()


def reachable(start: Iterable[str], next_of: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield the ids of ``start`` and all that ``next_of`` leads to from there, nearest first, each once."""
    found = dict.fromkeys(start)
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
    """Return the failed todos on which a todo depends, directly or indirectly, nearest first.

    The search does not continue behind a failed todo, as that is the one to repair first.
    """

    def next_of(name: str) -> tuple[str, ...]:
        is_end = name not in by_id or (name in failed and name != todo_id)
        return () if is_end else by_id[name].dependencies

    return tuple(each for each in reachable((todo_id,), next_of) if each in failed and each != todo_id)


MOST_OTHERS = 5
"""Number of conflicting todos that are named per todo."""


class Apart(NamedTuple):
    """A todo that may write some of the same files, with the globs of both that overlap."""

    todo_id: str
    files: tuple[str, ...]


class Placed(NamedTuple):
    """One todo of a wave, and the reasons why it is not in the wave before."""

    todo: Todo
    files: tuple[str, ...]
    """Globs of the files that it claims for writing."""
    after: tuple[str, ...] = ()
    """Ids of its dependencies in the wave before."""
    apart_from: tuple[Apart, ...] = ()
    """Todos of the wave before that may write the same files; empty if it depends on a todo of it."""


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


def placed_in_waves(todos: Iterable[Todo]) -> tuple[tuple[Placed, ...], ...]:
    """Return the waves of :func:`waves`, each todo with the reasons for its wave.

    Raises ``ValueError`` on a cycle.
    """
    by_id = {todo.id: todo for todo in todos}
    found = waves(by_id.values())
    return tuple(
        tuple(_placed(by_id[todo_id], before, by_id) for todo_id in wave)
        for before, wave in zip(({}, *map(dict.fromkeys, found)), found, strict=False)
    )


def _placed(todo: Todo, before: Collection[str], by_id: Mapping[str, Todo]) -> Placed:
    """Return a todo with its reasons; ``before`` holds the ids of the wave before it."""
    files = claimed_files(todo)
    after = tuple(each for each in dict.fromkeys(todo.dependencies) if each in before)
    apart = (
        Apart(each, _overlapping(files, others))
        for each in (() if after else before)
        if claims_overlap(files, others := claimed_files(by_id[each]))
    )
    return Placed(todo=todo, files=files, after=after, apart_from=tuple(islice(apart, MOST_OTHERS)))


def _overlapping(files: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of both lists that overlap one of the other list, each once."""
    return tuple(
        dict.fromkeys(
            pattern
            for one in grants_of(files)
            for other in grants_of(others)
            if one.overlaps(other)
            for pattern in (one.pattern, other.pattern)
        )
    )


def to_be_worked_on(
    items: Iterable[Todo], children: Mapping[str, Sequence[str]], done: Collection[str]
) -> tuple[Todo, ...]:
    """Return the todos on which somebody has to work.

    Left out are todos that are ``done`` (with their branches), parents whose todos are known
    (``children``), and todos that have a branch, which is worked on instead. A dependency on one of the
    latter two is replaced by dependencies on the todos that are worked on instead.
    """
    by_id = {todo.id: todo for todo in items}
    instead = dict(children)
    for todo in by_id.values():
        repaired = todo.parent_id
        if repaired in by_id and repaired not in children and repaired not in todo.dependencies:
            instead[repaired] = (*instead.get(repaired, ()), todo.id)
    last = {todo_id: tuple(_last_of(todo_id, by_id, instead)) for todo_id in instead}
    found: list[Todo] = []
    for todo in by_id.values():
        if todo.id not in instead and todo.id not in done and todo.parent_id not in done:
            before = dict.fromkeys(n for each in todo.dependencies for n in last.get(each, (each,)))
            is_same = tuple(before) == todo.dependencies
            found.append(todo if is_same else todo.model_copy(update={"dependencies": tuple(before)}))
    return tuple(found)


def _last_of(
    todo_id: str, by_id: Mapping[str, Todo], instead: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the ids of the todos worked on instead of one, except those for which another of them waits."""
    waited_for = {each for other in instead[todo_id] for each in by_id[other].dependencies}
    for other in instead[todo_id]:
        if other not in waited_for:
            yield from _last_of(other, by_id, instead) if other in instead else (other,)
