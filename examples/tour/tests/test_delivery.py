"""Delivery notes."""

from __future__ import annotations

from shop.delivery import pieces


def test_pieces_are_added():
    assert pieces(["name,count", "apples,40", "bread,12"]) == 52
