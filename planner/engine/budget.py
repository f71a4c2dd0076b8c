"""Stops, or asks a person, when a budget of the plan is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.engine.state import Question
from planner.engine.transaction import Stop
from planner.model.actions import QuestionKind
from planner.model.taxonomy import Category
from planner.policy.budget import exceeded, used_up

if TYPE_CHECKING:
    from planner.engine.transaction import Transaction


BUDGET_QUESTION = "budget"
"""While this is asked, nobody is asked to work."""


def wall_seconds(tx: Transaction) -> float:
    """How long the run has lasted."""
    return 0.0 if tx.started is None else tx.now - tx.started


def is_over_budget(tx: Transaction) -> bool:
    """Whether more was spent than is allowed, and nobody has agreed to that."""
    budget = tx.top.budget
    if tx.overspent or not budget.model_fields_set:
        return False
    return exceeded(budget, tx.spent, wall_seconds(tx)) is not None


def check_budget(tx: Transaction, todo_id: str | None) -> None:
    """Look whether more was spent than is allowed. Raises :class:`Stop`.

    ``todo_id`` is the todo that has spent it, where one is known.
    """
    if not is_over_budget(tx):
        return
    found = exceeded(tx.top.budget, tx.spent, wall_seconds(tx))
    over(tx, f"the plan's budget is used up ({found})", todo_id)


def may_work(tx: Transaction) -> bool:
    """Whether the budget leaves a further turn of work. Where not: asks, or raises :class:`Stop`."""
    if tx.overspent:
        return True
    if BUDGET_QUESTION in tx.questions:
        return False
    budget = tx.top.budget
    found = used_up(budget, tx.spent, wall_seconds(tx)) if budget.model_fields_set else None
    if found is None:
        return True
    over(tx, f"the plan's budget leaves no further turn of work ({found})", None)
    return False


def over(tx: Transaction, because: str, todo_id: str | None) -> None:
    """A budget is used up: stop, or ask whether it goes on. Raises :class:`Stop`."""
    if tx.top.halt.budget == "halt":
        found = () if todo_id is None else (todo_id,)
        raise Stop("halt-on-budget", because, found, category=Category.BUDGET_EXCEEDED)
    if BUDGET_QUESTION not in tx.questions:
        tx.ask(
            Question(
                id=BUDGET_QUESTION,
                kind=QuestionKind.REVIEW,
                todo_id="",
                text="the budget is used up; does it go on?",
                options=("go_on", "stop"),
                rule="halt-on-budget",
                because=because,
                asked=0,
            )
        )
