"""Small changes of a line: ``x J ~ r``."""

from __future__ import annotations

from vi_editor.buffer.deletion import delete
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def cut_characters(buffer: Buffer, cursor: Position, count: int = 1) -> tuple[Position, str]:
    """Delete characters from the cursor on, but no line break; return the cursor and the text."""
    end = min(cursor.column + count, len(buffer.lines[cursor.line]))
    deleted = delete(buffer, cursor, Position(cursor.line, end))
    return buffer.clamp(cursor), deleted


def join_lines(buffer: Buffer, cursor: Position, count: int = 2) -> Position:
    """Join so many lines with one blank between; return the place where the last was joined."""
    for _ in range(max(count, 2) - 1):
        if cursor.line == buffer.last_line:
            break
        head, tail = buffer.lines[cursor.line].rstrip(), buffer.lines[cursor.line + 1].lstrip()
        blank = " " if head and tail else ""
        buffer.lines[cursor.line : cursor.line + 2] = [head + blank + tail]
        cursor = Position(cursor.line, len(head))
    return buffer.clamp(cursor)


def swap_case(buffer: Buffer, cursor: Position, count: int = 1) -> Position:
    """Swap the case of characters from the cursor on; return the place behind them."""
    line = buffer.lines[cursor.line]
    end = cursor.column + count
    buffer.lines[cursor.line] = line[: cursor.column] + line[cursor.column : end].swapcase() + line[end:]
    return buffer.clamp(Position(cursor.line, end))


def replace_characters(buffer: Buffer, cursor: Position, character: str, count: int = 1) -> Position:
    """Replace characters from the cursor on. Raises ``ValueError`` where the line has fewer."""
    line = buffer.lines[cursor.line]
    end = cursor.column + count
    if end > len(line):
        raise ValueError("the line is too short")
    buffer.lines[cursor.line] = line[: cursor.column] + character * count + line[end:]
    return Position(cursor.line, end - 1)
