"""What a rule is: an id, a reason, a reader of the case, and what it concludes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.case import Case

if TYPE_CHECKING:
    from planner.model.evidence import Frame
    from planner.model.outcome import Location
    from planner.model.taxonomy import Category, Owner

DEEPER = 0.9
"""How much is left of a rule's confidence when it speaks of a cause or context, not of what surfaced."""

PRINTED = 0.95
"""How much is left when the exception was read from what a process printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A rule applies, and what it has to say about this case."""

    suggestion: str
    """One or two sentences that name the thing."""
    owner: Owner | None = None
    """Where it differs from the rule's."""
    frame: Frame | None = None
    """Where it happened, when it is not the frame that raised."""
    location: Location | None = None
    """The same, when no frame tells it."""
    weight: float = 1.0
    """Less than one where this case is less clear than the rule's others."""


Reader = Callable[[Case], Hit | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    id: str
    category: Category
    confidence: float
    """How often it is right when it speaks."""
    read: Reader
    because: str
    """The reason in one sentence."""
    about: tuple[str, ...] = ()
    """Qualified names of the exceptions it speaks of, where it speaks of no other; base classes count."""
    owner: Owner | None = None
    """Whose fault it is; the category's usual owner when absent."""
    second: tuple[Category, float] | None = None
    """The second most likely reading, and its weight."""
