"""The price list, and prices with tax."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from shop.prices import read_prices, with_tax

PRICES = Path(__file__).parents[1] / "fixtures" / "prices.csv"


def test_prices_are_read_by_name():
    assert read_prices(PRICES)["bread"].price == Decimal("2.40")


def test_a_kind_without_tax_is_refused(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("name,kind,price\nrum,spirits,20\n")

    with pytest.raises(ValueError, match="no tax is known for spirits"):
        read_prices(path)


@pytest.mark.parametrize(
    ("kind", "paid"), [("food", "10.50"), ("household", "12.00"), ("books", "10.00")], ids=lambda each: each
)
def test_tax_depends_on_the_kind(kind, paid):
    assert with_tax(Decimal("10.00"), kind) == Decimal(paid)
