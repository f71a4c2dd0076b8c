"""Actions: requests of the engine to its driver, each with the rule that made it and its reason.

They are printed as JSON, one per line, with the kind in ``action``. The same state and event give the same
actions, byte for byte.
"""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.edits import Edit
from planner.model.outcome import Failure
from planner.model.plan import RiskLevel, Todo
from planner.model.taxonomy import Category, Role


class _Action(ReadValue):
    seq: int = 0
    """Number of the action in the run, from 1."""
    rule: str
    """The id of the rule that made it."""
    because: str
    """The reason, in one sentence."""


class Bounds(ReadValue):
    """The limits of a turn of work."""

    risk_level: RiskLevel = RiskLevel.LOW
    allowed_files: tuple[str, ...] | None = None
    """``None``: any file except the protected ones."""
    protected_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The purposes of the tools that may be run (``test lint type_check build validate``); if the risk is
    high, the exact commands."""
    timeout_seconds: float | None = None


class Brief(ReadValue):
    """The brief of a turn of work; text from the repository in it is cleaned and fenced."""

    title: str
    intent: str | None = None
    instructions: str | None = None
    """For a repair: what was observed in the failure, and what to do about it."""
    criteria: tuple[str, ...] = ()
    """The commands, artifacts, metrics, questions and contracts that decide whether the todo is done."""
    target_file: str | None = None
    hint: str | None = None
    contract_path: str | None = None
    failure: Failure | None = None
    """For a repair: the deciding failure."""


class Implement(_Action):
    """Have somebody work on a todo for one turn."""

    action: Literal["implement"] = "implement"
    todo_id: str
    role: Role
    attempt: int
    """Number of the turn, from 1; a branch has its own count."""
    parent_id: str | None = None
    """For a branch: the todo that it repairs."""
    bounds: Bounds = Bounds.model_construct()
    brief: Brief


class Verify(_Action):
    """Verify the criteria of todos."""

    action: Literal["verify"] = "verify"
    todo_ids: tuple[str, ...]
    recipe: str | None = None
    """A recipe of the catalog that is worth running first."""
    isolate: bool = False
    """Run each command in a process of its own."""
    not_before: str | None = None
    """Earliest time of the verification, RFC 3339."""


class Cancel(_Action):
    """Stop the current work on a todo, or its verification: the result will be ignored."""

    action: Literal["cancel"] = "cancel"
    todo_id: str


class QuestionKind(StrEnum):
    """The kind of a question to a person."""

    APPROVE_BRANCH = "approve_branch"
    APPROVE_EDITS = "approve_edits"
    APPROVE_START = "approve_start"
    """The start of a todo with high risk."""
    ANSWER = "answer"
    """A question of the plan. Its answer has to be added to the answers that verification reads."""
    MEND_ENVIRONMENT = "mend_environment"
    """The environment has to be repaired."""
    REVIEW = "review"
    """Repairs are used up, or a limit was exceeded."""

    @property
    def is_approval(self) -> bool:
        """Return whether ``approval_given`` answers it; otherwise ``question_answered`` does."""
        return self.value.startswith("approve")


class AskHuman(_Action):
    """Ask a person; the work that depends on it waits."""

    action: Literal["ask_human"] = "ask_human"
    question_id: str
    """The id that the answer has to name; for a branch, the id of the branch."""
    kind: QuestionKind
    todo_id: str
    question: str
    options: tuple[str, ...]
    digest: str = ""
    """Digest of the proposal."""
    branch: Todo | None = None
    """The proposed branch."""
    edits: tuple[Edit, ...] = ()
    """The proposed edits."""
    failure: Failure | None = None


class Notify(_Action):
    """Inform somebody; no answer is expected."""

    action: Literal["notify"] = "notify"
    topic: str
    """``planner.review_required``, ``planner.alert`` …"""
    to: Role
    todo_id: str | None = None


class PublishPlan(_Action):
    """Publish a new version of the plan."""

    action: Literal["publish_plan"] = "publish_plan"
    within: str = ""
    """The parent whose sub-plan it is; empty for the plan at the top."""
    version: int
    """From 2: the submitted plan is version 1."""
    digest: str
    """Digest of the previous version's digest and the edits."""
    previous: str
    """Digest of the previous version."""
    edits: tuple[Edit, ...]


class LoadSubPlan(_Action):
    """Load the sub-plan of a parent, or have it planned, now that the parent's dependencies are done."""

    action: Literal["load_sub_plan"] = "load_sub_plan"
    todo_id: str
    sub_plan: str | None = None
    """The path of its file."""
    sub_project_id: str | None = None
    results: tuple[str, ...] = ()
    """The done todos that the parent depends on, directly or indirectly: planning can use their results."""


class Halt(_Action):
    """Stop everything; the run has ended."""

    action: Literal["halt"] = "halt"
    todo_ids: tuple[str, ...] = ()
    category: Category | None = None


class Finish(_Action):
    """The plan is completed, or rejected: there is nothing more to do."""

    action: Literal["finish"] = "finish"
    result: Literal["completed", "rejected"]
    problems: tuple[str, ...] = ()


Action: TypeAlias = Annotated[
    Implement | Verify | Cancel | AskHuman | Notify | PublishPlan | LoadSubPlan | Halt | Finish,
    Field(discriminator="action"),
]
"""Any action; its kind is in ``action``."""
