"""``p`` and ``P``: put a piece behind or before the cursor."""

from __future__ import annotations

from vi_editor.buffer.insertion import insert, insert_lines
from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.editing.registers import Piece


def put(
    buffer: Buffer, cursor: Position, piece: Piece, *, before: bool = False, count: int = 1
) -> Position:
    """Put a piece so many times; return where the cursor is then."""
    if piece.linewise:
        line = cursor.line if before else cursor.line + 1
        insert_lines(buffer, line, piece.text.split("\n") * count)
        return Position(line, 0)
    behind = 0 if before or not buffer.lines[cursor.line] else 1
    start = cursor.moved(columns=behind)
    end = insert(buffer, start, piece.text * count)
    return start if "\n" in piece.text else buffer.clamp(end.moved(columns=-1))
