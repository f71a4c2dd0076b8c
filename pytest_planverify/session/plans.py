"""The plans of one run: which plans and todos were requested, and the settings that they share."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planner.errors import PlanFileError, PlannerError, PlanTreeError
from planner.model.outcome import PlanRef, SubPlanRef
from planner.model.plan import TodoStatus
from planner.planfile.tree import FlatPlan, load_tree, todo_digests
from planner.policy.dependencies import reachable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from pytest_planverify.options import PlanArgument, Scope, Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.reports.reporters import Reporting
    from pytest_planverify.session.fork_server import ForkServer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts shared by all plans of one run."""

    run_id: str
    config: pytest.Config
    settings: Settings
    server: ForkServer | None
    """``None`` if every command is started cold."""
    script_paths: tuple[str, ...]
    """Entries of ``sys.path`` that are due to how this run was started."""
    tw: TerminalWriter
    progress: Progress
    reporting: Reporting
    started: float
    """Start of the run on the monotonic clock."""
    started_at: str


def reference_of(flat: FlatPlan, shown: str) -> PlanRef:
    """Return the reference to a plan and its sub-plans for the outcome file.

    ``shown`` is the plan's path as written there; the paths of sub-plans start from the same folder.
    """
    folder, beside = flat.loaded.path.parent, os.path.dirname(shown)
    return PlanRef(
        todo_list_id=flat.loaded.plan.todo_list_id,
        path=shown,
        digest=flat.loaded.digest,
        sub_plans=tuple(
            SubPlanRef(
                todo_id=parent,
                path=os.path.normpath(os.path.join(beside, os.path.relpath(file.path, folder))),
                digest=file.digest,
            )
            for parent, file in flat.files.items()
        ),
        todos=todo_digests(flat.loaded, flat.files),
    )


class ChosenPlan(NamedTuple):
    """A loaded plan with its sub-plans, and what of it was requested."""

    flat: FlatPlan
    shown: str
    todo_ids: list[str] | None
    """``None`` means all."""
    whole: bool = True
    """All sub-plans were loaded; otherwise only those with requested todos."""

    @property
    def plan(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded


def load_plans(arguments: Iterable[PlanArgument]) -> list[ChosenPlan]:
    """Load each plan once, with the requested todos.

    Raises :class:`planner.errors.PlannerError` with the faults of all plan files, and
    :class:`pytest.UsageError` for an unknown todo and for two plans with the same id.
    """
    asked: dict[Path, list[PlanArgument]] = {}
    for argument in arguments:
        asked.setdefault(argument.path, []).append(argument)
    errors: dict[str, PlanFileError] = {}
    chosen: list[ChosenPlan] = []
    for given in asked.values():
        named = [todo_id for each in given for todo_id in each.todo_ids]
        # A plan that is also named without todos is wanted as a whole.
        wanted = named if all(each.todo_ids for each in given) else None
        whole = True
        try:
            try:
                # All sub-plans if possible, as the other todos are shown with their last verdicts.
                tree = load_tree(given[0].path, boundary=given[0].boundary).load_all()
            except (PlanFileError, PlanTreeError):
                if wanted is None:
                    raise
                whole = False  # faults in sub-plans that were not requested do not matter
                tree = load_tree(given[0].path, boundary=given[0].boundary).load_all(wanted)
        except (PlanFileError, PlanTreeError) as error:
            found = error.errors if isinstance(error, PlanTreeError) else (error,)
            errors |= {str(each): each for each in found}  # a sub-plan of several plans counts once
            continue
        chosen.append(ChosenPlan(tree.flat(), given[0].shown, wanted, whole))
    if errors:
        raise next(iter(errors.values())) if len(errors) == 1 else PlannerError("\n\n".join(errors))
    for each, given in zip(chosen, asked.values(), strict=True):
        known = [todo.id for todo in each.plan.plan.items]
        named = (todo_id for argument in given for todo_id in argument.todo_ids)
        if (todo_id := next((name for name in named if name not in known), None)) is not None:
            alike = difflib.get_close_matches(todo_id, known, n=1)
            hint = f"did you mean {each.shown}::{alike[0]}?" if alike else f"it has {', '.join(known[:8])}"
            raise pytest.UsageError(f"{each.shown}: the plan has no todo {todo_id!r}; {hint}")
    # Outcomes, journals and folders belong to a plan by its id.
    seen: dict[str, LoadedPlan] = {}
    for plan in (each.plan for each in chosen):
        if (other := seen.setdefault(plan.plan.todo_list_id, plan)) is not plan:
            raise pytest.UsageError(
                f"{other.path} and {plan.path} are both {plan.plan.todo_list_id!r}: give each plan of a "
                "run a unique todo_list_id"
            )
    return chosen


def todos_in_scope(chosen: ChosenPlan, scope: Scope) -> list[Todo]:
    """Return the todos to verify, in plan order: those that the user names, else those of the scope.

    Scope ``claimed`` selects the claimed todos and all their dependencies; any other selects every todo. A
    parent includes all todos of its sub-plan.
    """
    items = chosen.plan.plan.items
    children = chosen.flat.children
    if chosen.todo_ids is not None:
        wanted = set(reachable(chosen.todo_ids, lambda name: children.get(name, ())))
        return [todo for todo in items if todo.id in wanted]
    if scope != "claimed":
        return list(items)
    by_id = {todo.id: todo for todo in items}
    claimed = (todo.id for todo in items if todo.status is TodoStatus.CLAIMED)
    wanted = set(reachable(claimed, lambda name: (*by_id[name].dependencies, *children.get(name, ()))))
    return [todo for todo in items if todo.id in wanted]
