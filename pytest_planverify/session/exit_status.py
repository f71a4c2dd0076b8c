"""Exit status of a run: the most serious condition among its outcomes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from planner.model.plan import TodoStatus
from planner.model.taxonomy import Family
from planner.model.verdicts import CheckKind, TodoState, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from planner.model.outcome import Outcome
    from planner.model.plan import Todo
    from pytest_planverify.options import Scope


_BUDGET = "budget"
"""Id of the check that a spent budget adds."""


class ExitStatus(IntEnum):
    """Exit statuses of a run; :func:`exit_status` defines their precedence."""

    ACCEPTED = 0
    FAILED = 1
    INTERRUPTED = 2
    INTERNAL_ERROR = 3
    USAGE_ERROR = 4
    NOTHING_TO_VERIFY = 5
    INCONCLUSIVE = 10
    HUMAN_NEEDED = 11
    BUDGET_EXCEEDED = 12
    VIOLATION = 13


def exit_status(
    outcomes: Iterable[Outcome],
    *,
    interrupted: bool = False,
    unexplained: bool = False,
) -> ExitStatus:
    """Return the exit status for the outcomes that count.

    ``unexplained``: a session failed for no test's reason, which turns 0 into 1.
    """
    if interrupted:
        return ExitStatus.INTERRUPTED
    entries = list(outcomes)
    verdicts = {check.counts_as for entry in entries for check in entry.checks}
    # A sub-plan's check repeats the verdicts of its todos, which are among the outcomes themselves.
    proved = any(
        check.counts_as is Verdict.PASSED and check.kind is not CheckKind.SUB_PLAN
        for entry in entries
        for check in entry.checks
    )
    if any(map(_has_violation, entries)):
        return ExitStatus.VIOLATION
    if any(_has_failure_of(each, Family.BUDGET) for each in entries):
        return ExitStatus.BUDGET_EXCEEDED
    # A blocked todo may have no failed check of its own, if the todo that blocks it does not count.
    failed = (TodoState.TEST_FAILED, TodoState.BLOCKED)
    if Verdict.FAILED in verdicts or any(entry.state in failed for entry in entries):
        return ExitStatus.FAILED
    if Verdict.INCONCLUSIVE in verdicts:
        return ExitStatus.INCONCLUSIVE
    if verdicts & {Verdict.NEEDS_HUMAN, Verdict.STALE}:
        return ExitStatus.HUMAN_NEEDED
    if not proved:
        return ExitStatus.NOTHING_TO_VERIFY
    return ExitStatus.FAILED if unexplained else ExitStatus.ACCEPTED


def _has_violation(outcome: Outcome) -> bool:
    """Return whether a guard other than the budget found a violation, or access was denied."""
    denied = any(event.denied for check in outcome.checks for event in check.events)
    return denied or _has_failure_of(outcome, Family.SANDBOX)


def _has_failure_of(outcome: Outcome, family: Family) -> bool:
    """Return whether a todo has a failure of that family: the budget's, or another guard's violation.

    A guard's check counts even if the todo is blocked, as what it reports has happened.
    """
    return any(failure.category.facts.family is family for failure in outcome.failures) or any(
        each.kind is CheckKind.GUARD
        and (each.id == _BUDGET) is (family is Family.BUDGET)
        and (each.verdict.is_red or each.verdict is Verdict.BLOCKED)
        for each in outcome.checks
    )


def counting(
    outcomes: Sequence[Outcome],
    todos: Mapping[tuple[str | None, str], Todo],
    scope: Scope,
    unasked: Collection[tuple[str | None, str]] = (),
) -> list[Outcome]:
    """Return the outcomes that determine the exit status under a scope, without ``unasked`` todos.

    Violations and spent budgets always count, whichever requested todo they were found in: they concern
    the whole run.
    """
    asked = [entry for entry in outcomes if (entry.plan, entry.todo_id) not in unasked]
    if scope == "all":
        return asked
    # Of all outcomes: a dependency that was not requested may be done by its last verdicts.
    done = {(entry.plan, entry.todo_id) for entry in outcomes if entry.state is TodoState.DONE}
    kept: list[Outcome] = []
    for entry in asked:
        todo = todos[entry.plan, entry.todo_id]
        claimed = todo.status is TodoStatus.CLAIMED
        ready = scope == "ready" and all((entry.plan, name) in done for name in todo.dependencies)
        if claimed or ready or _has_violation(entry) or _has_failure_of(entry, Family.BUDGET):
            kept.append(entry)
    return kept
