"""What is decided about each todo that is not done, before anything is written about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.decision import Move
from planner.model.outcome import Failure
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category, Family, Owner
from planner.model.verdicts import TestOutcome, TodoState, Verdict
from planner.rules.branching import attempts_of, branch_reason, circle_of, tried
from planner.rules.criteria import STAY_GREEN, TURN_GREEN
from planner.rules.halting import failures_of
from planner.rules.own_work import is_not_its_work

if TYPE_CHECKING:
    from planner.model.outcome import Check, Outcome
    from planner.model.plan import Todo
    from planner.rules.board import Board, Entry

NOBODYS = frozenset((Owner.ENVIRONMENT, Owner.HARNESS))
"""Owners that no role of the plan can answer for."""

SUPPLIED = frozenset((Category.IMPORT_ERROR,))
"""What only the environment lacks, and a role can supply all the same: it declares and installs it."""

UNDECIDED = frozenset((Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.NOT_RUN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The move for one todo, by which rule and why."""

    entry: Entry
    move: Move
    rule: str
    because: str
    failure: Failure | None = None
    """The failure that decides; of one that is set apart, the first of those."""
    before_the_work: tuple[Failure, ...] = ()
    """Failures that are set apart, whatever the move."""
    branch: Entry | None = None
    """The branch that is there already."""
    depth: int = 1
    """Of a branch that is to be made."""
    attempts: int = 0
    """Of the branch that is there, this run included."""


def triage(board: Board, now: str) -> list[Ruling]:
    """A ruling for each todo that calls for one, in the order in which they should be taken up."""
    rulings = [
        ruling
        for entry in board.primaries()
        if entry.outcome is not None
        for ruling in [
            _in_a_circle(board, entry) if entry.id in board.blocked else _rule(board, entry, now)
        ]
        if ruling is not None
    ]
    return sorted(rulings, key=lambda ruling: board.rank[ruling.entry.id])


def _in_a_circle(board: Board, entry: Entry) -> Ruling | None:
    """A blocked todo that waits for its own branch: nothing else would ever be decided about it."""
    branch = next((each for each in board.branches_of(entry) if each.id in board.blocked[entry.id]), None)
    if branch is None:
        return None
    return Ruling(
        entry=entry,
        move=Move.ESCALATE,
        rule="branches-in-a-circle",
        because=f"it waits for its own branch {branch.todo.id}, which is there to repair it",
        branch=branch,
    )


def _rule(board: Board, entry: Entry, now: str) -> Ruling | None:
    outcome = entry.outcome
    assert outcome is not None
    if entry.failed:
        return _failed(board, entry, now)
    if entry.state is TodoState.TESTING:
        return _undecided(entry)
    if entry.state is TodoState.PENDING and _is_claimed_unseen(entry):
        return Ruling(
            entry=entry,
            move=Move.VERIFY,
            rule="claimed-but-not-run",
            because="it is said to be done, and nothing of it was run",
        )
    return None


def sorted_failures(todo: Todo, outcome: Outcome) -> tuple[list[Failure], tuple[Failure, ...]]:
    """The failures of a red todo: its own, the one that decides first, and those older than the work."""
    failures = list(failures_of(outcome)) or [Failure(category=Category.UNKNOWN)]
    apart = tuple(
        failure
        for failure in failures
        if is_not_its_work(todo, outcome, failure) and not is_nobodys(failure)
    )
    return [failure for failure in failures if failure not in apart], apart


def is_nobodys(failure: Failure) -> bool:
    """Whether no role of the plan can answer for a failure: the environment's, or the run's own."""
    if failure.category.facts.family is Family.ENVIRONMENT:
        return True
    return failure.owner in NOBODYS and failure.category not in SUPPLIED


