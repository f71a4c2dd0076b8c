"""Tables of ``data/known.toml``: plugins, services, and messages of tools."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "known.toml"

_DATA: dict[str, dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))


def _by_name(table: str) -> dict[str, str]:
    return {name: brings for brings, names in _DATA[table].items() for name in names}


def _whole_line(key: str) -> str:
    return f"^(?:{'|'.join(_DATA['command'][key])})$"


PLUGIN_OF_FIXTURE = _by_name("plugin_of_fixture")
PLUGIN_OF_MARK = _by_name("plugin_of_mark")
PLUGIN_OF_OPTION = _by_name("plugin_of_option")
"""Plugin names by option prefix."""
PLUGIN_OF_SETTING = _by_name("plugin_of_setting")
SERVICE_OF_ERROR = _by_name("service_of_error")
"""Service names by the exception that a client raises if the service is unavailable."""
MACHINE_ERRORS = _by_name("machine_errors")
"""Machine problems by qualified exception name."""
UNKNOWN_NAME = _whole_line("unknown_names")
"""Pattern of a tool's unknown-name message; without a matched group the name is on the next line."""
SET_UP = _whole_line("set_up")
"""Pattern of a tool's message that it cannot work here."""
CODES = {name: frozenset[str](codes) for name, codes in _DATA["codes"].items()}
"""Codes, flags and suffixes of findings by topic."""
