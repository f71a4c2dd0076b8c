"""Whose work a failure is that was there before the work began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from planner.model.verdicts import CheckAtBase, Since, TodoAtBase
from planner.policy.criteria import STAY_GREEN, TURN_GREEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Todo

BEFORE_THE_WORK = frozenset((Since.PRE_EXISTING, Since.FLAKY_AT_BASE))
"""Failures that the todo under work has not brought about."""


def is_preexisting(todo: Todo, outcome: Outcome | None, failure: Failure) -> bool:
    """Whether a failure is neither the todo's doing nor what the todo is there to mend.

    What was red before the work is the todo's own where it says so (``must_turn_green``), or where it was
    open at the baseline and nothing of the check held there. A red among greens is not.
    """
    if failure.since not in BEFORE_THE_WORK:
        return False
    if failure.check_id == TURN_GREEN:
        return False
    tests = failure.tests or failure.top_failing_tests
    if todo.must_turn_green and tests:
        return not any(covers(todo.must_turn_green, test) for test in tests)
    if failure.since is Since.FLAKY_AT_BASE or outcome is None or outcome.at_base is not TodoAtBase.OPEN:
        return True
    return not any(
        check.at_base is CheckAtBase.RED
        and check.id != STAY_GREEN
        and (check.id == failure.check_id or any(test.nodeid in tests for test in check.tests))
        for check in outcome.checks
    )


def covers(named: Literal["all"] | Sequence[str], nodeid: str) -> bool:
    """Whether a list of tests names that one: itself, all its parameters, its class, file or folder."""
    if named == "all":
        return True
    return any(_names(each.removeprefix("./").rstrip("/"), nodeid) for each in named)


def _names(name: str, nodeid: str) -> bool:
    return name in (".", nodeid) or nodeid.startswith((f"{name}[", f"{name}::", f"{name}/"))
