"""Calibration error, reliability and accuracy by coverage, on numbers worked out by hand."""

from __future__ import annotations

import pytest

from pytest_planverify.corpus.calibration import (
    Sure,
    adaptive,
    by_coverage,
    calibration_error,
    reliability,
)

HAND: list[Sure] = [(0.95, True), (0.95, True), (0.95, False), (0.95, True), (0.55, False), (0.55, True)]


def test_the_error_is_the_gap_of_each_bin_by_its_share() -> None:
    bins = reliability(HAND)
    assert [(each.low, each.cases, each.accuracy) for each in bins] == [(0.5, 2, 0.5), (0.9, 4, 0.75)]
    assert calibration_error(bins) == pytest.approx((2 * 0.05 + 4 * 0.20) / 6)


def test_a_confidence_on_an_edge_belongs_to_the_bin_above_and_one_to_the_last() -> None:
    assert [each.low for each in reliability([(0.3, True), (0.7, True), (1.0, True), (0.0, False)])] == [
        0.0,
        0.3,
        0.7,
        0.9,
    ]


def test_who_is_always_right_and_sure_has_no_error() -> None:
    assert calibration_error(reliability([(1.0, True)] * 5)) == 0
    assert calibration_error(()) == 0


def test_adaptive_bins_hold_nearly_as_many_cases_and_never_part_equals() -> None:
    sure = [(number / 100, number % 2 == 0) for number in range(40)]
    assert [each.cases for each in adaptive(sure)] == [4] * 10
    assert [each.cases for each in adaptive([(0.9, True)] * 30 + [(0.2, False)])] == [31]
    assert [each.cases for each in adaptive([(0.9, True)] * 6 + [(0.2, False)] * 6)] == [6, 6]
    assert adaptive([]) == ()


def test_the_surest_share_is_taken_first() -> None:
    sure = [(0.9, True)] * 8 + [(0.5, False)] * 2
    half, most, whole = by_coverage(sure, (0.5, 0.8, 1.0))
    assert (half.accuracy, half.least) == (1.0, 0.9)
    assert (most.accuracy, most.least) == (1.0, 0.9)
    assert (whole.accuracy, whole.least) == (0.8, 0.5)


def test_cases_of_equal_confidence_count_alike_in_any_order() -> None:
    mixed = [(0.9, True), (0.9, False), (0.9, False), (0.9, True)]
    for order in (mixed, mixed[::-1]):
        assert [each.accuracy for each in by_coverage(order, (0.25, 0.5, 1.0))] == [0.5, 0.5, 0.5]
    assert by_coverage([]) == ()
