"""Writer of the newest version of a plan, with all edits that a run has published, to a file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.engine.state import revised_plans
from planner.errors import PlannerError
from planner.planfile.file_writer import write_file
from planner.planfile.loader import plan_id_of, shown_path
from planner.planfile.tree import load_tree
from planner.planfile.versions import plans_beside, refuse_other_plan

if TYPE_CHECKING:
    from pathlib import Path

    from planner.engine import State


class PlanVersions:
    """File that receives the newest version of a run's plan after each change.

    Sub-plans are written beside it.
    """

    def __init__(self, target: Path, source: Path) -> None:
        """Create a writer to ``target``; ``source`` is the plan's file, whose comments and layout are kept.

        Raises :class:`planner.errors.PlannerError` if the target is the source, or contains anything but a
        version of this plan.
        """
        if os.path.realpath(target) == os.path.realpath(source):
            raise PlannerError(f"{shown_path(target)}: this is the plan itself; name another file")
        plan_id = plan_id_of(source)
        refuse_other_plan(target, set() if plan_id is None else {plan_id})
        self._target = target
        self._source = source
        self._written: tuple[int, ...] = ()
        """Version numbers of the plan and its sub-plans that were written last."""
        self._reported = ""

    def write(self, state: State | None) -> list[str]:
        """Write the newest version if it has changed; return a remark for people if that fails.

        The next call tries again; an unchanged remark is not repeated.
        """
        # Versions only increase, so equal numbers mean equal plans.
        newest = () if state is None else tuple(part.version for part in state.parts.values())
        if state is None or newest == self._written:
            return []
        try:
            tree = load_tree(self._source)
            with suppress(PlannerError):  # a sub-plan without a file is written completely
                tree.load_all()
            own_policies = {name: sub.loaded.plan.metadata for name, sub in tree.sub_plans().items()}
            for each in plans_beside(tree, revised_plans(state, own_policies), self._target):
                write_file(each.path, each.text, mode=None, durable=True)
        except PlannerError as error:
            remark = f"the newest plan could not be written: {error}"
            is_new, self._reported = remark != self._reported, remark
            return [remark] if is_new else []
        self._written = newest
        return []
