"""The scale at the counter."""

from __future__ import annotations

from shop.scale import grams


def test_an_empty_scale_shows_nothing():
    assert grams() == 0
