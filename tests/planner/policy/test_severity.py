"""Which failure of a todo decides who acts."""

from __future__ import annotations

import pytest

from planner.model.outcome import Failure
from planner.model.taxonomy import Category
from planner.model.verdicts import Since
from planner.policy.outcomes import severity_of


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            Failure(category=Category.COMPILATION_ERROR, since=Since.PRE_EXISTING),
            Failure(category=Category.TEST_REGRESSION, confidence=1.0),
        ),
        (
            Failure(category=Category.FLAKY_TEST, since=Since.NEW),
            Failure(category=Category.TEST_REGRESSION, since=Since.PRE_EXISTING, confidence=1.0),
        ),
        (
            Failure(category=Category.TEST_REGRESSION, confidence=0.1),
            Failure(category=Category.FLAKY_TEST, confidence=1.0),
        ),
        (
            Failure(category=Category.TEST_REGRESSION, confidence=0.9),
            Failure(category=Category.TEST_TIMEOUT, confidence=0.8),
        ),
    ],
    ids=["a more severe family", "what the work broke", "what is red every time", "what is surer"],
)
def test_what_decides_first(first: Failure, second: Failure) -> None:
    assert severity_of(first) < severity_of(second)
