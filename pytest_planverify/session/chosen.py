"""Which plans and which of their todos the command line asks for."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planner.errors import PlanFileError, PlannerError, PlanTreeError
from planner.model.plan import TodoStatus
from planner.planfile.tree import FlatPlan, load_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from pytest_planverify.options import PlanArgument, Scope


class ChosenPlan(NamedTuple):
    """One plan with its sub-plans, and what of it is asked for."""

    flat: FlatPlan
    shown: str
    todo_ids: list[str] | None
    """``None`` is all of them."""
    boundary: Path | None = None
    """The folder within which the roots must lie."""
    whole: bool = True
    """Every sub-plan could be loaded; else only those that hold the todos asked for."""

    @property
    def plan(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded


def load_plans(arguments: Iterable[PlanArgument]) -> list[ChosenPlan]:
    """Load every plan once, with the todos asked for.

    Raises :class:`planner.errors.PlannerError` with the faults of all plan files, and
    :class:`pytest.UsageError` for a todo that is not there and for two plans of one id.
    """
    asked: dict[Path, list[PlanArgument]] = {}
    for argument in arguments:
        asked.setdefault(argument.path, []).append(argument)
    errors: dict[str, PlanFileError] = {}
    chosen: list[ChosenPlan] = []
    names: list[list[str]] = []
    for given in asked.values():
        named = [each.todo_id for each in given if each.todo_id is not None]
        wanted = named if len(named) == len(given) else None
        whole = True
        try:
            try:
                tree = load_tree(given[0].path, boundary=given[0].boundary).load_all()
            except (PlanFileError, PlanTreeError):
                if wanted is None:
                    raise
                whole = False  # faults of sub-plans that nobody asked for are in nobody's way
                tree = load_tree(given[0].path, boundary=given[0].boundary).load_all(wanted)
        except (PlanFileError, PlanTreeError) as error:
            found = error.errors if isinstance(error, PlanTreeError) else (error,)
            errors |= {str(each): each for each in found}
            continue
        chosen.append(ChosenPlan(tree.flat(), given[0].shown, wanted, given[0].boundary, whole))
        names.append(named)
    if errors:
        raise next(iter(errors.values())) if len(errors) == 1 else PlannerError("\n\n".join(errors))
    for each, named in zip(chosen, names, strict=True):
        for todo_id in named:
            _require_todo(each.plan, each.shown, todo_id)
    _require_different_ids([each.plan for each in chosen])
    return chosen


def todos_in_scope(chosen: ChosenPlan, scope: Scope) -> list[Todo]:
    """The todos to verify: those named, or under ``claimed`` the claimed ones and all they depend on.

    Of a parent all todos of its sub-plan are verified with it.
    """
    items = chosen.plan.plan.items
    children = chosen.flat.children
    if chosen.todo_ids is not None:
        wanted = _closure(chosen.todo_ids, lambda name: children.get(name, ()))
        return [todo for todo in items if todo.id in wanted]
    if scope != "claimed":
        return list(items)
    by_id = {todo.id: todo for todo in items}
    claimed = (todo.id for todo in items if todo.status is TodoStatus.CLAIMED)
    wanted = _closure(claimed, lambda name: (*by_id[name].dependencies, *children.get(name, ())))
    return [todo for todo in items if todo.id in wanted]


def _closure(start: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    wanted: set[str] = set()
    pending = list(start)
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += following(name)
    return wanted


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
