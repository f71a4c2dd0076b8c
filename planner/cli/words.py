"""The words of the screens: categories, moves, edits and needs as people say them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.edits import (
    AddBranch,
    AddCheck,
    AddContext,
    AddContract,
    AddDependency,
    AddTodoBefore,
    Isolate,
    NameArtifact,
    NarrowFiles,
    QuarantineTest,
    RaiseLimit,
    RetargetCheck,
    SplitTodo,
)
from planner.model.life import PlanState
from planner.model.taxonomy import Category

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.edits import Edit

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

_EDITS: Mapping[type[Edit], str] = {
    AddBranch: "add the todo {todo.id} after {todo.parent_id}",
    AddTodoBefore: "add the todo {todo.id} ({todo.title}) before {todo_id}",
    AddDependency: "let {todo_id} wait for {on}",
    NarrowFiles: "let {todo_id} change only {files}",
    AddCheck: "check first in {todo_id}: {check.cmd}",
    Isolate: "leave {todo_id} only {tests}",
    AddContext: "tell {todo_id} what was seen",
    NameArtifact: "tell {todo_id} to make {path}",
    AddContract: "hold {todo_id} to the contract {contract_path}",
    RaiseLimit: "give {check_id} of {todo_id} {to_seconds:g} s instead of {from_seconds:g} s",
    RetargetCheck: "let {check_id} of {todo_id} run {to_cmd} instead of {from_cmd}",
    SplitTodo: "split {todo_id} into {parts}",
    QuarantineTest: "bear the flaky {nodeid} until {expires} ({owner}, {ticket})",
}


def edit(each: Edit) -> str:
    """Return what an edit changes in a plan as a request, without what it quotes at length."""
    facts: dict[str, object] = {name: getattr(each, name) for name in type(each).model_fields}
    match each:
        case NarrowFiles():
            facts["files"] = ", ".join(each.allowed_files) or "nothing"
        case Isolate():
            facts["tests"] = "; ".join(check.cmd for check in each.tests)
        case SplitTodo():
            facts["parts"] = ", ".join(part.id for part in each.parts)
        case _:
            pass
    return _EDITS[type(each)].format_map(facts)
