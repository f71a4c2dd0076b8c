"""Discounts."""

from __future__ import annotations

from decimal import Decimal


def discount(total: Decimal, fraction: Decimal) -> Decimal:
    """The total less the discount."""
    return total * (1 - fraction)
