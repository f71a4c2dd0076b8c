"""Gift vouchers."""

from __future__ import annotations

from decimal import Decimal

from shop.vouchers import redeem


def test_a_voucher_pays_a_part():
    assert redeem(Decimal("12.50"), Decimal("10")) == Decimal("2.50")
