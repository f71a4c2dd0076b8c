"""Invoices."""

from __future__ import annotations

from decimal import Decimal

from shop.prices import Article, with_tax


def total(lines: list[tuple[Article, int]]) -> Decimal:
    """Return the total price of the articles, with tax."""
    return sum((with_tax(article.price, article.kind) * count for article, count in lines), Decimal(0))


def refund(lines: list[tuple[Article, int]]) -> Decimal:
    """Return the refund, as a negative amount."""
    return -total(lines)
