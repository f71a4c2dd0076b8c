"""Corrections of diagnoses by people, applied to later failures of the same signature if enough agree.

Corrections change category, owner, confidence, rule and role. Verdicts do not depend on them, and the
signature stays the same.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from planner.model.outcome import Diagnosis, RunnerUp
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.rules import RULES_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planner.model.past import Correction

T = TypeVar("T")

RULE = "learned"
"""Rule id of a corrected diagnosis."""

WITNESSES = 2
"""Minimum of agreeing witnesses: different people, or one person on different days."""

SHRINKAGE = 0.25
"""Weight of the prior, in corrections; keeps two agreeing corrections from being certain."""

LEARNED = frozenset(
    {
        Category.TEST_REGRESSION,
        Category.COMPILATION_ERROR,
        Category.TYPE_ERROR,
        Category.LINT_ERROR,
        Category.IMPORT_ERROR,
        Category.SPEC_MISMATCH,
        Category.ENVIRONMENT_ERROR,
    }
)
"""Categories that corrections may assign; others require proof."""

HARD = frozenset(rule.id for rule in (*RULES_OF["criteria"], *RULES_OF["processes"])) - {
    "contract-unresolved",
    "answered-no",
}
"""Rules based on hard evidence (guards, artifacts, metrics, selectors, mixed results, limits, signals),
which corrections cannot override.
"""


def may_learn(diagnosis: Diagnosis) -> bool:
    """Return whether corrections can change a diagnosis. Cheap; call it before reading the corrections."""
    return diagnosis.rule not in HARD


def learned(diagnosis: Diagnosis, corrections: Sequence[Correction]) -> Diagnosis:
    """Return the diagnosis with the corrections of its signature applied, or unchanged if none prevails.

    The confidence becomes the share of agreeing corrections, reduced by :data:`SHRINKAGE`. The rule's own
    category becomes the runner-up if the corrections name another.
    """
    if not may_learn(diagnosis):
        return diagnosis
    own = _unrevoked(each for each in corrections if each.signature == diagnosis.signature)
    category = _agreed(own, _category_of) or diagnosis.category
    if category is not diagnosis.category and category not in LEARNED:
        return diagnosis
    agreeing = [each for each in own if _category_of(each) is category]
    usual = diagnosis.owner if category is diagnosis.category else category.facts.usual_owner
    owner = _agreed(agreeing, lambda each: each.right_owner) or usual
    if (category, owner) == (diagnosis.category, diagnosis.owner):
        return diagnosis
    confidence = round(len(agreeing) / (len(own) + SHRINKAGE), 3)
    before = RunnerUp(category=diagnosis.category, confidence=round(1 - confidence, 3))
    role = _agreed(agreeing, lambda each: each.role)
    return diagnosis.model_copy(
        update={
            "category": category,
            "owner": owner,
            "confidence": confidence,
            "rule": RULE,
            "because": f"{len(agreeing)} corrections of this failure say {category.value} of the "
            f"{owner.value}; the rule {diagnosis.rule} alone would say {diagnosis.category.value} of the "
            f"{diagnosis.owner.value}.",
            "runner_up": diagnosis.runner_up if category is diagnosis.category else before,
            "target_agent": None if role is category.facts.default_role else role,
        }
    )


def _category_of(correction: Correction) -> Category:
    """Return the category that a correction assigns, or confirms by correcting the owner only."""
    return correction.right_category or correction.category


def _unrevoked(corrections: Iterable[Correction]) -> list[Correction]:
    """Return the corrections of category or owner that their author did not contradict later."""
    effective = [each for each in corrections if each.right_category or each.right_owner]
    last = {each.by: each for each in sorted(effective, key=lambda each: each.at)}

    def reading(each: Correction) -> tuple[object, object]:
        return _category_of(each), each.right_owner

    return [each for each in effective if reading(each) == reading(last[each.by])]


def _agreed(corrections: Sequence[Correction], reading: Callable[[Correction], T | None]) -> T | None:
    """Return the value that has enough witnesses, and more than all other values together.

    ``reading`` returns a correction's value, ``None`` for corrections without one. A witness is a person on
    one day, so that repeating a correction on the same day adds nothing.
    """
    witnesses: dict[T, set[tuple[str | None, str]]] = defaultdict(set)
    for each in corrections:
        if (value := reading(each)) is not None:
            witnesses[value].add((each.by, each.at.date().isoformat()))
    best = max(witnesses, key=lambda value: len(witnesses[value]), default=None)
    if best is None:
        return None
    most, total = len(witnesses[best]), sum(map(len, witnesses.values()))
    return best if most >= WITNESSES and 2 * most > total else None
