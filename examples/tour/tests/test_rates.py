"""Exchange rates."""

from __future__ import annotations

from decimal import Decimal

from shop.rates import rate


def test_the_rate_is_that_of_today():
    assert rate("EUR") == Decimal("1.20")
