"""What a classifier says about one failure, in one form for the diagnosis and for its rivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from planner.model.evidence import Evidence
from pytest_planverify.diagnosis import diagnose

if TYPE_CHECKING:
    from planner.model.outcome import Diagnosis, Location
    from planner.model.taxonomy import Category, Owner, Repeatability, Role


class Guess(NamedTuple):
    """A reading of a failure, and how sure of it its author is."""

    category: Category
    owner: Owner
    confidence: float
    repeatability: Repeatability | None = None
    """``None`` of what says nothing about it; the same of the place."""
    location: Location | None = None
    rule: str = ""
    role: Role | None = None
    """Who should act, where that is not the category's default."""

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> Guess:
        """The reading that a diagnosis is."""
        return cls(
            diagnosis.category,
            diagnosis.owner,
            diagnosis.confidence,
            diagnosis.repeatability,
            diagnosis.location,
            diagnosis.rule,
            diagnosis.target_agent,
        )


Classifier = Callable[[Evidence], Guess]


def ours(evidence: Evidence) -> Guess:
    """What this project says."""
    return Guess.of(diagnose(evidence))
