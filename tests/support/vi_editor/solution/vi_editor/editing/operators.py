"""Operators: ``d`` deletes, ``y`` yanks and ``c`` changes what a motion passes."""

from __future__ import annotations

from vi_editor.buffer.deletion import delete, delete_lines, text_between
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.editing.registers import Piece
from vi_editor.navigation.motions import INCLUSIVE, LINEWISE, move


def span(buffer: Buffer, cursor: Position, key: str, count: int | None = None) -> tuple[Position, Position]:
    """Return the start and the end of what a motion passes; the end is not part of it."""
    target = move(buffer, cursor, key, count)
    start, end = min(cursor, target), max(cursor, target)
    at_end = end == buffer.clamp(buffer.end) and key == "w"
    if (key in INCLUSIVE or at_end) and buffer.lines[end.line]:
        end = end.moved(columns=1)
    elif key == "w" and end.line > start.line:
        end = Position(start.line, len(buffer.lines[start.line]))
    return start, end


def operate(
    buffer: Buffer, cursor: Position, operator: str, key: str, count: int | None = None
) -> tuple[Position, Piece]:
    """Carry out an operator; return where the cursor is then, and what it has taken.

    The key of the operator itself stands for the current line: ``dd``.
    """
    if key == operator:
        last = min(cursor.line + (count or 1) - 1, buffer.last_line)
        return _operate_on_lines(buffer, cursor, operator, cursor.line, last)
    if key in LINEWISE:
        target = move(buffer, cursor, key, count)
        first, last = sorted((cursor.line, target.line))
        return _operate_on_lines(buffer, cursor, operator, first, last)
    start, end = span(buffer, cursor, key, count)
    if operator == "y":
        return start, Piece(text_between(buffer, start, end))
    piece = Piece(delete(buffer, start, end))
    return (start if operator == "c" else buffer.clamp(start)), piece


def _operate_on_lines(
    buffer: Buffer, cursor: Position, operator: str, first: int, last: int
) -> tuple[Position, Piece]:
    piece = Piece("\n".join(buffer.lines[first : last + 1]), linewise=True)
    if operator == "y":
        return buffer.clamp(Position(first, cursor.column)), piece
    if operator == "c":
        buffer.lines[first : last + 1] = [""]
        return Position(first, 0), piece
    delete_lines(buffer, first, last)
    return buffer.clamp(Position(first, 0)), piece
