"""Search forwards and backwards, round the ends of the text."""

from __future__ import annotations

import re

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def find_all(buffer: Buffer, pattern: re.Pattern[str]) -> list[Position]:
    """Return the starts of all matches, in their order."""
    return [
        Position(number, match.start())
        for number, line in enumerate(buffer.lines)
        for match in pattern.finditer(line)
    ]


def find_forward(buffer: Buffer, cursor: Position, pattern: re.Pattern[str]) -> Position | None:
    """Return the next match behind the cursor, else the first of the text."""
    found = find_all(buffer, pattern)
    behind = [place for place in found if place > cursor]
    return min(behind or found, default=None)


def find_backward(buffer: Buffer, cursor: Position, pattern: re.Pattern[str]) -> Position | None:
    """Return the match before the cursor, else the last of the text."""
    found = find_all(buffer, pattern)
    before = [place for place in found if place < cursor]
    return max(before or found, default=None)
