"""Tells whether Python's shared random generator was seeded, or has merely been used.

What an unseeded generator gives next is chance, whoever used it before: that makes no red test green,
alone or in company, in any way that could be repeated. A seed is another matter, as is a state put back.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias, cast

_MOST_ROUNDS = 64
"""A generator is followed for so many rounds of its state, which are some forty thousand numbers."""
_BITS_A_ROUND = 32 * 624

State: TypeAlias = "tuple[Any, ...]"


class Chance:
    """Follows the generator from a state that nobody of the project had touched."""

    def __init__(self) -> None:
        self._last: State | None = random.getstate()

    def distrust(self) -> None:
        """The project's code ran before: it may have seeded the generator."""
        self._last = None

    def state(self) -> object:
        """The same as long as nobody has seeded the generator; after that, whatever its state is."""
        now = random.getstate()
        if self._last is not None:
            self._last = now if _follows(now, self._last) else None
        return None if self._last is not None else hash(now)


def _follows(now: State, before: State) -> bool:
    """Whether one gets from the earlier state to the later one by drawing numbers."""
    (*words, place), (*old_words, old_place) = (cast("State", each[1]) for each in (now, before))
    if words == old_words:
        return place >= old_place
    generator = random.Random()
    generator.setstate(before)
    for _ in range(_MOST_ROUNDS):
        generator.getrandbits(_BITS_A_ROUND)
        if list(generator.getstate()[1][:-1]) == words:
            return True
    return False
