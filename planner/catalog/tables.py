"""Reading the tables that are packaged beside this module as TOML."""

from __future__ import annotations

import pkgutil
import tomllib
from typing import Any


def load_table(name: str) -> dict[str, Any]:
    """Load ``name.toml`` of this package."""
    data = pkgutil.get_data("planner.catalog", f"{name}.toml")
    if data is None:
        raise FileNotFoundError(f"planner.catalog has no {name}.toml; install the package again")
    return tomllib.loads(data.decode())
