"""The scale at the counter."""

from __future__ import annotations

import ctypes

ADDRESS = 0
"""Address of the scale's register, as mapped by the driver; 0 without a driver."""


def grams() -> int:
    """Return the weight on the scale."""
    return ctypes.c_int32.from_address(ADDRESS).value
