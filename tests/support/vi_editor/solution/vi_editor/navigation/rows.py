"""Motions between lines: ``j k gg G``."""

from __future__ import annotations

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.navigation.columns import first_word


def down(buffer: Buffer, cursor: Position) -> Position:
    """Return the same column one line below, or the nearest; the last line stays."""
    return buffer.clamp(cursor.moved(lines=1)) if cursor.line < buffer.last_line else cursor


def up(buffer: Buffer, cursor: Position) -> Position:
    """Return the same column one line above, or the nearest; the first line stays."""
    return buffer.clamp(cursor.moved(lines=-1))


def go_to_line(buffer: Buffer, number: int) -> Position:
    """Return the first word of a line, counted from 1; behind the text, of the last."""
    line = min(max(number, 1), len(buffer.lines)) - 1
    return first_word(buffer, Position(line))


def first_line(buffer: Buffer, cursor: Position) -> Position:
    """Return the first word of the text."""
    return go_to_line(buffer, 1)


def last_line(buffer: Buffer, cursor: Position) -> Position:
    """Return the first word of the last line."""
    return go_to_line(buffer, len(buffer.lines))
