"""The display that faces the customer."""

from __future__ import annotations


def show(text: str) -> str:
    """The text as the display shows it: twenty characters in the middle."""
    shown = text[:20].center(20)
    print(shown)
    return shown
