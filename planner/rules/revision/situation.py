"""What a revision strategy is asked about: one failed todo, why it failed, and the branch made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.context import FailureContext
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Plan, Todo


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that a strategy may look at."""

    plan: Plan
    todo: Todo
    """The failed primary todo."""
    outcome: Outcome
    failure: Failure
    """The failure that decides the route."""
    branch: Todo | None
    """The fresh branch, with all criteria of the todo; ``None`` where none is made."""
    context: FailureContext | None
    at: str
    """A clock reading, RFC 3339, UTC: the end of the run."""
    tools: frozenset[str] = frozenset()
    """Type checkers and linters that the project is known to be set up for."""
    taken: frozenset[str] = frozenset()
    """Ids that are used already; those of the plan where it is empty."""
