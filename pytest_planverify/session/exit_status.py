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
    stops = {family for entry in entries for family in _stops(entry)}
    if Family.SANDBOX in stops:
        return ExitStatus.VIOLATION
    if Family.BUDGET in stops:
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


def _stops(outcome: Outcome) -> set[Family]:
    """Return ``SANDBOX`` for denied access or a guard's violation, and ``BUDGET`` for a spent budget.

    A guard's check counts even if the todo is blocked, as what it reports has happened.
    """
    found = {failure.category.facts.family for failure in outcome.failures}
    for check in outcome.checks:
        if any(event.denied for event in check.events):
            found.add(Family.SANDBOX)
        if check.kind is CheckKind.GUARD and (check.verdict.is_red or check.verdict is Verdict.BLOCKED):
            found.add(Family.BUDGET if check.id == _BUDGET else Family.SANDBOX)
    return found & {Family.SANDBOX, Family.BUDGET}


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
        if claimed or ready or _stops(entry):
            kept.append(entry)
    return kept
