"""What a rule is: an id, a reason, a reader of the case, and what it concludes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.reading import Case

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table."""

    id: str
    because: str
    """The reason in one sentence."""
    category: Category
    confidence: float
    """How often it is right when it speaks."""
    read: Reader
    about: frozenset[str] | None = None
    """Qualified names of the exceptions it speaks of, where it speaks of no other; base classes count."""
    owner: Owner | None = None
    """Whose fault it is; the category's usual owner when absent."""
    runner_up: tuple[Category, float] | None = None
    """The second most likely reading."""


def in_chain(rule: Rule) -> Rule:
    """The rule as it speaks about causes, contexts and leaves of groups, a little less sure."""

    def read(case: Case) -> Hit | None:
        for deeper in case.deeper_cases:
            if hit := rule.read(deeper):
                return hit if hit.frame or hit.location else replace(hit, frame=deeper.raised_at)
        return None

    return replace(
        rule,
        id=f"{rule.id}-in-chain",
        because=f"Deeper in the chain of exceptions: {rule.because[0].lower()}{rule.because[1:]}",
        confidence=round(rule.confidence * DEEPER, 3),
        read=read,
    )


def in_group(rule: Rule) -> Rule:
    """The rule as it speaks about the leaves of an exception group that surfaced."""

    def read(case: Case) -> Hit | None:
        for leaf in case.leaves:
            if hit := rule.read(leaf):
                return hit if hit.frame or hit.location else replace(hit, frame=leaf.raised_at)
        return None

    return replace(
        rule,
        id=f"{rule.id}-in-group",
        because=f"In the group of exceptions: {rule.because[0].lower()}{rule.because[1:]}",
        confidence=round(rule.confidence * DEEPER, 3),
        read=read,
    )
