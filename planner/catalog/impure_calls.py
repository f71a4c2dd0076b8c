"""Calls that give another answer each time: chance, the clock, other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog.tables import load_table

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE = load_table("impure_calls")

CHANCE: Mapping[str, str] = _TABLE["chance"]
"""By module, the functions that draw from a generator nobody has seeded."""
CLOCK: Mapping[str, str] = _TABLE["clock"]
NETWORK: Mapping[str, str] = _TABLE["network"]

GENERATORS = frozenset(
    f"{module}.{name}" for module, names in _TABLE["generators"].items() for name in names.split()
)
"""Generators, and their seeding, that take what the system gives where they are given no argument."""
