"""Entry and exit together, over a whole year."""

from __future__ import annotations

import pytest

from Backtest.backtest import run_backtest
from Backtest.backtesting_adapter import fetch_and_prepare_data


def test_the_strategy_trades(record_property):
    bars = fetch_and_prepare_data("AAPL", "2024-01-01", "2024-12-31")

    trades = run_backtest(bars)

    record_property("trades", len(trades))
    assert trades == run_backtest(bars)
    days = [day for trade in trades for day in (trade.entered, trade.exited)]
    assert days == sorted(set(days)), "a trade ends after its start, and before the next one starts"


def test_the_trades_of_the_sample_year():
    bars = fetch_and_prepare_data("AAPL", "2024-01-01", "2024-12-31")

    stopped, won = run_backtest(bars)

    assert (str(stopped.entered.date()), str(stopped.exited.date())) == ("2024-04-29", "2024-05-24")
    assert stopped.gain == pytest.approx(-0.0576, abs=0.0001)
    assert (str(won.entered.date()), str(won.exited.date())) == ("2024-08-09", "2024-10-24")
    assert won.gain == pytest.approx(0.0925, abs=0.0001)
