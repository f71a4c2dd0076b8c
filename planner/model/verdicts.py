"""The words for tests, checks, todos, plans and evidence: enumerations that import nothing else."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of a check."""

    PASSED = "passed"
    FAILED = "failed"
    FLAKY = "flaky"
    """The same code gave both answers; counts as failed."""
    INCONCLUSIVE = "inconclusive"
    """The check could not be run to its end."""
    NEEDS_HUMAN = "needs_human"
    STALE = "stale"
    BLOCKED = "blocked"
    """A dependency of the todo failed; what the check itself said is not counted."""
    NOT_RUN = "not_run"

    @property
    def is_red(self) -> bool:
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
    """What no criterion asks for and every todo is held to: ``hygiene``, ``allowlist``, ``sandbox``,
    ``budget``. It stands among the checks of a todo only where it was violated."""


class Isolation(StrEnum):
    """The process that a check was run in."""

    WORKER = "worker"
    """A worker of its own, forked from a warm server."""
    COLD = "cold"
    """A worker of its own, in an interpreter that was started for it."""
    SPAWNED = "spawned"
    """A command as it stands, without this plugin inside."""
    PARENT = "parent"
    """Evaluated by the supervising process."""


class Witness(StrEnum):
    """The observer that a test's result was read from."""

    PLUGIN = "plugin"
    JSON_REPORT = "json_report"
    JUNIT_XML = "junit_xml"
    EXIT_CODE = "exit_code"


class TestOutcome(StrEnum):
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
    """Nothing of it held."""
    MIXED = "mixed"
    """Some of its tests were red, or flaky, and some green."""
    GREEN = "green"
    """Nothing of it was red."""


class TodoAtBase(StrEnum):
    """The state of a todo at the baseline."""

    OPEN = "open"
    CLAIMED = "claimed"
    """It was said to be done."""
    DONE = "done"
    """All its criteria passed."""


class TodoLife(StrEnum):
    """The life cycle state of a todo while a plan is carried out."""

    PENDING = "pending"
    """What it depends on is not done yet, or its turn has not come."""
    BLOCKED = "blocked"
    """Something that it depends on has failed and can still be repaired."""
    ACTIVE = "active"
    """Somebody works on it; of a parent, on the todos of its sub-plan."""
    TESTING = "testing"
    """The work is said to be done, and its criteria are being verified."""
    TEST_FAILED = "test_failed"
    """Its criteria do not hold, and it is being repaired or waits for a decision."""
    DONE = "done"
    FAILED = "failed"
    """For good: repairs are used up, or a person has given it up."""
    SKIPPED = "skipped"
    """For good: something that it depends on has failed for good."""
    HALTED = "halted"
    """It has brought everything to a stop, or was under way when everything was stopped."""

    @property
    def is_final(self) -> bool:
        """Return whether nothing follows."""
        return self in _FINAL

    @property
    def is_live(self) -> bool:
        """Return whether the driver is at it."""
        return self is TodoLife.ACTIVE or self is TodoLife.TESTING


_FINAL = frozenset((TodoLife.DONE, TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED))


class PlanState(StrEnum):
    """The life cycle state of a plan."""

    CREATED = "created"
    VALIDATING = "validating"
    REJECTED = "rejected"
    READY = "ready"
    EXECUTING = "executing"
    REVISING = "revising"
    """A revision of the plan is being made, or waits for a person beside other work."""
    AWAITING_REVIEW = "awaiting_review"
    """Nothing goes on until a person has answered."""
    COMPLETED = "completed"
    HALTED = "halted"

    @property
    def is_final(self) -> bool:
        """Return whether nothing follows."""
        return self in (PlanState.REJECTED, PlanState.COMPLETED, PlanState.HALTED)


class EvidenceKind(StrEnum):
    """The observer of a failure."""

    TEST = "test"
    """A test's set-up, call or teardown."""
    COLLECTION = "collection"
    """The collection of a test file, or the loading of a conftest."""
    SELECTION = "selection"
    """A command that selected no test, a missing id or file, or only tests that prove nothing."""
    SESSION = "session"
    """The session itself: usage errors, internal errors, an unexplained exit status, a death."""
    COMMAND = "command"
    """A command that is not pytest."""
    ARTIFACT = "artifact"
    METRIC = "metric"
    FIXTURE = "fixture"
    """The data file that a criterion names."""
    CONTRACT = "contract"
    MANUAL = "manual"
    HYGIENE = "hygiene"
    """What judges the work was changed, or the work was made to please its judge."""
    SANDBOX = "sandbox"
    """Something was reached for that the plan denies."""
    ALLOWLIST = "allowlist"
    """Files were changed that no todo may change."""
    BUDGET = "budget"
    """The run used more than the plan grants."""


class Phase(StrEnum):
    """When in the life of a test it was seen."""

    COLLECT = "collect"
    SETUP = "setup"
    CALL = "call"
    TEARDOWN = "teardown"
    SESSION = "session"


class Side(StrEnum):
    """The owner of the file that a frame is in."""

    TEST = "test"
    """A test module, a conftest, or a module beside them that only tests use."""
    PRODUCT = "product"
    """The project's own code, wherever it is installed."""
    THIRD_PARTY = "third_party"
    STDLIB = "stdlib"
    FRAMEWORK = "framework"
    """pytest, its plugins, and this plugin."""


class Hardness(StrEnum):
    """Weight of a tampering signal: one hard signal is enough, of soft ones two are needed."""

    HARD = "hard"
    SOFT = "soft"


class Purpose(StrEnum):
    """The purpose of a tool."""

    TEST = "test"
    LINT = "lint"
    TYPE_CHECK = "type_check"
    BUILD = "build"
    VALIDATE = "validate"
