"""Applies typed edits to a plan and takes them back.

What each kind of edit changes stands in :mod:`.effects`, the primitive changes in :mod:`.drafting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import EditConflictError
from planner.rules.editing.drafting import Change, Draft, InsertTodo, RemoveTodo, ReplacePolicy, ReplaceTodo
from planner.rules.editing.effects import effects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.edits import Edit
    from planner.model.plan import Plan, Todo

__all__ = [
    "Change",
    "Editing",
    "InsertTodo",
    "RemoveTodo",
    "ReplacePolicy",
    "ReplaceTodo",
    "Revised",
    "apply_edits",
    "undo",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """A plan after edits, and the changes that take it back."""

    plan: Plan
    changes: tuple[Change, ...]


def apply_edits(plan: Plan, edits: Iterable[Edit]) -> Revised:
    """The plan after the edits, in their order.

    Raises :class:`planner.errors.EditConflictError` where one of them does not fit; then none is applied.
    """
    editing = Editing(plan)
    changes = editing.apply(edits)
    return Revised(plan=editing.plan(), changes=changes)


def undo(plan: Plan, changes: Sequence[Change]) -> Plan:
    """The plan as it was before the changes.

    Raises :class:`planner.errors.EditConflictError` where the plan is not what the changes made of it.
    """
    editing = Editing(plan)
    editing.undo(changes)
    return editing.plan()


class Editing:
    """One plan to which edits are applied one batch after the other, without a new plan for each.

    A batch that does not fit leaves everything as it was.
    """

    def __init__(self, plan: Plan) -> None:
        self._draft = Draft(plan)

    def todo(self, todo_id: str) -> Todo | None:
        """The todo of that id as it is now."""
        return self._draft.get(todo_id)

    def plan(self) -> Plan:
        """The plan as it is now."""
        return self._draft.plan()

    def apply(self, edits: Iterable[Edit]) -> tuple[Change, ...]:
        """Apply edits, all or none. Raises :class:`planner.errors.EditConflictError`."""
        done: list[Change] = []
        try:
            for edit in edits:
                for change in effects(self._draft, edit):
                    self._draft.perform(change, edit.edit)
                    done.append(change)
        except EditConflictError:
            self._take_back(done)
            raise
        return tuple(done)

    def undo(self, changes: Sequence[Change]) -> None:
        """Take changes back, all or none. Raises :class:`planner.errors.EditConflictError`."""
        done: list[Change] = []
        try:
            for change in reversed(changes):
                self._draft.perform(change.inverse, "undo")
                done.append(change.inverse)
        except EditConflictError:
            self._take_back(done)
            raise

    def _take_back(self, done: Sequence[Change]) -> None:
        for change in reversed(done):
            self._draft.perform(change.inverse, "undo")
