"""Records of the past: outcomes of todos, repairs by role, and corrections by people."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from planner.model.base import ReadValue
from planner.model.taxonomy import Category, Owner, Role


class PastRepair(ReadValue):
    """One past repair: a turn or a branch by one role, for one failure."""

    at: AwareDatetime
    fingerprint: str
    """Of the repository."""
    task_kind: str
    """``fix_test``, ``add_feature``, ``refactor`` …"""
    text: str = ""
    """What the todo was about, for similarity: its title and the head of the failure."""
    signature: str | None = None
    category: Category
    strategy: str = ""
    """The rule of the revision strategy that was followed; ``retry`` for a turn without a branch."""
    role: Role
    fixed: bool
    attempts: Annotated[int, Field(ge=1)] = 1


class PastTodo(ReadValue):
    """The past course of one todo."""

    at: AwareDatetime
    fingerprint: str
    task_kind: str
    text: str = ""
    role: Role
    done: bool
    first_time: bool
    """It was done without a repair."""
    categories: tuple[Category, ...] = ()
    """Of the failures on the way."""


class Correction(ReadValue):
    """A person said that a failure was another's to repair, or of another kind."""

    at: AwareDatetime
    fingerprint: str
    signature: str
    category: Category
    """As it was diagnosed."""
    role: Role
    """Who should have acted."""
    right_category: Category | None = None
    right_owner: Owner | None = None
    by: str | None = None
    because: str | None = None


class PastRecords(ReadValue):
    """All that a run is given of the past; a part of its log."""

    fingerprint: str = ""
    """Of the repository that is worked on."""
    repairs: tuple[PastRepair, ...] = ()
    todos: tuple[PastTodo, ...] = ()
    corrections: tuple[Correction, ...] = ()
