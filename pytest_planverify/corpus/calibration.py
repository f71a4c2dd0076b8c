"""Whether confidence is earned: reliability by bins, calibration error, accuracy by coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BINS = 10

Sure = tuple[float, bool]
"""How sure somebody was, and whether they were right."""

COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
"""The shares of all cases, the surest first, of which the accuracy is told."""

CURVE = tuple(step / 25 for step in range(1, 26))
"""The shares that a picture shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The cases of one span of confidence."""

    low: float
    high: float
    cases: int
    confidence: float
    """The mean of what was said."""
    accuracy: float
    """How much of it was right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """How right the surest of the cases are."""

    coverage: float
    accuracy: float
    least: float
    """The confidence of the least sure of them."""


def reliability(sure: Sequence[Sure], bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of equal width; empty ones are left out. A confidence on an edge belongs to the bin above."""
    members: dict[int, list[Sure]] = {}
    for confidence, right in sure:
        members.setdefault(min(int(confidence * bins + 1e-9), bins - 1), []).append((confidence, right))
    return tuple(_bin(number / bins, (number + 1) / bins, members[number]) for number in sorted(members))


def adaptive(sure: Sequence[Sure], bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of nearly equal numbers of cases; equal confidences are never parted."""
    found: list[Bin] = []
    waiting: list[Sure] = []
    ordered = sorted(sure, key=lambda each: each[0])
    for place, each in enumerate(ordered):
        waiting.append(each)
        is_last = place + 1 == len(ordered)
        is_last_of_equals = is_last or ordered[place + 1][0] != each[0]
        if is_last or (is_last_of_equals and len(waiting) * bins >= len(ordered)):
            found.append(_bin(waiting[0][0], waiting[-1][0], waiting))
            waiting = []
    return tuple(found)


def calibration_error(bins: Sequence[Bin]) -> float:
    """The expected calibration error: how far confidence and accuracy are apart, by share of cases."""
    cases = sum(each.cases for each in bins)
    return sum(each.cases * abs(each.confidence - each.accuracy) for each in bins) / cases if cases else 0.0


def by_coverage(sure: Sequence[Sure], coverages: Sequence[float] = COVERAGES) -> tuple[Covered, ...]:
    """How right the surest part is, for each share of all; cases of equal confidence count alike.

    Where a share ends among equals, their mean accuracy stands for those of them that belong to it.
    """
    points = risk_curve(sure)
    return tuple(_covered(points, share, len(sure)) for share in coverages) if points else ()


def risk_curve(sure: Sequence[Sure]) -> tuple[tuple[int, float, float], ...]:
    """After each group of equal confidence, the surest first: how many, how many right, how sure."""
    groups: dict[float, list[bool]] = {}
    for confidence, right in sure:
        groups.setdefault(confidence, []).append(right)
    points: list[tuple[int, float, float]] = []
    many, correct = 0, 0
    for confidence in sorted(groups, reverse=True):
        many += len(groups[confidence])
        correct += sum(groups[confidence])
        points.append((many, float(correct), confidence))
    return tuple(points)


def _covered(points: Sequence[tuple[int, float, float]], share: float, cases: int) -> Covered:
    wanted = share * cases
    many, correct = 0, 0.0
    for upto, right, confidence in points:
        if upto >= wanted - 1e-9:
            part = (wanted - many) / (upto - many)
            found = correct + part * (right - correct)
            return Covered(coverage=share, accuracy=found / wanted, least=confidence)
        many, correct = upto, right
    raise AssertionError("the last group covers every share")


def _bin(low: float, high: float, members: Sequence[Sure]) -> Bin:
    many = len(members)
    return Bin(
        low=low,
        high=high,
        cases=many,
        confidence=sum(confidence for confidence, _ in members) / many,
        accuracy=sum(right for _, right in members) / many,
    )
