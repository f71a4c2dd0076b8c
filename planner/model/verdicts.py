"""Enumerations for tests, checks, todos, plans and evidence."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of a check."""

    PASSED = "passed"
    FAILED = "failed"
    FLAKY = "flaky"
    """The same code passed and failed; counts as failed."""
    INCONCLUSIVE = "inconclusive"
    """The check could not be completed."""
    NEEDS_HUMAN = "needs_human"
    STALE = "stale"
    BLOCKED = "blocked"
    """A dependency of the todo failed; the result of the check itself does not count."""
    NOT_RUN = "not_run"

    @property
    def is_red(self) -> bool:
        """Return whether it is a failure."""
        return self in (Verdict.FAILED, Verdict.FLAKY)


class TodoState(StrEnum):
    """The state of a todo after a run."""

    DONE = "done"
    TEST_FAILED = "test_failed"
    TESTING = "testing"
    BLOCKED = "blocked"
    PENDING = "pending"


class CheckKind(StrEnum):
    TEST = "test"
    COMMAND = "command"
    ARTIFACT = "artifact"
    METRIC = "metric"
    CONTRACT = "contract"
    MANUAL = "manual"
    SUB_PLAN = "sub_plan"
    GUARD = "guard"
    """A rule that applies to every todo without a criterion: ``hygiene``, ``allowlist``, ``sandbox``,
    ``budget``. A todo has such a check only if it was violated."""


class Isolation(StrEnum):
    """The kind of process that a check was run in."""

    WORKER = "worker"
    """A worker of its own, forked from a warm server."""
    COLD = "cold"
    """A worker of its own, in a newly started interpreter."""
    SPAWNED = "spawned"
    """The unchanged command as a process, without this plugin inside."""
    PARENT = "parent"
    """Evaluated by the supervising process."""


class Witness(StrEnum):
    """The source of a test's result."""

    PLUGIN = "plugin"
    JSON_REPORT = "json_report"
    JUNIT_XML = "junit_xml"
    EXIT_CODE = "exit_code"


class TestOutcome(StrEnum):
    # Otherwise pytest collects the class where a test module imports it.
    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    NOT_RUN = "not_run"

    @property
    def is_red(self) -> bool:
        """Return whether it is a failure."""
        return self in (TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.TIMEOUT, TestOutcome.CRASHED)


class Since(StrEnum):
    """Comparison of a result with the baseline."""

    NEW = "new"
    PRE_EXISTING = "pre_existing"
    FIXED = "fixed"
    FLAKY_AT_BASE = "flaky_at_base"
    UNKNOWN = "unknown"


class CheckAtBase(StrEnum):
    """The quality of a check at the baseline."""

    RED = "red"
    """It failed, and none of its tests passed."""
    MIXED = "mixed"
    """Some of its tests failed or were flaky, others passed."""
    GREEN = "green"
    """None of it failed."""


class TodoAtBase(StrEnum):
    """The state of a todo at the baseline."""

    OPEN = "open"
    CLAIMED = "claimed"
    """It was claimed to be done."""
    DONE = "done"
    """All its criteria passed."""


class TodoLife(StrEnum):
    """The life cycle state of a todo while a plan is carried out."""

    PENDING = "pending"
    """Its dependencies are not done yet, or its turn has not come."""
    BLOCKED = "blocked"
    """A dependency has failed and can still be repaired."""
    ACTIVE = "active"
    """Somebody works on it; for a parent, on the todos of its sub-plan."""
    TESTING = "testing"
    """The work is claimed to be done, and its criteria are being verified."""
    TEST_FAILED = "test_failed"
    """A criterion failed, and the todo is being repaired or waits for a decision."""
    DONE = "done"
    FAILED = "failed"
    """Final: repairs are used up, or a person has given it up."""
    SKIPPED = "skipped"
    """Final: a dependency has finally failed."""
    HALTED = "halted"
    """It has stopped everything, or was in progress when everything was stopped."""

    @property
    def is_final(self) -> bool:
        """Return whether no other state can follow."""
        return self in (TodoLife.DONE, TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED)

    @property
    def is_live(self) -> bool:
        """Return whether the driver is working on it or verifying it."""
        return self is TodoLife.ACTIVE or self is TodoLife.TESTING


class PlanState(StrEnum):
    """The life cycle state of a plan."""

    CREATED = "created"
    VALIDATING = "validating"
    REJECTED = "rejected"
    READY = "ready"
    EXECUTING = "executing"
    REVISING = "revising"
    """A revision of the plan is in progress, or waits for a person while other work continues."""
    AWAITING_REVIEW = "awaiting_review"
    """Nothing continues until a person has answered."""
    COMPLETED = "completed"
    HALTED = "halted"

    @property
    def is_final(self) -> bool:
        """Return whether no other state can follow."""
        return self in (PlanState.REJECTED, PlanState.COMPLETED, PlanState.HALTED)


class EvidenceKind(StrEnum):
    """The kind of object that a failure was observed in."""

    TEST = "test"
    """A test's set-up, call or teardown."""
    COLLECTION = "collection"
    """The collection of a test file, or the loading of a conftest."""
    SELECTION = "selection"
    """A command that selected no test, a missing id or file, or only tests that prove nothing."""
    SESSION = "session"
    """The session itself: usage errors, internal errors, an unexplained exit status, a crash."""
    COMMAND = "command"
    """A command that is not pytest."""
    ARTIFACT = "artifact"
    METRIC = "metric"
    FIXTURE = "fixture"
    """The data file that a criterion names."""
    CONTRACT = "contract"
    MANUAL = "manual"
    HYGIENE = "hygiene"
    """Tests or other protected files were changed, or results were manipulated."""
    SANDBOX = "sandbox"
    """There was an attempt to access something that the plan denies."""
    ALLOWLIST = "allowlist"
    """Files were changed that no todo may change."""
    BUDGET = "budget"
    """The run used more than the plan grants."""


class Phase(StrEnum):
    """The phase of a test in which a failure was observed."""

    COLLECT = "collect"
    SETUP = "setup"
    CALL = "call"
    TEARDOWN = "teardown"
    SESSION = "session"


class Side(StrEnum):
    """The owner of a source file."""

    TEST = "test"
    """A test module, a conftest, or a module beside them that only tests use."""
    PRODUCT = "product"
    """The project's own code, wherever it is installed."""
    THIRD_PARTY = "third_party"
    STDLIB = "stdlib"
    FRAMEWORK = "framework"
    """pytest, its plugins, and this plugin."""


class Purpose(StrEnum):
    """The purpose of a tool."""

    TEST = "test"
    LINT = "lint"
    TYPE_CHECK = "type_check"
    BUILD = "build"
    VALIDATE = "validate"
