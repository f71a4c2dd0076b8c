"""How far a figure may be off by the choice of packages: a bootstrap that draws whole packages."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.taxonomy import Category

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_planverify.corpus.scoring import Judged

RESAMPLES = 2_000
SEED = 20_240_601
LEVEL = 0.95

Counts = dict[Category, tuple[int, int, int]]
"""Of each category: how often it was said and true, how often said, how often true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What the middle 95 in 100 of the resamples say."""

    low: float
    high: float


def margin(draws: dict[str, list[float]], name: str, other: str) -> Interval:
    """The interval of the difference of two systems, draw by draw."""
    return middle([left - right for left, right in zip(draws[name], draws[other], strict=True)])


def macro_f1_draws(
    systems: Mapping[str, Sequence[Judged]], resamples: int = RESAMPLES
) -> dict[str, list[float]]:
    """The macro-F1 of each system in each resample of the packages, drawn with replacement."""
    packages = sorted({each.package for judged in systems.values() for each in judged})
    counts = {name: counts_by_package(judged) for name, judged in systems.items()}
    chance = random.Random(SEED)
    found: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(resamples):
        drawn = Counter(chance.choices(packages, k=len(packages))) if packages else Counter[str]()
        for name, by_package in counts.items():
            found[name].append(_macro_f1(by_package, drawn))
    return found


def counts_by_package(judged: Sequence[Judged]) -> dict[str, Counts]:
    """What macro-F1 is made of, by package."""
    hits, said, true = (Counter[tuple[str, Category]]() for _ in range(3))
    for each in judged:
        true[each.package, each.truth] += 1
        said[each.package, each.counted] += 1
        hits[each.package, each.truth] += each.counted is each.truth
    counts: dict[str, Counts] = {}
    for package, category in sorted({*said, *true}):
        key = (package, category)
        counts.setdefault(package, {})[category] = (hits[key], said[key], true[key])
    return counts


def middle(draws: list[float]) -> Interval:
    """The interval that holds the middle of the draws."""
    ordered = sorted(draws)
    last = len(ordered) - 1
    return Interval(low=ordered[round(last * (1 - LEVEL) / 2)], high=ordered[round(last * (1 + LEVEL) / 2)])


def _macro_f1(by_package: dict[str, Counts], drawn: Counter[str]) -> float:
    totals: dict[Category, list[int]] = {}
    for package, times in drawn.items():
        for category, (hits, said, true) in by_package.get(package, {}).items():
            total = totals.setdefault(category, [0, 0, 0])
            total[0] += times * hits
            total[1] += times * said
            total[2] += times * true
    scores = [2 * hits / (said + true) for hits, said, true in totals.values() if true]
    return sum(scores) / len(scores) if scores else 0.0
