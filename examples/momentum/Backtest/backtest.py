"""The strategy over past bars: one position at a time, each order filled at the bar's close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from Backtest.codes.ai_strategy_entry import should_enter
from Backtest.codes.ai_strategy_exit import should_exit
from indicators import compute_rsi, is_engulfing

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One position from its entry to its exit."""

    entered: pd.Timestamp
    exited: pd.Timestamp
    entry_price: float
    exit_price: float

    @property
    def gain(self) -> float:
        """Won or lost, as a part of the entry price."""
        return self.exit_price / self.entry_price - 1.0


def run_backtest(bars: pd.DataFrame) -> list[Trade]:
    """The trades of the strategy over `bars`, oldest first; a position still open at the end is none."""
    rsi = compute_rsi(bars["Close"])
    trades: list[Trade] = []
    position: dict[str, float] | None = None
    entered = None
    for i, bar in bars.iterrows():
        window = bars.iloc[max(0, i - 1) : i + 1]
        indicators = {"rsi": float(rsi[i]), "engulfing": is_engulfing(window)}
        price = float(bar["Close"])
        if position is None:
            if should_enter(bar, indicators, position):
                position, entered = {"entry_price": price, "size": 1, "pnl": 0.0}, bar["Date"]
            continue
        position["pnl"] = (price - position["entry_price"]) * position["size"]
        if should_exit(bar, indicators, position):
            trades.append(
                Trade(
                    entered=entered,
                    exited=bar["Date"],
                    entry_price=position["entry_price"],
                    exit_price=price,
                )
            )
            position = None
    return trades
