"""Text for a terminal: lines no wider than it, colours only where they are wanted.

Everything from outside passes :meth:`Screen.one_line` before it is measured or shown, so that no title,
message or path can move the cursor, colour the screen or break a column.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from planner.text.display import cells, cut, glyphs_for, padded, wrapped
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

NARROWEST = 40
WIDEST = 120
"""Longer lines are hard to read, however wide the terminal is."""

PIPED = 100
"""The width where there is no terminal to ask."""

PLAN_STATES = {
    "created": ("created", "strong"),
    "validating": ("being validated", "strong"),
    "rejected": ("rejected", "bad"),
    "ready": ("ready", "strong"),
    "executing": ("under way", "strong"),
    "revising": ("to be revised", "strong"),
    "awaiting_review": ("waiting for a person", "warn"),
    "completed": ("completed", "good"),
    "halted": ("halted", "bad"),
}
"""For each state of a plan the words and the style."""

TODO_STATES = {
    "done": ("done", "done", "good"),
    "test_failed": ("failed", "failed", "bad"),
    "testing": ("testing", "testing", "warn"),
    "blocked": ("blocked", "blocked", "quiet"),
    "active": ("active", "in progress", "warn"),
    "ready": ("active", "ready", "strong"),
    "pending": ("pending", "pending", "quiet"),
    "failed": ("failed", "given up", "bad"),
    "skipped": ("blocked", "skipped", "quiet"),
    "halted": ("failed", "halted", "bad"),
}
"""For each state of a todo the field of the glyphs, the words, and the style."""

_LONGEST = 20_000
_NARROWEST_COLUMN = 12
_STYLES = {"good": "32", "bad": "31;1", "warn": "33;1", "strong": "1", "quiet": "2", "command": "36"}


class Screen:
    """Collects lines; :meth:`show` writes them all at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._lines: list[str] = []
        self._encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self.is_terminal = self._stream.isatty()
        self._coloured = self.is_terminal and wants_colour()
        self.width = _width()
        self.glyphs = glyphs_for(self._encoding)

    def line(self, text: str = "", *, indent: int = 0) -> None:
        """Add one line as it is: a command, a path, something that a person will copy."""
        self._lines.append(f"{' ' * indent}{text}".rstrip())

    def clipped(self, text: str) -> None:
        """Add one line, cut at the width of the screen. Takes no styled text."""
        self.line(self.clip(text, self.width))

    def paragraph(self, text: str, *, indent: int = 0, first: str = "") -> None:
        """Add text wrapped at words; ``first`` stands before its first line."""
        lead = first or " " * indent
        for part in wrapped(self.one_line(text), self.width - indent) or [""]:
            self.line(f"{lead}{part}")
            lead = " " * indent

    def labelled(self, label: str, text: str, *, indent: int = 2, room: int = 9) -> None:
        """Add a short word and a text beside it."""
        head = f"{' ' * indent}{label:<{room}}"
        start = f"{' ' * indent}{self.style(f'{label:<{room}}', 'quiet')}"
        self.paragraph(text, indent=len(head), first=start)

    def remark(self, text: str) -> None:
        """Add a line above the rest that qualifies it. Not wrapped: it may end with a command to copy."""
        self.line(f"{self.style('!', 'warn')} {self.one_line(text)}")

    def command(self, label: str, command: str) -> None:
        """Add a command to copy beside a short word."""
        self.line(f"  {label:<6} {self.style(self.one_line(command), 'command')}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]], *, apart: bool = True) -> None:
        """Add columns as wide as they need to be; one in which nothing stands is left out, as are no rows.

        On a terminal that is too narrow for all of them the widest is cut. A blank line sets the table
        ``apart`` from what stands before it.
        """
        if not rows:
            return
        shown = [place for place in range(len(header)) if any(str(row[place]) for row in rows)]
        lines = [[self.one_line(row[place]) for place in shown] for row in (header, *rows)]
        widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
        over = sum(widths) + 2 * len(widths) - self.width
        if self.is_terminal and over > 0:  # what a program or a pager reads is whole
            widest = widths.index(max(widths))
            widths[widest] = max(widths[widest] - over, _NARROWEST_COLUMN)
        if apart:
            self.line()
        for number, line in enumerate(lines):
            pairs = zip(line, widths, strict=True)
            text = "  ".join(padded(self.clip(cell, width), width) for cell, width in pairs).rstrip()
            self.line(text if number else self.style(text, "quiet"), indent=2)

    def clip(self, text: str, width: int) -> str:
        """Return the text, cut with an ellipsis where it is wider."""
        if cells(text) <= width:
            return text
        return cut(text, width - len(self.glyphs.ellipsis)).rstrip() + self.glyphs.ellipsis

    def style(self, text: str, name: str) -> str:
        """Return the text in a style, where styles are wanted."""
        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if self._coloured and text else text

    def one_line(self, text: object) -> str:
        """Return text from outside as one printable line."""
        return one_line(text, limit=_LONGEST)

    def show(self) -> None:
        """Write everything."""
        write("".join(f"{line}\n" for line in self._lines), self._stream)
        self._lines.clear()


def write(text: str, stream: TextIO | None = None) -> None:
    """Write to standard output; what its encoding lacks is written as an escape."""
    target = sys.stdout if stream is None else stream
    encoding = getattr(target, "encoding", None) or "utf-8"
    target.write(text.encode(encoding, "backslashreplace").decode(encoding))


def print_json(document: object, *, sort_keys: bool = False) -> None:
    """Write a document to standard output, for programs."""
    write(json.dumps(document, indent=2, sort_keys=sort_keys) + "\n")


def duration(seconds: float) -> str:
    """Return a span of time in its two largest units: ``4 min 10 s``, ``2 d 3 h``."""
    rest = round(seconds)
    if rest == 0:
        return "0 s" if seconds <= 0 else "under 1 s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    first = next(at for at, (_, size) in enumerate(units) if rest >= size)
    parts = [f"{rest // units[first][1]} {units[first][0]}"]
    for unit, size in units[first + 1 : first + 2]:
        parts += [f"{rest % units[first][1] // size} {unit}"] if rest % units[first][1] >= size else []
    return " ".join(parts)


def wants_colour() -> bool:
    """Return whether the environment allows colours. See https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    columns = shutil.get_terminal_size((PIPED, 24)).columns
    return min(max(columns, NARROWEST), WIDEST)
