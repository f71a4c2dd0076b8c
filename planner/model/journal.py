"""The journal of a run: one record a line, written as it happens by every process of the run.

Records that this version does not know may stand between those that it does; readers pass over them, and
over keys that they do not know. A killed run may end in the middle of a line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.kinds import Phase
from planner.model.outcome import Cause, Check, Outcome, PlanRef, RunInfo
from planner.model.verdicts import TestOutcome, TodoState

JOURNAL_VERSION: Literal[1] = 1

Recorded: TypeAlias = Any
"""A recorded value, whatever it is; what JSON cannot hold was written as text."""


class JournalRecord(ReadValue):
    """What every record holds."""

    session: str
    """Which session wrote it; ``parent`` for the supervising process."""
    at: float
    """Seconds since 1970."""


class _OfWorker(JournalRecord):
    worker: str = ""
    """Which worker of pytest-xdist wrote it; empty for the session itself."""


class RunStarted(JournalRecord):
    """The first record: which run, plan and version of the format."""

    record: Literal["run_started"]
    version: int
    run_id: str
    plan: str
    digest: str
    python: str | None = None
    pytest: str | None = None
    argv: tuple[str, ...] = ()
    pid: int | None = None
    reference: PlanRef | None = None
    todos: tuple[str, ...] = ()
    scope: Literal["claimed", "ready", "all"] = "all"
    keep_going: bool = False
    verifies: bool = True
    """Not so where tests are only collected, or a baseline is recorded."""
    boundary: str | None = None
    conditions: dict[str, str] = Field(default_factory=dict[str, str])
    """What the verdicts hold under, besides plan and tree: interpreter, packages, options."""
    remarks: tuple[str, ...] = ()
    """What concerns the run as a whole, as far as it was known when the run began."""


class SessionStarted(_OfWorker):
    """A session, or one of its workers, is there."""

    record: Literal["session_started"]
    pid: int
    soft_limit: bool = False
    """It listens to the signal that ends one test."""


class StartupFailure(_OfWorker):
    """A conftest or plugin could not be loaded."""

    record: Literal["startup_failure"]
    evidence: Evidence


class UsageError(_OfWorker):
    """pytest refused the command line."""

    record: Literal["usage_error"]
    message: str


class CollectionStarted(_OfWorker):
    record: Literal["collection_started"]


class FileCollecting(_OfWorker):
    """A test file is about to be imported."""

    record: Literal["file_collecting"]
    nodeid: str


class FilesCollected(_OfWorker):
    """The last of them has been imported."""

    record: Literal["files_collected"]


class CollectionFailure(_OfWorker):
    """A test file could not be imported."""

    record: Literal["collection_failure"]
    nodeid: str
    path: str
    evidence: Evidence


class FileSkipped(_OfWorker):
    """A test file asked to be skipped."""

    record: Literal["file_skipped"]
    nodeid: str
    reason: str | None = None


class NotFound(_OfWorker):
    """Arguments that name nothing."""

    record: Literal["not_found"]
    arguments: tuple[str, ...]


class Collected(_OfWorker):
    """The tests that will run."""

    record: Literal["collected"]
    check: str = ""
    """The criterion: plan file, todo and check, apart by ``::``."""
    nodeids: tuple[str, ...]
    narrowed: tuple[str, ...] = ()
    """Selected by the command, left out by the user of the run."""


class Imported(JournalRecord):
    """The installed modules that the worker had imported when it had its tests."""

    record: Literal["imported"]
    modules: tuple[str, ...]


class ModuleHandedOut(JournalRecord):
    """The worker was given an extension module that its server had imported."""

    record: Literal["module_handed_out"]
    name: str


class Restart(JournalRecord):
    """The worker asks to be replaced by one that starts earlier."""

    record: Literal["restart"]
    level: int | None = None
    """How far its server may go; nothing for the same without modules imported ahead."""
    reason: str


class TestStarted(_OfWorker):
    __test__ = False

    record: Literal["test_started"]
    nodeid: str
    pid: int | None = None
    """Of the worker."""


class TestFailure(JournalRecord):
    """One failing phase or attempt of a test, with its facts."""

    __test__ = False

    record: Literal["test_failure"]
    nodeid: str
    when: str | None = None
    """``setup``, ``call``, ``teardown``, or what a plugin calls it."""
    attempt: int | None = None
    """Of an attempt that is followed by another: which one."""
    evidence: Evidence


class HiddenFailure(_OfWorker):
    """A test failed, and was not reported so: run again by a plugin, or its report turned round."""

    record: Literal["hidden_failure"]
    nodeid: str
    count: int
    """Failures that were not reported."""
    runs: int
    """How often the body of the test was run."""
    evidence: Any = None


class TestFinished(JournalRecord):
    __test__ = False

    record: Literal["test_finished"]
    nodeid: str
    outcome: TestOutcome
    duration_ms: float
    reason: str | None = None
    reruns: int = 0
    properties: tuple[tuple[str, Recorded], ...] = ()


class MetricRecorded(_OfWorker):
    """A number recorded for the whole suite."""

    record: Literal["metric"]
    name: str
    value: Recorded


class Stopped(_OfWorker):
    """The session was told to stop."""

    record: Literal["stopped"]
    reason: str
    evidence: Evidence | None = None
    """The exception that stopped it."""


class InternalError(_OfWorker):
    """pytest or a plugin failed."""

    record: Literal["internal_error"]
    text: str


class SessionInventory(_OfWorker):
    """At the end of a session: who had a say in its verdicts."""

    record: Literal["session_inventory"]
    plugins: tuple[str, ...] = ()
    hooks: tuple[tuple[str, str], ...] = ()
    """Hooks with the files of the project that implement them."""
    patched: tuple[tuple[str, str, str, str], ...] = ()
    """What judges and is another one: its name, kind, the file of what stands in its place, and when."""
    agreeing: tuple[tuple[str, str, str], ...] = ()
    """File, class and method of comparisons that agree with everything."""
    without_body: tuple[str, ...] = ()
    """Tests that were reported as passed, and of which nothing was called."""
    incomplete: bool = False
    """It could not be found out."""


class ArtifactsWritten(JournalRecord):
    """At the end of the run of a baseline: which expected artifacts it has written."""

    record: Literal["artifacts_written"]
    artifacts: dict[str, Literal["made", "rewritten"]]


class SessionFinished(_OfWorker):
    """pytest came to its own end."""

    record: Literal["session_finished"]
    exit_status: int
    stopped: str | None = None


class SessionEnded(JournalRecord):
    """The last record of a session."""

    record: Literal["session_ended"]
    exit_status: int


class AuditEventSeen(_OfWorker):
    """Something was reached for outside the session; written again when it was seen more often."""

    record: Literal["audit_event"]
    pid: int
    event: str
    """``connect``, ``process`` or ``write``."""
    target: str
    nodeid: str | None = None
    path: str | None = None
    phase: Phase | None = None
    denied: bool = False
    count: int = 1
    """How often that process has seen it by now."""
    keys: tuple[str, ...] = ()
    """Of a fixture that several tests share: the criteria whose tests use it."""


class FilesRead(JournalRecord):
    """What a worker had read of the project, written at its end."""

    record: Literal["files_read"]
    files: tuple[str, ...] = ()
    native: bool = False
    unknown: str | None = None
    """Why nobody knows what was read: by a process that it started, for one."""


class Executed(_OfWorker):
    """What a test executed of the product, in a confirmation."""

    record: Literal["executed"]
    nodeid: str
    functions: dict[int, tuple[str, int, str]] = Field(default_factory=dict[int, tuple[str, int, str]])
    """Those that no record before has named, by number: path, first line, qualified name."""
    ran: tuple[tuple[int, int, str], ...] = ()
    """The numbers of those that the test executed, each with its depth and its lines: a hexadecimal number
    whose lowest bit is the first line."""


class RestsOn(ReadValue):
    """The files that a verdict rests on; paths are relative to the plan's root."""

    files: dict[str, str] = Field(default_factory=dict[str, str])
    """Of each file that was read a digest, taken when the verdict was reached."""
    native: bool = False
    """Code that is not Python took part, which may have read any file of data."""


