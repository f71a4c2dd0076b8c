"""Tell the engine what a run of ``pytest --planverify`` has found: one event for each of its outcomes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.engine.state import is_claimed
from planner.errors import RefusedEvent
from planner.model.events import RunStarted, SubPlanLoaded, Verified
from planner.model.verdicts import PlanState, TodoLife, TodoState
from planner.policy.outcomes import failures_of, state_of, violations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from planner.engine.state import State, TodoRecord
    from planner.model.events import Event
    from planner.model.outcome import Outcome, OutcomeDocument

    Tell = Callable[[Event], State]
    """Tells the engine an event, and returns the state after it."""


def tell_run(
    state: State, document: OutcomeDocument | None, sub_plans: Collection[str], now: datetime, tell: Tell
) -> tuple[State, list[str]]:
    """Tell what a run has found, and return the state after it, with what the engine did not believe.

    ``sub_plans`` are the parents, by their qualified ids, whose sub-plans can be loaded. What was told
    before of the same run is not told again. ``now`` stands for times that the document does not give.
    """
    refused: list[str] = []
    started = now if document is None else _time(document.run.started_at, now)
    if state.plan_state is PlanState.READY:
        state = tell(RunStarted(at=started))
    state = _load_sub_plans(state, sub_plans, started, tell)
    if document is None:
        return state, refused
    at = _time(document.run.finished_at, started)
    pending = _in_order(state, document)
    while pending:
        later: list[Outcome] = []
        for outcome in pending:
            record = state.records.get(outcome.todo_id)
            if record is None:  # its sub-plan is loaded when what its parent depends on is done
                later.append(outcome)
                continue
            if state.plan_state.is_final or not _is_news(state, record, outcome, document):
                continue
            if _comes_too_early(state, record, outcome):
                later.append(outcome)
                continue
            try:
                state = tell(_event_of(outcome, document, at))
            except RefusedEvent as error:
                refused.append(str(error))
            state = _load_sub_plans(state, sub_plans, at, tell)
        if len(later) == len(pending):
            break
        pending = later
    return state, refused


def must_begin_anew(state: State, document: OutcomeDocument) -> bool:
    """Return whether a run contradicts what was settled: then the plan is carried out anew."""
    run_id = document.run.run_id
    if any(record.run_id == run_id for record in state.records.values() if run_id):
        return False
    found = {outcome.todo_id: state_of(outcome) for outcome in document.outcomes}
    if state.plan_state.is_final:
        return state.plan_state is not PlanState.COMPLETED or any(
            found.get(name, TodoState.DONE) is not TodoState.DONE for name in state.records
        )
    return any(
        record.life is TodoLife.DONE and found.get(name) is TodoState.TEST_FAILED
        for name, record in state.records.items()
        if not record.is_branch
    )


def _event_of(outcome: Outcome, document: OutcomeDocument, at: datetime) -> Verified:
    shown = {failure.signature for failure in failures_of(outcome)}
    causes = tuple(
        each.signatures
        for each in document.causes
        if len(each.signatures) > 1 and not shown.isdisjoint(each.signatures)
    )
    return Verified(at=at, outcome=outcome, run_id=document.run.run_id or None, causes=causes)


def _in_order(state: State, document: OutcomeDocument) -> list[Outcome]:
    """Return the outcomes of the plan: of branches first, then the most urgent, in the plan's order."""

    def rank(outcome: Outcome) -> tuple[bool, int, tuple[int, ...]]:
        record = state.records.get(outcome.todo_id)
        return (
            (False, 0, ()) if record is None else (not record.is_branch, record.todo.priority, record.rank)
        )

    own = [each for each in document.outcomes if each.plan in (None, state.plan_id)]
    return sorted(own, key=rank)


def _is_news(state: State, record: TodoRecord, outcome: Outcome, document: OutcomeDocument) -> bool:
    if record.life.is_final or (record.run_id is not None and record.run_id == document.run.run_id):
        return False
    if document.run.scope != "claimed" or state_of(outcome) is TodoState.DONE:
        return True
    return is_claimed(state, record)


def _comes_too_early(state: State, record: TodoRecord, outcome: Outcome) -> bool:
    """Return whether something that the todo rests on may be told first."""
    if violations_of(outcome):
        return False
    if record.parent_id is not None and state_of(outcome) is not TodoState.DONE:
        # Of a branch that the plan file holds, a failure says something once its todo is known to be red.
        return state.records[record.parent_id].life is not TodoLife.TEST_FAILED
    return record.is_parent or (state_of(outcome) is not TodoState.DONE and state.waits(record))


def _load_sub_plans(state: State, sub_plans: Collection[str], at: datetime, tell: Tell) -> State:
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


def _time(text: str, default: datetime) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return default
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
