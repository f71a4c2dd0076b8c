"""Finds the tests that make another one fail when they run before it: a search by halves that also finds
several that only do it together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_RUNS = 60
"""A search that takes longer gives up, and names nobody."""

MOST_NAMED = 8
"""More tests than these together are no help to anybody."""


class _OutOfRuns(Exception):
    """The search may not run anything more."""


def find_polluters(
    candidates: Sequence[str], is_red: Callable[[Sequence[str]], bool | None]
) -> tuple[str, ...]:
    """The fewest of the candidates, in their order, after which the test is red.

    ``is_red`` runs the test after the given ones; ``None`` says that it cannot tell. The search is the
    minimizing delta debugging of Zeller and Hildebrandt (2002): about twice the logarithm of the number
    of candidates in runs, where one test is the culprit. Nothing is found where the test is not red after
    all of the candidates.
    """
    search = _Search(is_red)
    try:
        if not candidates or not search.asks(candidates):
            return ()
        found = search.minimize(list(candidates))
    except _OutOfRuns:
        return ()
    return tuple(found) if len(found) <= MOST_NAMED else ()


class _Search:
    def __init__(self, is_red: Callable[[Sequence[str]], bool | None]) -> None:
        self._is_red = is_red
        self._runs = 0

    def asks(self, tests: Sequence[str]) -> bool:
        if self._runs >= MOST_RUNS:
            raise _OutOfRuns
        self._runs += 1
        answer = self._is_red(tests)
        if answer is None:
            raise _OutOfRuns
        return answer

    def minimize(self, pool: list[str]) -> list[str]:
        parts = 2
        while len(pool) > 1:
            chunks = _cut(pool, parts)
            # What ran just before is the likeliest to have done it.
            smaller = next((chunk for chunk in reversed(chunks) if self.asks(chunk)), None)
            if smaller is not None:
                pool, parts = smaller, 2
                continue
            rests = [[each for each in pool if each not in chunk] for chunk in chunks] if parts > 2 else []
            smaller = next((rest for rest in rests if self.asks(rest)), None)
            if smaller is not None:
                pool, parts = smaller, max(parts - 1, 2)
            elif parts >= len(pool):
                break
            else:
                parts = min(parts * 2, len(pool))
        return pool


def _cut(pool: list[str], parts: int) -> list[list[str]]:
    """The pool in so many pieces of nearly equal length, in order."""
    bounds = [round(number * len(pool) / parts) for number in range(parts + 1)]
    return [pool[start:end] for start, end in pairwise(bounds) if end > start]
