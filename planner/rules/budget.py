"""What a run has spent, and which of the plan's budgets that exceeds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.outcome import OutcomeDocument
    from planner.model.plan import Budget


class Exceeded(NamedTuple):
    """One budget that is used up."""

    name: str
    limit: float
    spent: float

    def __str__(self) -> str:
        return f"{self.name}: {_number(self.spent)} spent, {_number(self.limit)} allowed"


def exceeded_budgets(budget: Budget, document: OutcomeDocument) -> Iterator[Exceeded]:
    """Each budget of the plan that the run has passed. What nobody measured has spent nothing."""
    metrics = [outcome.metrics for outcome in document.outcomes]
    spent = {
        "wall_seconds": (budget.wall_seconds, _seconds(document.run.duration_ms)),
        "tokens": (budget.tokens, sum(max(each.tokens_used or 0, 0) for each in metrics)),
        "cycles": (budget.cycles, sum(max(each.patch_cycles or 0, 0) for each in metrics)),
    }
    for name, (limit, used) in spent.items():
        if limit is not None and used > limit:
            yield Exceeded(name, limit, used)


def _seconds(milliseconds: int) -> float:
    try:
        return milliseconds / 1000
    except OverflowError:  # an outcome file may hold any whole number
        return milliseconds // 1000


def _number(value: float) -> str:
    try:
        return f"{value:,.1f}".removesuffix(".0")
    except OverflowError:
        return f"more than {sys.float_info.max:.0e}"
