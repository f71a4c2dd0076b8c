"""Technical indicators and candle patterns, as `contracts/indicator_contract.json` promises them."""

from __future__ import annotations

from indicators.patterns import is_engulfing
from indicators.rsi import compute_rsi

__all__ = ["compute_rsi", "is_engulfing"]
