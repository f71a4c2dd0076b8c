"""What a person reads: lines no wider than the terminal, colours only where they are wanted.

Everything from outside passes :meth:`Screen.one_line` before it is measured or shown, so that no title,
message or path can move the cursor, colour the screen or break a column.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING, NamedTuple, TextIO

from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

NARROWEST = 40
WIDEST = 120
"""Longer lines are hard to read, however wide the terminal is."""

PIPED = 100
"""The width where there is no terminal to ask."""

_LONGEST = 20_000
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)$")
_STYLES = {"good": "32", "bad": "31;1", "warn": "33;1", "strong": "1", "quiet": "2", "command": "36"}


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


class Screen:
    """Collects lines; :meth:`show` writes them all at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._lines: list[str] = []
        self._encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self.is_terminal = self._stream.isatty()
        self._coloured = self.is_terminal and wants_colour()
        self.width = _width()
        self.glyphs = UNICODE if _can_show(self._encoding, "".join(UNICODE)) else ASCII

    def line(self, text: str = "", *, indent: int = 0) -> None:
        """One line as it is: a command, a path, something that a person will copy."""
        self._lines.append(f"{' ' * indent}{text}".rstrip())

    def clipped(self, text: str) -> None:
        """One line, cut at the width of the screen. Takes no styled text."""
        self.line(self.clip(text, self.width))

    def paragraph(self, text: str, *, indent: int = 0, first: str = "") -> None:
        """Text wrapped at words; ``first`` stands before its first line."""
        lead = first or " " * indent
        for part in self.wrap(self.one_line(text), self.width - indent):
            self.line(f"{lead}{part}")
            lead = " " * indent

    def labelled(self, label: str, text: str, *, indent: int = 2, room: int = 9) -> None:
        """A short word, then a text beside it."""
        head = f"{' ' * indent}{label:<{room}}"
        start = f"{' ' * indent}{self.style(f'{label:<{room}}', 'quiet')}"
        self.paragraph(text, indent=len(head), first=start)

    def remark(self, text: str) -> None:
        """A line above the rest that qualifies it. Not wrapped: it may end with a command to copy."""
        self.line(f"{self.style('!', 'warn')} {self.one_line(text)}")

    def quoted(self, text: str, *, indent: int = 2) -> None:
        """A document within the document: every line of it under a bar, none wrapped or cut."""
        bar = self.style(self.glyphs.bar, "quiet")
        for part in clean(text).rstrip("\n").split("\n"):
            self.line(f"{' ' * indent}{bar}{part.expandtabs(4)}")

    def wrap(self, text: str, width: int) -> list[str]:
        """The text in lines of at most that many cells; a longer word stands alone and whole."""
        lines: list[str] = []
        current, used = "", 0
        for word in text.split(" "):
            size = cells(word)
            if current and used + 1 + size > width:
                lines.append(current)
                current, used = word, size
            else:
                current, used = (f"{current} {word}", used + 1 + size) if current else (word, size)
        return [*lines, current]

    def clip(self, text: str, width: int) -> str:
        """The text, cut with an ellipsis where it is wider."""
        if cells(text) <= width:
            return text
        room = max(width - len(self.glyphs.ellipsis), 0)
        kept = ""
        for char in text:
            if cells(kept) + cells(char) > room:
                break
            kept += char
        return kept.rstrip() + self.glyphs.ellipsis

    def style(self, text: str, name: str) -> str:
        """The text in a style, where styles are wanted."""
        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if self._coloured and text else text

    def one_line(self, text: object) -> str:
        """Text from outside, fit for a line."""
        return " ".join(clean(str(text), limit=_LONGEST).split())

    def show(self) -> None:
        """Write everything."""
        write("".join(f"{line}\n" for line in self._lines), self._stream)
        self._lines.clear()


def write(text: str, stream: TextIO | None = None) -> None:
    """Write to standard output; what its encoding lacks is written as an escape."""
    target = sys.stdout if stream is None else stream
    encoding = getattr(target, "encoding", None) or "utf-8"
    target.write(text.encode(encoding, "backslashreplace").decode(encoding))


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(char) for char in text)


def padded(text: str, width: int) -> str:
    """The text, filled with blanks up to that many cells."""
    return text + " " * (width - cells(text))


def wants_colour() -> bool:
    """Whether the environment has nothing against colours. See https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def counted(count: int, noun: str) -> str:
    """``1 todo``, ``2 todos``; ``criterion`` becomes ``criteria``."""
    plural = {"criterion": "criteria", "branch": "branches"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"


def listed(names: Iterable[str], most: int = 8) -> str:
    """``a, b and 3 more``."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"{', '.join(known[:most])}{more}"


def moment(text: str) -> str:
    """A time as people write it, to the minute: ``2026-01-31 09:30 UTC``. What is none stays as it is."""
    found = _MOMENT.match(text)
    return f"{found[1]} {found[2]} UTC" if found else text


def _cells_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _width() -> int:
    columns = shutil.get_terminal_size((PIPED, 24)).columns
    return min(max(columns, NARROWEST), WIDEST)


def _can_show(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
