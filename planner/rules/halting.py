"""When everything stops: a violation of the sandbox, hygiene or allowlist, or a budget that is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.decision import Halt
from planner.model.taxonomy import Category, Family
from planner.rules.budget import exceeded_budgets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.outcome import Failure, Outcome, OutcomeDocument
    from planner.model.plan import Policy
    from planner.rules.board import Board

HALTING = {
    Family.SANDBOX: "halt-on-violation",
    Family.BUDGET: "halt-on-budget",
}
"""The families whose failures stop everything, the most severe first, and the rule that says so."""


def halt_of(board: Board, document: OutcomeDocument, policy: Policy) -> Halt | None:
    """Why everything stops, or ``None``. It makes no difference whether the todo counts or is blocked."""
    found = [
        (failure, entry.id)
        for entry in board.entries.values()
        if entry.outcome is not None
        for failure in failures_of(entry.outcome)
        if failure.category.facts.family in HALTING
    ]
    if found:
        failure = min((each for each, _ in found), key=lambda each: each.category.facts.family.severity)
        category = failure.category
        todo_ids = tuple(dict.fromkeys(name for each, name in found if each.category is category))
        said = f": {failure.stack_trace_head}" if failure.stack_trace_head else ""
        return Halt(
            rule=HALTING[category.facts.family],
            category=category,
            todo_ids=todo_ids,
            because=f"{category} in {_few(todo_ids)}{said}",
        )
    used_up = list(exceeded_budgets(policy.budget, document))
    if used_up:
        return Halt(
            rule="halt-on-budget",
            category=Category.BUDGET_EXCEEDED,
            todo_ids=(),
            because="the plan's budget is used up (" + "; ".join(map(str, used_up)) + ")",
        )
    return None


def failures_of(outcome: Outcome) -> Iterator[Failure]:
    """Every failure of an outcome: the one that decides the route, then the most severe families."""
    deciding = outcome.failure_evidence
    if deciding is not None:
        yield deciding
    yield from sorted((each for each in outcome.failures if each != deciding), key=_severity)


def _severity(failure: Failure) -> tuple[int, float]:
    return failure.category.facts.family.severity, -(failure.confidence or 0)


def _few(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
