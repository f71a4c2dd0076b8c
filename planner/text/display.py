"""Text as people read it: plurals, lists, times, and the columns that a terminal needs for it.

Nothing here cleans: text from outside passes :func:`planner.text.sanitizing.clean` first.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLURALS = {"branch": "branches", "retry": "retries", "criterion": "criteria", "entry": "entries"}
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)$")
_INVISIBLE = (range(0x200B, 0x2010), range(0x2028, 0x202F), range(0x2060, 0x2064))
"""Characters that take no column and that Unicode does not call marks."""


class Glyphs(NamedTuple):
    """The few characters beyond letters that are drawn with."""

    done: str
    failed: str
    blocked: str
    testing: str
    pending: str
    active: str
    ellipsis: str
    tee: str
    last: str
    stem: str
    bar: str


UNICODE = Glyphs("✓", "✗", "\u2013", "?", "·", "»", "…", "├─ ", "└─ ", "│  ", "│ ")
ASCII = Glyphs("+", "x", "-", "?", ".", ">", "...", "|- ", "`- ", "|  ", "| ")


def glyphs_for(encoding: str) -> Glyphs:
    """Return the glyphs that a stream of that encoding can show."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def counted(count: int, noun: str) -> str:
    """Return ``1 todo``, ``2 criteria``, ``1200 tests``, ``12,000 tokens``. The noun is in the singular.

    Of several words the last takes the plural: ``touched file``.
    """
    first, _, last = noun.rpartition(" ")
    plural = f"{first} {_PLURALS.get(last, f'{last}s')}".lstrip()
    return f"{count if count < 10_000 else f'{count:,}'} {noun if count == 1 else plural}"


def listed(names: Iterable[str], most: int = 8, last: str = ", ") -> str:
    """Return ``a, b and 3 more``; ``last`` stands before the last name where all are shown."""
    known = list(names)
    if len(known) > most:
        return f"{', '.join(known[:most])} and {len(known) - most} more"
    return last.join(part for part in (", ".join(known[:-1]), *known[-1:]) if part)


def moment(text: str) -> str:
    """Return a time to the minute, ``2026-01-31 09:30 UTC``; text that is no time stays as it is."""
    found = _MOMENT.match(text)
    return f"{found[1]} {found[2]} UTC" if found else text


def cells(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return the text filled with blanks to that many columns."""
    fill = " " * max(width - cells(text), 0)
    return fill + text if right else text + fill


def cut(text: str, width: int) -> str:
    """Return the longest beginning of the text that takes at most that many columns."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for position, char in enumerate(text):
        taken += _cells_of(char)
        if taken > width:
            return text[:position]
    return text


def wrapped(text: str, width: int) -> list[str]:
    """Break the text at blanks into lines of at most that many columns; a wider word has its own line."""
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        candidate = f"{current} {word}" if current else word
        if current and cells(candidate) > width:
            lines.append(current)
            candidate = word
        current = candidate
    if current.strip():
        lines.append(current)
    return lines


def _cells_of(char: str) -> int:
    code = ord(char)
    if unicodedata.category(char) in ("Me", "Mn", "Cc") or any(code in each for each in _INVISIBLE):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
