"""The plans of one run: which of them and of their todos are asked for, and what each is run with."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planner.errors import PlanFileError, PlannerError, PlanTreeError
from planner.model.outcome import PlanRef, SubPlanRef
from planner.model.plan import TodoStatus
from planner.planfile.tree import FlatPlan, load_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from pytest_planverify.options import PlanArgument, Scope, Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.reports.reporters import Reporting
    from pytest_planverify.session.confirm import ConfirmationBudget
    from pytest_planverify.session.fork_server import ForkServer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run over one or several plans."""

    run_id: str
    config: pytest.Config
    settings: Settings
    server: ForkServer | None
    """``None`` where every command is started cold."""
    script_paths: tuple[str, ...]
    """Entries of ``sys.path`` that are there because of how the run was started."""
    tw: TerminalWriter
    progress: Progress
    budget: ConfirmationBudget
    reporting: Reporting
    started_epoch: float
    """When the run began, in seconds since 1970."""
    started: float
    """On the clock that only goes forward."""
    started_at: str

    @property
    def own_pids(self) -> frozenset[int]:
        """The processes of ours that are not the project's."""
        return frozenset() if self.server is None else frozenset({self.server.pid, *self.server.pids})


def now() -> str:
    """The time, as RFC 3339 has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def reference_of(flat: FlatPlan, shown: str) -> PlanRef:
    """The plan and its sub-plans as the outcome file names them; ``shown`` is the plan's path there."""
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
    )


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
        named = [todo_id for each in given for todo_id in each.todo_ids]
        wanted = named if all(each.todo_ids for each in given) else None
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
        known = [todo.id for todo in each.plan.plan.items]
        if (todo_id := next((name for name in named if name not in known), None)) is not None:
            alike = difflib.get_close_matches(todo_id, known, n=1)
            hint = f"did you mean {each.shown}::{alike[0]}?" if alike else f"it has {', '.join(known[:8])}"
            raise pytest.UsageError(f"{each.shown}: the plan has no todo {todo_id!r}; {hint}")
    seen: dict[str, LoadedPlan] = {}
    for plan in (each.plan for each in chosen):
        if (other := seen.setdefault(plan.plan.todo_list_id, plan)) is not plan:
            raise pytest.UsageError(
                f"{other.path} and {plan.path} are both {plan.plan.todo_list_id!r}: give each plan of a "
                "run a todo_list_id of its own"
            )
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
