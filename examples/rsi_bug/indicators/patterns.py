"""Candle patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def is_engulfing(candle_window: pd.DataFrame) -> bool:
    """Return whether the last two candles are a bullish engulfing: a rising body around a falling one.

    `candle_window` has the columns `Open` and `Close`, oldest first. The second body must reach as far
    as the first on both sides and be larger; shadows do not count. One candle alone is no pattern.
    """
    if len(candle_window) < 2:
        return False
    before, last = candle_window.iloc[-2], candle_window.iloc[-1]
    falls = before["Close"] < before["Open"]
    # What covers a falling body in this direction rises.
    covers = last["Open"] <= before["Close"] and last["Close"] >= before["Open"]
    larger = last["Close"] - last["Open"] > before["Open"] - before["Close"]
    return bool(falls and covers and larger)
