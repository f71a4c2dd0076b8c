"""The words that an outcome says of tests, checks and todos; they import nothing else."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a check said."""

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
    """What a run can say about a todo."""

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
    """Which observer a test's result was read from."""

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
    """How a result compares with the baseline."""

    NEW = "new"
    PRE_EXISTING = "pre_existing"
    FIXED = "fixed"
    FLAKY_AT_BASE = "flaky_at_base"
    UNKNOWN = "unknown"


class CheckAtBase(StrEnum):
    """What a check was worth at the baseline."""

    RED = "red"
    """Nothing of it held."""
    MIXED = "mixed"
    """Some of its tests were red, or flaky, and some green."""
    GREEN = "green"
    """Nothing of it was red."""


class TodoAtBase(StrEnum):
    """How a todo stood at the baseline."""

    OPEN = "open"
    CLAIMED = "claimed"
    """It was said to be done."""
    DONE = "done"
    """All its criteria passed."""
