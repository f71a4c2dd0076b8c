"""Loyalty points."""

from __future__ import annotations

from decimal import Decimal

from shop.points import award


def test_a_point_for_each_pound():
    assert award(Decimal("12.50")) == 12


def test_points_count_double_on_mondays():
    assert award(Decimal("12.50"), double=True) == 24
