"""Events: what the engine has been told. Each is a fact with the time at which it happened.

A driver writes them as JSON, one a line, ``event`` telling which it is. Keys that are not known are
ignored. What a file holds (a plan, the surroundings of a failure) stands in the event itself, so that a
log of events is all that a replay needs.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, AwareDatetime, Field

from planner.model.base import ReadValue
from planner.model.edits import Edit
from planner.model.outcome import FailureContext, Outcome
from planner.model.past import PastRecords
from planner.model.plan import Count, Plan, RelativePath, Seconds, Text
from planner.model.taxonomy import Role

Name = Annotated[str, Field(min_length=1, max_length=2_000)]
"""The qualified id of a todo, ``phase-2/buffer-impl``, or that of a question."""

Amount = Annotated[int, Field(ge=0, le=10**15)]


FIRST, LAST = (at.replace(tzinfo=UTC) for at in (datetime.min, datetime.max))
"""What lies beyond has no date in UTC; an offset can move it there."""


class _Event(ReadValue):
    at: Annotated[AwareDatetime, Field(ge=FIRST, le=LAST)]
    """When it happened, RFC 3339 with an offset. Time never goes back: an earlier time is read as the
    latest that was told."""


class RunPolicy(ReadValue):
    """Settings of a run. They are part of its log, so that a replay has them too."""

    jobs: Annotated[int, Field(ge=1)] | None = None
    """So many todos are worked on at once, branches included; as many as are ready where it is absent."""
    environment_retries: Annotated[int, Field(ge=0, le=1000)] = 3
    """So often a todo is verified again for want of something in the environment, or because a run could
    not tell; then a person is asked."""
    environment_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """How long to wait before the first of these; each wait is twice as long as the one before."""
    tools: tuple[str, ...] = ()
    """Type checkers and linters that the project is set up for."""
    driven: bool = True
    """Whether a driver reports the turns of work. Where only verifications are told, as by
    ``planner next``, a turn has no time limit, for nobody says when it began."""
    allow_unproved: bool = False
    """Whether an outcome without checks, as a foreign driver may tell it, can make a todo done; the todo is
    then shown as not verified."""
    fingerprint: str | None = None
    """Of the repository: what memory is keyed by."""


class PlanSubmitted(_Event):
    """A plan is to be carried out: the first line of every log."""

    event: Literal["plan_submitted"] = "plan_submitted"
    plan: Plan
    digest: str
    """Of the plan file."""
    path: str = "plan.yaml"
    problems: tuple[str, ...] = ()
    """Why the plan is unfit to be carried out, as validation says; with any, it is rejected."""
    policy: RunPolicy = RunPolicy.model_construct()
    memory: PastRecords = PastRecords.model_construct()
    run_id: str | None = None
    version: Literal[1] = 1
    """Of the format of the log."""


class RunStarted(_Event):
    """Work may begin."""

    event: Literal["run_started"] = "run_started"


class WorkStarted(_Event):
    """Somebody has begun the turn of work that was asked for: from here its time is counted."""

    event: Literal["work_started"] = "work_started"
    todo_id: Name
    answers: int | None = None


class WorkFinished(_Event):
    """A turn of work is over."""

    event: Literal["work_finished"] = "work_finished"
    todo_id: Name = Field(validation_alias=AliasChoices("todo_id", "step_id"))
    success: bool = True
    """Whether whoever worked says that it is done."""
    tokens: Amount | None = Field(default=None, validation_alias=AliasChoices("tokens", "tokens_used"))
    cycles: Amount | None = Field(default=None, validation_alias=AliasChoices("cycles", "patch_cycles"))
    """Of patching; one where it is not said."""
    duration_ms: Amount | None = None
    touched_files: tuple[str, ...] = ()
    new_files: tuple[str, ...] = ()
    """Those of the touched files that were not there before."""
    message: Text | None = None
    answers: int | None = None
    """The ``seq`` of the action that it answers; where it is told, the answer to an earlier one is
    refused."""


class Verified(_Event):
    """A todo was verified."""

    event: Literal["verified"] = "verified"
    outcome: Outcome
    plan_digest: str | None = None
    """The version of the plan whose criteria were verified; where it is told, an older one is refused."""
    context: FailureContext | None = None
    """What could be read about the failure."""
    answers: int | None = None
    """The ``seq`` of the action that it answers."""
    run_id: str | None = None
    """The run of ``pytest --planverify`` that found it."""
    causes: tuple[tuple[str, ...], ...] = ()
    """Signatures of failures that the run found to have one cause, a group each; equal signatures are one
    cause anyway."""


class Decision(StrEnum):
    """A person's decision on a proposal."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"
    """Approve it with changes."""
    APPROVE_SIMILAR = "approve_similar"
    """Approve it, and every later branch for a failure of the same class."""


