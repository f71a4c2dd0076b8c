"""The time that all confirmations of a run have together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ConfirmationBudget:
    """Time that is left for confirmations; what could not be confirmed is said."""

    seconds: float = 900.0
    spent: float = 0.0
    refused: int = 0

    def allows(self) -> bool:
        """Whether another confirmation may start; a refusal is counted."""
        if self.spent < self.seconds:
            return True
        self.refused += 1
        return False

    @property
    def is_left(self) -> bool:
        """Whether there is time for a closer look, which nobody misses where there is none."""
        return self.spent < self.seconds
