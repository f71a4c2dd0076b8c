"""The baseline: what held before the work began, ``baseline.json`` in the plan's folder."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.verdicts import TestOutcome, TodoState, Verdict

BASELINE_VERSION: Literal[1] = 1


class JudgeKind(StrEnum):
    """The part that a file has in the verdict."""

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
    """What a criterion expects a command to make."""
    PRODUCT = "product"
    """Everything else."""


class BaselineFile(ReadValue):
    """One file below the plan's root."""

    sha256: str
    size: int
    kind: JudgeKind = JudgeKind.PRODUCT
    committed: bool = False
    """The revision of the baseline holds just this content; else a copy is kept beside the baseline."""


class BaselineTest(ReadValue):
    """The result of one test at the baseline."""

    outcome: TestOutcome
    flaky: bool = False
    """It gave both answers."""
    signature: str | None = None
    """Of the failure, where it failed."""


class BaselineCheck(ReadValue):
    """The result of one criterion at the baseline, with its failures' signatures."""

    verdict: Verdict
    signatures: tuple[str, ...] = ()
    cmd: str | None = None
    tests: tuple[str, ...] = ()
    """The node ids that it selected, relative to the root of its plan."""


class BaselineTodo(ReadValue):
    """The result of one todo at the baseline."""

    state: TodoState | None = None
    claimed: bool = False
    checks: dict[str, BaselineCheck] = Field(default_factory=dict[str, BaselineCheck])


class HookUse(ReadValue):
    """A hook of pytest that a file of the project, or an installed plugin, implements."""

    hook: str
    file: str
    """Relative to the plan's root where it is below it; of installed plugins their module."""


class JudgePatch(ReadValue):
    """A part of what judges, such as a builtin, that another one stands in for."""

    name: str
    file: str = ""
    """Where the other one was written, relative to the plan's root where it is below it."""


class SessionInventory(ReadValue):
    """Inventory of a session: everything that could influence its verdicts."""

    hooks: tuple[HookUse, ...] = ()
    patched: tuple[JudgePatch, ...] = ()
    bodies_elsewhere: bool = False
    """Tests passed whose body was not run in the process that reported them."""
    status_overturned: bool = False
    """A session returned 0 in which tests had failed."""
    records_lost: bool = False
    """Records of a session were missing in the end."""


class Acceptance(ReadValue):
    """A change of what judges that a person has accepted."""

    todo_id: str
    reason: str
    at: str
    """RFC 3339, UTC."""
    by: str | None = None
    files: dict[str, str | None] = Field(default_factory=dict[str, str | None])
    """Paths with the sha256 that was accepted; ``null`` for a file that is gone."""


class Remake(ReadValue):
    """Why a baseline took the place of an earlier one."""

    reason: str
    at: str
    """RFC 3339, UTC."""
    by: str | None = None
    replaced: str | None = None
    """``sha256:`` and the digest of the file that was replaced."""


class Baseline(ReadValue):
    """The baseline file."""

    schema_version: int = BASELINE_VERSION
    plan: str
    """The plan's ``todo_list_id``."""
    plan_digest: str
    made_at: str
    """RFC 3339, UTC."""
    revision: str | None = None
    """The commit that the tree was at."""
    dirty: bool = False
    """The tree had changes that the commit has not."""
    python: str
    pytest: str
    runs: int = 1
    """How often the plan was verified for it; only several runs show what is flaky and was green."""
    run_id: str | None = None
    """The first of these runs, whose outcomes are kept beside the baseline."""
    todos: dict[str, BaselineTodo] = Field(default_factory=dict[str, BaselineTodo])
    tests: dict[str, BaselineTest] = Field(default_factory=dict[str, BaselineTest])
    """By node id, relative to the plan's root; a file that could not be imported by its path."""
    files: dict[str, BaselineFile] = Field(default_factory=dict[str, BaselineFile])
    """By path, relative to the plan's root."""
    inventory: SessionInventory = SessionInventory()
    accepted: tuple[Acceptance, ...] = ()
    sub_plans: dict[str, str] = Field(default_factory=dict[str, str])
    """By the qualified id of a parent, the ``todo_list_id`` of its sub-plan."""
    remade: tuple[Remake, ...] = ()
    """Each time that a baseline was made where there was one, oldest first."""
