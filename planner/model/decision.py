"""Decisions: what should come next, as ``planner next --json`` prints it.

Readers ignore keys that they do not know; the version only grows. Todo ids of a sub-plan are qualified by
their parents: ``phase-2/buffer-impl``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.edits import Edit
from planner.model.life import PlanState
from planner.model.outcome import Failure, PlanRef
from planner.model.plan import Todo
from planner.model.taxonomy import BranchReason, Category, Role
from planner.model.verdicts import TodoState

DECISION_VERSION: Literal[1] = 1


class Move(StrEnum):
    """What is decided about one todo that is not done."""

    BRANCH = "branch"
    """A branch todo is made to repair it."""
    RETRY = "retry"
    """Its branch is worked on once more."""
    SEPARATE = "separate"
    """It failed before the work began: a todo of its own, and no blame."""
    RETRY_LATER = "retry_later"
    """Nobody's fault that works on the plan: verify again when the environment is mended."""
    VERIFY = "verify"
    """The run could not tell: verify again."""
    WAIT = "wait"
    """A limit, or work that is under way, stands before it."""
    ESCALATE = "escalate"
    """Repairs are used up: a person decides."""
    HALT = "halt"
    """Everything stops."""


class Approval(StrEnum):
    """Whether a person has to agree."""

    NOT_NEEDED = "not_needed"
    GRANTED = "granted"
    """By the plan's policy, or by the person who asked for the decision."""
    NEEDED = "needed"


class Repair(ReadValue):
    """What is decided about one todo."""

    todo_id: str
    within: str = ""
    """The qualified id of the parent whose sub-plan holds it; the ids in the edits are of that plan."""
    state: TodoState | None = None
    move: Move
    rule: str
    """The id of the rule that decided."""
    because: str
    category: Category | None = None
    reason: BranchReason | None = None
    role: Role | None = None
    """Who acts."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    failure: Failure | None = None
    """The failure that decides the route."""
    branch_id: str | None = None
    """The branch that is made, or worked on once more."""
    branch: Todo | None = None
    """As it stands after all its edits; only of one that is made or told something new."""
    approval: Approval = Approval.NOT_NEEDED
    """Of the branch; edits that need one say so themselves."""
    edits: tuple[Edit, ...] = ()
    """In the order in which they apply."""
    blocks: tuple[str, ...] = ()
    """The todos that wait for this one, directly or not."""


class BlockedTodo(ReadValue):
    todo_id: str
    by: tuple[str, ...]
    """The failed todos in its way, the nearest first."""
    since: str | None = None
    """Since when it is known to be blocked, RFC 3339, UTC."""


class ReadyTodo(ReadValue):
    """A todo that can be worked on now."""

    todo_id: str
    title: str | None = None
    role: Role
    priority: int = 0
    because: str


class NeedKind(StrEnum):
    """What a person is needed for."""

    APPROVE_BRANCH = "approve_branch"
    APPROVE_EDIT = "approve_edit"
    ANSWER = "answer"
    """A question of the plan."""
    MEND_ENVIRONMENT = "mend_environment"
    REVIEW = "review"
    """Repairs are used up, or a limit was passed: ``planner.review_required``."""
    WORK = "work"
    """The todo, or its repair, is for a person."""
    HALTED = "halted"


class HumanNeed(ReadValue):
    """One thing that waits for a person."""

    kind: NeedKind
    todo_id: str | None = None
    what: str
    """One sentence: what to decide or to do."""
    why: str
    how: str | None = None
    """A command, or a file to write."""
    approval_id: str | None = None
    """What ``--approve`` names."""


class Notice(ReadValue):
    """Something that somebody should hear of; nothing waits for them."""

    rule: str
    to: Role
    todo_id: str | None = None
    message: str


class Halt(ReadValue):
    """Why everything stops."""

    rule: str
    category: Category
    todo_ids: tuple[str, ...]
    because: str


class Progress(ReadValue):
    """Counts of todos by what is known of them; branches are not counted."""

    done: int = 0
    failed: int = 0
    blocked: int = 0
    unfinished: int = 0
    total: int = 0


class Decisions(ReadValue):
    """All that one outcome file calls for."""

    schema_version: int = DECISION_VERSION
    plan: PlanRef
    run_id: str | None = None
    decided_at: str | None = None
    """The clock reading that the decisions rest on: when the run was over."""
    state: PlanState
    progress: Progress = Progress()
    halt: Halt | None = None
    repairs: tuple[Repair, ...] = ()
    """In the order in which they should be taken up."""
    ready: tuple[ReadyTodo, ...] = ()
    blocked: tuple[BlockedTodo, ...] = ()
    needs_human: tuple[HumanNeed, ...] = ()
    notices: tuple[Notice, ...] = ()
