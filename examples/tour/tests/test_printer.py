"""The receipt printer."""

from __future__ import annotations

from shop.printer import with_feed


def test_there_is_room_to_tear_it_off():
    assert with_feed("total 2.52") == "total 2.52\n\n\n"
