"""Keeps the newest version of a plan, as the edits of a run have made it, in a file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.engine.state import current_plan, revised_plans
from planner.errors import PlannerError
from planner.planfile.file_writer import write_file
from planner.planfile.loader import plan_id_of, shown_path
from planner.planfile.tree import load_tree
from planner.planfile.versions import plans_beside, refuse_other_plan
from planner.planfile.writer import dump_plan, format_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from planner.engine import State


class PlanVersions:
    """The newest plan of a run, in a file."""

    def __init__(self, target: Path, source: Path) -> None:
        """``source`` is the file of the plan, whose comments and layout are kept.

        Raises :class:`planner.errors.PlannerError` for a target that holds something else.
        """
        if os.path.realpath(target) == os.path.realpath(source):
            raise PlannerError(f"{shown_path(target)}: this is the plan itself; name another file")
        held = plan_id_of(source)
        refuse_other_plan(target, set() if held is None else {held})
        self._target = target
        self._source = source
        self._written: tuple[int, ...] = ()
        """The versions of the plan and its sub-plans that the file holds."""
        self._told: set[str] = set()

    def keep_off(self, files: Collection[Path]) -> None:
        """Refuse to write where something else is kept. Raises :class:`planner.errors.PlannerError`."""
        for path in files:
            if os.path.realpath(self._target) == os.path.realpath(path):
                raise PlannerError(
                    f"{shown_path(self._target)}: the run is kept in this file; name another for the plan"
                )

    def write(self, state: State | None) -> list[str]:
        """Write the newest version where it has changed; return what a person should know of it."""
        newest = () if state is None else tuple(part.version for part in state.parts.values())
        if state is None or newest == self._written:
            return []
        try:
            texts, remarks = self._texts(state)
            for path, text in texts.items():
                write_file(path, text, mode=None, durable=True)
            self._written = newest
        except PlannerError as error:
            remarks = [f"the newest plan could not be written: {error}"]
        news = [each for each in remarks if each not in self._told]
        self._told.update(news)
        return news

    def _texts(self, state: State) -> tuple[dict[Path, str], list[str]]:
        """Return the text of each file. What was published counts, though the layout may not be kept."""
        try:
            tree = load_tree(self._source)
            with suppress(PlannerError):  # a sub-plan that no file holds is written whole
                tree.load_all()
            own_policies = {name: sub.loaded.plan.metadata for name, sub in tree.sub_plans().items()}
            texts = plans_beside(tree, revised_plans(state, own_policies), self._target)
            own = {tree.loaded.path, *(sub.loaded.path for sub in tree.sub_plans().values())}
            taken = [each.path for each in texts if each.path.parent.resolve() / each.path.name in own]
            if taken:
                raise PlannerError(f"{shown_path(taken[0])}: is a file of the plan itself; name another")
        except PlannerError as error:
            part = state.parts[""]
            plan = part.plan if part.version == 1 else current_plan(state)
            return {self._target: dump_plan(plan, format=format_of(self._target))}, [
                f"{shown_path(self._target)}: written without the comments of the plan: {error}"
            ]
        return {each.path: each.text for each in texts}, []
