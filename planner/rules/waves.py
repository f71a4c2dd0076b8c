"""Which todos can be worked on side by side: in waves, by dependencies and by the files they may write."""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from planner.rules.dependencies import circle_among
from planner.rules.file_claims import claimed_files
from planner.rules.lots import Lots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.plan import Todo


def waves(todos: Iterable[Todo]) -> tuple[tuple[str, ...], ...]:
    """The ids of the todos, wave by wave; in each, by priority, then by place in the plan.

    A todo stands in the first wave after all that it depends on in which no todo that was placed before it
    may write one of its files. Those that nothing keeps back are placed first, by priority, then those that
    wait for them. Dependencies that are not among the todos are passed over. Raises ``ValueError`` where
    todos depend on each other in a circle.
    """
    items = tuple(todos)
    names: list[str] = []
    priorities: list[int] = []
    dependencies: list[tuple[str, ...]] = []
    claims: list[tuple[str, ...]] = []
    # All that is wanted of a todo is read at once: a large plan does not fit into the processor's caches.
    for todo in items:
        names.append(todo.id)
        priorities.append(todo.priority)
        dependencies.append(todo.dependencies)
        claims.append(claimed_files(todo))
    graph, lots = _Graph(names, dependencies), Lots(claims)
    earliest, wave_of = _zeros(len(names)), _zeros(len(names))
    placed = 0
    for place in graph.in_order(priorities):
        wave = wave_of[place] = lots.take(place, earliest[place])
        placed += 1
        for dependent in graph.dependents(place):
            earliest[dependent] = max(earliest[dependent], wave + 1)
    if placed < len(names):
        raise circle_among(items)
    return _cut(names, wave_of, _by_priority(range(len(names)), priorities))


def _cut(names: Sequence[str], wave_of: Sequence[int], order: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """The names wave by wave, in each in the given order."""
    in_waves = sorted(order, key=wave_of.__getitem__)
    ordered = [names[place] for place in in_waves]
    ends = [end for end in range(1, len(ordered)) if wave_of[in_waves[end - 1]] != wave_of[in_waves[end]]]
    bounds = [0, *ends, len(ordered)] if ordered else []
    return tuple(tuple(ordered[start:end]) for start, end in pairwise(bounds))


def _by_priority(places: Iterable[int], priorities: Sequence[int]) -> list[int]:
    return sorted(sorted(places), key=priorities.__getitem__)


def _zeros(count: int) -> array[int]:
    return array("q", bytes(8 * count))


class _Graph:
    """What depends on what, by the places of the todos in the plan.

    All of it stands in a few arrays of numbers: a list for each todo would take most of the time.
    """

    def __init__(self, names: Sequence[str], dependencies: Sequence[tuple[str, ...]]) -> None:
        place_of = {name: place for place, name in enumerate(names)}
        befores, afters = array("q"), array("q")
        for place, names_before in enumerate(dependencies):
            for name in names_before if len(names_before) < 2 else dict.fromkeys(names_before):
                before = place_of.get(name)
                if before is not None:
                    befores.append(before)
                    afters.append(place)
        self._waits_for = _zeros(len(names))
        counts = _zeros(len(names) + 1)
        for before, after in zip(befores, afters, strict=True):
            self._waits_for[after] += 1
            counts[before + 1] += 1
        self._starts = array("q", accumulate(counts))
        """Where the dependents of each todo begin."""
        self._dependents = _zeros(len(befores))
        ends = self._starts[:]
        for before, after in zip(befores, afters, strict=True):
            self._dependents[ends[before]] = after
            ends[before] += 1

    def dependents(self, place: int) -> Sequence[int]:
        """The todos that depend on a todo, each once."""
        return self._dependents[self._starts[place] : self._starts[place + 1]]

    def in_order(self, priorities: Sequence[int]) -> Iterator[int]:
        """Every todo after those that it depends on, level by level; those on or behind a circle never."""
        waits_for = self._waits_for[:]
        level = [place for place, count in enumerate(waits_for) if not count]
        while level:
            following: list[int] = []
            for place in _by_priority(level, priorities):
                yield place
                for dependent in self.dependents(place):
                    waits_for[dependent] -= 1
                    if not waits_for[dependent]:
                        following.append(dependent)
            level = following
