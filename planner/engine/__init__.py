"""The engine: carries a plan from its submission to its end, as a fold over events.

It does nothing itself. A driver tells it facts, each with its own time, and performs the actions that it
answers with. The state is a value; the same events give the same states and the same actions, byte for
byte. No clock, no random source and no file is read.

The modules, in the order of their imports: ``state``, ``transaction`` (one event being taken in),
``admission``, ``consequences``, ``budget``, ``requests``, ``revision``, ``repair``, ``dispatch``, then the
events: ``work``, ``verification``, ``answers``; and ``settlement``. ``intake`` tells the outcomes of a run,
``plans`` and ``progress`` read the state.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from planner.engine.admission import admit, problems_of
from planner.engine.answers import approval_given, plan_revised, question_answered, stop_requested
from planner.engine.budget import check_budget, is_over_budget
from planner.engine.consequences import offer
from planner.engine.rules import ENGINE_RULES, REFUSALS
from planner.engine.settlement import ask_again, halt, settle
from planner.engine.state import PlanPart, Question, State, TodoRecord
from planner.engine.transaction import Stop, Transaction
from planner.engine.verification import Handled, verified
from planner.engine.work import (
    budget_spent,
    conflict_found,
    expire,
    is_due,
    sub_plan_loaded,
    work_finished,
    work_started,
)
from planner.errors import IllegalTransition, RefusedEvent
from planner.memory import Memory
from planner.model.actions import Finish
from planner.model.events import PlanSubmitted
from planner.model.life import PlanState
from planner.model.past import PastRecords
from planner.model.plan import MAX_TODOS
from planner.model.run_policy import RunPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from planner.model.actions import Action
    from planner.model.events import ClockTicked, Event, RunResumed, RunStarted
    from planner.model.plan import Plan

__all__ = [
    "ENGINE_RULES",
    "REFUSALS",
    "Engine",
    "PlanPart",
    "Question",
    "State",
    "TodoRecord",
    "advance",
    "fold",
    "start",
    "step",
]


def start(event: PlanSubmitted) -> tuple[State, tuple[Action, ...]]:
    """The state of a plan that was submitted: ``ready``, or ``rejected`` where it is unfit."""
    plan = event.plan
    memory = Memory(event.memory)
    state = State(
        plan_id=plan.todo_list_id,
        path=event.path,
        policy=event.policy,
        memory=None if memory.is_empty else memory,
        now=event.at.timestamp(),
    )
    tx = Transaction(state, event.event)
    tx.events = 1
    tx.plan_to(PlanState.VALIDATING)
    problems = (*event.problems, *problems_of(plan))
    if len(plan.items) > MAX_TODOS:
        problems = (*problems, f"the plan has more than {MAX_TODOS} todos; split it")
    if problems:
        tx.parts[""] = PlanPart(plan, 1, event.digest)
        tx.plan_to(PlanState.REJECTED)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        action = Finish(
            seq=tx.number(),
            rule="unfit-plan",
            because=f"the plan is not fit to be carried out ({count})",
            result="rejected",
            problems=problems,
        )
        tx.actions.append(action)
        tx.stopped = action
    else:
        admit(tx, plan, event.digest, "")
        tx.plan_to(PlanState.READY)
    return tx.state(), tx.made()


def step(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """The state after an event, and what the engine asks of its driver.

    Pure and total: any event is either taken in as a whole, or refused with
    :class:`planner.errors.RefusedEvent`, of which :class:`planner.errors.IllegalTransition` is one.
    """
    tx = _taken_in(state, event)
    return tx.state(), tx.made()


def advance(state: State, event: Event) -> State:
    """The state after an event. What the engine asks for is not made, which is most of the cost."""
    return _taken_in(state, event).state()


def fold(events: Iterable[Event]) -> State:
    """The state after events, the first of which submits the plan; what they called for is left aside."""
    state: State | None = None
    for event in events:
        if state is None:
            if not isinstance(event, PlanSubmitted):
                raise RefusedEvent(
                    "no-plan", "the first event submits no plan", "begin with plan_submitted"
                )
            state, _ = start(event)
        else:
            state = advance(state, event)
    if state is None:
        raise RefusedEvent("no-plan", "there is no event", "begin with plan_submitted")
    return state


class Engine:
    """The engine under one name, for programs that submit a plan of their own."""

    @staticmethod
    def start(
        plan: Plan,
        policy: RunPolicy | None = None,
        memory: PastRecords | None = None,
        *,
        at: datetime,
        digest: str = "",
        path: str = "plan.yaml",
        problems: tuple[str, ...] = (),
    ) -> State:
        """The state of a plan that was submitted at that time. ``problems`` are those of validation."""
        state, _ = start(
            PlanSubmitted(
                at=at,
                plan=plan,
                digest=digest,
                path=path,
                problems=problems,
                policy=policy or RunPolicy(),
                memory=memory or PastRecords(),
            )
        )
        return state

    step = staticmethod(step)


def _taken_in(state: State, event: Event) -> Transaction:
    kind = event.event
    _refuse_out_of_place(state, kind)
    tx = Transaction(state, kind)
    tx.now = max(state.now, event.at.timestamp())
    tx.events += 1
    due, over = is_due(tx), is_over_budget(tx)
    if due or over:
        # Time alone brings something about; an event that is refused brings about nothing at all.
        rehearsal = Transaction(state, kind)
        rehearsal.now = tx.now
        with suppress(Stop, Handled):
            _TAKEN_IN[kind](rehearsal, event)
    try:
        if due:
            expire(tx)
        if over:
            check_budget(tx, None)
        _TAKEN_IN[kind](tx, event)
        settle(tx)
    except Handled:
        _settle_or_halt(tx)
    except Stop as stop:
        halt(tx, stop)
    return tx


def _refuse_out_of_place(state: State, kind: str) -> None:
    """Refuse what cannot be told in this state of the plan, whatever it is about."""
    if state.plan_state.is_final:
        how = state.plan_state.value
        raise RefusedEvent(
            "run-is-over", f"the run is over: the plan is {how}", "begin another, in a log of its own"
        )
    if kind == "plan_submitted":
        raise RefusedEvent(
            "plan-is-submitted", "a plan is submitted once, as the first event", "leave it out"
        )
    begun = state.plan_state is not PlanState.READY
    if kind == "run_started" and begun:
        raise IllegalTransition(
            "the plan",
            state.plan_state,
            PlanState.EXECUTING,
            kind,
            remedy="a run is started once; go on with run_resumed",
        )
    if not begun and kind not in ("run_started", "run_resumed", "stop_requested", "clock_ticked"):
        raise RefusedEvent("run-not-started", f"{kind} comes before run_started", "begin with run_started")


def _settle_or_halt(tx: Transaction) -> None:
    try:
        settle(tx)
    except Stop as stop:
        halt(tx, stop)


def _run_started(tx: Transaction, event: RunStarted | RunResumed) -> None:
    del event
    tx.started = tx.now
    tx.plan_to(PlanState.EXECUTING)
    offer(tx, [name for name, _ in sorted(tx.records.items(), key=lambda item: item[1].rank)])


def _run_resumed(tx: Transaction, event: RunResumed) -> None:
    """Ask again; a driver that was killed before it could begin, begins."""
    if tx.plan_state is PlanState.READY:
        _run_started(tx, event)
    else:
        ask_again(tx)


def _clock_ticked(tx: Transaction, event: ClockTicked) -> None:
    """The limits were looked at already, as with every event."""
    del tx, event


_TAKEN_IN: dict[str, Callable[[Transaction, Any], None]] = {
    "run_started": _run_started,
    "work_started": work_started,
    "work_finished": work_finished,
    "verified": verified,
    "approval_given": approval_given,
    "question_answered": question_answered,
    "budget_spent": budget_spent,
    "clock_ticked": _clock_ticked,
    "conflict_found": conflict_found,
    "sub_plan_loaded": sub_plan_loaded,
    "plan_revised": plan_revised,
    "run_resumed": _run_resumed,
    "stop_requested": stop_requested,
}
