"""The engine: carries a plan from its submission to its end, as a fold over events.

It does nothing itself. A driver tells it facts, each with its own time, and performs the actions that it
answers with. The state is a value; the same events give the same states and the same actions, byte for
byte. No clock, no random source and no file is read.

The modules, in the order of their imports: ``state``, ``transaction`` (one event being taken in),
``plans``, ``requests``, ``repair``, ``dispatch`` and ``events``. ``intake`` tells the outcomes of a run,
``progress`` reads the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.catalog.tables import load_table
from planner.engine.dispatch import ask_again, end, halt, settle
from planner.engine.events import (
    approval_given,
    budget_spent,
    conflict_found,
    expire,
    plan_revised,
    question_answered,
    stop_requested,
    sub_plan_loaded,
    verified,
    work_finished,
    work_started,
)
from planner.engine.plans import admit, problems_of
from planner.engine.state import PlanPart, State, TodoRecord
from planner.engine.transaction import Stop, Transaction
from planner.errors import IllegalTransition, RefusedEvent
from planner.memory import Memory
from planner.model.actions import Finish
from planner.model.events import PlanSubmitted, RunPolicy
from planner.model.past import PastRecords
from planner.model.plan import MAX_TODOS
from planner.model.verdicts import PlanState
from planner.revise.strategies import REVISION_RULES
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.plan import Plan

__all__ = [
    "ENGINE_RULES",
    "REFUSALS",
    "Engine",
    "PlanPart",
    "State",
    "TodoRecord",
    "advance",
    "fold",
    "start",
    "step",
]


_TABLE = load_table("rules", "planner.engine")
ENGINE_RULES: Mapping[str, str] = {**REVISION_RULES, **_TABLE["rules"]}
"""Every rule that an action may name, with what it says; those of revisions, too."""
REFUSALS: Mapping[str, str] = _TABLE["refusals"]
"""The rules by which an event is refused; no action bears them."""


def start(event: PlanSubmitted) -> tuple[State, tuple[Action, ...]]:
    """Return the state of a plan that was submitted: ``ready``, or ``rejected`` where it is unfit."""
    plan = event.plan
    memory = Memory(event.memory)
    state = State(
        plan_id=plan.todo_list_id,
        path=event.path,
        policy=event.policy,
        memory=None if memory.is_empty else memory,
        now=event.at.timestamp(),
        events=1,
    )
    tx = Transaction.begin(state, event.event)
    tx.plan_to(PlanState.VALIDATING)
    problems = (*event.problems, *problems_of(plan))
    if len(plan.items) > MAX_TODOS:
        problems = (*problems, f"the plan has more than {MAX_TODOS} todos; split it")
    if problems:
        tx.parts[""] = PlanPart(plan, 1, event.digest, ".", {})
        tx.plan_to(PlanState.REJECTED)
        because = f"the plan is not fit to be carried out ({counted(len(problems), 'problem')})"
        end(tx, Finish(rule="unfit-plan", because=because, result="rejected", problems=problems))
    else:
        admit(tx, plan, event.digest, "")
        tx.plan_to(PlanState.READY)
    return tx.state(), tuple(tx.actions)


def step(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """Return the state after an event, and what the engine asks of its driver.

    Pure and total: any event is either taken in as a whole, or refused with
    :class:`planner.errors.RefusedEvent`, of which :class:`planner.errors.IllegalTransition` is one.
    """
    tx = _taken_in(state, event)
    return tx.state(), tuple(tx.actions)


def advance(state: State, event: Event) -> State:
    """Return the state after an event. What the engine asks for is not made, which is most of the cost."""
    return _taken_in(state, event, quiet=True).state()


def fold(events: Iterable[Event]) -> State:
    """Return the state after events, the first of which submits the plan."""
    state: State | None = None
    for event in events:
        if state is not None:
            state = advance(state, event)
        elif isinstance(event, PlanSubmitted):
            state, _ = start(event)
        else:
            break
    if state is None:
        raise RefusedEvent("no-plan", "the first event submits no plan", "begin with plan_submitted")
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
        """Return the state of a submitted plan. ``problems`` are those of validation."""
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


def _taken_in(state: State, event: Event, *, quiet: bool = False) -> Transaction:
    kind = event.event
    _refuse_out_of_place(state, kind)
    tx = Transaction.begin(state, kind, quiet=quiet)
    tx.now = max(state.now, event.at.timestamp())
    tx.events += 1
    try:
        expire(tx)
        tx.check_budget()
        _TAKEN_IN[kind](tx, event)
        settle(tx)
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
        remedy = "a run is started once; go on with run_resumed"
        raise IllegalTransition("the plan", state.plan_state, PlanState.EXECUTING, kind, remedy=remedy)
    if not begun and kind not in ("run_started", "run_resumed", "stop_requested", "clock_ticked"):
        raise RefusedEvent("run-not-started", f"{kind} comes before run_started", "begin with run_started")


def _run_started(tx: Transaction, _event: Event) -> None:
    """Begin, or ask again: a driver that was killed before it could begin, begins."""
    if tx.plan_state is not PlanState.READY:
        ask_again(tx)
        return
    tx.started = tx.now
    tx.plan_to(PlanState.EXECUTING)
    tx.offer([record.id for record in sorted(tx.records.values(), key=lambda record: record.rank)])


_TAKEN_IN: dict[str, Callable[[Transaction, Any], None]] = {
    "run_started": _run_started,
    "work_started": work_started,
    "work_finished": work_finished,
    "verified": verified,
    "approval_given": approval_given,
    "question_answered": question_answered,
    "budget_spent": budget_spent,
    "clock_ticked": lambda _tx, _event: None,  # limits are looked at with every event
    "conflict_found": conflict_found,
    "sub_plan_loaded": sub_plan_loaded,
    "plan_revised": plan_revised,
    "run_resumed": _run_started,
    "stop_requested": stop_requested,
}
