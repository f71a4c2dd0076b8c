"""Events: facts that are reported to the engine, each with its time.

A driver writes them as JSON, one per line, with the kind in ``event``. Unknown keys are ignored. Contents
of files (a plan, the context of a failure) are part of the event, so that a replay needs only the log of
events.
"""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, Field

from planner.model.base import Moment, ReadValue
from planner.model.outcome import FailureContext, Outcome
from planner.model.past import PastRecords
from planner.model.plan import Count, Plan, RelativePath, Text
from planner.model.taxonomy import Role

Name = Annotated[str, Field(min_length=1, max_length=2_000)]
"""The qualified id of a todo, ``phase-2/buffer-impl``, or the id of a question."""

Amount = Annotated[int, Field(ge=0, le=10**15)]


class _Event(ReadValue):
    at: Moment
    """Time of the event, RFC 3339 with an offset. Time never goes back: an earlier time counts as the
    latest reported one."""


class RunPolicy(ReadValue):
    """Settings of a run. They are part of its log, so that a replay has them too."""

    jobs: Annotated[int, Field(ge=1)] | None = None
    """Limit of todos under work at once, branches included; if absent, all that are ready."""
    environment_retries: Annotated[int, Field(ge=0, le=1000)] = 3
    """Number of times that a todo is verified again after a fault of the environment or an inconclusive
    run; then a person is asked."""
    environment_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """Delay before the first of these verifications; each further delay is twice as long."""
    tools: tuple[str, ...] = ()
    """Type checkers and linters that the project has configured."""
    driven: bool = True
    """Whether a driver reports the turns of work. If only verifications are reported, as by
    ``planner next``, turns have no time limit, as their start is unknown."""
    allow_unproved: bool = False
    """Whether an outcome without checks, as foreign drivers may report, can make a todo done; the todo is
    then shown as not verified."""
    fingerprint: str | None = None
    """Fingerprint of the repository, by which memory is keyed."""


class PlanSubmitted(_Event):
    """A plan was submitted: the first line of every log."""

    event: Literal["plan_submitted"] = "plan_submitted"
    plan: Plan
    digest: str
    """Digest of the plan file."""
    path: str = "plan.yaml"
    problems: tuple[str, ...] = ()
    """Errors that validation found in the plan; with any, it is rejected."""
    policy: RunPolicy = RunPolicy.model_construct()
    memory: PastRecords = PastRecords.model_construct()
    run_id: str | None = None
    version: Literal[1] = 1
    """Version of the log's format."""


class RunStarted(_Event):
    """Work may begin."""

    event: Literal["run_started"] = "run_started"


class WorkStarted(_Event):
    """Somebody has started a requested turn of work: its time is counted from here."""

    event: Literal["work_started"] = "work_started"
    todo_id: Name
    answers: int | None = None


class WorkFinished(_Event):
    """A turn of work is over."""

    event: Literal["work_finished"] = "work_finished"
    todo_id: Name = Field(validation_alias=AliasChoices("todo_id", "step_id"))
    success: bool = True
    """Whether the worker claims that the todo is done."""
    tokens: Amount | None = Field(default=None, validation_alias=AliasChoices("tokens", "tokens_used"))
    cycles: Amount | None = Field(default=None, validation_alias=AliasChoices("cycles", "patch_cycles"))
    """Number of patch cycles; 1 if absent."""
    duration_ms: Amount | None = None
    touched_files: tuple[str, ...] = ()
    new_files: tuple[str, ...] = ()
    """The touched files that did not exist before."""
    message: Text | None = None
    answers: int | None = None
    """The ``seq`` of the action that it answers; if given, an answer to an outdated action is refused."""


class Verified(_Event):
    """A todo was verified."""

    event: Literal["verified"] = "verified"
    outcome: Outcome
    context: FailureContext | None = None
    """Evidence and source of the failure."""
    answers: int | None = None
    """The ``seq`` of the action that it answers."""
    run_id: str | None = None
    """The run of ``pytest --planverify`` that found it."""
    causes: tuple[tuple[str, ...], ...] = ()
    """Groups of signatures of failures that have one cause, as the run found; equal signatures always have
    one cause."""


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
    """Instructions that precede those of the branch."""
    allowed_files: tuple[str, ...] | None = None
    """Files that the branch may change; they may only narrow the proposed ones."""
    max_debug_attempts: Count | None = None


class ApprovalGiven(_Event):
    """A person has decided on a branch, an edit of the plan, or the start of a todo."""

    event: Literal["approval_given"] = "approval_given"
    approval_id: Name = Field(validation_alias=AliasChoices("approval_id", "branch_id", "question_id"))
    decision: Decision
    digest: str
    """Digest of the proposal that the person saw; that of another proposal is refused."""
    changes: BranchChanges = BranchChanges.model_construct()
    by: str | None = None
    because: Text | None = None


class QuestionAnswered(_Event):
    """A person has answered a question that is no request for approval."""

    event: Literal["question_answered"] = "question_answered"
    question_id: Name
    answer: Name
    """One of the options of the question."""
    by: str | None = None
    because: Text | None = None


class BudgetSpent(_Event):
    """Budget was spent outside of reported turns of work."""

    event: Literal["budget_spent"] = "budget_spent"
    tokens: Amount = 0
    cycles: Amount = 0
    new_files: Amount = 0
    todo_id: Name | None = None


class ClockTicked(_Event):
    """Time has passed: time limits are checked."""

    event: Literal["clock_ticked"] = "clock_ticked"


class ConflictFound(_Event):
    """Results of parallel work conflict: all but the first todo are worked on again."""

    event: Literal["conflict_found"] = "conflict_found"
    todo_ids: Annotated[tuple[Name, ...], Field(min_length=2, max_length=1_000)]
    files: tuple[str, ...] = ()


class SubPlanLoaded(_Event):
    """The sub-plan of a parent was loaded, or cannot be loaded."""

    event: Literal["sub_plan_loaded"] = "sub_plan_loaded"
    todo_id: Name
    """The parent."""
    plan: Plan | None = None
    digest: str = ""
    path: RelativePath | None = None
    base: RelativePath | None = None
    """Its root, relative to the root of the plan at the top; if absent, it is derived from the paths."""
    problems: tuple[str, ...] = ()


class RunResumed(_Event):
    """The driver was restarted and has lost its open actions; the engine repeats them."""

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
    | RunResumed
    | StopRequested,
    Field(discriminator="event"),
]
"""Any event; its kind is in ``event``."""
