"""Lint: the planner's checklist of errors, doubts and possible improvements of a plan that can be loaded.

The rules are pure functions: a :class:`Project` answers their questions about files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.catalog.tables import load_table
from planner.lint.facts import LintFacts, LintFinding, Project
from planner.lint.rules import check
from planner.model.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LINT_RULES", "LintFacts", "LintFinding", "LintRule", "Project", "check"]


class LintRule(NamedTuple):
    """One row of ``rules.toml``."""

    severity: Severity
    why: str
    """One sentence."""
    fix: str
    """The general remedy; a finding may name a more specific one."""


LINT_RULES: Mapping[str, LintRule] = {
    name: LintRule(Severity(row["weighs"]), row["why"], row["fix"])
    for name, row in load_table("rules", __name__).items()
}
