"""How often something went well: counts that fade with time, and the rates that are concluded from them."""

from __future__ import annotations

from bisect import bisect_right
from math import erf, fsum, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

DAILY = 0.95
"""What is left of the weight of an experience after a day."""

DAY_SECONDS = 86_400.0


class Experience(NamedTuple):
    """One thing that went well or not."""

    at: float
    """Epoch seconds."""
    well: bool
    worth: float = 1.0
    """More than 0."""


class Counts(NamedTuple):
    """Weighted numbers of experiences."""

    well: float
    all: float

    def scaled(self, by: float) -> Counts:
        return Counts(self.well * by, self.all * by)


class Belief(NamedTuple):
    """What is concluded from counts."""

    rate: float
    """The chance that it goes well."""
    strength: float
    """So many experiences it is founded on, those that are presumed included."""


NOTHING = Counts(0.0, 0.0)

UNKNOWN = Counts(1.0, 2.0)
"""Presumed before anything is known: as often well as not, and no more sure than after two experiences."""

PASSED_ON = 3.0
"""What is less alike weighs no more than so many experiences, as soon as something more alike is known."""


class Tally(NamedTuple):
    """Experiences of one sort, to be weighed at any time. Those of later than that count as of then."""

    times: tuple[float, ...]
    faded: tuple[Counts, ...]
    """After each experience, what all so far were worth at its time."""
    ahead: tuple[Counts, ...]
    """From each experience on, unfaded, and nothing at the end."""
    number: int
    number_well: int

    @classmethod
    def of(cls, experiences: Iterable[Experience]) -> Tally:
        """The same tally for the same experiences, in whatever order."""
        ordered = sorted(experiences)
        well = total = before = 0.0
        faded: list[Counts] = []
        for at, is_well, worth in ordered:
            left = weight(before, at)
            well, total, before = well * left + worth * is_well, total * left + worth, at
            faded.append(Counts(well, total))
        ahead = [NOTHING]
        for _, is_well, worth in reversed(ordered):
            ahead.append(Counts(ahead[-1].well + worth * is_well, ahead[-1].all + worth))
        return cls(
            times=tuple(each.at for each in ordered),
            faded=tuple(faded),
            ahead=tuple(reversed(ahead)),
            number=len(ordered),
            number_well=sum(each.well for each in ordered),
        )

    def at(self, now: float) -> Counts:
        """What the experiences are worth at a time."""
        place = bisect_right(self.times, now)
        later = self.ahead[place]
        if place == 0:
            return later
        left = weight(self.times[place - 1], now)
        well, total = self.faded[place - 1]
        return Counts(well * left + later.well, total * left + later.all)


def weight(at: float, now: float) -> float:
    """What an experience of one time is worth at another: 1 at once, less with every day."""
    return DAILY ** (max(0.0, now - at) / DAY_SECONDS)


def together(counts: Iterable[Counts]) -> Counts:
    """The sum, whatever the order."""
    held = list(counts)
    return Counts(fsum(each.well for each in held), fsum(each.all for each in held))


def believe(levels: Iterable[Counts], presumed: Counts = UNKNOWN) -> Belief:
    """The chance that it goes well, from counts of what is more and more alike: the least alike first.

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
    """The probability that the chance of one is higher than that of the other."""
    spread = sqrt(_variance(one) + _variance(other))
    return 0.5 * (1.0 + erf((one.rate - other.rate) / spread / sqrt(2.0)))


def _variance(belief: Belief) -> float:
    """Of the beta distribution; never 0, as what is presumed is neither."""
    return max(belief.rate * (1.0 - belief.rate) / (belief.strength + 1.0), 1e-12)
