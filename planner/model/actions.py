"""Actions: what the engine asks of its driver. Each says which rule made it, why, and on which facts.

They are printed as JSON, one a line, ``action`` telling which it is. The same state and event give the
same actions, byte for byte.
"""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.edits import Edit
from planner.model.outcome import Failure
from planner.model.plan import RiskLevel, Todo
from planner.model.taxonomy import Category, Role

Fact: TypeAlias = str | int | float | bool | tuple[str, ...] | None


class _Action(ReadValue):
    seq: int = 0
    """Its number in the run, from 1."""
    rule: str
    """The id of the rule that made it."""
    because: str
    """Why, in one sentence."""
    facts: dict[str, Fact] = Field(default_factory=dict[str, Fact])
    """What the rule looked at."""


class Bounds(ReadValue):
    """The limits of a turn of work."""

    risk_level: RiskLevel = RiskLevel.LOW
    allowed_files: tuple[str, ...] | None = None
    """``None``: any file but the protected ones."""
    protected_files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The purposes of the tools that may be run (``test lint type_check build validate``), or, where the
    risk is high, the very commands."""
    timeout_seconds: float | None = None


class Brief(ReadValue):
    """The brief of a turn; text of the repository in it is cleaned and fenced."""

    title: str
    intent: str | None = None
    instructions: str | None = None
    """What was seen when it failed, and what to do about it."""
    criteria: tuple[str, ...] = ()
    """Each command, artifact, metric, question and contract that the work is judged by."""
    target_file: str | None = None
    hint: str | None = None
    contract_path: str | None = None
    failure: Failure | None = None
    """The failure that decides, of a repair."""


class Implement(_Action):
    """Let somebody work on a todo for one turn."""

    action: Literal["implement"] = "implement"
    todo_id: str
    role: Role
    attempt: int
    """From 1; of a branch, its own."""
    parent_id: str | None = None
    """The todo that it repairs, of a branch."""
    bounds: Bounds = Bounds.model_construct()
    brief: Brief


class Verify(_Action):
    """Verify the criteria of todos."""

    action: Literal["verify"] = "verify"
    todo_ids: tuple[str, ...]
    plan_digest: str = ""
    """The version of the plan whose criteria count."""
    recipe: str | None = None
    """A recipe of the catalog that is worth running first."""
    isolate: bool = False
    """Each command in a process of its own."""
    not_before: str | None = None


class Cancel(_Action):
    """Stop the work, or the verification, that is under way on a todo: its result no longer counts."""

    action: Literal["cancel"] = "cancel"
    todo_id: str


class QuestionKind(StrEnum):
    """The kind of a question to a person."""

    APPROVE_BRANCH = "approve_branch"
    APPROVE_EDITS = "approve_edits"
    APPROVE_START = "approve_start"
    """A todo of high risk is to be begun."""
    ANSWER = "answer"
    """A question of the plan. The answer belongs into the answers that verification reads."""
    MEND_ENVIRONMENT = "mend_environment"
    REVIEW = "review"
    """Repairs are used up, or a limit was passed."""

    @property
    def is_approval(self) -> bool:
        """Return whether ``approval_given`` answers it, and not ``question_answered``."""
        return self.value.startswith("approve")


class AskHuman(_Action):
    """Ask a person; the work that depends on it waits."""

    action: Literal["ask_human"] = "ask_human"
    question_id: str
    """What the answer names: of a branch, its id."""
    kind: QuestionKind
    todo_id: str
    question: str
    options: tuple[str, ...]
    digest: str = ""
    """Of what is to be approved."""
    branch: Todo | None = None
    """The proposed branch, as it would be."""
    edits: tuple[Edit, ...] = ()
    """The proposed edits."""
    failure: Failure | None = None


class Notify(_Action):
    """Tell somebody; nothing waits for them."""

    action: Literal["notify"] = "notify"
    topic: str
    """``planner.review_required``, ``planner.alert`` …"""
    to: Role
    todo_id: str | None = None
    message: str


class PublishPlan(_Action):
    """The plan has a new version."""

    action: Literal["publish_plan"] = "publish_plan"
    within: str = ""
    """The parent whose sub-plan it is; empty at the top."""
    version: int
    """From 2: the plan as it was submitted is version 1."""
    digest: str
    """Of the version before it and of the edits, in a chain."""
    previous: str
    edits: tuple[Edit, ...]


class LoadSubPlan(_Action):
    """Load the sub-plan of a parent, or let it be planned now that what it rests on is done."""

    action: Literal["load_sub_plan"] = "load_sub_plan"
    todo_id: str
    sub_plan: str | None = None
    """The path of its file."""
    sub_project_id: str | None = None
    results: tuple[str, ...] = ()
    """The done todos that the parent depends on, directly or not: what it can be planned on."""


class Halt(_Action):
    """Everything stops, for good."""

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
"""Any action; ``action`` tells which."""
