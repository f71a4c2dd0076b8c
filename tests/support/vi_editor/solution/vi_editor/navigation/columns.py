"""Motions within a line: ``h l 0 ^ $``."""

from __future__ import annotations

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def left(buffer: Buffer, cursor: Position) -> Position:
    """Return the place one character to the left; lines are not left."""
    return cursor.moved(columns=-1)


def right(buffer: Buffer, cursor: Position) -> Position:
    """Return the place one character to the right; the last character is not passed."""
    return buffer.clamp(cursor.moved(columns=1))


def line_start(buffer: Buffer, cursor: Position) -> Position:
    """Return the first column."""
    return Position(cursor.line, 0)


def first_word(buffer: Buffer, cursor: Position) -> Position:
    """Return the first character that is no blank."""
    line = buffer.lines[cursor.line]
    return buffer.clamp(Position(cursor.line, len(line) - len(line.lstrip())))


def line_end(buffer: Buffer, cursor: Position) -> Position:
    """Return the last character."""
    return buffer.clamp(Position(cursor.line, len(buffer.lines[cursor.line])))
