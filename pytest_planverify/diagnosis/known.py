"""Tables of ``data/known.toml``, parsed at import: plugins, services, machine problems, tools' messages."""

from __future__ import annotations

import errno
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).parent / "data" / "known.toml"

_DATA: dict[str, dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))


def _by_name(table: str) -> dict[str, str]:
    """Return a table inverted: the file lists the names for each plugin or service that provides them."""
    return {name: brings for brings, names in _DATA[table].items() for name in names}


def names_in(table: str) -> tuple[str, ...]:
    """Return the names of a list of the file, or those that a table lists for its plugins or services."""
    lists = _DATA[table].values() if table in _DATA else (_DATA["names"][table],)
    return tuple(name for names in lists for name in names)


def literal_in(pattern: str) -> str:
    """Return the longest text that each match of a pattern contains; empty if it cannot be told.

    Groups are left out. A pattern with alternatives outside of groups has no such text.
    """
    texts, depth = [""], 0
    for token in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return ""
        if _LITERAL.fullmatch(token) and not depth:
            texts[-1] += token[-1]
            continue
        if token in ("?", "*", "+", "{"):  # what precedes may be absent
            texts[-1] = texts[-1][:-1]
        texts.append("")
    return max(texts, key=len)


_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|.")
_LITERAL = re.compile(r"\\\W|[^\\()?*+{}.^$|\[]")
_LINES = {
    key: tuple((literal_in(each), rf"^[ \t]*+(?:{each})[ \t\r]*$") for each in _DATA["command"][key])
    for key in ("unknown_names", "unknown_words", "set_up", "set_up_words")
}
"""Patterns of whole lines, each after a text that its matches contain."""


def matching_lines(key: str, text: str) -> Iterator[re.Match[str]]:
    """Yield the lines of an output that match the patterns of a table.

    ``unknown_names``: a tool reports an unknown file, target or option; the name is in one of the groups;
    if none matched and the line ends with a colon, it is the next line. ``set_up``: its configuration or
    installation prevents its work. ``unknown_words`` and ``set_up_words``: the same, in words that code of
    the project may print, too.
    """
    for literal, pattern in _LINES[key]:
        if literal in text:  # faster than the pattern, which most outputs do not match
            yield from re.finditer(pattern, text, re.MULTILINE)


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
CODES = {name: frozenset[str](codes) for name, codes in _DATA["codes"].items()}
"""Codes, warning flags and file suffixes of tools' findings, by topic."""
MACHINE_MESSAGES = tuple(_DATA["machine_messages"].items())
"""Beginnings of messages about the machine, each with the exception types."""
MACHINE_WORDS = re.compile(
    rf"(?i:\b(?:{'|'.join(_DATA['machine_words']['any_case'])})\b)"
    rf"|\b(?:{'|'.join(_DATA['machine_words']['as_written'])})\b"
)
"""Words in messages of code that checks for a requirement itself and then raises."""
DISTRIBUTION_OF_MODULE = _by_name("distribution_of_module")
ERRNOS = {
    name: frozenset(getattr(errno, each) for each in numbers if hasattr(errno, each))
    for name, numbers in _DATA["errno"].items()
}
"""Numbers of errors of the system, by topic."""
