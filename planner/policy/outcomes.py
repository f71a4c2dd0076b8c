"""Interpretation of outcomes: state, failures, proof, sub-plans, and failures from before the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from planner.model.outcome import UNRELATED, Failure
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category, Family, Owner
from planner.model.verdicts import (
    CheckAtBase,
    CheckKind,
    Since,
    TestOutcome,
    TodoAtBase,
    TodoState,
    Verdict,
)
from planner.policy.allowed_files import claimed_files
from planner.policy.criteria import STAY_GREEN, TURN_GREEN, criterion_ids, wants_convention
from planner.text.display import listed
from planner.text.glob_patterns import allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.outcome import Outcome
    from planner.model.plan import Todo


HALTING = {
    Family.SANDBOX: "halt-on-violation",
    Family.BUDGET: "halt-on-budget",
}
"""Failure families that halt the run, most severe first, with the rule that applies."""

UNDECIDED = frozenset((Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.NOT_RUN))
"""Verdicts of checks that have decided nothing."""

UNOWNED = frozenset((Owner.ENVIRONMENT, Owner.HARNESS))
"""Owners for which no role of the plan is responsible: no edit of the project repairs their failures."""

_MISSING = frozenset((Category.TEST_NOT_FOUND, Category.ARTIFACT_MISSING, Category.IMPORT_ERROR))
"""Categories that also occur when the work was never started."""

CHECK_ID = "sub_plan"
"""Id of the check that represents a parent's sub-plan."""


def state_of(outcome: Outcome) -> TodoState:
    """Return the state that an outcome claims; ``testing``, that is undecided, if it contradicts itself.

    Without a state, ``success`` decides between ``done`` and ``test_failed``.
    """
    state = outcome.state or (TodoState.DONE if outcome.success else TodoState.TEST_FAILED)
    is_odd = state is TodoState.TEST_FAILED and outcome.success
    if state is TodoState.DONE:
        # An outcome without a state must have passed tests; with one, a todo without commands may be done.
        untested = outcome.state is None and not outcome.tests_passed
        unproved = any(check.counts_as is not Verdict.PASSED for check in outcome.checks)
        is_odd = not outcome.success or untested or unproved or outcome.failure_evidence is not None
    return TodoState.TESTING if is_odd else state


def missing_proof(todo: Todo, outcome: Outcome, *, is_parent: bool) -> str | None:
    """Return why an outcome that claims ``done`` is no proof, or ``None`` if it is one.

    A proof comes from a verification and has a check of every criterion of the todo and of nothing else,
    except that of a parent's sub-plan. That the checks pass is decided by :func:`state_of`.
    """
    checks = {check.id for check in outcome.checks}
    wanted = criterion_ids(todo)
    if not wanted and wants_convention(todo):
        wanted = {"convention"}
    allowed_more = {CHECK_ID} if is_parent or todo.has_sub_plan else set[str]()
    missing, unknown = sorted(wanted - checks), sorted(checks - wanted - allowed_more)
    if missing:
        return f"it has no check of {', '.join(missing[:5])}"
    # Such a check was made of another version of the todo, or made up.
    if unknown:
        return f"its check {unknown[0]} belongs to no criterion of the todo"
    # A todo without criteria, such as most parents, has nothing to prove.
    if not wanted:
        return None
    if not outcome.verified:
        return "it reports that nothing was verified"
    commands = any(check.kind is CheckKind.TEST for check in outcome.checks)
    return "it reports that the tests did not pass" if commands and not outcome.tests_passed else None


def failures_of(outcome: Outcome) -> Iterator[Failure]:
    """Yield all failures of an outcome: the deciding one, then the others by severity."""
    deciding = outcome.failure_evidence
    if deciding is not None:
        yield deciding
    yield from sorted((each for each in outcome.failures if each != deciding), key=severity_of)


def violations_of(outcome: Outcome) -> list[Failure]:
    """Return the failures of families that halt the run."""
    return [each for each in failures_of(outcome) if each.category.facts.family in HALTING]


def severity_of(failure: Failure) -> tuple[int, bool, bool, float, bool]:
    """Return the sort key of a todo's failures; the first one decides the route."""
    return (
        failure.category.facts.family.severity,
        failure.since in BEFORE_THE_WORK,
        # With only the flaky one repaired, the check would still fail.
        failure.category is Category.FLAKY_TEST,
        -(failure.confidence or 0),
        # One that no change explains may have failed before the work.
        not any(each.hunk is not None and each.score > UNRELATED for each in failure.candidates),
    )


def sorted_failures(todo: Todo, outcome: Outcome) -> tuple[list[Failure], tuple[Failure, ...]]:
    """Split the failures of a failing todo into its own, most severe first, and pre-existing ones.

    Failures of environment and harness count as its own. An outcome without failures has one of unknown
    category.
    """
    failures = list(failures_of(outcome)) or [Failure(category=Category.UNKNOWN)]
    apart = tuple(
        failure
        for failure in failures
        if is_preexisting(todo, outcome, failure) and not is_unowned(failure)
    )
    return [failure for failure in failures if failure not in apart], apart


def is_unowned(failure: Failure) -> bool:
    """Return whether environment or harness own a failure, so that no role of the plan is responsible."""
    if failure.category.facts.family is Family.ENVIRONMENT:
        return True
    # A role can declare and install a missing dependency, although the environment lacks it.
    return failure.owner in UNOWNED and failure.category is not Category.IMPORT_ERROR


