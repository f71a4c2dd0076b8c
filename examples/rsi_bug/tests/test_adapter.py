"""The adapter gives daily bars in one shape, whatever its source looks like."""

from __future__ import annotations

import pandas as pd
import pytest

from Backtest import backtesting_adapter
from Backtest.backtesting_adapter import COLUMNS, UnknownSymbolError, fetch_and_prepare_data


def test_fetch(record_property):
    bars = fetch_and_prepare_data("AAPL", "2024-01-01", "2024-12-31")

    record_property("rows_min", len(bars))
    assert len(bars) == 260
    assert bars["Date"].is_monotonic_increasing
    assert bars["Date"].is_unique
    assert not bars.isna().to_numpy().any()
    body = bars[["Open", "Close"]]
    assert (bars["Low"] <= body.min(axis=1)).all()
    assert (bars["High"] >= body.max(axis=1)).all()


def test_columns(monkeypatch):
    untidy = pd.DataFrame(
        {
            "Volume": [300, 100, 200, 222, 400],
            "Adj Close": [3.5, 1.5, 2.5, 2.6, 4.5],
            "Close": [3.0, 1.0, 2.0, 2.2, None],
            "Low": [2.9, 0.9, 1.9, 1.9, 3.9],
            "High": [3.1, 1.1, 2.1, 2.3, 4.1],
            "Open": [3.0, 1.0, 2.0, 2.0, 4.0],
            "Date": ["2024-01-04", "2024-01-02", "2024-01-03", "2024-01-03", "2024-01-05"],
        }
    )
    asked = []
    monkeypatch.setattr(backtesting_adapter, "load_bars", lambda symbol: asked.append(symbol) or untidy)

    bars = fetch_and_prepare_data("XYZ", "2024-01-01", "2024-12-31")

    assert asked == ["XYZ"]
    assert list(bars.columns) == COLUMNS == ["Date", "Open", "High", "Low", "Close", "Volume"]
    assert pd.api.types.is_datetime64_any_dtype(bars["Date"])
    assert list(bars.index) == [0, 1, 2]
    assert list(bars["Close"]) == [1.0, 2.2, 3.0], "sorted, the later of two, none that is incomplete"


def test_both_ends_of_the_period_are_included():
    three = fetch_and_prepare_data("aapl", "2024-01-03", "2024-01-05")
    one = fetch_and_prepare_data("aapl", "2024-01-04", "2024-01-04")

    assert list(three["Date"].dt.day) == [3, 4, 5]
    assert list(one["Date"].dt.day) == [4]


def test_an_unknown_symbol_is_refused():
    with pytest.raises(UnknownSymbolError, match="no bars recorded for 'NOPE'"):
        fetch_and_prepare_data("NOPE", "2024-01-01", "2024-12-31")


def test_a_period_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="start 2024-02-01 is after end 2024-01-01"):
        fetch_and_prepare_data("AAPL", "2024-02-01", "2024-01-01")
