"""Validation: what is wrong, doubtful or improvable about a plan that can be loaded.

One group of rules a file; :data:`VALIDATION_RULES` says of each how much it weighs and why it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.validation import (
    duplicates,
    fixtures,
    graph,
    having_tests,
    hollow,
    limits,
    policy,
    qualified,
    reach,
    references,
    repeatable,
    routing,
    size,
    template,
)
from planner.rules.validation.facts import Facts, Found
from planner.rules.validation.rule_table import VALIDATION_RULES, ValidationRule

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["VALIDATION_RULES", "Facts", "Found", "ValidationRule", "validate"]

_GROUPS = (
    having_tests,
    hollow,
    repeatable,
    fixtures,
    routing,
    limits,
    graph,
    policy,
    template,
    references,
    duplicates,
    reach,
    size,
    qualified,
)


def validate(facts: Facts) -> Iterator[Found]:
    """Everything that the rules find, group by group."""
    for group in _GROUPS:
        yield from group.check(facts)
