"""What follows from an event beyond the todo that it is about: branches, turns, the end of the plan."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

from planner.engine.consequences import fail, offer, open_branches
from planner.engine.dispatch import dispatch
from planner.engine.repair import branch_ended, open_branch, release_follower
from planner.engine.requests import repeat, verify
from planner.engine.state import PendingStep
from planner.engine.transaction import Stop, asking
from planner.errors import EditConflictError
from planner.model.actions import Finish, Halt, QuestionKind
from planner.model.life import PlanState, TodoLife

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction

_TO_FAILED = {
    TodoLife.ACTIVE: (TodoLife.FAILED,),
    TodoLife.TESTING: (TodoLife.TEST_FAILED, TodoLife.FAILED),
    TodoLife.TEST_FAILED: (TodoLife.FAILED,),
    TodoLife.PENDING: (TodoLife.FAILED,),
    TodoLife.FAILED: (),
}
"""How a todo gets to where it can be said to have brought everything to a stop."""


_REVISIONS = frozenset((QuestionKind.APPROVE_BRANCH, QuestionKind.APPROVE_EDITS))
"""Questions about a revision of the plan."""

_TELLING = frozenset(("verified", "work_finished"))
"""The events that tell what came of something."""


def settle(tx: Transaction) -> None:
    """Draw every conclusion, until nothing more follows. Raises :class:`Stop`."""
    while True:
        if tx.judged_anew:
            _verify_anew(tx, tx.records[tx.judged_anew.pop(0)])
            continue
        if tx.changed:
            _propose_anew(tx, tx.changed.pop(0))
            continue
        if tx.ended_branches:
            branch_ended(tx, tx.records[tx.ended_branches.pop(0)])
            continue
        if release_follower(tx):
            continue
        if tx.queue and tx.open_branches < tx.top.max_concurrent_branches:
            name = heappop(tx.queue)[-1]
            record = tx.records[name]
            step = record.next_step
            if record.life is TodoLife.TEST_FAILED and step is not None and step.kind == "branch":
                try:
                    open_branch(tx, record, step)
                except EditConflictError:  # approved, and the plan has changed since
                    open_branch(tx, tx.records[name], step._replace(proposal=None))
            continue
        dispatch(tx)
        if not tx.ended_branches:
            break
    _plan_state(tx)


def halt(tx: Transaction, stop: Stop) -> None:
    """Bring everything to a stop."""
    for name in _live(tx):
        # Of a culprit, what was under way has just been told.
        if not (name in stop.todo_ids and tx.trigger in _TELLING):
            tx.cancel(tx.records[name], stop.rule, stop.because)
    culprits: list[str] = []
    for name in stop.todo_ids:
        record = tx.records[name]
        steps = _TO_FAILED.get(record.life)
        if steps is None:
            continue
        for life in (*steps, TodoLife.HALTED):
            record = tx.move(record, life)
        culprits.append(name)
        if not record.is_branch:
            tx.unfinished -= 1
    for record in [each for each in tx.records.values() if each.life.is_live]:
        tx.move(record, TodoLife.HALTED)
        if not record.is_branch:
            tx.unfinished -= 1
    if tx.plan_state is PlanState.READY:
        tx.plan_to(PlanState.EXECUTING)
    tx.plan_to(PlanState.HALTED)
    action = Halt(
        seq=tx.number(),
        rule=stop.rule,
        because=stop.because,
        facts=dict(stop.facts),
        todo_ids=tuple(culprits),
        category=stop.more.get("category"),
    )
    tx.actions.append(action)
    tx.stopped = action
    tx.live = {}
    tx.working = 0
    tx.questions = {}


def ask_again(tx: Transaction) -> None:
    """Everything that is outstanding is asked for again: the driver has forgotten it."""
    for name in _live(tx):
        record = tx.records[name]
        if not (record.is_parent and name in tx.parts):
            repeat(tx, record)
    for question in sorted(tx.questions.values(), key=lambda each: each.asked):
        number = tx.number()
        tx.questions[question.id] = question._replace(asked=number)
        tx.actions.append(asking(question, number))


def _live(tx: Transaction) -> list[str]:
    return [name for name, _ in sorted(tx.live.items(), key=lambda item: (item[1], item[0]))]


def _propose_anew(tx: Transaction, todo_id: str) -> None:
    """A todo has changed: an approval is bound to what it was, so what it is now is asked about."""
    for question in sorted(tx.questions.values(), key=lambda each: each.asked):
        if question.todo_id != todo_id:
            continue
        if question.kind is QuestionKind.APPROVE_START:
            tx.withdraw(question.id)
            offer(tx, (todo_id,))
        elif question.kind is QuestionKind.APPROVE_BRANCH:
            tx.withdraw(question.id)
            open_branch(tx, tx.records[todo_id], PendingStep("branch", question.rule, question.because))


def _verify_anew(tx: Transaction, record: TodoRecord) -> None:
    """The criteria of a todo have changed: verifications and branches by the old ones are of no use."""
    because = "it is verified against the criteria that count now"
    if record.life is TodoLife.TEST_FAILED and (
        ends := open_branches(tx, record, "its criteria have changed")
    ):
        tx.enqueue(record, PendingStep("verify", "criteria-have-changed", because))
        for name in ends:
            fail(tx, tx.records[name])
    if record.life is TodoLife.TESTING and record.id in tx.live:
        tx.cancel(record, "criteria-have-changed", "its criteria have changed")
        tx.put(tx.records[record.id]._replace(must_say_which=True))
        verify(tx, tx.records[record.id], "criteria-have-changed", because)


def _plan_state(tx: Transaction) -> None:
    """Whether the plan goes on, waits for a person, or has come to its end. Raises :class:`Stop`."""
    if tx.plan_state not in (PlanState.EXECUTING, PlanState.REVISING, PlanState.AWAITING_REVIEW):
        return
    if not tx.not_done:
        _finish(tx)
        return
    if tx.working or _is_loading(tx):
        questions = tx.questions.values() if tx.questions else ()
        waiting = any(question.kind in _REVISIONS for question in questions)
        tx.plan_to(PlanState.REVISING if waiting else PlanState.EXECUTING)
    elif tx.questions:
        if tx.plan_state is not PlanState.AWAITING_REVIEW:
            tx.plan_to(PlanState.AWAITING_REVIEW)
    else:
        left = [
            name
            for name, record in tx.records.items()
            if record.life is not TodoLife.DONE and not record.is_branch
        ]
        named = ", ".join(sorted(left, key=lambda name: tx.records[name].rank)[:10])
        raise Stop(
            "nothing-left",
            f"nothing is left to do, and {tx.not_done} todos are not done ({named})",
            facts={"not_done": tx.not_done},
        )


def _is_loading(tx: Transaction) -> bool:
    """Whether a sub-plan is to be loaded."""
    return any(name not in tx.parts for name in tx.live)


def _finish(tx: Transaction) -> None:
    for question_id in sorted(tx.questions):
        tx.withdraw(question_id)
    tx.plan_to(PlanState.EXECUTING, PlanState.COMPLETED)
    action = Finish(
        seq=tx.number(),
        rule="all-done",
        because="all todos are done",
        facts={"todos": sum(not record.is_branch for record in tx.records.values())},
        result="completed",
    )
    tx.actions.append(action)
    tx.stopped = action
