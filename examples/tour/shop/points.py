"""Loyalty points."""

from __future__ import annotations

from decimal import Decimal


def award(total: Decimal) -> int:
    """A point for each whole pound."""
    return int(total)
