"""The text that is edited: a list of lines that is never empty."""

from __future__ import annotations

from dataclasses import dataclass, field

from vi_editor.buffer.position import Position


@dataclass(slots=True)
class Buffer:
    """Lines without their line breaks."""

    lines: list[str] = field(default_factory=lambda: [""])

    @classmethod
    def from_text(cls, text: str) -> Buffer:
        """Return the buffer of a text; the line break at its end belongs to the last line."""
        lines = text.split("\n")
        if len(lines) > 1 and lines[-1] == "":
            lines.pop()
        return cls(lines)

    @property
    def text(self) -> str:
        """The whole text, with a line break after each line."""
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def last_line(self) -> int:
        """The number of the last line, from 0."""
        return len(self.lines) - 1

    @property
    def end(self) -> Position:
        """The place behind the last character."""
        return Position(self.last_line, len(self.lines[-1]))

    def check(self, position: Position) -> Position:
        """Return the position. Raises ``IndexError`` where the text does not have it."""
        if position.line > self.last_line or position.column > len(self.lines[position.line]):
            raise IndexError(f"{position} is not in the text")
        return position

    def clamp(self, position: Position) -> Position:
        """Return the nearest place on which a cursor may rest."""
        line = min(position.line, self.last_line)
        return Position(line, min(position.column, max(0, len(self.lines[line]) - 1)))
