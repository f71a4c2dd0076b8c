"""pytest-triage 0.1: five classes, ``regression flaky env test_bug unknown``.

Its verdicts come from a language model that the user pays for. What it does without one is the provider
that it ships for tests and pipelines, which goes by the type of the exception alone; that is what is
compared here (https://pypi.org/project/pytest-triage/, Apache-2.0; read in version 0.1.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.evidence import Evidence

CLASSES: dict[str, str] = {
    "AssertionError": "test_bug",
    "ConnectionError": "env",
    "TimeoutError": "env",
    "OSError": "env",
}
"""By the name of the exception's class; every other one is a ``regression``."""


def classify(evidence: Evidence) -> str:
    """The class that it gives a failure; one that raised nothing is ``unknown``, as it never sees it."""
    if not evidence.exceptions:
        return "unknown"
    return CLASSES.get(evidence.exceptions[0].type, "regression")
