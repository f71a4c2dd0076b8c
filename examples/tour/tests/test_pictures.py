"""Pictures of the articles, for the shop's page."""

from __future__ import annotations

PICTURES = {"apples": "apples.jpg", "bread": "bread.jpg", "candles": None, "dictionary": "dictionary.jpg"}


def test_pictures_are_counted(record_property):
    there = sum(picture is not None for picture in PICTURES.values())

    record_property("pictured", there / len(PICTURES))
