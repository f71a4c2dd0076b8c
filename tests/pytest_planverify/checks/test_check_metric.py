"""Every recorded value must satisfy the comparison, and only finite numbers are values."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.plan import MetricSpec, Operator
from planner.model.verdicts import Verdict
from pytest_planverify.checks.metric import check_metric

REFERENCE = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


def spec(sign: str, value: float) -> MetricSpec:
    return MetricSpec(name="rows_min", operator=Operator(sign), value=value)


@given(
    st.sampled_from(sorted(REFERENCE)),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.lists(st.integers(-5, 5) | st.floats(-5, 5, width=16), min_size=1),
)
def test_every_recorded_value_must_satisfy(sign: str, value: float, recorded: list[float]) -> None:
    result = check_metric(spec(sign, value), recorded)
    assert (result.verdict is Verdict.PASSED) == all(REFERENCE[sign](each, value) for each in recorded)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, False, "250", None, [1], 1j])
def test_only_finite_numbers_are_values(value: object) -> None:
    result = check_metric(spec("!=", 7), [250, value], check_id="metrics[0]")
    assert result.verdict is Verdict.FAILED
    assert result.evidence[0].metric is not None
    assert result.evidence[0].metric.problem == "not_a_number"
    assert result.evidence[0].metric.recorded == ("250", repr(value))


def test_a_metric_that_nobody_recorded_has_failed() -> None:
    result = check_metric(spec("<=", 7), [])
    assert (result.verdict, result.reason) == (Verdict.FAILED, "no test recorded rows_min")
    assert result.evidence[0].metric is not None
    assert result.evidence[0].metric.problem == "not_recorded"


def test_an_unmet_metric_is_told_in_one_line() -> None:
    result = check_metric(spec(">=", 300), [400, 250])
    assert result.reason == "rows_min is 250, not >= 300 (1 of 2 recorded values)"
    assert check_metric(spec(">=", 300), [250]).reason == "rows_min is 250, not >= 300"


def test_equality_of_floats_is_exact() -> None:
    assert check_metric(spec("==", 0.3), [0.1 + 0.2]).verdict is Verdict.FAILED
    assert check_metric(spec("==", 0.3), [0.3]).verdict is Verdict.PASSED


def test_whole_numbers_beyond_floats_are_compared_and_shown() -> None:
    assert check_metric(spec(">=", 1), [10**400]).verdict is Verdict.PASSED
    result = check_metric(spec("<", 1), [10**5_000])
    assert result.verdict is Verdict.FAILED
    assert "cannot be shown" in (result.reason or "")
