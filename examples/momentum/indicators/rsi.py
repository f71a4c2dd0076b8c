"""The relative strength index with Wilder's smoothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def compute_rsi(series: pd.Series, period: int = 14) -> pd.Series:
    """The RSI of `series`, from 0 (only losses) to 100 (only gains), on the same index.

    An RSI needs `period` changes: the first `period` prices have none and get NaN. A missing price
    gets NaN too; the next change is then taken from the last known price. Without any movement the
    RSI is 50. Raises `ValueError` when `period` is less than 1.

    Source: J. Welles Wilder, "New Concepts in Technical Trading Systems" (1978).
    """
    if period < 1:
        raise ValueError(f"period must be at least 1, got {period}")
    change = series.dropna().astype(float).diff()
    gain = _wilder_mean(change.clip(lower=0.0), period)
    loss = _wilder_mean(-change.clip(upper=0.0), period)
    rsi = (100.0 * gain / (gain + loss)).mask(gain + loss == 0.0, 50.0)
    return rsi.reindex(series.index)


def _wilder_mean(values: pd.Series, period: int) -> pd.Series:
    """A running mean that starts as the plain mean of the first `period` values.

    Each later value then weighs one `period`-th. `values[0]` is the NaN that `diff` leaves.
    """
    seeded = values.copy()
    seeded.iloc[period : period + 1] = values.iloc[1 : period + 1].mean()
    return seeded.iloc[period:].ewm(alpha=1.0 / period, adjust=False).mean().reindex(values.index)
