"""Table of calls whose results differ between runs: random numbers, the clock, the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog.tables import load_table

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE = load_table("impure_calls")

CHANCE: Mapping[str, str] = _TABLE["chance"]
"""Functions that draw from an unseeded generator, by module."""
CLOCK: Mapping[str, str] = _TABLE["clock"]
"""Functions that read the clock, by module."""
NETWORK: Mapping[str, str] = _TABLE["network"]
"""Functions that access the network, by module."""

GENERATORS = frozenset(
    f"{module}.{name}" for module, names in _TABLE["generators"].items() for name in names.split()
)
"""Full names of generators and seeding functions that take a random seed if called without arguments."""
