"""A plan that is ready to be run, and all that belongs to it during the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.edges.plan_file import LoadedPlan
    from planner.model.plan import Todo
    from pytest_planverify.supervision.changes import Changes
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.running import PlanRun
    from pytest_planverify.supervision.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One plan of the run."""

    plan: LoadedPlan
    shown: str
    """The plan's path as the user is shown it."""
    todos: list[Todo]
    """Those that are verified, in the plan's order."""
    folder: RunFolder
    sessions: Sessions
    run: PlanRun
    changes: Changes
