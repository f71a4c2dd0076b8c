"""Which plans and which of their todos the command line asks for, and what failed in them last time."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planner.edges.outcome_file import read_outcomes
from planner.edges.plan_file import load_plan
from planner.errors import OutcomeFileError, PlanFileError, PlannerError
from planner.model.plan import TodoStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from planner.edges.plan_file import LoadedPlan
    from planner.model.plan import Todo
    from pytest_planverify.options import PlanArgument, Scope


class ChosenPlan(NamedTuple):
    """One plan, and what of it is asked for."""

    plan: LoadedPlan
    shown: str
    todo_ids: list[str] | None
    """``None`` is all of them."""


def load_plans(arguments: Iterable[PlanArgument]) -> list[ChosenPlan]:
    """Load every plan once, with the todos asked for.

    Raises :class:`planner.errors.PlannerError` with the faults of all plan files, and
    :class:`pytest.UsageError` for a todo that is not there and for two plans of one id.
    """
    loaded: dict[Path, ChosenPlan] = {}
    errors: dict[str, PlanFileError] = {}
    for argument in arguments:
        if argument.path not in loaded:
            try:
                plan = load_plan(argument.path, boundary=argument.boundary)
            except PlanFileError as error:
                errors.setdefault(str(error), error)
                continue
            loaded[argument.path] = ChosenPlan(plan, argument.shown, [])
        chosen = loaded[argument.path]
        if argument.todo_id is None:
            loaded[argument.path] = chosen._replace(todo_ids=None)
        else:
            _require_todo(chosen.plan, chosen.shown, argument.todo_id)
            if chosen.todo_ids is not None:
                chosen.todo_ids.append(argument.todo_id)
    if errors:
        raise next(iter(errors.values())) if len(errors) == 1 else PlannerError("\n\n".join(errors))
    _require_different_ids([chosen.plan for chosen in loaded.values()])
    return list(loaded.values())


def todos_in_scope(chosen: ChosenPlan, scope: Scope) -> list[Todo]:
    """The todos to verify: those named, or under ``claimed`` the claimed ones and all they depend on."""
    items = chosen.plan.plan.items
    if chosen.todo_ids is not None:
        return [todo for todo in items if todo.id in chosen.todo_ids]
    if scope != "claimed":
        return list(items)
    by_id = {todo.id: todo for todo in items}
    wanted: set[str] = set()
    pending = [todo.id for todo in items if todo.status is TodoStatus.CLAIMED]
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += by_id[name].dependencies
    return [todo for todo in items if todo.id in wanted]


def last_failed(outcomes: Path, plan: LoadedPlan) -> tuple[str, ...]:
    """The tests of the plan that failed in the run which wrote that outcome file; none without it."""
    if not outcomes.exists():
        return ()
    try:
        document = read_outcomes(outcomes)
    except OutcomeFileError as error:
        raise pytest.UsageError(f"--lf: {error}") from None
    failed = {
        test.nodeid: None
        for outcome in document.outcomes
        if outcome.plan == plan.plan.todo_list_id
        for check in outcome.checks
        for test in check.tests
        if test.outcome.is_red
    }
    return tuple(failed)


def _require_todo(plan: LoadedPlan, shown: str, todo_id: str) -> None:
    known = [todo.id for todo in plan.plan.items]
    if todo_id in known:
        return
    alike = difflib.get_close_matches(todo_id, known, n=1)
    hint = f"did you mean {shown}::{alike[0]}?" if alike else f"it has {', '.join(known[:8])}"
    raise pytest.UsageError(f"{shown}: the plan has no todo {todo_id!r}; {hint}")


def _require_different_ids(plans: Sequence[LoadedPlan]) -> None:
    seen: dict[str, LoadedPlan] = {}
    for plan in plans:
        other = seen.setdefault(plan.plan.todo_list_id, plan)
        if other is not plan:
            raise pytest.UsageError(
                f"{other.path} and {plan.path} are both {plan.plan.todo_list_id!r}: give each plan of a "
                "run a todo_list_id of its own"
            )
