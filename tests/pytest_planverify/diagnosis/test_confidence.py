"""Confidence as it was earned never falls as a rule's own confidence rises, and knows its limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_planverify.diagnosis import RULES
from pytest_planverify.diagnosis.decision import FILE, calibrated, fit_of, on_curve

RAW = st.floats(-0.5, 1.5)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([*(rule.id for rule in RULES), "a-rule-of-a-plugin"]), RAW, RAW)
def test_more_of_its_own_confidence_is_never_less_of_the_earned(
    rule: str, left: float, right: float
) -> None:
    low, high = sorted((left, right))
    assert 0 <= calibrated(rule, low) <= calibrated(rule, high) + 1e-12 <= 1 + 1e-12


def test_a_rule_that_the_corpus_does_not_know_keeps_half_of_its_own_word() -> None:
    curve = fit_of(json.loads(FILE.read_text())).curve
    assert calibrated("a-rule-of-a-plugin", 0.8) == pytest.approx((0.8 + on_curve(curve, 0.8)) / 2)


def test_nothing_lies_beyond_the_ends_of_the_line() -> None:
    curve = ((0.2, 0.6), (0.1, 0.9))
    assert [on_curve(curve, score) for score in (0.0, 0.2, 0.4, 0.6, 1.0)] == pytest.approx(
        [0.1, 0.1, 0.5, 0.9, 0.9]
    )
