"""Isotonic regression: the rising line that fits best, whatever the points are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_planverify.corpus.isotonic import Point, fitted
from pytest_planverify.diagnosis.confidence import on_curve

POINTS = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.7, 0.9]),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from([0.5, 1.0, 3.0]),
    ),
    min_size=1,
    max_size=12,
)


def test_what_rises_already_is_kept() -> None:
    assert fitted([(0.2, 0.1, 1), (0.6, 0.5, 1), (0.9, 1.0, 1)]) == ((0.2, 0.6, 0.9), (0.1, 0.5, 1.0))


def test_what_falls_is_pooled_by_weight() -> None:
    assert fitted([(0.25, 1.0, 1), (0.5, 0.0, 3)]) == ((0.4375,), (0.25,))


def test_few_are_drawn_towards_their_score_and_many_hardly() -> None:
    few, many = [(0.5, 1.0, 1.0)], [(0.5, 1.0, 99.0)]
    assert fitted(few, strength=1) == ((0.5,), (0.75,))
    assert fitted(many, strength=1) == ((0.5,), (0.995,))


def test_what_falls_by_being_drawn_is_pooled_again() -> None:
    _, values = fitted([(0.5, 0.0, 1), (0.6, 0.1, 100)], strength=2)
    assert len(values) == 1


def test_equal_scores_are_one_point() -> None:
    assert fitted([(0.5, 1.0, 1), (0.5, 0.0, 1)]) == ((0.5,), (0.5,))


def test_no_point_is_refused() -> None:
    with pytest.raises(ValueError, match="no point"):
        fitted([])


@settings(max_examples=60, deadline=None)
@given(POINTS)
def test_no_other_rising_line_fits_better(points: list[Point]) -> None:
    """The values are those of the min-max formula over all spans of scores."""
    scores, values = fitted(points)
    assert list(scores) == sorted(scores)
    assert list(values) == sorted(values)
    ordered = sorted({score for score, _, _ in points})
    best = [
        max(min(mean(points, low, high) for high in ordered[place:]) for low in ordered[: place + 1])
        for place in range(len(ordered))
    ]
    steps = [value for place, value in enumerate(best) if place == 0 or value > best[place - 1] + 1e-9]
    assert list(values) == pytest.approx(steps)


@settings(max_examples=60, deadline=None)
@given(POINTS, st.floats(0, 1), st.floats(0, 1))
def test_the_line_never_falls_between_its_points(points: list[Point], left: float, right: float) -> None:
    curve = fitted(points)
    low, high = sorted((left, right))
    assert on_curve(curve, low) <= on_curve(curve, high) + 1e-12
    assert 0 <= on_curve(curve, low) <= 1


def mean(points: list[Point], low: float, high: float) -> float:
    inside = [(seen, weight) for score, seen, weight in points if low <= score <= high]
    return sum(seen * weight for seen, weight in inside) / sum(weight for _, weight in inside)
