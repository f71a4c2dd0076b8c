"""Invoices."""

from __future__ import annotations

from decimal import Decimal

from shop.invoice import refund, total
from shop.prices import Article

APPLES = Article("apples", "food", Decimal("0.85"))
BREAD = Article("bread", "food", Decimal("2.40"))


def test_total_of_one_piece():
    assert total([(BREAD, 1)]) == Decimal("2.52")


def test_total_of_many_pieces():
    assert total([(APPLES, 10)]) == Decimal("8.93")


def test_a_refund_is_negative():
    assert refund([(BREAD, 1)]) == Decimal("-2.52")
