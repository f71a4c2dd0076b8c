"""Where a todo and a plan stand in their lives; which step may follow which is decided in the rules."""

from __future__ import annotations

from enum import StrEnum


class TodoLife(StrEnum):
    """Where a todo stands while a plan is carried out."""

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
        """Whether nothing follows."""
        return self in _FINAL

    @property
    def is_live(self) -> bool:
        """Whether the driver is at it."""
        return self is TodoLife.ACTIVE or self is TodoLife.TESTING


_FINAL = frozenset((TodoLife.DONE, TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED))


class PlanState(StrEnum):
    """Where a plan stands in its life."""

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
        """Whether nothing follows."""
        return self in (PlanState.REJECTED, PlanState.COMPLETED, PlanState.HALTED)