class CheckJudged(JournalRecord):
    """A verdict, written when it was reached."""

    record: Literal["check_judged"]
    plan: str
    todo_id: str
    check: Check
    evidence: tuple[Evidence, ...] = ()
    properties: tuple[tuple[str, Recorded], ...] = ()
    final: bool = False
    """Nothing is left to be found out: a red was confirmed, a green is not in doubt."""
    rests_on: RestsOn | None = None
    """``None``: on every file of the project, for nobody knows which of them were read."""


class RunUnexplained(JournalRecord):
    """A session failed for no test's reason: the run is not accepted, whatever its checks say."""

    record: Literal["run_unexplained"]
    reason: str


class TodoFound(JournalRecord):
    """At the end of the run: the outcome of a todo as it stands in the outcome file."""

    record: Literal["todo_found"]
    plan: str
    todo_id: str
    outcome: Outcome


class TodoJudged(JournalRecord):
    """What the run said of a todo."""

    record: Literal["todo_judged"]
    todo_id: str
    plan: str | None = None
    state: TodoState | None = None
    blocked_by: tuple[str, ...] = ()


class RunFinished(JournalRecord):
    """The last record of a run that came to its end."""

    record: Literal["run_finished"]
    run_id: str | None = None
    plan: str | None = None
    exit_status: int
    interrupted: bool = False
    run: RunInfo | None = None
    causes: tuple[Cause, ...] = ()
    """Of the failures of the run: those that this plan has a part in."""


Record: TypeAlias = Annotated[
    RunStarted
    | SessionStarted
    | StartupFailure
    | UsageError
    | CollectionStarted
    | FileCollecting
    | FilesCollected
    | CollectionFailure
    | FileSkipped
    | NotFound
    | Collected
    | Imported
    | ModuleHandedOut
    | Restart
    | TestStarted
    | TestFailure
    | HiddenFailure
    | TestFinished
    | MetricRecorded
    | Stopped
    | InternalError
    | SessionInventory
    | ArtifactsWritten
    | SessionFinished
    | SessionEnded
    | AuditEventSeen
    | FilesRead
    | Executed
    | CheckJudged
    | RunUnexplained
    | TodoFound
    | TodoJudged
    | RunFinished,
    Field(discriminator="record"),
]
"""Any record that this version knows; ``record`` tells which."""
