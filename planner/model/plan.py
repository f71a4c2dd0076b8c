"""The plan model: policy, todos and their acceptance criteria.

The models have one name for each key; other spellings that a plan file may use (``description`` for
``intent``, ``step_id`` for ``id`` and others) are aliases. :mod:`planner.planfile` reads files, resolves
paths and reports positions.
"""

import json
import operator
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import AliasChoices, BeforeValidator, Field, StringConstraints, model_validator

from planner.model.base import Value
from planner.model.taxonomy import BranchReason, Category, Role, RoutingKey
from planner.model.verdicts import Purpose

# Without "/", which separates the ids of parents in qualified ids.
ID_PATTERN = r"^[A-Za-z0-9_.\-]+$"
"""Pattern of a todo's id."""
SHA256_PATTERN = r"^[0-9a-fA-F]{64}$"
DATE_PATTERN = r"^\d{4}-\d{2}-\d{2}$"
HOST_PATTERN = r"^[^/\s]+$"
"""Pattern of a granted host; a URL or a range of addresses would match none."""

DEFAULT_CRITERION_SECONDS = 300.0
"""Time limit of a criterion that names none."""

MAX_SECONDS = 7 * 24 * 3600.0
"""Largest time limit in a plan: a week."""

MAX_TODOS = 2_000
"""Limit of the todos of a plan, including those of its sub-plans. Code may rely on it and compare todos
pairwise."""

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN, max_length=200)]
Text = Annotated[str, StringConstraints(max_length=100_000)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
Host = Annotated[str, StringConstraints(pattern=HOST_PATTERN, max_length=10_000)]
RelativePath = Annotated[str, StringConstraints(min_length=1, max_length=4_096)]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class Operator(StrEnum):
    """Comparison of a recorded metric with the value in the plan: ``recorded OPERATOR value``."""

    GE = ">="
    GT = ">"
    LE = "<="
    LT = "<"
    EQ = "=="
    NE = "!="

    def holds(self, recorded: Any, value: float) -> bool:
        """Return whether a recorded number satisfies the comparison with the value in the plan."""
        return getattr(operator, self.name.lower())(recorded, value)


class RiskLevel(StrEnum):
    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"


class TodoStatus(StrEnum):
    """Claim of somebody that a todo is done, or none; never a proof."""

    OPEN = "open"
    CLAIMED = "claimed"


class Extensible(Value):
    """A part of the plan in which authors may use keys of their own, which begin with ``x-``."""

    extensions: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The ``x-`` keys, as they were written."""

    @model_validator(mode="before")
    @classmethod
    def _gather_extensions(cls, value: Any) -> Any:
        """Move the ``x-`` keys of a plan file to ``extensions``."""
        members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        loose = {name: item for name, item in members.items() if name.startswith("x-")}
        if not loose:
            return cast("Any", value)
        json.dumps(loose, allow_nan=False)  # refuse values that could not be written to a plan file again
        return {name: item for name, item in members.items() if name not in loose} | {"extensions": loose}

    def __hash__(self) -> int:
        # A dict has no hash. Equal values have equal other fields, so their hashes are still equal.
        return hash(tuple(value for name, value in self.__dict__.items() if name != "extensions"))


class CommandSpec(Extensible):
    """A command that must succeed: a pytest command, or another tool of the catalog."""

    cmd: Line
    timeout_seconds: Seconds = DEFAULT_CRITERION_SECONDS
    fixture: RelativePath | None = None
    """A data file that must exist; tests get its path as ``planverify.fixture_path``."""


class ArtifactSpec(Extensible):
    """A file that must exist, or a glob that must match a file; all matching files are checked."""

    path: RelativePath
    # Not `schema`, which would hide a method of pydantic's models.
    json_schema: RelativePath | None = Field(default=None, alias="schema")
    """A JSON Schema file that the artifact, read as JSON, must satisfy."""
    min_bytes: Annotated[int, Field(ge=0)] = 1
    max_bytes: Annotated[int, Field(ge=0)] | None = None
    sha256: Annotated[str, StringConstraints(pattern=SHA256_PATTERN, to_lower=True)] | None = None


class MetricSpec(Extensible):
    """A number that the todo's tests must record; every recorded value must satisfy the comparison."""

    name: Line
    operator: Operator
    value: float


class ManualSpec(Extensible):
    """A question that only a person can answer."""

    question: Line
    role: Role = Role.HUMAN


def _from_text(key: str) -> BeforeValidator:
    """Return the validator that reads a text as a mapping with this key alone."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


Artifact = Annotated[ArtifactSpec, _from_text("path")]
Check = Annotated[CommandSpec, _from_text("cmd")]


class AcceptanceCriteria(Extensible):
    """The machine-executable checks that decide whether a todo is done."""

    tests: tuple[Check, ...] = ()
    expected_artifacts: tuple[Artifact, ...] = ()
    metrics: tuple[MetricSpec, ...] = ()
    manual: tuple[ManualSpec, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tests or self.expected_artifacts or self.metrics or self.manual)


class ControllerTaskSpec(Extensible):
    """The kind of work that the todo asks of its role."""

    type: Line
    target_file: RelativePath | None = None
    hint: Text | None = None


class Todo(Extensible):
    """One unit of work. A branch todo is a todo with a ``parent_id``."""

    id: Id = Field(validation_alias=AliasChoices("id", "step_id"))
    title: Line
    intent: Text | None = Field(default=None, validation_alias=AliasChoices("intent", "description"))
    status: TodoStatus = TodoStatus.OPEN
    agent_role: Role = Role.CODER
    # Not AcceptanceCriteria(): that would build the validator while the module is imported.
    acceptance_criteria: AcceptanceCriteria = AcceptanceCriteria.model_construct()
    verify: Line | None = None
    """One command, or the name of a recipe of the catalog."""
    test_command: Line | None = None
    test_file: RelativePath | None = None
    contract_path: RelativePath | None = None
    must_turn_green: Literal["all"] | tuple[Line, ...] = ()
    """Node ids of tests that failed or did not exist at the baseline, and must pass now."""
    must_stay_green: Literal["all"] | tuple[Line, ...] = ()
    """Node ids of tests that passed at the baseline, and must still pass."""
    allowed_files: tuple[Line, ...] | None = None
    risk_level: RiskLevel | None = None
    controller_task_spec: ControllerTaskSpec | None = None
    failure_routing: dict[RoutingKey | Category, Role] = Field(
        default_factory=dict[RoutingKey | Category, Role]
    )
    dependencies: tuple[Id, ...] = ()
    max_retries: Count = 0
    timeout_seconds: Seconds | None = None
    """Time limit of one turn of work on the todo; criteria have limits of their own."""
    priority: int = 0
    requires_testing: bool = True
    sub_plan: RelativePath | None = None
    is_parent: bool = False
    sub_project_id: Line | None = None

    parent_id: Id | None = None
    branch_depth: Count | None = None
    via: Id | None = None
    branch_reason: BranchReason | None = None
    debug_instructions: Text | None = None
    is_temporary: bool = False
    max_debug_attempts: Count | None = None
    max_lifetime_seconds: Seconds | None = None
    target_agent_role: Role | None = None

    @property
    def has_sub_plan(self) -> bool:
        """Return whether the todo is a parent: its state is derived from the todos of a sub-plan."""
        return self.is_parent or self.sub_plan is not None or self.sub_project_id is not None


class Quarantine(Extensible):
    """A test whose flakiness is known and tolerated until a date."""

    nodeid: Line
    owner: Line
    ticket: Line
    # Dates of this form that do not exist are found by planner.planfile.checks.
    expires: Annotated[str, StringConstraints(pattern=DATE_PATTERN)]


class FlakyRetry(Extensible):
    attempts: Count = 2
    quarantine: tuple[Quarantine, ...] = ()


class Budget(Extensible):
    wall_seconds: Seconds | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    cycles: Count | None = None
    new_files: Count | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    """Limit for all processes of the run together, in MiB."""


class HaltPolicy(Extensible):
    """Conditions that stop everything. ``null`` disables a condition."""

    consecutive_failures: Annotated[int, Field(ge=1)] | None = 3
    """This number of todos in a row have exhausted their repairs, with no todo done in between."""
    identical_failures: Annotated[int, Field(ge=1)] | None = 2
    """The same failure of the same todo occurred this number of times with unchanged product code."""
    flaky_streak: Annotated[int, Field(ge=1)] | None = 3
    """This number of verifications in a row gave different results for the same code."""
    file_growth: Annotated[int, Field(ge=0)] | None = 50
    """One turn of work created more new files than this."""
    security: Literal["halt", "ask"] = "halt"
    """On a violation of the sandbox, of hygiene or of the allowed files: stop, or ask a person."""
    budget: Literal["halt", "ask"] = "halt"
    """When a budget is used up: stop, or ask a person whether to continue."""


class ToolSpec(Extensible):
    """A tool that commands may run in addition to the catalog's. Its exit status is the verdict."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.+\-]+$", max_length=100)]
    """Its name in commands."""
    kind: Purpose = Purpose.VALIDATE
    """Its purpose."""
    argv: tuple[Line, ...] = ()
    """The words that replace the name, by default the name; commands of the program start with them."""


class Policy(Extensible):
    """The policy of the plan: ``metadata`` in the file."""

    auto_fix_mode: bool = True
    require_planner_approval: bool | None = None
    auto_approve_branches: bool = False
    max_branch_depth: Count = Field(
        default=2, validation_alias=AliasChoices("max_branch_depth", "max_debug_branch_depth")
    )
    max_debug_attempts: Count = 3
    branch_timeout_seconds: Seconds = 600.0
    max_concurrent_branches: Count = 5
    notify_after_n_failures: Count = 3
    flaky_retry: FlakyRetry = FlakyRetry.model_construct()
    max_todo_seconds: Seconds | None = None
    budget: Budget = Budget.model_construct()
    halt: HaltPolicy = HaltPolicy.model_construct()
    network: Literal["record", "deny"] | tuple[Host, ...] = "record"
    processes: Literal["record", "deny"] | tuple[Line, ...] = "record"
    """Programs that tests start; a list names the allowed ones."""
    writes: Literal["record", "deny"] | tuple[Line, ...] = "record"
    """Writes outside the plan's root and the folders for temporary files; a list names allowed folders."""
    tools: tuple[ToolSpec, ...] = ()
    """Programs that commands may run in addition to the catalog's."""
    protected_files: tuple[Line, ...] = ()


class Plan(Extensible):
    """One document: id, name, policy and todos, in the order of the file."""

    todo_list_id: Line
    workflow_name: Line | None = None
    root: RelativePath = "."
    metadata: Policy = Policy.model_construct()
    items: tuple[Todo, ...]

    def todo(self, todo_id: str) -> Todo:
        """Return the todo with an id. Raises ``KeyError``."""
        for item in self.items:
            if item.id == todo_id:
                return item
        raise KeyError(todo_id)
