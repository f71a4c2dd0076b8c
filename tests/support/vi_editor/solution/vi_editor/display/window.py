"""The part of a text that is seen."""

from __future__ import annotations

from dataclasses import dataclass

from vi_editor.buffer.position import Position


@dataclass(slots=True)
class Window:
    """So many rows and columns, and the first line and column that they show."""

    height: int
    width: int
    top: int = 0
    left: int = 0

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise ValueError(f"a window of {self.height} x {self.width} shows nothing")

    def follow(self, cursor: Position) -> None:
        """Scroll as little as is needed to show the cursor."""
        self.top = min(self.top, cursor.line)
        self.top = max(self.top, cursor.line - self.height + 1)
        self.left = min(self.left, cursor.column)
        self.left = max(self.left, cursor.column - self.width + 1)

    def visible(self, last_line: int) -> range:
        """Return the numbers of the lines that are seen."""
        return range(self.top, min(self.top + self.height, last_line + 1))
