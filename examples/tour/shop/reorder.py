"""What to order again."""

from __future__ import annotations


def packs_to_order(on_shelf: int, wanted: int, pack_size: int) -> int:
    """How many packs fill the shelf again."""
    packs = 0
    while on_shelf < wanted:
        on_shelf += pack_size
        packs += 1
    return packs
