"""Baseline: the results before the work began, recorded once, compared with in every run.

``load_baseline(root, plan_id)`` gives the :class:`KeptBaseline` of a plan, or nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from planner.planfile.plan_folder import PLANS, PlanFolder

if TYPE_CHECKING:
    from pathlib import Path

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline

__all__ = ["KeptBaseline", "below", "load_baseline"]

_REFS = ("refs/planverify", "refs/worktree/planverify")


def load_baseline(root: Path, plan_id: str) -> KeptBaseline | None:
    """The baseline of a plan; ``None`` where none was made, which is seen at a glance.

    Where git keeps a copy that copy counts, and a file that differs from it is a doubt; the file may be
    gone. Raises :class:`planner.errors.BaselineError` for one that cannot be read or is of another plan.
    """
    from pytest_planverify.baseline.repository import may_keep

    there = os.path.lexists(PlanFolder(root, plan_id).baseline)
    there = there or any((root / PLANS).glob("*/baseline.json"))  # of which it may be a sub-plan
    if not there and not any(may_keep(root, names) for names in _REFS):
        return None
    from pytest_planverify.baseline.kept_baseline import find_baseline

    return find_baseline(root, plan_id)


def below(flat: FlatPlan, todo_id: str, nodeid: str) -> str:
    """Return a node id of a todo, which starts at the root of its own plan, from the top plan's root."""
    own, top = flat.owner(todo_id).root, flat.loaded.root
    if own == top:
        return nodeid.removeprefix("./")
    path, colons, rest = nodeid.partition("::")
    return f"{os.path.normpath(os.path.join(os.path.relpath(own, top), path))}{colons}{rest}"


def __getattr__(name: str) -> Any:
    # A run without a baseline, as most are, imports nothing more of this package.
    if name == "KeptBaseline":
        from pytest_planverify.baseline import kept_baseline

        return kept_baseline.KeptBaseline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
