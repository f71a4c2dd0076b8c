"""Deletion of text."""

from __future__ import annotations

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def text_between(buffer: Buffer, start: Position, end: Position) -> str:
    """Return the text from ``start`` up to, and without, ``end``."""
    buffer.check(start)
    buffer.check(end)
    if start.line == end.line:
        return buffer.lines[start.line][start.column : end.column]
    head = buffer.lines[start.line][start.column :]
    tail = buffer.lines[end.line][: end.column]
    return "\n".join([head, *buffer.lines[start.line + 1 : end.line], tail])


def delete(buffer: Buffer, start: Position, end: Position) -> str:
    """Delete the text from ``start`` up to, and without, ``end``; return it."""
    if end < start:
        start, end = end, start
    deleted = text_between(buffer, start, end)
    joined = buffer.lines[start.line][: start.column] + buffer.lines[end.line][end.column :]
    buffer.lines[start.line : end.line + 1] = [joined]
    return deleted


def delete_lines(buffer: Buffer, first: int, last: int) -> list[str]:
    """Delete whole lines, both ends included; return them. A text keeps one empty line."""
    if not 0 <= first <= last <= buffer.last_line:
        raise IndexError(f"there are no lines {first + 1} to {last + 1}")
    deleted = buffer.lines[first : last + 1]
    buffer.lines[first : last + 1] = []
    if not buffer.lines:
        buffer.lines.append("")
    return deleted
