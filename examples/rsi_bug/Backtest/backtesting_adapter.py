"""Daily bars for the strategy, cleaned and in one format."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

COLUMNS = ["Date", "Open", "High", "Low", "Close", "Volume"]
RECORDED_BARS = Path(__file__).resolve().parents[1] / "fixtures"


class UnknownSymbolError(LookupError):
    """There are no bars for that symbol."""


def fetch_and_prepare_data(symbol: str, start: str, end: str) -> pd.DataFrame:
    """Return the daily bars of `symbol` from `start` to `end`, both included and written `YYYY-MM-DD`.

    The columns are `COLUMNS`, the rows are sorted by date and numbered from 0. A bar with a missing
    value is left out; of two bars of one day the later one wins. Raises `UnknownSymbolError`, and
    `ValueError` when `start` is after `end`.
    """
    first_day, last_day = pd.Timestamp(start), pd.Timestamp(end)
    if first_day > last_day:
        raise ValueError(f"start {start} is after end {end}")
    bars = load_bars(symbol)[COLUMNS].dropna()
    bars = bars.assign(Date=pd.to_datetime(bars["Date"]))
    bars = bars[bars["Date"].between(first_day, last_day)]
    return bars.drop_duplicates("Date", keep="last").sort_values("Date", ignore_index=True)


def load_bars(symbol: str) -> pd.DataFrame:
    """Return the raw bars of `symbol`, as its source has them.

    This is the one place that would talk to a market data service. Here it reads recorded bars, so that
    a run needs no network and gives the same answer every time; tests put their own in its place.
    """
    path = RECORDED_BARS / f"sample_{symbol.lower()}.csv"
    if not path.is_file():
        raise UnknownSymbolError(f"no bars recorded for {symbol!r}: {path.name} does not exist")
    return pd.read_csv(path)
