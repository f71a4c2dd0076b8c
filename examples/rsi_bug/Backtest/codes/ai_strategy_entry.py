"""The entry decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

OVERSOLD_RSI = 30.0
"""Below it the market has fallen far enough to buy without further proof."""
RECOVERING_RSI = 45.0
"""Below it a bullish engulfing candle is proof enough that buyers are back."""


def should_enter(bar: pd.Series, indicators: dict[str, float], position: dict[str, float] | None) -> bool:
    """Return whether to buy at the close of `bar`.

    Only when nothing is held and the bar was traded: on an RSI below 30, or below 45 with a bullish
    engulfing pattern. `indicators` has `rsi` (NaN while it is undefined: no entry) and may have
    `engulfing`; others are not looked at.
    """
    if position is not None or bar["Volume"] <= 0:
        return False
    rsi = indicators["rsi"]
    oversold = rsi < OVERSOLD_RSI
    recovering = rsi < RECOVERING_RSI and indicators.get("engulfing", False)
    return bool(oversold or recovering)
