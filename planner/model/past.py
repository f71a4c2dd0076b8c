"""Records of the past: outcomes of todos, repairs by role, and corrections by people."""

from typing import Annotated

from pydantic import Field

from planner.model.base import Moment, ReadValue
from planner.model.taxonomy import Category, Role


class PastRepair(ReadValue):
    """One past repair: a turn or a branch by one role, for one failure."""

    at: Moment
    fingerprint: str
    """Fingerprint of the repository."""
    task_kind: str
    """``fix_test``, ``add_feature``, ``refactor`` …"""
    text: str = ""
    """Text to compare todos by: the title and the head of the failure."""
    signature: str | None = None
    category: Category
    strategy: str = ""
    """The rule of the revision strategy; ``retry`` for a turn without a branch."""
    role: Role
    fixed: bool
    attempts: Annotated[int, Field(ge=1)] = 1


class PastTodo(ReadValue):
    """The result of one past todo."""

    at: Moment
    fingerprint: str
    task_kind: str
    text: str = ""
    role: Role
    done: bool
    first_time: bool
    """It was done without a repair."""
    categories: tuple[Category, ...] = ()
    """Categories of its failures."""


class Correction(ReadValue):
    """A person's correction of the role or category of a failure."""

    at: Moment
    fingerprint: str
    signature: str
    category: Category
    """The diagnosed category."""
    role: Role
    """The role that should have acted."""
    right_category: Category | None = None
    by: str | None = None
    because: str | None = None


class PastRecords(ReadValue):
    """All records of the past that a run receives; part of its log."""

    fingerprint: str = ""
    """Fingerprint of the run's repository."""
    repairs: tuple[PastRepair, ...] = ()
    todos: tuple[PastTodo, ...] = ()
    corrections: tuple[Correction, ...] = ()
