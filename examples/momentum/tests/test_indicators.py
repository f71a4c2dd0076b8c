"""The RSI agrees with values that an independent implementation computed, and with a published table."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from indicators.rsi import compute_rsi

ROOT = Path(__file__).resolve().parents[1]
EXPECTED = json.loads((ROOT / "fixtures/rsi_expected.json").read_text(encoding="utf-8"))
LANDMARKS = ("most_oversold", "most_overbought", "first_defined")


@pytest.fixture
def close() -> pd.Series:
    return pd.read_csv(ROOT / "fixtures/sample_aapl.csv", index_col="Date")["Close"]


def test_rsi_values(close):
    rsi = compute_rsi(close, EXPECTED["period"])

    tolerance = EXPECTED["landmarks"]["tolerance"]
    for day in (EXPECTED["landmarks"][name] for name in LANDMARKS):
        wanted, got = EXPECTED["values"][day], float(rsi[day])
        message = f"RSI at {day}: expected {wanted:.1f} ± {tolerance}, got {got:.1f}"
        assert got == pytest.approx(wanted, abs=tolerance), message

    wanted = pd.Series(EXPECTED["values"], dtype=float)
    pd.testing.assert_series_equal(rsi, wanted, check_names=False, rtol=0, atol=0.0001)


def test_rsi_of_the_published_worked_example():
    example = EXPECTED["worked_example"]

    rsi = compute_rsi(pd.Series(example["prices"]))

    assert list(rsi[14:]) == pytest.approx(example["rsi"], abs=example["tolerance"])


def test_rsi_needs_as_many_changes_as_its_period(close):
    assert compute_rsi(close, 5).isna().sum() == 5
    assert compute_rsi(close.iloc[:14]).isna().all()
    assert list(compute_rsi(close.iloc[:15]).notna()) == [False] * 14 + [True]


def test_rsi_passes_over_a_missing_price(close):
    gap = close.copy()
    gap.iloc[[0, 40]] = float("nan")

    rsi = compute_rsi(gap)

    pd.testing.assert_series_equal(rsi.dropna(), compute_rsi(gap.dropna()).dropna())
    assert rsi.isna().sum() == 14 + 2


@pytest.mark.parametrize(
    ("prices", "expected"),
    [(range(1, 31), 100.0), (range(31, 1, -1), 0.0), ([7.0] * 30, 50.0)],
    ids=["only gains", "only losses", "no movement"],
)
def test_rsi_at_its_limits(prices, expected):
    rsi = compute_rsi(pd.Series(prices))

    assert list(rsi.dropna()) == [expected] * 16


def test_a_period_below_one_is_refused(close):
    with pytest.raises(ValueError, match="period must be at least 1, got 0"):
        compute_rsi(close, 0)
