"""Baseline: the results and files from before the work, recorded once and compared with in every run.

:func:`load_baseline` returns the :class:`KeptBaseline` of a plan, if there is one. Recording is in
:mod:`pytest_planverify.baseline.record`, storage in :mod:`pytest_planverify.baseline.kept_baseline`.
Everything beyond this module is imported late, as most runs have no baseline.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import PLANS, PlanFolder

if TYPE_CHECKING:
    from pathlib import Path

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline

REFS = ("refs/planverify", "refs/worktree/planverify")
"""Prefixes of the git refs of baselines: in the main work tree, and in linked ones.

Refs below ``refs/worktree`` are not shared between work trees.
"""


def load_baseline(root: Path, plan_id: str) -> KeptBaseline | None:
    """Return the baseline of a plan; ``None`` if there is none.

    See :func:`~pytest_planverify.baseline.kept_baseline.find_baseline`.
    """
    from pytest_planverify.baseline.repository import has_refs

    # A dangling link is not "no baseline": it has to be reported as unreadable.
    exists = os.path.lexists(PlanFolder(root, plan_id).baseline)
    exists = exists or any((root / PLANS).glob("*/baseline.json"))  # may be of a parent of a sub-plan
    if not exists and not has_refs(root, *REFS):
        return None
    from pytest_planverify.baseline.kept_baseline import find_baseline

    return find_baseline(root, plan_id)


def record_command(flat: FlatPlan) -> str:
    """Return the command that records a baseline of the plan, from the current folder."""
    return f"planverify baseline {shlex.quote(shown_path(flat.loaded.path))}"


def below(flat: FlatPlan, todo_id: str, nodeid: str) -> str:
    """Return a node id of a todo, relative to its own plan's root, relative to the top plan's root."""
    own, top = flat.owner(todo_id).root, flat.loaded.root
    if own == top:
        return nodeid.removeprefix("./")
    path, colons, rest = nodeid.partition("::")
    return f"{os.path.normpath(os.path.join(os.path.relpath(own, top), path))}{colons}{rest}"
