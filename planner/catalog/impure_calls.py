"""Table of calls whose results differ between runs: random numbers, the clock, the network."""

from __future__ import annotations

from planner.catalog.tables import load_table

_NAMES = {
    section: [f"{module}.{name}" for module, names in table.items() for name in names.split()]
    for section, table in load_table("impure_calls").items()
}

GENERATORS = frozenset(_NAMES.pop("generators"))
"""Full names of generators and seeding functions that take a random seed if called without arguments."""

IMPURE_CALLS = {name: section for section, names in _NAMES.items() for name in names}
"""Full names of functions, each with what it depends on: ``chance``, ``clock`` or ``network``."""
