"""A place in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """A line and a column, both counted from 0; earlier places are smaller."""

    line: int = 0
    column: int = 0

    def __post_init__(self) -> None:
        if self.line < 0 or self.column < 0:
            raise ValueError(f"line {self.line}, column {self.column} lies before the text")

    def __str__(self) -> str:
        """Return the place as people count it, from 1."""
        return f"{self.line + 1},{self.column + 1}"

    def moved(self, lines: int = 0, columns: int = 0) -> Position:
        """Return the place so many lines and columns further, but not before the text."""
        return Position(max(0, self.line + lines), max(0, self.column + columns))
