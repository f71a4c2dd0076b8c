"""Terminal output of the reports: size, characters that the encoding supports, wrapping, redrawn blocks.

All text from outside passes :meth:`ReportScreen.text` or :meth:`ReportScreen.texts` before it is measured,
so that no title, message or node id can move the cursor, colour the screen or break a column.
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
"""Minimum number of columns that is assumed; narrower terminals are treated as this wide."""

PIPED = 100
"""Width of prose without a terminal, the same as that of the command ``planner``."""

UNSIZED = os.terminal_size((80, 24))
"""Size assumed for a terminal that reports none, as under some CI systems."""

GAP = "  "
INDENT = 4
"""Columns by which everything below a todo is indented."""

TAB_STOP = 4
MESSAGE_LIMIT = 20_000
"""Characters to which each text from outside is cut."""


class Style(Enum):
    """Style of a span. It only repeats what the text says, for terminals and readers without colours."""

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
        """Keyword arguments for pytest's terminal writer."""


class StyledText(NamedTuple):
    """A piece of a line in one style."""

    text: str
    style: Style = Style.PLAIN


class ReportScreen:
    """Writes lines of styled spans to a terminal, a pipe or a file.

    Prose is wrapped and never cut, because text that was cut cannot be copied; only :meth:`draw` cuts.
    """

    def __init__(self, tw: TerminalWriter) -> None:
        self.tw = tw
        self._stream = cast("TextIO", tw._file)  # pytest's writer has no public name for its stream
        self.encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self.glyphs = glyphs_for(self.encoding)
        self._drawn = 0
        """Number of lines of the block at the foot."""

    @property
    def columns(self) -> int | None:
        """The value of ``COLUMNS``, else the columns of the terminal; ``None`` if there is neither."""
        # pytest's own value is 80 for a pipe, and for terminals of fewer than 40 columns.
        given = os.environ.get("COLUMNS", "")
        if given.isdecimal() and int(given):
            return max(int(given), NARROWEST)
        size = self.terminal_size()
        return None if size is None else max(size.columns, NARROWEST)

    @property
    def width(self) -> int:
        """Columns at which prose is wrapped."""
        return self.columns or PIPED

    def terminal_size(self) -> os.terminal_size | None:
        """Return the current size of the terminal; ``None`` if the stream is no terminal."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (AttributeError, OSError, ValueError):
            return None
        return size if size.columns and size.lines else UNSIZED  # some CI systems report 0

    def line(self, *spans: StyledText, indent: int = 0) -> None:
        """Write one line without wrapping, however wide; trailing blanks are removed."""
        trimmed = list(spans)
        while trimmed and not trimmed[-1].text.strip():
            trimmed.pop()
        if trimmed:
            trimmed[-1] = StyledText(trimmed[-1].text.rstrip(), trimmed[-1].style)
        if indent and trimmed:
            self.tw.write(" " * indent)
        for span in trimmed:
            self.tw.write(span.text, **span.style.markup)
        self.tw.line()

    def paragraph(self, text: str, *, style: Style = Style.PLAIN, indent: int = 0) -> None:
        """Write text wrapped at words."""
        for part in wrapped(text, self.width - indent):
            self.line(StyledText(part, style), indent=indent)

    def labelled(
        self, label: str, text: str, *, style: Style = Style.PLAIN, indent: int, column: int
    ) -> None:
        """Write a label in a column of its own and its text, wrapped, beside it."""
        first, *rest = wrapped(text, self.width - indent - column) or [""]
        self.line(StyledText(label.ljust(column), Style.QUIET), StyledText(first, style), indent=indent)
        for part in rest:
            self.line(StyledText(part, style), indent=indent + column)

    def blank(self) -> None:
        self.tw.line()

    def rule(self, text: str, style: Style, fill: str = "=") -> None:
        """Write a heading centred between fill characters; one that is too long is wrapped without them."""
        room = self.width - cells(text) - 2
        if room < 2 * len(fill):
            self.paragraph(text, style=style)
            return
        left = room // 2
        self.line(StyledText(f"{fill * left} {text} {fill * (room - left)}", style))

    def draw(self, lines: Sequence[Sequence[StyledText]]) -> None:
        """Draw a block at the foot of the terminal, replacing the previous one; too long lines are cut."""
        size = self.terminal_size() or UNSIZED
        room = min(size.columns, self.width) - 1  # some terminals wrap when the last column is written
        shown = lines[: size.lines - 1]  # lines that scroll off the screen cannot be erased
        # One write for all lines, to avoid flicker.
        self._stream.write(self._erasing() + "\n".join(self._marked(line, room) for line in shown))
        self._drawn = len(shown)
        self.tw.flush()

    def wipe(self) -> None:
        """Erase the block before other output; the cursor is then at the beginning of a line."""
        if self._drawn:
            self._stream.write(self._erasing())
            self._drawn = 0

    def _marked(self, line: Sequence[StyledText], room: int) -> str:
        """Return a line with the escape sequences of its styles, cut to ``room`` columns."""
        text = ""
        for span in line:
            shown = cut(span.text, room)
            room -= cells(shown)
            text += self.tw.markup(shown, **span.style.markup) if shown else ""
        return text

    def _erasing(self) -> str:
        """Return the control sequence that moves to the beginning of the block and erases all below."""
        up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
        return f"\r{up}" + ("\x1b[J" if self._drawn else "")

    def text(self, raw: str) -> str:
        """Return text from outside as one printable line in the encoding of the stream.

        Inner blanks are kept, as a command may need them.
        """
        return self._encodable(" ".join(filter(None, map(str.strip, _printable_lines(raw)))))

    def texts(self, raw: str) -> list[str]:
        """Return text from outside as printable lines in the encoding of the stream."""
        return [self._encodable(line) for line in _printable_lines(raw)]

    def _encodable(self, text: str) -> str:
        if text.isascii():
            return text
        # A character that the stream cannot encode would end the run with an exception.
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def clip_middle(self, text: str, width: int) -> str:
        """Return the text in at most ``width`` cells, cut in the middle."""
        # Both ends are needed to identify a node id or a path.
        if cells(text) <= width:
            return text
        room = max(width - len(self.glyphs.ellipsis), 0)
        head = cut(text, room - room // 2)
        tail = cut(text[::-1], room // 2)[::-1]
        return cut(head + self.glyphs.ellipsis + tail, width)


def _printable_lines(raw: str) -> list[str]:
    return [line.expandtabs(TAB_STOP) for line in clean(raw, limit=MESSAGE_LIMIT).splitlines()]


def widest(texts: Sequence[str]) -> int:
    """Return the width in cells of the widest text, 0 without texts."""
    return max(map(cells, texts), default=0)
