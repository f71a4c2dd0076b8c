"""Text output for a terminal: lines no wider than the screen, colours only where they are wanted.

Every text from outside passes :meth:`Screen.one_line` before it is measured or shown, so that no title,
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
"""The most cells of a line: longer ones are hard to read, however wide the terminal is."""

PIPED = 100
"""The width where there is no terminal whose size is known."""
_PIPED_LINE = 240
"""The width there of a line that is cut, not wrapped."""

_PLAN_STYLES = {
    "rejected": "bad",
    "awaiting_review": "warn",
    "completed": "good",
    "halted": "bad",
    "interrupted": "quiet",
}
"""Styles of states of a plan; all others are strong."""

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
"""For each state of a todo, the attribute of the glyphs, the words, and the style."""

_LONGEST = 20_000
_NARROWEST_COLUMN = 12
_STYLES = {"good": "32", "bad": "31;1", "warn": "33;1", "strong": "1", "quiet": "2", "command": "36"}


class Screen:
    """Collects lines of output; :meth:`show` writes all of them at once.

    Without a ``stream`` it writes to standard output. Styles are applied on a terminal only.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._lines: list[str] = []
        # A stream that a caller passes may have none, as ``io.StringIO``.
        self._encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self.is_terminal = self._stream.isatty()
        # See https://no-color.org.
        wants_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._coloured = self.is_terminal and wants_colour
        # Uses COLUMNS before it asks the terminal.
        columns = shutil.get_terminal_size((PIPED, 24)).columns
        self.width = min(max(columns, NARROWEST), WIDEST)
        self.glyphs = glyphs_for(self._encoding)

    def line(self, text: str = "", *, indent: int = 0) -> None:
        """Add one line unwrapped and uncut, such as a command or path that a person will copy."""
        self._lines.append(f"{' ' * indent}{text}".rstrip())

    def clipped(self, lead: str, text: str) -> None:
        """Add one line, cut at the width of the terminal: an unstyled lead, and text from outside."""
        # Programs and agents that read the output get more of a long line than a terminal shows.
        width = self.width if self.is_terminal else _PIPED_LINE
        self.line(self.clip(f"{lead}{self.one_line(text)}", width))

    def whole(self, lead: str, text: str) -> None:
        """Add one line that is not cut to the terminal's width, as a remedy may end with a command."""
        self.line(self.clip(f"{lead}{self.one_line(text)}", _PIPED_LINE))

    def paragraph(self, text: str, *, indent: int = 0, first: str = "") -> None:
        """Add text wrapped at words; ``first`` replaces the indent of its first line."""
        lead = first or " " * indent
        # An empty text has a line, too: its label or mark must not be lost.
        for part in wrapped(self.one_line(text), self.width - indent) or [""]:
            self.line(f"{lead}{part}")
            lead = " " * indent

    def labelled(self, label: str, text: str, *, indent: int = 2, room: int = 9) -> None:
        """Add a text with a label to its left, which takes ``room`` columns."""
        # The width is measured without the escape codes of the style.
        head = f"{' ' * indent}{label:<{room}}"
        start = f"{' ' * indent}{self.style(f'{label:<{room}}', 'quiet')}"
        self.paragraph(text, indent=len(head), first=start)

    def remark(self, text: str) -> None:
        """Add a warning that qualifies what follows; not wrapped, as it may end with a command to copy."""
        self.line(f"{self.style('!', 'warn')} {self.one_line(text)}")

    def command(self, label: str, command: str) -> None:
        """Add a command to copy, with a label to its left."""
        self.line(f"  {label:<6} {self.style(self.one_line(command), 'command')}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]], *, apart: bool = True) -> None:
        """Add a table whose columns are as wide as their contents; nothing if there are no rows.

        Columns without any contents are left out. On a terminal that is too narrow for the table, the
        widest column is cut. With ``apart``, a blank line comes first.
        """
        if not rows:
            return
        shown = [place for place in range(len(header)) if any(str(row[place]) for row in rows)]
        lines = [[self.one_line(row[place]) for place in shown] for row in (header, *rows)]
        widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
        over = sum(widths) + 2 * len(widths) - self.width
        if self.is_terminal and over > 0:  # programs and pagers get the full text
            widest = widths.index(max(widths))
            widths[widest] = max(widths[widest] - over, _NARROWEST_COLUMN)
        if apart:
            self.line()
        for number, line in enumerate(lines):
            pairs = zip(line, widths, strict=True)
            text = "  ".join(padded(self.clip(cell, width), width) for cell, width in pairs).rstrip()
            self.line(text if number else self.style(text, "quiet"), indent=2)

    def clip(self, text: str, width: int) -> str:
        """Return the text, cut to ``width`` cells and ended by an ellipsis if it is wider."""
        if cells(text) <= width:
            return text
        return cut(text, width - len(self.glyphs.ellipsis)).rstrip() + self.glyphs.ellipsis

    def style(self, text: str, name: str) -> str:
        """Return the text with the escape codes of a style, or unchanged where colours are off."""
        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if self._coloured and text else text

    def plan_state(self, state: str, word: str = "") -> str:
        """Return the state of a plan, or a word instead of it, in the style of the state."""
        shown = word or self.one_line(state.replace("_", " "))
        return self.style(shown, _PLAN_STYLES.get(state, "strong"))

    def one_line(self, text: object) -> str:
        """Return text from outside as one line without control characters."""
        return one_line(text, limit=_LONGEST)

    def show(self) -> None:
        """Write the lines that were added since the last call."""
        write("".join(f"{line}\n" for line in self._lines), self._stream)
        self._lines.clear()


def write(text: str, stream: TextIO | None = None) -> None:
    """Write to the stream, by default standard output; escape characters that its encoding lacks."""
    target = sys.stdout if stream is None else stream
    encoding = getattr(target, "encoding", None) or "utf-8"
    target.write(text.encode(encoding, "backslashreplace").decode(encoding))


def print_json(document: object, *, sort_keys: bool = False) -> None:
    """Write a document to standard output as indented JSON."""
    write(json.dumps(document, indent=2, sort_keys=sort_keys) + "\n")
