"""The motions by their keys, and how often they are made."""

from __future__ import annotations

from collections.abc import Callable

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.navigation import columns, rows, words

Motion = Callable[[Buffer, Position], Position]

MOTIONS: dict[str, Motion] = {
    "h": columns.left,
    "l": columns.right,
    "0": columns.line_start,
    "^": columns.first_word,
    "$": columns.line_end,
    "j": rows.down,
    "k": rows.up,
    "gg": rows.first_line,
    "G": rows.last_line,
    "w": words.next_word,
    "b": words.previous_word,
    "e": words.word_end,
}

LINEWISE = frozenset({"j", "k", "gg", "G"})
"""Motions over which an operator takes whole lines."""

INCLUSIVE = frozenset({"e", "$"})
"""Motions whose last character an operator takes, too."""


def move(buffer: Buffer, cursor: Position, key: str, count: int | None = None) -> Position:
    """Return where a motion leads. Raises ``KeyError`` where the key is none."""
    motion = MOTIONS[key]
    if count is not None and key in ("gg", "G"):
        return rows.go_to_line(buffer, count)
    for _ in range(count or 1):
        cursor = motion(buffer, cursor)
    return cursor
