"""Isotonic regression by pooling adjacent violators: the rising line that fits weighted points best."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Point = tuple[float, float, float]
"""A score, what was seen at it, and the weight of that."""

Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Scores and values, both in rising order; in between, straight lines."""


def fitted(points: Iterable[Point], *, strength: float = 0.0) -> Curve:
    """The rising line through the middles of the pooled blocks. Raises ``ValueError`` without points.

    The values are the unique non-decreasing ones with the least weighted squared error (Barlow et al.,
    Statistical Inference under Order Restrictions, 1972); equal scores are pooled before. With a
    ``strength``, each block is then drawn towards its own score as if so much weight had been seen there.
    """
    blocks = _pooled(_merged(points))
    if not blocks:
        raise ValueError("no point to fit a line to")
    drawn = [
        (score, (seen * weight + score * strength) / (weight + strength), weight + strength)
        for score, seen, weight in blocks
    ]
    scores, values, _ = zip(*_pooled(drawn), strict=True)
    return scores, values


def _pooled(points: Iterable[Point]) -> list[Point]:
    """Neighbours of which the left one is not below the right one become one point, until none are left."""
    blocks: list[Point] = []
    for point in points:
        blocks.append(point)
        while len(blocks) > 1 and blocks[-2][1] >= blocks[-1][1]:
            right, left = blocks.pop(), blocks.pop()
            blocks.append(_joined(left, right))
    return blocks


def _joined(left: Point, right: Point) -> Point:
    weight = left[2] + right[2]
    return (
        (left[0] * left[2] + right[0] * right[2]) / weight,
        (left[1] * left[2] + right[1] * right[2]) / weight,
        weight,
    )


def _merged(points: Iterable[Point]) -> list[Point]:
    """The points in the order of their scores, those of one score as one."""
    by_score: dict[float, Point] = {}
    for point in points:
        score = point[0]
        by_score[score] = _joined(by_score[score], point) if score in by_score else point
    return sorted(by_score.values())
