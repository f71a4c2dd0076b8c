"""What a run has spent, and which of the plan's budgets that exceeds."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Budget


class Exceeded(NamedTuple):
    """One budget that is used up."""

    name: str
    limit: float
    spent: float

    def __str__(self) -> str:
        return f"{self.name}: {_number(self.spent)} spent, {_number(self.limit)} allowed"


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has spent so far, beside time."""

    tokens: int = 0
    cycles: int = 0
    """Of patching."""
    new_files: int = 0

    def plus(self, tokens: int = 0, cycles: int = 0, new_files: int = 0) -> Spent:
        """With that much more."""
        return Spent(self.tokens + tokens, self.cycles + cycles, self.new_files + new_files)


def exceeded(budget: Budget, spent: Spent, wall_seconds: float) -> Exceeded | None:
    """The first budget of which more is spent than is allowed. To spend exactly all of it is allowed."""
    return next((each for each in _lines(budget, spent, wall_seconds) if each.spent > each.limit), None)


def used_up(budget: Budget, spent: Spent, wall_seconds: float) -> Exceeded | None:
    """The first budget of which nothing is left for another turn of work.

    A turn of work need not make a new file, so of new files nothing is lacking until one too many is made.
    """
    return next(
        (
            each
            for each in _lines(budget, spent, wall_seconds)
            if each.spent > each.limit or (each.spent == each.limit and each.name != _NEW_FILES)
        ),
        None,
    )


def left(budget: Budget, spent: Spent, wall_seconds: float) -> dict[str, tuple[float, float]]:
    """What is left of each budget that the plan sets, never less than nothing, and how much it was."""
    found = _lines(budget, spent, wall_seconds)
    return {each.name: (max(each.limit - each.spent, 0), each.limit) for each in found}


_NEW_FILES = "new_files"


def _lines(budget: Budget, spent: Spent, wall_seconds: float) -> Iterator[Exceeded]:
    """Each budget that the plan sets, in the order in which they are looked at."""
    for name, limit, used in (
        ("tokens", budget.tokens, spent.tokens),
        ("cycles", budget.cycles, spent.cycles),
        ("wall_seconds", budget.wall_seconds, wall_seconds),
        (_NEW_FILES, budget.new_files, spent.new_files),
    ):
        if limit is not None:
            yield Exceeded(name, limit, used)


def _number(value: float) -> str:
    try:
        return f"{value:,.1f}".removesuffix(".0")
    except OverflowError:
        return f"more than {sys.float_info.max:.0e}"