def _failed(board: Board, entry: Entry, now: str) -> Ruling | None:
    outcome = entry.outcome
    assert outcome is not None
    mine, apart = sorted_failures(entry.todo, outcome)
    if not mine:
        return Ruling(
            entry=entry,
            move=Move.SEPARATE,
            rule="pre-existing-failure",
            because="it failed before the work began, so the todo is not to blame",
            failure=apart[0],
            before_the_work=apart,
        )
    if is_nobodys(mine[0]):
        return _nobodys(entry, mine[0], apart)
    return _repair(board, entry, mine[0], apart, now)


def _nobodys(entry: Entry, failure: Failure, apart: tuple[Failure, ...]) -> Ruling:
    harness = failure.category is Category.HARNESS_ERROR or failure.owner is Owner.HARNESS
    return Ruling(
        entry=entry,
        move=Move.RETRY_LATER,
        rule="harness-blames-nobody" if harness else "environment-blames-nobody",
        because="the run itself went wrong, which says nothing about the work"
        if harness
        else "something that the work does not own was not there",
        failure=failure,
        before_the_work=apart,
    )


def _undecided(entry: Entry) -> Ruling:
    outcome = entry.outcome
    assert outcome is not None
    nobodys = next((failure for failure in failures_of(outcome) if is_nobodys(failure)), None)
    if nobodys is not None:
        return _nobodys(entry, nobodys, ())
    verdicts = {check.counts_as for check in outcome.checks}
    if Verdict.NEEDS_HUMAN in verdicts and not verdicts & UNDECIDED:
        return Ruling(
            entry=entry,
            move=Move.WAIT,
            rule="question-is-open",
            because="only the answer of a person is missing",
        )
    if entry.todo.has_sub_plan and not verdicts & UNDECIDED:
        return Ruling(
            entry=entry,
            move=Move.WAIT,
            rule="children-first",
            because="its state comes from the todos of its sub-plan",
        )
    open_checks = [check for check in outcome.checks if check.counts_as in UNDECIDED]
    if open_checks and all(_is_beyond_proof(outcome, check) for check in open_checks):
        first = open_checks[0]
        return Ruling(
            entry=entry,
            move=Move.ESCALATE,
            rule="demand-proves-nothing",
            because=f"{first.id} stays open however often it is run: {first.reason}",
        )
    return Ruling(
        entry=entry,
        move=Move.VERIFY,
        rule="inconclusive-is-verified-again",
        because="the run could not tell whether it holds",
        failure=outcome.failure_evidence,
    )


def _repair(board: Board, entry: Entry, failure: Failure, apart: tuple[Failure, ...], now: str) -> Ruling:
    """The next step of a repair: a first branch, another attempt, a deeper branch, or a person."""
    limit = entry.plan.metadata.max_branch_depth
    branches = board.branches_of(entry)
    base = Ruling(
        entry=entry,
        move=Move.BRANCH,
        rule="failed-todo-gets-a-branch",
        because="its acceptance criteria failed",
        failure=failure,
        before_the_work=apart,
        branch=branches[-1] if branches else None,
    )
    if entry.is_branch:
        because = f"it is a branch of '{entry.todo.parent_id}', and the plan has no such todo"
        return _escalated(base, "branch-without-parent", because)
    if not branches:
        if limit < 1:
            return _escalated(base, "branch-depth", "the plan allows no branches (max_branch_depth is 0)")
        if entry.plan.metadata.max_debug_attempts < 1:
            because = "the plan allows no attempts at a repair (max_debug_attempts is 0)"
            return _escalated(base, "attempts-used-up", because)
        if attempts_of(branch_reason(failure.category), entry.plan.metadata) < 1:
            because = "the plan allows no attempts at mending a flaky test (flaky_retry.attempts is 0)"
            return _escalated(base, "attempts-used-up", because)
        return base
    last = branches[-1]
    circle = circle_of(last, branches)
    if circle:
        trail = " -> ".join(circle)
        return _escalated(base, "branches-in-a-circle", f"its branches came out of each other: {trail}")
    if entry.id in board.blocked.get(last.id, ()):
        because = f"its branch {last.todo.id} waits for the very todo that it is there to repair"
        return _escalated(base, "branches-in-a-circle", because)
    if last.id in board.blocked:
        because = f"{last.todo.id} is open, and waits for {', '.join(board.blocked[last.id]) or 'others'}"
        return replace(base, move=Move.WAIT, rule="branch-under-way", because=because)
    if last.state is not TodoState.DONE:
        return _open_branch(base, last, now)
    depth = (last.todo.branch_depth or 1) + 1
    still_red = f"{last.todo.id} passed and {entry.todo.id} is still red"
    if depth > limit:
        return _escalated(
            base,
            "branch-depth",
            f"{still_red}; a deeper branch would have depth {depth}, and max_branch_depth is {limit}",
        )
    return replace(base, rule="deeper-branch", because=still_red, depth=depth)


