"""The baseline: results and files before the work began, ``baseline.json`` in the plan's folder."""

from enum import StrEnum

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.verdicts import TestOutcome, TodoState, Verdict


class JudgeKind(StrEnum):
    """The role of a file in verdicts."""

    TEST = "test"
    CONFTEST = "conftest"
    CONFIG = "config"
    """pytest's configuration: ``pytest.ini``, ``pyproject.toml``, ``tox.ini``, ``setup.cfg``."""
    TEST_SUPPORT = "test_support"
    """A module that only tests use."""
    FIXTURE = "fixture"
    """Data that tests read."""
    PLAN = "plan"
    CONTRACT = "contract"
    START_UP = "start_up"
    """``sitecustomize.py``, ``usercustomize.py``, ``.pth`` files."""
    ARTIFACT = "artifact"
    """A file that a criterion expects."""
    PRODUCT = "product"
    """Everything else."""


class BaselineFile(ReadValue):
    """One file below the plan's root."""

    sha256: str
    kind: JudgeKind = JudgeKind.PRODUCT
    committed: bool = False
    """The baseline's revision contains exactly this content; if not, a copy is kept beside the baseline."""


class BaselineTest(ReadValue):
    """The result of one test at the baseline."""

    outcome: TestOutcome
    flaky: bool = False
    """It passed and failed on the same code."""


class BaselineCheck(ReadValue):
    """The result of one criterion at the baseline, with its failures' signatures."""

    verdict: Verdict
    signatures: tuple[str, ...] = ()
    cmd: str | None = None
    tests: tuple[str, ...] = ()
    """The node ids that it selected, relative to its plan's root."""
    findings: dict[str, int] = Field(default_factory=dict[str, int])
    """How often its tool reported each finding, by file, code and message; empty if not all are known."""


class BaselineTodo(ReadValue):
    """The result of one todo at the baseline."""

    state: TodoState | None = None
    claimed: bool = False
    checks: dict[str, BaselineCheck] = Field(default_factory=dict[str, BaselineCheck])


class HookUse(ReadValue):
    """A hook of pytest that a file of the project implements."""

    hook: str
    file: str
    """Relative to the plan's root if it is in the project."""


class JudgePatch(ReadValue):
    """An object that verdicts depend on, such as a builtin, that was replaced by another one."""

    name: str
    file: str = ""
    """The file that defines the replacement, relative to the plan's root if it is below it."""


class SessionInventory(ReadValue):
    """Inventory of a session: everything that could influence its verdicts."""

    hooks: tuple[HookUse, ...] = ()
    patched: tuple[JudgePatch, ...] = ()
    bodies_elsewhere: bool = False
    """There were passed tests whose body was not executed in the process that reported them."""
    status_overturned: bool = False
    """A session with failed tests returned 0."""
    records_lost: bool = False
    """Records of a session were missing at its end."""


class Acceptance(ReadValue):
    """A change of protected files that a person has accepted."""

    todo_id: str
    reason: str
    at: str
    """RFC 3339, UTC."""
    by: str | None = None
    files: dict[str, str | None] = Field(default_factory=dict[str, str | None])
    """Paths with the accepted sha256; ``null`` for a removed file."""


class Remake(ReadValue):
    """The replacement of an earlier baseline, with its reason."""

    reason: str
    at: str
    """RFC 3339, UTC."""
    by: str | None = None
    replaced: str | None = None
    """``sha256:`` and the digest of the replaced file."""


class Baseline(ReadValue):
    """The baseline file."""

    schema_version: int = 1
    plan: str
    """The plan's ``todo_list_id``."""
    plan_digest: str
    made_at: str
    """RFC 3339, UTC."""
    revision: str | None = None
    """The commit of the work tree."""
    python: str
    pytest: str
    todos: dict[str, BaselineTodo] = Field(default_factory=dict[str, BaselineTodo])
    tests: dict[str, BaselineTest] = Field(default_factory=dict[str, BaselineTest])
    """Tests by node id, relative to the plan's root; files that could not be imported by path."""
    files: dict[str, BaselineFile] = Field(default_factory=dict[str, BaselineFile])
    """Files by path, relative to the plan's root."""
    inventory: SessionInventory = SessionInventory.model_construct()
    accepted: tuple[Acceptance, ...] = ()
    sub_plans: dict[str, str] = Field(default_factory=dict[str, str])
    """The ``todo_list_id`` of each sub-plan, by the qualified id of its parent."""
    remade: tuple[Remake, ...] = ()
    """The replacements of earlier baselines, oldest first."""
