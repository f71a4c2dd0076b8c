"""The terminal as the reports see it: its size, what its encoding can show, and text wrapped at words.

Everything that comes from outside passes :func:`one_line` or :func:`many_lines` before it is measured, so
that no title, message or node id can move the cursor, colour the screen or break a column.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TextIO, cast

from planner.text.display import cells, cut, glyphs_for, wrapped
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest._io import TerminalWriter

NARROWEST = 24
"""Fewer columns than this are treated as this many."""

PIPED = 100
"""The width of prose where there is no terminal; that of the command ``planner``."""

UNSIZED = os.terminal_size((80, 24))
"""A terminal that does not tell its size, as under some CI systems."""

GAP = "  "
INDENT = 4
"""Where everything that belongs under a todo begins."""

TAB_STOP = 4
MESSAGE_LIMIT = 20_000
"""No piece of text from outside is read beyond this many characters."""


class Style(Enum):
    """Style of a span; never the only carrier of its meaning."""

    PLAIN = ()
    GOOD = ("green",)
    BAD = ("red", "bold")
    WARN = ("yellow", "bold")
    STRONG = ("bold",)
    QUIET = ("light",)
    QUOTE = ("red",)
    COMMAND = ("cyan",)

    def __init__(self, *names: str) -> None:
        self.markup = dict.fromkeys(names, True)
        """What the terminal writer calls it."""


class StyledText(NamedTuple):
    """A piece of a line in one style."""

    text: str
    style: Style = Style.PLAIN


class ReportScreen:
    """Writes lines of styled spans. It wraps prose; it never cuts, for what is cut cannot be copied."""

    def __init__(self, tw: TerminalWriter) -> None:
        self.tw = tw
        self._stream = cast("TextIO", tw._file)
        self.encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self.glyphs = glyphs_for(self.encoding)
        self._drawn: list[int] = []
        """The cells of each line of the block at the foot."""

    @property
    def columns(self) -> int | None:
        """Return what COLUMNS says, else the columns of the terminal; ``None`` where there is neither.

        pytest's own answer is 80 for a pipe and for every terminal of fewer than 40 columns.
        """
        given = os.environ.get("COLUMNS", "")
        if given.isdecimal() and int(given):
            return max(int(given), NARROWEST)
        size = self.terminal_size()
        return None if size is None else max(size.columns, NARROWEST)

    @property
    def width(self) -> int:
        """Return the columns that prose is wrapped at."""
        return self.columns or PIPED

    def terminal_size(self) -> os.terminal_size | None:
        """Return the size of the terminal as it is now; ``None`` where the stream is none."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (AttributeError, OSError, ValueError):
            return None
        return size if size.columns and size.lines else UNSIZED

    def line(self, *spans: StyledText, indent: int = 0) -> None:
        """Write one line as it is, however wide."""
        kept = list(spans)
        while kept and not kept[-1].text.strip():
            kept.pop()
        if kept:
            kept[-1] = StyledText(kept[-1].text.rstrip(), kept[-1].style)
        if indent and kept:
            self.tw.write(" " * indent)
        for span in kept:
            self.tw.write(span.text, **span.style.markup)
        self.tw.line()

    def paragraph(self, text: str, *, style: Style = Style.PLAIN, indent: int = 0) -> None:
        """Write text wrapped at words."""
        for part in wrapped(text, self.width - indent):
            self.line(StyledText(part, style), indent=indent)

    def labelled(
        self, label: str, text: str, *, style: Style = Style.PLAIN, indent: int, column: int
    ) -> None:
        """Write a label in a column of its own and its text wrapped beside it."""
        first, *rest = wrapped(text, self.width - indent - column) or [""]
        self.line(StyledText(label.ljust(column), Style.QUIET), StyledText(first, style), indent=indent)
        for part in rest:
            self.line(StyledText(part, style), indent=indent + column)

    def blank(self) -> None:
        self.tw.line()

    def rule(self, text: str, style: Style, fill: str = "=") -> None:
        """Write a centred heading between fills; text that is too long for that stands alone, wrapped."""
        room = self.width - cells(text) - 2
        if room < 2 * len(fill):
            self.paragraph(text, style=style)
            return
        left = room // 2
        self.line(StyledText(f"{fill * left} {text} {fill * (room - left)}", style))

    def draw(self, lines: Sequence[Sequence[StyledText]]) -> None:
        """Draw a block at the foot of a terminal, in the place of the one before; no line of it wraps."""
        size = self.terminal_size() or UNSIZED
        room = min(size.columns, self.width) - 1  # the last column would make some terminals wrap
        text = self._erasing(size)
        self._drawn = []
        for line in lines[: size.lines - 1]:  # what has scrolled away cannot be wiped
            left = room
            text += "\n" if self._drawn else ""
            for span in line:
                part = cut(span.text, left)
                left -= cells(part)
                text += self.tw.markup(part, **span.style.markup) if part else ""
            self._drawn.append(room - left)
        self._stream.write(text)  # in one: nothing flickers
        self.tw.flush()

    def wipe(self) -> None:
        """Remove the block, before something is written that stays; the cursor begins a line."""
        if self._drawn:
            self._stream.write(self._erasing(self.terminal_size() or UNSIZED))
            self._drawn = []

    def _erasing(self, size: os.terminal_size) -> str:
        """Return what goes to the beginning of the block and erases all below.

        A terminal that has become narrower since has wrapped the lines of the block.
        """
        rows = sum(max(-(-taken // size.columns), 1) for taken in self._drawn)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + ("\x1b[J" if rows else "")

    def text(self, raw: str) -> str:
        """Return one printable line of text from outside, in characters that the stream can show."""
        return self._encodable(one_line(raw))

    def texts(self, raw: str) -> list[str]:
        """Return the printable lines of text from outside, in characters that the stream can show."""
        return [self._encodable(line) for line in many_lines(raw)]

    def _encodable(self, text: str) -> str:
        if text.isascii():
            return text
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def clip_middle(self, text: str, width: int) -> str:
        """Return the text in at most that many cells, its middle cut: both ends of an id tell it apart."""
        if cells(text) <= width:
            return text
        room = max(width - len(self.glyphs.ellipsis), 0)
        head = cut(text, room - room // 2)
        tail = cut(text[::-1], room // 2)[::-1]
        return cut(head + self.glyphs.ellipsis + tail, width)


def one_line(raw: str) -> str:
    """Return text from outside as one printable line; blanks within it stay, as a command may need them."""
    return " ".join(filter(None, map(str.strip, many_lines(raw))))


def many_lines(raw: str) -> list[str]:
    """Return text from outside as printable lines, tabs expanded."""
    return [line.expandtabs(TAB_STOP) for line in clean(raw, limit=MESSAGE_LIMIT).splitlines()]


def widest(texts: Sequence[str]) -> int:
    """Return how many columns the widest of the texts takes."""
    return max(map(cells, texts), default=0)
