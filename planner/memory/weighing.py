"""How alike two texts are, how experiences fade with time, and what is concluded from counts of them.

Texts are compared by the trigrams of characters of their words. Titles of todos and heads of failures are
short: they seldom share whole words in a row, but ``compute_rsi`` and ``RSI computation`` share most of
their trigrams. Trigrams do not cross from word to word, so the order of words does not count.
"""

from __future__ import annotations

from functools import lru_cache
from math import erf, fsum, sqrt
from typing import TYPE_CHECKING, NamedTuple

from planner.memory.task_kinds import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

LONGEST = 2_000
"""Characters of a text that are compared."""

DAILY = 0.95
"""What is left of the weight of an experience after a day."""

DAY_SECONDS = 86_400.0

PASSED_ON = 3.0
"""What is less alike weighs no more than so many experiences, as soon as something more alike is known."""


@lru_cache(maxsize=4_096)
def ngrams(text: str) -> frozenset[str]:
    """Return the trigrams of the words of a text, with a blank at each end of a word."""
    words = [f" {word} " for word in words_of(text[:LONGEST])]
    return frozenset(word[start : start + 3] for word in words for start in range(len(word) - 2))


def jaccard(one: Set[str], other: Set[str]) -> float:
    """Return the share of what two sets have in common: 1 for equal sets, 0 where nothing is common."""
    shared = len(one & other)
    together = len(one) + len(other) - shared
    return shared / together if together else 1.0


class Counts(NamedTuple):
    """Weighted numbers of experiences."""

    well: float
    all: float

    def scaled(self, by: float) -> Counts:
        """Return the counts, each worth so much."""
        return Counts(self.well * by, self.all * by)


UNKNOWN = Counts(1.0, 2.0)
"""Presumed before anything is known: as often well as not, and no more sure than after two experiences."""


class Experience(NamedTuple):
    """One thing that went well or not."""

    at: float
    """Epoch seconds."""
    well: bool
    worth: float = 1.0
    """More than 0."""


class Belief(NamedTuple):
    """What is concluded from counts."""

    rate: float
    """The chance that it goes well."""
    strength: float
    """So many experiences it is founded on, those that are presumed included."""


def weight(at: float, now: float) -> float:
    """Return what an experience of one time is worth at another: 1 at once, less with every day."""
    return DAILY ** (max(0.0, now - at) / DAY_SECONDS)


def count(experiences: Iterable[Experience], now: float) -> Counts:
    """Return what experiences are worth at a time, to the bit the same in whatever order they come."""
    found = [(each.well, each.worth * weight(each.at, now)) for each in experiences]
    return Counts(fsum(worth for well, worth in found if well), fsum(worth for _, worth in found))


def believe(levels: Iterable[Counts], presumed: Counts = UNKNOWN) -> Belief:
    """Return the chance that it goes well, from counts of what is more and more alike.

    Each level is the presumption of the next, and weighs no more than :data:`PASSED_ON` experiences there:
    a few experiences of the very thing correct what is known of its sort, and many overrule it. A success
    at any level never lowers the rate.
    """
    well, total = presumed
    for level in levels:
        if level.all > 0:
            kept = min(1.0, PASSED_ON / total)
            well, total = well * kept + level.well, total * kept + level.all
    return Belief(well / total, total)


def surely_better(one: Belief, other: Belief) -> float:
    """Return the probability that the chance of one is higher than that of the other."""
    spread = sqrt(sum(_variance(each) for each in (one, other)))
    return 0.5 * (1.0 + erf((one.rate - other.rate) / spread / sqrt(2.0)))


def _variance(belief: Belief) -> float:
    """Return that of the beta distribution; never 0, as what is presumed is neither."""
    return max(belief.rate * (1.0 - belief.rate) / (belief.strength + 1.0), 1e-12)
