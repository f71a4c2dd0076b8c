"""Orders of articles that run low."""

from __future__ import annotations


def packs_to_order(on_shelf: int, wanted: int, pack_size: int) -> int:
    """Return the number of packs that fill the shelf."""
    packs = 0
    while on_shelf < wanted:
        on_shelf += pack_size
        packs += 1
    return packs
