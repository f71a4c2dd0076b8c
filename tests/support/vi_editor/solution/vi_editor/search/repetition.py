"""``/`` and ``?``, and their repetition by ``n`` and ``N``."""

from __future__ import annotations

from dataclasses import dataclass

from vi_editor.buffer.position import Position
from vi_editor.buffer.text import Buffer
from vi_editor.search.finding import find_backward, find_forward
from vi_editor.search.patterns import PatternError, compile_pattern


@dataclass(slots=True)
class Search:
    """The last search."""

    text: str = ""
    backward: bool = False

    def start(self, buffer: Buffer, cursor: Position, text: str, *, backward: bool = False) -> Position:
        """Search for a text, or once more for the last one. Raises :class:`PatternError`."""
        self.text, self.backward = text or self.text, backward
        return self.repeat(buffer, cursor)

    def repeat(self, buffer: Buffer, cursor: Position, *, reverse: bool = False) -> Position:
        """Search on, or the other way round. Raises :class:`PatternError`."""
        find = find_backward if self.backward != reverse else find_forward
        found = find(buffer, cursor, compile_pattern(self.text))
        if found is None:
            raise PatternError(f"{self.text} not found")
        return found
