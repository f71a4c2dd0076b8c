"""The till."""

from __future__ import annotations

import os


def close(drawer: list[int]) -> int:
    """Count the drawer and switch off."""
    counted = sum(drawer)
    print(f"closed with {counted}")
    os._exit(0)
    return counted
