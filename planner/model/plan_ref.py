"""Which plan a run verified: its file, its version by digest, and its sub-plans."""

from __future__ import annotations

from planner.model.base import ReadValue


class SubPlanRef(ReadValue):
    """The plan file of a parent, as it was when it was verified."""

    todo_id: str
    """The parent."""
    path: str
    digest: str


class PlanRef(ReadValue):
    todo_list_id: str
    path: str
    digest: str
    sub_plans: tuple[SubPlanRef, ...] = ()
    """Those that were loaded, at any depth."""
