"""Stock on the shelves."""

from __future__ import annotations


class Stock:
    """Number of pieces of each article."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def receive(self, name: str, count: int) -> None:
        """Put a delivery on the shelf."""
        self._counts[name] = self.count(name) + count

    def take(self, name: str, count: int = 1) -> None:
        """Sell some. Raises ``ValueError`` if there are not enough."""
        if self.count(name) < count:
            raise ValueError(f"only {self.count(name)} of {name} left")
        self._counts[name] -= count

    def count(self, name: str) -> int:
        """Return the current number of pieces."""
        return self._counts.get(name, 0)