def may_edit_fault(todo: Todo, failure: Failure | None) -> bool:
    """Return whether a todo may edit the file at fault; true if that file is unknown."""
    place = None if failure is None else failure.location
    return place is None or todo.allowed_files is None or allowed(place.path, todo.allowed_files)


def is_begun(todo: Todo, outcome: Outcome) -> bool:
    """Return whether there is a sign of work on a failing todo for which none was requested.

    There is none if it is not claimed, no check passes, none of its files changed, and each failure is
    either of something missing or pre-existing.
    """
    if todo.status is TodoStatus.CLAIMED:
        return True
    if todo.is_temporary:  # an inserted step fails until somebody claims it
        return False
    # Tests that must stay green pass without any work.
    if any(check.counts_as is Verdict.PASSED for check in outcome.checks if check.id != STAY_GREEN):
        return True
    # Without files of its own, every change may be work on the todo.
    files = claimed_files(todo)
    if any(allowed(path, files) for path in outcome.touched_files) if files else outcome.touched_files:
        return True
    return not all(
        (failure.category in _MISSING or failure.since in BEFORE_THE_WORK) and not is_unowned(failure)
        for failure in failures_of(outcome)
    )


MOST_NAMED = 5
"""Number of todos named in a reason; the rest are counted."""

_OF_STATE = {
    TodoState.DONE: Verdict.PASSED,
    TodoState.TEST_FAILED: Verdict.FAILED,
    TodoState.BLOCKED: Verdict.BLOCKED,
    TodoState.PENDING: Verdict.NOT_RUN,
}
_REASONS = {
    Verdict.FAILED: "failed",
    Verdict.INCONCLUSIVE: "was inconclusive",
    Verdict.STALE: "must be answered again",
    Verdict.NEEDS_HUMAN: "must be answered by a person",
    Verdict.BLOCKED: "blocked",
    Verdict.NOT_RUN: "not done yet",
}
"""Phrases, in order of precedence: the first verdict that a todo of a sub-plan has is the sub-plan's."""


def verdict_of(outcome: Outcome) -> Verdict:
    """Return the verdict that a todo of a sub-plan contributes to its parent.

    A nested parent with failing todos counts as failed, although its own state is not ``test_failed``.
    """
    state = outcome.state or (TodoState.DONE if outcome.success else TodoState.TEST_FAILED)
    if state in _OF_STATE:
        return _OF_STATE[state]
    found = {Verdict.FAILED if check.counts_as.is_red else check.counts_as for check in outcome.checks}
    return next((each for each in _REASONS if each in found), Verdict.NOT_RUN)


def sub_plan_verdict(children: Iterable[Verdict]) -> Verdict:
    """Return the verdict of the check ``sub_plan``: passed if all todos passed, else the most serious one.

    Todos that are blocked by a failed one do not count beside it; ``not_run`` for an empty sub-plan.
    """
    found = set(children)
    return next((each for each in (*_REASONS, Verdict.PASSED) if each in found), Verdict.NOT_RUN)


def sub_plan_reason(children: Sequence[Outcome], verdict: Verdict) -> str | None:
    """Return a phrase with the todos that decide the verdict: ``phase-2/buffer-impl failed``.

    Returns ``None`` if the check passed.
    """
    if verdict is Verdict.PASSED:
        return None
    names = [child.todo_id for child in children if verdict_of(child) is verdict]
    return f"{listed(names, MOST_NAMED)} {_REASONS[verdict]}"


def parent_verdicts(own: Iterable[Verdict], children: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts from which a parent's state follows.

    Its own criteria count as those of any todo. A failed todo of its sub-plan counts as inconclusive: it
    belongs to that todo, so the parent is not done yet, but not ``test_failed`` either.
    """
    return [*own, *(Verdict.INCONCLUSIVE if verdict.is_red else verdict for verdict in children)]


# -- failures from before the work ---------------------------------------------------------------------


GREEN = frozenset((TestOutcome.PASSED, TestOutcome.XPASSED))
"""Outcomes of tests that ran and passed."""

BEFORE_THE_WORK = frozenset((Since.PRE_EXISTING, Since.FLAKY_AT_BASE))
"""Comparisons that show that a failure was not caused by the work on the todo."""


SET_APART = "pre_existing_"
"""Prefix of the ids of todos that were created for a pre-existing failure of another todo."""


def is_preexisting(todo: Todo, outcome: Outcome | None, failure: Failure) -> bool:
    """Return whether a failure was neither caused by the work on a todo nor is the todo's to repair.

    A failure from before the work is the todo's to repair if the todo names its tests
    (``must_turn_green``), or if the todo was open at the baseline and its whole check failed there. A
    failing test among passing ones is not. With ``outcome`` ``None`` the state at the baseline is unknown.
    """
    if failure.since not in BEFORE_THE_WORK or failure.check_id == TURN_GREEN:
        return False
    # A todo that was created for such a failure would otherwise be given a todo for it again, and so on.
    if todo.id.rpartition("/")[2].startswith(SET_APART):
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
    """Return whether a list names a test: by its node id, or without parameters, or by class, file, folder.

    ``all`` names every test.
    """
    if named == "all":
        return True
    return any(_names(each.removeprefix("./").rstrip("/"), nodeid) for each in named)


def _names(name: str, nodeid: str) -> bool:
    return name in (".", nodeid) or nodeid.startswith((f"{name}[", f"{name}::", f"{name}/"))
