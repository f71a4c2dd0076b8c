"""Orders of articles that run low."""

from __future__ import annotations

from shop.reorder import packs_to_order


def test_packs_fill_the_shelf():
    assert packs_to_order(on_shelf=3, wanted=10, pack_size=4) == 2


def test_an_article_that_is_sold_singly():
    assert packs_to_order(on_shelf=3, wanted=10, pack_size=0) == 7
