"""Tables of ``data/known.toml``, parsed at import: plugins, services, machine problems, tools' messages."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "known.toml"

_DATA: dict[str, dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))


def _by_name(table: str) -> dict[str, str]:
    """Return a table inverted: the file lists the names for each plugin or service that provides them."""
    return {name: brings for brings, names in _DATA[table].items() for name in names}


def _whole_line(key: str) -> str:
    """Return a pattern that matches a whole line by one of the table's patterns."""
    return rf"^[ \t]*(?:{'|'.join(_DATA['command'][key])})[ \t\r]*$"


PLUGIN_OF_FIXTURE = _by_name("plugin_of_fixture")
"""Plugin names by the fixture that they provide; likewise for marks, options and ini settings."""
PLUGIN_OF_MARK = _by_name("plugin_of_mark")
PLUGIN_OF_OPTION = _by_name("plugin_of_option")
"""Plugin names by option prefix."""
PLUGIN_OF_SETTING = _by_name("plugin_of_setting")
SERVICE_OF_ERROR = _by_name("service_of_error")
"""Service names by the exception that a client raises if the service is unavailable."""
MACHINE_ERRORS = _by_name("machine_errors")
"""Phrases for a problem of the machine, by qualified exception name."""
UNKNOWN_NAME = _whole_line("unknown_names")
"""Pattern of a line in which a tool reports an unknown file, target or option. The name is in one of the
groups; if none of them matched and the line ends with a colon, the name is the next line.
"""
SET_UP = _whole_line("set_up")
"""Pattern of a line in which a tool reports that its configuration or installation prevents its work."""
CODES = {name: frozenset[str](codes) for name, codes in _DATA["codes"].items()}
"""Codes, warning flags and file suffixes of tools' findings, by topic."""
