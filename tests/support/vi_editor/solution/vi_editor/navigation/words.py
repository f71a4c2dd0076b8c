"""Motions by words: ``w b e``. A word is a run of letters, digits and ``_``, or a run of other marks."""

from __future__ import annotations

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer


def kind_of(character: str) -> str:
    """Return the class of a character: blank, word or mark."""
    if character.isspace():
        return "blank"
    return "word" if character.isalnum() or character == "_" else "mark"


def word_starts(line: str) -> list[int]:
    """Return the columns at which words begin."""
    kinds = [kind_of(character) for character in line]
    return [
        column
        for column, kind in enumerate(kinds)
        if kind != "blank" and (column == 0 or kinds[column - 1] != kind)
    ]


def word_ends(line: str) -> list[int]:
    """Return the columns of the last characters of words."""
    last = len(line) - 1
    return sorted(last - column for column in word_starts(line[::-1]))


def next_word(buffer: Buffer, cursor: Position) -> Position:
    """Return the start of the next word; an empty line counts as one."""
    for column in word_starts(buffer.lines[cursor.line]):
        if column > cursor.column:
            return Position(cursor.line, column)
    for number in range(cursor.line + 1, len(buffer.lines)):
        starts = word_starts(buffer.lines[number])
        if starts or not buffer.lines[number]:
            return Position(number, starts[0] if starts else 0)
    return buffer.clamp(buffer.end)


def previous_word(buffer: Buffer, cursor: Position) -> Position:
    """Return the start of this word, or of the one before."""
    for column in reversed(word_starts(buffer.lines[cursor.line])):
        if column < cursor.column:
            return Position(cursor.line, column)
    for number in range(cursor.line - 1, -1, -1):
        starts = word_starts(buffer.lines[number])
        if starts or not buffer.lines[number]:
            return Position(number, starts[-1] if starts else 0)
    return Position(0, 0)


def word_end(buffer: Buffer, cursor: Position) -> Position:
    """Return the end of this word, or of the next."""
    for column in word_ends(buffer.lines[cursor.line]):
        if column > cursor.column:
            return Position(cursor.line, column)
    for number in range(cursor.line + 1, len(buffer.lines)):
        ends = word_ends(buffer.lines[number])
        if ends:
            return Position(number, ends[0])
    return buffer.clamp(buffer.end)
