"""The price list, and prices with tax."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

TAX = {"food": Decimal("0.05"), "household": Decimal("0.20"), "books": Decimal("0")}
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Article:
    """One line of the price list; the price is without tax."""

    name: str
    kind: str
    price: Decimal


def read_prices(path: Path) -> dict[str, Article]:
    """The articles of a price list by name. Raises ``ValueError`` for a kind that no tax is known of."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    unknown = sorted({row["kind"] for row in rows} - TAX.keys())
    if unknown:
        raise ValueError(f"{path}: no tax is known for {', '.join(unknown)}")
    return {row["name"]: Article(row["name"], row["kind"], Decimal(row["price"])) for row in rows}


def in_cents(amount: Decimal) -> Decimal:
    """The amount, rounded to a cent as the tax office does."""
    return amount.quantize(CENT, ROUND_HALF_UP)


def with_tax(price: Decimal, kind: str) -> Decimal:
    """The price that a customer pays."""
    return in_cents(price * (1 + TAX[kind]))


if __name__ == "__main__":
    print(f"{len(read_prices(Path(sys.argv[1])))} articles")
