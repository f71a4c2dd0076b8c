"""Receipts."""

from __future__ import annotations

from decimal import Decimal

from shop.prices import Article
from shop.receipt import render


def test_each_article_has_a_line():
    assert render([(Article("bread", "food", Decimal("2.40")), 1)]) == "1 x bread\ntotal 2.52"
