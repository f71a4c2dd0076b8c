"""Stock on the shelves."""

from __future__ import annotations

import pytest

from shop.stock import Stock


def test_what_is_received_can_be_taken():
    stock = Stock()
    stock.receive("bread", 3)

    stock.take("bread", 2)

    assert stock.count("bread") == 1


def test_no_more_can_be_taken_than_is_there():
    with pytest.raises(ValueError, match="only 0 of bread left"):
        Stock().take("bread")
