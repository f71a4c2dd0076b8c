"""Intake: reports the outcomes of a ``pytest --planverify`` run to the engine, one event each.

It decides what the engine has to learn, and in which order: an outcome is held back until the outcomes
are reported on which its meaning depends. What follows from an outcome is decided by the engine.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.engine.state import is_claimed
from planner.errors import RefusedEvent
from planner.model.events import RunStarted, SubPlanLoaded, Verified
from planner.model.verdicts import PlanState, TodoLife, TodoState
from planner.policy.outcomes import failures_of, may_edit_fault, state_of, violations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from planner.engine.state import State, TodoRecord
    from planner.model.events import Event
    from planner.model.outcome import Outcome, OutcomeDocument

    Tell = Callable[[Event], State]
    """Stores an event, applies it and returns the new state."""


def report_run(
    state: State, document: OutcomeDocument | None, sub_plans: Collection[str], now: datetime, tell: Tell
) -> tuple[State, list[str]]:
    """Report a run's outcomes; return the new state and the messages of refused events.

    ``sub_plans`` are the qualified ids of parents whose sub-plans can be loaded. Outcomes of a run that
    were reported before are skipped. ``now`` replaces times that the document lacks. ``document`` is
    ``None`` before the first run. The run is started if it is not.
    """
    refused: list[str] = []
    started = now if document is None else time_of(document.run.started_at, now)
    if state.plan_state is PlanState.READY:
        state = tell(RunStarted(at=started))
    state = _load_sub_plans(state, sub_plans, started, tell)
    if document is None:
        return state, refused
    at = time_of(document.run.finished_at, started)
    pending = _in_order(state, document)
    while pending:
        later: list[Outcome] = []
        for outcome in pending:
            record = state.records.get(outcome.todo_id)
            if record and (state.plan_state.is_final or not _is_news(state, record, outcome, document)):
                continue
            # Without a record it is part of a sub-plan that is not loaded yet.
            if record is None or _comes_too_early(state, record, outcome):
                later.append(outcome)
                continue
            shown = {failure.signature for failure in failures_of(outcome)}
            # A cause with one signature joins this failure with no other one.
            groups = (each.signatures for each in document.causes if len(each.signatures) > 1)
            causes = tuple(group for group in groups if not shown.isdisjoint(group))
            run_id = document.run.run_id or None
            try:
                state = tell(Verified(at=at, outcome=outcome, run_id=run_id, causes=causes))
            except RefusedEvent as error:
                refused.append(str(error))
            state = _load_sub_plans(state, sub_plans, at, tell)
        if len(later) == len(pending):  # no progress: the rest depends on outcomes that are missing
            break
        pending = later
    return state, refused


def must_restart(state: State, document: OutcomeDocument) -> bool:
    """Return whether a run contradicts a final result, so that the plan has to start over in a new log.

    Final states of todos and plans have no way back.
    """
    run_id = document.run.run_id
    # A run that was reported before contradicts nothing.
    if any(record.run_id == run_id for record in state.records.values() if run_id):
        return False
    if state.plan_state.is_final:
        found = {outcome.todo_id: state_of(outcome) for outcome in document.outcomes}
        return state.plan_state is not PlanState.COMPLETED or any(
            found.get(name, TodoState.DONE) is not TodoState.DONE for name in state.records
        )
    return bool(failed_again(state, document))


def failed_again(state: State, document: OutcomeDocument) -> list[str]:
    """Return the todos that are done in the run, and failed in the verification of the document."""
    records = state.records
    return [
        each.todo_id
        for each in document.outcomes
        if each.todo_id in records
        and records[each.todo_id].life is TodoLife.DONE
        and not records[each.todo_id].is_branch
        and state_of(each) is TodoState.TEST_FAILED
    ]


def _in_order(state: State, document: OutcomeDocument) -> list[Outcome]:
    """Return the plan's outcomes in the order to report: branches first, then by priority and rank.

    Beside a violation, those that passed come before all others.
    """
    own = [each for each in document.outcomes if each.plan in (None, state.plan_id)]
    # Nothing is reported after a violation, which halts the run: todos that are done would not be counted.
    is_halted = any(map(violations_of, own))

    def rank(outcome: Outcome) -> tuple[bool, bool, bool, int, tuple[int, ...]]:
        is_late = is_halted and state_of(outcome) is not TodoState.DONE
        record = state.records.get(outcome.todo_id)
        if record is None:
            return (is_late, False, False, 0, ())
        # Last, as of several todos with one cause the first is repaired.
        is_shut_out = not may_edit_fault(record.todo, outcome.failure_evidence)
        return (is_late, not record.is_branch, is_shut_out, record.todo.priority, record.rank)

    return sorted(own, key=rank)


def _is_news(state: State, record: TodoRecord, outcome: Outcome, document: OutcomeDocument) -> bool:
    """Return whether an outcome was not reported yet and concerns a todo that the run was to verify."""
    if record.life.is_final or (record.run_id is not None and record.run_id == document.run.run_id):
        return False
    # It was not verified: it has no criteria, or the run ended before it.
    if state_of(outcome) is TodoState.PENDING and record.life is not TodoLife.TESTING:
        return bool(violations_of(outcome))
    # A run of claimed todos also shows others: of these, only passes are reported.
    if document.run.scope != "claimed" or state_of(outcome) is TodoState.DONE:
        return True
    return is_claimed(state, record)


def _comes_too_early(state: State, record: TodoRecord, outcome: Outcome) -> bool:
    """Return whether other outcomes, on which this one's meaning depends, have to be reported first.

    These are the outcome of the todo that a failing branch repairs, those of a parent's sub-plan, and
    those of a failing todo's dependencies.
    """
    # A violation halts the run, whatever the other outcomes are.
    if violations_of(outcome):
        return False
    if record.parent_id is not None and state_of(outcome) is not TodoState.DONE:
        # A failing branch of the plan file is only meaningful once its todo is known to fail.
        return state.records[record.parent_id].life is not TodoLife.TEST_FAILED
    return record.is_parent or (state_of(outcome) is not TodoState.DONE and state.waits(record))


def _load_sub_plans(state: State, sub_plans: Collection[str], at: datetime, tell: Tell) -> State:
    """Report every sub-plan that the engine waits for as loaded; return the new state."""
    # Searched again after each event: a loaded sub-plan can make others start.
    while sub_plans:
        wanted = next(
            (
                name
                for name, record in state.records.items()
                if record.is_parent
                and record.life is TodoLife.ACTIVE
                and record.question is None
                and name not in state.parts
                and name in sub_plans
            ),
            None,
        )
        if wanted is None or state.plan_state.is_final:
            return state
        state = tell(SubPlanLoaded(at=at, todo_id=wanted))
    return state


def time_of(text: str, default: datetime) -> datetime:
    """Parse an ISO time, in UTC if it names no zone; return ``default`` if it is invalid."""
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # near the first or last year, it may have no date in UTC
        return default