class BranchChanges(ReadValue):
    """A person's changes to a proposed branch; absent fields stay."""

    role: Role | None = None
    instructions: Text | None = None
    """Put in front of what the branch is told."""
    allowed_files: tuple[str, ...] | None = None
    """They may only narrow those that were proposed."""
    dependencies: tuple[Name, ...] | None = None
    """Todos that the branch has to wait for."""
    max_debug_attempts: Count | None = None
    max_lifetime_seconds: Seconds | None = None


class ApprovalGiven(_Event):
    """A person has decided about a branch, about an edit of the plan, or about the start of a todo."""

    event: Literal["approval_given"] = "approval_given"
    approval_id: Name = Field(validation_alias=AliasChoices("approval_id", "branch_id", "question_id"))
    decision: Decision
    digest: str
    """Of what was shown to the person; that of another proposal is refused."""
    changes: BranchChanges = BranchChanges.model_construct()
    by: str | None = None
    because: Text | None = None


class QuestionAnswered(_Event):
    """A person has answered something that is no approval."""

    event: Literal["question_answered"] = "question_answered"
    question_id: Name
    answer: Name
    """One of the options of the question."""
    by: str | None = None
    because: Text | None = None


class BudgetSpent(_Event):
    """Something was spent outside the turns of work that report it themselves."""

    event: Literal["budget_spent"] = "budget_spent"
    tokens: Amount = 0
    cycles: Amount = 0
    new_files: Amount = 0
    todo_id: Name | None = None


class ClockTicked(_Event):
    """Time has passed: limits are looked at."""

    event: Literal["clock_ticked"] = "clock_ticked"


class ConflictFound(_Event):
    """Work that was done side by side does not fit together: all but the first is done again."""

    event: Literal["conflict_found"] = "conflict_found"
    todo_ids: Annotated[tuple[Name, ...], Field(min_length=2, max_length=1_000)]
    files: tuple[str, ...] = ()


class SubPlanLoaded(_Event):
    """The sub-plan of a parent is there, or cannot be had."""

    event: Literal["sub_plan_loaded"] = "sub_plan_loaded"
    todo_id: Name
    """The parent."""
    plan: Plan | None = None
    digest: str = ""
    path: RelativePath | None = None
    base: RelativePath | None = None
    """Where its root lies, seen from the root of the plan at the top; where it is absent, it is told from
    the paths."""
    problems: tuple[str, ...] = ()


class PlanRevised(_Event):
    """A person has changed the plan by edits of their own."""

    event: Literal["plan_revised"] = "plan_revised"
    within: str = ""
    """The qualified id of the parent whose sub-plan is meant; empty for the plan at the top."""
    edits: Annotated[tuple[Edit, ...], Field(min_length=1)]
    by: str | None = None


class RunResumed(_Event):
    """The driver has begun again, and has forgotten what it was asked for."""

    event: Literal["run_resumed"] = "run_resumed"


class StopRequested(_Event):
    """A person wants everything to stop."""

    event: Literal["stop_requested"] = "stop_requested"
    by: str | None = None
    because: Text | None = None


Event: TypeAlias = Annotated[
    PlanSubmitted
    | RunStarted
    | WorkStarted
    | WorkFinished
    | Verified
    | ApprovalGiven
    | QuestionAnswered
    | BudgetSpent
    | ClockTicked
    | ConflictFound
    | SubPlanLoaded
    | PlanRevised
    | RunResumed
    | StopRequested,
    Field(discriminator="event"),
]
"""Any event; ``event`` tells which."""
