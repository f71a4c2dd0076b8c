"""How much stands behind a cause: what keeps tests from running comes before what tests find."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind, Phase
from planner.model.taxonomy import Category, Family, Repeatability

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from pytest_planverify.diagnosis.grouping import Group


class Stage(IntEnum):
    """The stages, the one to mend first first."""

    STOPS = 0
    """A violation, or a spent budget."""
    SURROUNDS = 1
    """The machine lacks something that most of what failed needs."""
    UNLOADED = 2
    """Code that could not be imported or parsed."""
    UNPREPARED = 3
    """A set-up that failed."""
    FOUND = 4
    """What tests found."""
    FOLLOWS = 5
    """A result that is not there."""
    REMARKED = 6
    """What a linter found."""
    UNSTEADY = 7
    """What is not red every time."""


_STOPPING = (Family.SANDBOX, Family.BUDGET)
_UNLOADED = (Category.COMPILATION_ERROR, Category.IMPORT_ERROR)
_UNSTEADY = (Repeatability.FLAKY, Repeatability.ORDER_DEPENDENT, Repeatability.HASH_ORDER)
_LOADING = (EvidenceKind.COLLECTION, EvidenceKind.SESSION)


def stage_of(group: Group, *, failing: int, consequences: int) -> Stage:
    """The stage of one cause in a run with so many failing todos and consequences of any cause."""
    category = group.clearest.diagnosis.category
    if category.facts.family in _STOPPING:
        return Stage.STOPS
    if category.facts.family is Family.ENVIRONMENT and (
        len(group.todos) == failing or 2 * group.consequences >= consequences
    ):
        return Stage.SURROUNDS
    if all(each.diagnosis.repeatability in _UNSTEADY for each in group.members):
        return Stage.UNSTEADY
    if category in _UNLOADED or any(_of_loading(each.evidence) for each in group.members):
        return Stage.UNLOADED
    if any(each.evidence.phase is Phase.SETUP for each in group.members):
        return Stage.UNPREPARED
    if category is Category.LINT_ERROR:
        return Stage.REMARKED
    follows = all(each.evidence.artifact or each.evidence.metric for each in group.members)
    return Stage.FOLLOWS if follows else Stage.FOUND


def _of_loading(evidence: Evidence) -> bool:
    """Whether it was seen before any test could run."""
    return evidence.kind in _LOADING and bool(evidence.exceptions or evidence.phase is Phase.COLLECT)
