"""Keeps the newest version of a plan, as the edits of a run have made it, in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import EditConflictError, PlannerError
from planner.model.actions import PublishPlan
from planner.model.events import PlanSubmitted, SubPlanLoaded
from planner.planfile.document import Refused, read_source
from planner.planfile.file_writer import write_file
from planner.planfile.loader import dump_plan, plan_id_of, shown_path
from planner.planfile.tree import load_tree
from planner.planfile.versions import plans_beside, refuse_other_plan
from planner.planfile.writer import format_of
from planner.revise.editing import Editing

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.plan import Plan


class NewestPlans:
    """The plans of a run, the top plan and those of parents, with every edit that was published."""

    def __init__(self) -> None:
        self.remarks: list[str] = []
        """Which edits could not be followed."""
        self.edited: set[str] = set()
        """The parents whose plans were edited; of the top plan, the empty text."""
        self._plans: dict[str, Editing] = {}

    def take(self, event: Event, actions: Collection[Action]) -> bool:
        """Follow an event that was taken in; return whether a plan is another than before."""
        changed = isinstance(event, PlanSubmitted)
        if isinstance(event, PlanSubmitted):
            self._plans[""] = Editing(event.plan)
        elif isinstance(event, SubPlanLoaded) and event.plan is not None and not event.problems:
            self._plans[event.todo_id] = Editing(event.plan)
        for action in actions:
            if isinstance(action, PublishPlan) and action.within in self._plans:
                changed = self._apply(action) or changed
        return changed

    def newest(self, within: str = "") -> Plan:
        """Return the plan as it is now."""
        return self._plans[within].plan()

    @property
    def is_edited(self) -> bool:
        """Whether the top plan was edited."""
        return "" in self.edited

    def _apply(self, action: PublishPlan) -> bool:
        try:
            self._plans[action.within].apply(action.edits)
        except EditConflictError as error:
            self.remarks.append(f"version {action.version} of the plan cannot be followed: {error}")
            return False
        self.edited.add(action.within)
        return True


class PlanVersions:
    """The newest plan of a run, in a file."""

    def __init__(self, target: Path, source: Path | None) -> None:
        """``source`` is the file of the plan, whose comments and layout are kept; ``None``: there is none.

        Raises :class:`planner.errors.PlannerError` for a target that holds something else.
        """
        if source is not None and os.path.realpath(target) == os.path.realpath(source):
            raise PlannerError(f"{shown_path(target)}: this is the plan itself; name another file")
        held = None if source is None else plan_id_of(source)
        refuse_other_plan(target, set() if held is None else {held})
        self._target = target
        self._source = source
        self._plans = NewestPlans()
        self._changed = False
        self._told: set[str] = set()

    def keep_off(self, files: Collection[Path]) -> None:
        """Refuse to write where something else is kept. Raises :class:`planner.errors.PlannerError`."""
        for path in files:
            if os.path.realpath(self._target) == os.path.realpath(path):
                raise PlannerError(
                    f"{shown_path(self._target)}: the run is kept in this file; name another for the plan"
                )

    def take(self, event: Event, actions: Collection[Action]) -> None:
        """Follow an event that was taken in, and what it called for."""
        self._changed = self._plans.take(event, actions) or self._changed

    def write(self) -> list[str]:
        """Write the newest version where it has changed; return what a person should know of it."""
        remarks, self._plans.remarks = self._plans.remarks, []
        if not self._changed:
            return remarks
        try:
            texts, more = self._texts()
            for path, text in texts.items():
                write_file(path, text, mode=None, durable=True)
        except PlannerError as error:
            more = [f"the newest plan could not be written: {error}"]
        else:
            self._changed = False
        news = [each for each in more if each not in self._told]
        self._told.update(news)
        return remarks + news

    def _texts(self) -> tuple[dict[Path, str], list[str]]:
        """Return the text of each file. What was published counts, though the layout may not be kept."""
        revised = {within: self._plans.newest(within) for within in sorted(self._plans.edited)}
        try:
            if self._source is None:
                raise PlannerError("its file is not there as it was")
            tree = load_tree(self._source)
            texts = plans_beside(tree, revised, self._target)
            own = {tree.loaded.path, *(sub.loaded.path for sub in tree.sub_plans().values())}
            for each in texts:
                if each.path.parent.resolve() / each.path.name in own:
                    raise PlannerError(
                        f"{shown_path(each.path)}: is a file of the plan itself; name another"
                    )
        except PlannerError as error:
            text = dump_plan(self._plans.newest(), format=format_of(self._target))
            return {self._target: text}, [
                f"{shown_path(self._target)}: written without the comments of the plan: {error}"
            ]
        return {each.path: each.text for each in texts}, []


def unchanged_source(event: Event) -> Path | None:
    """Return the file that a submitted plan was read from, if it is still there and as it was."""
    if not isinstance(event, PlanSubmitted):
        return None
    path = Path(event.path)
    try:
        return path if read_source(path).digest == event.digest else None
    except Refused:
        return None
