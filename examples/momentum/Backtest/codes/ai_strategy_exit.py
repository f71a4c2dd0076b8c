"""The exit decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

STOP_LOSS = 0.05
"""The part of the entry price that may be lost."""
TAKE_PROFIT = 0.08
"""The part of the entry price at which the gain is taken."""
OVERBOUGHT_RSI = 70.0


def should_exit(bar: pd.Series, indicators: dict[str, float], position: dict[str, float]) -> bool:
    """Return whether to close `position` on `bar`: stop loss, profit target, or an overbought market.

    `position` has `entry_price`, `size` and `pnl`. The stop loss looks at the low of the bar and the
    target at its high, since either may have been touched within the day. An undefined RSI (NaN)
    is no signal.
    """
    entry_price = position["entry_price"]
    stopped = bar["Low"] <= entry_price * (1.0 - STOP_LOSS)
    reached = bar["High"] >= entry_price * (1.0 + TAKE_PROFIT)
    overbought = indicators["rsi"] > OVERBOUGHT_RSI
    return bool(stopped or reached or overbought)
