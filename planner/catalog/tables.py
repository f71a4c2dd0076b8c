"""Loader of tables that are packaged as TOML."""

from __future__ import annotations

import pkgutil
import tomllib
from typing import Any


def load_table(name: str, package: str = "planner.catalog") -> dict[str, Any]:
    """Load ``{name}.toml`` of a package. Raises ``FileNotFoundError`` if the package lacks it."""
    data = pkgutil.get_data(package, f"{name}.toml")
    if data is None:
        raise FileNotFoundError(f"{package} has no {name}.toml; install the package again")
    return tomllib.loads(data.decode())
