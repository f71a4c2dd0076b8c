"""Allure Report's default categories of defects: product defects and test defects.

A test that stopped because of an assertion is *failed*, a product defect; one that stopped because of any
other exception is *broken*, a test defect; other results are *unknown* and in neither category
(https://allurereport.org/docs/gettingstarted-categories/). The adapter for pytest tells failed from broken
by ``AssertionError`` and ``pytest.fail``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind

if TYPE_CHECKING:
    from planner.model.evidence import Evidence

_ASSERTIONS = ("builtins.AssertionError", "builtins.Failed", "_pytest.outcomes.Failed")
_TESTS = (EvidenceKind.TEST, EvidenceKind.COLLECTION)


def classify(evidence: Evidence) -> str:
    """The category that it puts a failure into."""
    if evidence.kind not in _TESTS or not evidence.exceptions:
        return "no category"
    error = evidence.exceptions[0]
    if any(name in _ASSERTIONS for name in (error.qualified, *error.bases)):
        return "Product defects"
    return "Test defects"
