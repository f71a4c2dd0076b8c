"""Read an outcome: the state that it bears out, its failures, who answers for each, and its proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.outcome import Failure
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category, Family, Owner
from planner.model.verdicts import CheckKind, TestOutcome, TodoState, Verdict
from planner.policy.criteria import STAY_GREEN, TURN_GREEN, criterion_ids, wants_convention
from planner.policy.file_claims import claimed_files
from planner.policy.preexisting import BEFORE_THE_WORK, is_preexisting
from planner.text.glob_patterns import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.outcome import Check, Outcome
    from planner.model.plan import Todo

HALTING = {
    Family.SANDBOX: "halt-on-violation",
    Family.BUDGET: "halt-on-budget",
}
"""The families whose failures stop everything, the most severe first, and the rule that says so."""

UNDECIDED = frozenset((Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.NOT_RUN))

_UNOWNED = frozenset((Owner.ENVIRONMENT, Owner.HARNESS))
"""Owners that no role of the plan can answer for."""

_SUPPLIED = frozenset((Category.IMPORT_ERROR,))
"""What only the environment lacks, and a role can supply all the same: it declares and installs it."""

_MISSING = frozenset((Category.TEST_NOT_FOUND, Category.ARTIFACT_MISSING, Category.IMPORT_ERROR))
"""How criteria fail of which the work is not there at all."""

_SUB_PLAN = "sub_plan"
"""The check by which a parent has what its todos have."""


def state_of(outcome: Outcome) -> TodoState:
    """Return the state that an outcome bears out; what contradicts itself is no pass and no failure."""
    state = outcome.state
    if state is None:
        state = TodoState.DONE if outcome.success else TodoState.TEST_FAILED
    return TodoState.TESTING if _contradicts_itself(outcome, state) else state


def _contradicts_itself(outcome: Outcome, state: TodoState) -> bool:
    if state is TodoState.TEST_FAILED:
        return outcome.success
    if state is not TodoState.DONE:
        return False
    # Without a state, success is all that is said; with one, a todo without commands is done, too.
    untested = outcome.state is None and not outcome.tests_passed
    unproved = any(check.counts_as is not Verdict.PASSED for check in outcome.checks)
    return not outcome.success or untested or unproved or outcome.failure_evidence is not None


def missing_proof(todo: Todo, outcome: Outcome, *, is_parent: bool) -> str | None:
    """Return why an outcome that says ``done`` does not prove it, or ``None``.

    It proves it where it is of a verification, and its checks are of the todo's criteria, all of them.
    """
    checks = {check.id for check in outcome.checks}
    wanted = criterion_ids(todo)
    if not wanted and wants_convention(todo):
        wanted = {"convention"}
    allowed_more = {_SUB_PLAN} if is_parent or todo.has_sub_plan else set[str]()
    missing, unknown = sorted(wanted - checks), sorted(checks - wanted - allowed_more)
    if missing:
        return f"it has no check of {', '.join(missing[:5])}"
    if unknown:
        return f"its check {unknown[0]} is of no criterion of the todo"
    if not wanted:
        return None
    if not outcome.verified:
        return "it says that nothing was verified"
    commands = any(check.kind is CheckKind.TEST for check in outcome.checks)
    return "it says that the tests have not passed" if commands and not outcome.tests_passed else None


def failures_of(outcome: Outcome) -> Iterator[Failure]:
    """Every failure of an outcome: the one that decides the route, then the most severe families."""
    deciding = outcome.failure_evidence
    if deciding is not None:
        yield deciding
    yield from sorted((each for each in outcome.failures if each != deciding), key=_severity)


def _severity(failure: Failure) -> tuple[int, float]:
    return failure.category.facts.family.severity, -(failure.confidence or 0)


def sorted_failures(todo: Todo, outcome: Outcome) -> tuple[list[Failure], tuple[Failure, ...]]:
    """Return the failures of a red todo: its own, the deciding one first, and those older than the work."""
    failures = list(failures_of(outcome)) or [Failure(category=Category.UNKNOWN)]
    apart = tuple(
        failure
        for failure in failures
        if is_preexisting(todo, outcome, failure) and not is_unowned(failure)
    )
    return [failure for failure in failures if failure not in apart], apart


def is_unowned(failure: Failure) -> bool:
    """Return whether no role of the plan can answer for a failure: the environment's, or the run's own."""
    if failure.category.facts.family is Family.ENVIRONMENT:
        return True
    return failure.owner in _UNOWNED and failure.category not in _SUPPLIED


def is_harness_fault(failure: Failure) -> bool:
    """Return whether the run itself went wrong."""
    return failure.category is Category.HARNESS_ERROR or failure.owner is Owner.HARNESS


def is_begun(todo: Todo, outcome: Outcome) -> bool:
    """Return whether anything shows that somebody has worked on a red todo that nobody was asked to do.

    Nothing does where nobody claims it, none of its checks holds, no file of its own has changed, and all
    that fails is missing or was red before.
    """
    if todo.status is TodoStatus.CLAIMED:
        return True
    if todo.is_temporary:  # a step that a revision has added is red until somebody claims it
        return False
    if any(check.counts_as is Verdict.PASSED for check in outcome.checks if check.id != STAY_GREEN):
        return True
    files = claimed_files(todo)
    if any(allowed(path, files) for path in outcome.touched_files) if files else outcome.touched_files:
        return True
    return not all(
        (failure.category in _MISSING or failure.since in BEFORE_THE_WORK) and not is_unowned(failure)
        for failure in failures_of(outcome)
    )


def open_checks(outcome: Outcome) -> list[Check]:
    """Return the checks that the run could not decide."""
    return [check for check in outcome.checks if check.counts_as in UNDECIDED]


def is_beyond_proof(outcome: Outcome, check: Check) -> bool:
    """Return whether a demand is open though all its tests have ended: nothing is left to prove."""
    return (
        check.id in (TURN_GREEN, STAY_GREEN)
        and check.verdict is Verdict.INCONCLUSIVE
        and bool(check.tests)
        and all(test.outcome is not TestOutcome.NOT_RUN for test in check.tests)
        and not any(failure.check_id == check.id for failure in outcome.failures)
    )