def _open_branch(base: Ruling, last: Entry, now: str) -> Ruling:
    policy = base.entry.plan.metadata
    outcome = base.entry.outcome
    branch, name = last.todo, last.todo.id
    memory = tried(branch)
    if last.state is not TodoState.TEST_FAILED or _failed_for_nobody(last):
        because = f"{name} is open, and this run says nothing final about it"
        return replace(base, move=Move.WAIT, rule="branch-under-way", because=because)
    lifetime = branch.max_lifetime_seconds or policy.branch_timeout_seconds
    age = _seconds_between(memory.opened_at, now)
    late = None
    if age is not None and age > lifetime:
        late = f"{name} is still red {age:.0f} s after it was made; it had {lifetime:.0f} s"
    if _is_untouched(branch, None if outcome is None else outcome.diff_hash):
        if late is not None:
            return _escalated(base, "branch-lifetime", late)
        because = f"{name} is open, and nothing has changed since it was made"
        return replace(base, move=Move.WAIT, rule="branch-under-way", because=because)
    attempts = memory.attempts + 1
    allowed = branch.max_debug_attempts
    allowed = attempts_of(branch.branch_reason, policy) if allowed is None else allowed
    base = replace(base, attempts=attempts)
    spent = f"{name} is still red after {attempts} of {allowed} attempts"
    if attempts >= allowed:
        return _escalated(base, "attempts-used-up", spent)
    if late is not None:
        return _escalated(base, "branch-lifetime", late)
    return replace(base, move=Move.RETRY, rule="branch-has-attempts-left", because=spent)


def _escalated(base: Ruling, rule: str, because: str) -> Ruling:
    return replace(base, move=Move.ESCALATE, rule=rule, because=because)


def _is_untouched(branch: Todo, diff_hash: str | None) -> bool:
    """Whether nobody can have worked on a branch: the tree is what it was, and nobody says it is done."""
    held = tried(branch).diff_hash
    return held is not None and held == diff_hash and branch.status is not TodoStatus.CLAIMED


def _failed_for_nobody(branch: Entry) -> bool:
    failures = [] if branch.outcome is None else list(failures_of(branch.outcome))
    return bool(failures) and is_nobodys(failures[0])


def _is_claimed_unseen(entry: Entry) -> bool:
    todo = entry.todo
    return todo.status is TodoStatus.CLAIMED and todo.requires_testing and not todo.has_sub_plan


def _is_beyond_proof(outcome: Outcome, check: Check) -> bool:
    """Whether a demand is open though all its tests have ended: the baseline leaves nothing to prove."""
    return (
        check.id in (TURN_GREEN, STAY_GREEN)
        and check.verdict is Verdict.INCONCLUSIVE
        and bool(check.tests)
        and all(test.outcome is not TestOutcome.NOT_RUN for test in check.tests)
        and not any(failure.check_id == check.id for failure in outcome.failures)
    )


def _seconds_between(earlier: str | None, later: str) -> float | None:
    if earlier is None:
        return None
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):  # no time, or one with a zone and one without
        return None
