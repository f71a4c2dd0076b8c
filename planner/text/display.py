"""Formatting of text for people: plurals, lists, times, and widths in columns of a terminal.

Nothing is sanitized here: untrusted text has to pass :func:`planner.text.sanitizing.clean` first.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLURALS = {
    "branch": "branches",
    "class": "classes",
    "retry": "retries",
    "criterion": "criteria",
}
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)$")
_INVISIBLE = (range(0x200B, 0x2010), range(0x2028, 0x202F), range(0x2060, 0x2064))
"""Characters without width that are no marks in Unicode."""
_COMPARED = 80


class Glyphs(NamedTuple):
    """Symbols of states, and characters to draw trees with."""

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


UNICODE = Glyphs("✓", "✗", "\u2013", "?", "·", "»", "…", "├─ ", "└─ ", "│  ")
ASCII = Glyphs("+", "x", "-", "?", ".", ">", "...", "|- ", "`- ", "|  ")


def glyphs_for(encoding: str) -> Glyphs:
    """Return the glyphs that a stream with this encoding can write; ASCII for an unknown encoding."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def counted(count: int, noun: str) -> str:
    """Return a number with a noun: ``1 todo``, ``2 criteria``, ``1200 tests``, ``12,000 tokens``.

    ``noun`` is singular; of several words the last one is put in the plural: ``touched file``.
    """
    first, _, last = noun.rpartition(" ")
    plural = f"{first} {_PLURALS.get(last, f'{last}s')}".lstrip()
    return f"{count if count < 10_000 else f'{count:,}'} {noun if count == 1 else plural}"


def listed(names: Iterable[str], most: int = 8) -> str:
    """Return ``a, b and 3 more`` for more than ``most`` names, else all of them."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def did_you_mean(word: str, known: Iterable[str], otherwise: str, *, most: int = 1) -> str:
    """Return ``did you mean 'a' or 'b'?`` with the known names most like a word, else ``otherwise``.

    Case is ignored. Of long words only the beginning counts, as the comparison is quadratic.
    """
    # difflib compares by case, but names are typed in any.
    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(word[:_COMPARED].casefold(), by_fold, n=most)
    return f"did you mean {' or '.join(repr(by_fold[name]) for name in near)}?" if near else otherwise


def similar_names(wanted: str, names: Iterable[str]) -> list[str]:
    """Return up to three names of files or tests of which a name can be a misspelling, nearest first."""
    # difflib compares by case, but a file is often missing because of its case alone.
    stems = {_stem(name).casefold(): name for name in sorted(names, reverse=True)}
    bare = {stem.replace("test_", ""): name for stem, name in stems.items()}
    # What all names of tests have in common would make any two of them look similar.
    is_test = "test_" in wanted or wanted.endswith("_test.py")
    known = bare if is_test else stems | bare
    near = get_close_matches(_stem(wanted).casefold().replace("test_", ""), known, n=3, cutoff=0.75)
    return list(dict.fromkeys(known[each] for each in near))


def _stem(name: str) -> str:
    return name.removesuffix(".py").removesuffix("_test")


def moment(text: str) -> str:
    """Return an RFC 3339 time to the minute, ``2026-01-31 09:30 UTC``; other text unchanged."""
    found = _MOMENT.match(text)
    return f"{found[1]} {found[2]} UTC" if found else text


def cells(text: str) -> int:
    """Return the width of the text in columns of a terminal."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return the text padded with blanks to ``width`` columns; on the left side if ``right``."""
    fill = " " * max(width - cells(text), 0)
    return fill + text if right else text + fill


def cut(text: str, width: int) -> str:
    """Return the longest prefix of the text that fits into ``width`` columns."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for position, char in enumerate(text):
        taken += _cells_of(char)
        if taken > width:
            return text[:position]
    return text


def wrapped(text: str, width: int) -> list[str]:
    """Break the text at blanks into lines of at most ``width`` columns; a wider word has its own line."""
    lines: list[str] = []
    current = ""
    # Not split(), which would join runs of blanks: commands and code need them.
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
    # Combining marks are drawn over the character before them, and control characters not at all.
    if unicodedata.category(char) in ("Me", "Mn", "Cc") or any(code in each for each in _INVISIBLE):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
