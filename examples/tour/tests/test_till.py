"""The till."""

from __future__ import annotations

from shop.till import close


def test_closing_counts_the_drawer():
    assert close([100, 50, 20]) == 170
