"""Insert mode: what typing does to the text."""

from __future__ import annotations

from vi_editor.buffer.deletion import delete
from vi_editor.buffer.insertion import insert
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer

BACKSPACE = "\b"


def indent_of(line: str) -> str:
    """Return the blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def type_key(buffer: Buffer, cursor: Position, key: str, *, autoindent: bool = False) -> Position:
    """Type one key; return the place behind it."""
    if key == BACKSPACE:
        return erase(buffer, cursor)
    if key == "\n" and autoindent:
        key += indent_of(buffer.lines[cursor.line][: cursor.column])
    return insert(buffer, cursor, key)


def erase(buffer: Buffer, cursor: Position) -> Position:
    """Delete the character before the cursor; at the start of a line, join it to the one before."""
    if cursor.column > 0:
        start = cursor.moved(columns=-1)
    elif cursor.line > 0:
        start = Position(cursor.line - 1, len(buffer.lines[cursor.line - 1]))
    else:
        return cursor
    delete(buffer, start, cursor)
    return start
