"""Insertion of text."""

from __future__ import annotations

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def insert(buffer: Buffer, at: Position, text: str) -> Position:
    """Insert a text, which may have several lines; return the place behind it."""
    buffer.check(at)
    line = buffer.lines[at.line]
    head, tail = line[: at.column], line[at.column :]
    first, *others = text.split("\n")
    if not others:
        buffer.lines[at.line] = head + first + tail
        return Position(at.line, at.column + len(first))
    *middle, last = others
    buffer.lines[at.line : at.line + 1] = [head + first, *middle, last + tail]
    return Position(at.line + len(others), len(last))


def insert_lines(buffer: Buffer, before: int, lines: list[str]) -> None:
    """Insert whole lines before that line; behind the last where there is no such line."""
    if not 0 <= before <= len(buffer.lines):
        raise IndexError(f"there is no line {before + 1}")
    buffer.lines[before:before] = lines
