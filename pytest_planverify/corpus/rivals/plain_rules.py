"""The plain rules: an import error, a failed expectation, a passed limit; all else is unknown.

They are taken as they are usually written down, keyword by keyword and in that order; each type of failure
stands for the category of the same meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.taxonomy import Category, Owner
from pytest_planverify.corpus.guessing import Guess
from pytest_planverify.corpus.rivals.words import error_message

if TYPE_CHECKING:
    from planner.model.evidence import Evidence

_CONFIDENCE = 0.9
"""They tell none."""

CATEGORIES: dict[str, tuple[Category, Owner]] = {
    "missing_dependency": (Category.IMPORT_ERROR, Owner.PRODUCT),
    "spec_mismatch": (Category.SPEC_MISMATCH, Owner.PRODUCT),
    "implementation_bug": (Category.TEST_REGRESSION, Owner.PRODUCT),
    "timeout": (Category.TEST_TIMEOUT, Owner.PRODUCT),
    "unknown": (Category.UNKNOWN, Owner.UNKNOWN),
}


def classify(evidence: Evidence) -> str:
    """The type of failure that the rules say."""
    message = error_message(evidence)
    if "ImportError" in message:
        return "missing_dependency"
    if "AssertionError: expected" in message:
        return "spec_mismatch" if "signature" in message.lower() else "implementation_bug"
    if _took_longer_than_its_limit(evidence):
        return "timeout"
    return "unknown"


def guess(evidence: Evidence) -> Guess:
    """The same as a category and its usual owner."""
    kind = classify(evidence)
    category, owner = CATEGORIES[kind]
    return Guess(category, owner, _CONFIDENCE, rule=kind)


def _took_longer_than_its_limit(evidence: Evidence) -> bool:
    limit, took = evidence.limit_seconds, evidence.duration_seconds
    return evidence.timed_out or (limit is not None and took is not None and took > limit)
