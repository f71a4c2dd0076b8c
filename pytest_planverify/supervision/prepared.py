"""A plan that is ready to be run, and all that belongs to it during the run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.plan_ref import PlanRef, SubPlanRef

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from planner.edges.plan_file import LoadedPlan
    from planner.edges.plan_tree import FlatPlan
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.guards.guarding import Guards
    from pytest_planverify.supervision.changes import Changes
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.running import PlanRun
    from pytest_planverify.supervision.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One plan of the run."""

    flat: FlatPlan
    shown: str
    """The plan's path as the user is shown it."""
    todos: list[Todo]
    """Those that are verified, in the plan's order."""
    folder: RunFolder
    sessions: Sessions
    run: PlanRun
    changes: Mapping[Path, Changes]
    """By the root of the plan and of each sub-plan."""
    guards: Guards
    baseline: KeptBaseline | None = None
    """What the run is compared with."""

    @property
    def plan(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded

    @property
    def reference(self) -> PlanRef:
        """The plan as the outcome file names it."""
        return reference_of(self.flat, self.shown)


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
