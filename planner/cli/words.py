"""The words of the screens: categories, moves, edits and needs as people say them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.life import PlanState
from planner.model.taxonomy import Category
from planner.rules.edit_phrases import edit_phrase

if TYPE_CHECKING:
    from collections.abc import Mapping


CATEGORIES: Mapping[Category, str] = {
    Category.TEST_REGRESSION: "the product does not do what a test asks of it",
    Category.TEST_TIMEOUT: "a test did not end in its time",
    Category.FLAKY_TEST: "a test is now red, now green, on the same code",
    Category.TEST_CRASH: "the process died under a test",
    Category.TEST_NOT_FOUND: "the plan asks for a test that is not there",
    Category.COMPILATION_ERROR: "code cannot be compiled",
    Category.TYPE_ERROR: "a value is of the wrong kind",
    Category.LINT_ERROR: "a linter complains",
    Category.IMPORT_ERROR: "a module is missing",
    Category.SPEC_MISMATCH: "the code is not what its contract or its tests promise",
    Category.ARTIFACT_MISSING: "a file that was promised is not there or not right",
    Category.METRIC_UNMET: "a number is not what the plan demands",
    Category.SANDBOX_VIOLATION: "the code did what the sandbox forbids",
    Category.HYGIENE_VIOLATION: "what judges the work was changed",
    Category.ALLOWLIST_VIOLATION: "files were changed that the todo may not change",
    Category.BUDGET_EXCEEDED: "a budget is used up",
    Category.ENVIRONMENT_ERROR: "something that the work does not own was not there",
    Category.HARNESS_ERROR: "the verifier itself failed",
    Category.UNKNOWN: "no rule knows this failure",
}

STATES: Mapping[PlanState, str] = {
    PlanState.CREATED: "created",
    PlanState.VALIDATING: "being validated",
    PlanState.REJECTED: "rejected",
    PlanState.READY: "ready",
    PlanState.EXECUTING: "under way",
    PlanState.REVISING: "to be revised",
    PlanState.AWAITING_REVIEW: "waits for a person",
    PlanState.COMPLETED: "completed",
    PlanState.HALTED: "halted",
}

STATE_STYLES: Mapping[PlanState, str] = {
    PlanState.COMPLETED: "good",
    PlanState.HALTED: "bad",
    PlanState.REJECTED: "bad",
    PlanState.AWAITING_REVIEW: "warn",
}

edit = edit_phrase
"""What an edit changes, without what it quotes at length."""
