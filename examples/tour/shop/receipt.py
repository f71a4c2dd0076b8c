"""Receipts, which print the total of an invoice."""

from __future__ import annotations

from shop.invoice import total
from shop.prices import Article


def render(lines: list[tuple[Article, int]]) -> str:
    """The receipt, a line for each article."""
    shown = [f"{count} x {article.name}" for article, count in lines]
    return "\n".join([*shown, f"total {total(lines)}"])
