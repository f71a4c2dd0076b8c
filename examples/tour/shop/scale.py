"""The scale at the counter."""

from __future__ import annotations

import ctypes

ADDRESS = 0
"""Where the driver has mapped the scale's register; 0 while there is none."""


def grams() -> int:
    """What lies on the scale."""
    return ctypes.c_int32.from_address(ADDRESS).value
