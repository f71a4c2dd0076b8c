"""Take in what became of turns of work, of sub-plans and of conflicts, and end what lasts too long."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

from planner.engine.consequences import done, end_children, fail, offer, red, rest
from planner.engine.plans import admit, base_of, problems_of
from planner.engine.repair import attempt_failed, count_exhausted, escalate, retry, work_again
from planner.engine.requests import start_clock, verify
from planner.engine.transaction import Stop
from planner.errors import RefusedEvent
from planner.model.plan import MAX_TODOS
from planner.model.taxonomy import Category
from planner.model.verdicts import TodoLife
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.events import (
        BudgetSpent,
        ConflictFound,
        SubPlanLoaded,
        WorkFinished,
        WorkStarted,
    )

DEEPEST = 3
"""A parent may lie so many levels below the top plan, itself not counted."""

_LONGEST_MESSAGE = 200


def work_started(tx: Transaction, event: WorkStarted) -> None:
    """Count the time of a turn of work from here."""
    start_clock(tx, _at_work(tx, event, TodoLife.ACTIVE))


def work_finished(tx: Transaction, event: WorkFinished) -> None:
    """Verify what was done in a turn of work, or let it be tried again."""
    cycles, new_files = 1 if event.cycles is None else event.cycles, len(set(event.new_files))
    spent = tx.spent.plus(event.tokens or 0, cycles, new_files)
    if event.todo_id in tx.expired:  # it was over before: only what it has cost counts
        tx.spent = spent
        tx.check_budget(event.todo_id)
        return
    record = _at_work(tx, event, TodoLife.TESTING if event.success else TodoLife.ACTIVE)
    record = tx.update(record, told=event.tokens is not None or event.cycles is not None)
    tx.spent = spent
    limit = tx.top.halt.file_growth
    if limit is not None and new_files > limit:
        because = f"one turn of work on {record.id} has made {new_files} new files, more than {limit}"
        category = Category.BUDGET_EXCEEDED
        raise Stop("halt-on-file-growth", because, (record.id,), category, new_files=new_files, limit=limit)
    tx.check_budget(record.id)
    if not event.success:
        told = " ".join(clean(event.message or "", limit=_LONGEST_MESSAGE).split())
        because = f"whoever worked says that it failed{f': {told}' if told else ''}"
        _turn_failed(tx, record, "work-failed", because)
    elif record.todo.requires_testing:
        because = "the work is said to be done, which a verification has to prove"
        verify(tx, record, "done-means-verified", because, turn=record.turns)
    else:
        done(tx, record, verified=False)


def _turn_failed(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Try again, or let a verification tell what is wrong. The todo is ``active``."""
    if record.is_branch:
        attempt_failed(tx, record, because)
    elif not (record.by_person or record.branches) and (said := retry(tx, record, because)) is not None:
        record = tx.records[record.id]
        work_again(tx, record, "retry-by-the-same-role", said, retries=record.retries)
    elif record.todo.requires_testing:
        because += ", and no retry is left: a verification tells what is wrong"
        verify(tx, record, "failed-turn-is-diagnosed", because)
    else:  # it has failed for good, and nobody can be asked to repair it
        fail(tx, record)
        count_exhausted(tx, record, because, rule=rule)


def budget_spent(tx: Transaction, event: BudgetSpent) -> None:
    """Count what was spent outside the turns of work."""
    record = None if event.todo_id is None else tx.known(event.todo_id)
    tx.spent = tx.spent.plus(event.tokens, event.cycles, event.new_files)
    tx.check_budget(record.id if record is not None and record.life.is_live else None)


def conflict_found(tx: Transaction, event: ConflictFound) -> None:
    """Let all but the first of todos whose work does not fit together be done anew."""
    first, *others = (tx.known(name) for name in dict.fromkeys(event.todo_ids))
    if not others:
        raise RefusedEvent("no-conflict", "a todo cannot be in conflict with itself", "name two todos")
    again = [record for record in others if record.life.is_live and not record.is_parent]
    if not again:
        remedy = "name a todo behind the first that is under work, or being verified"
        raise tx.illegal(others[0], TodoLife.ACTIVE, remedy)
    because = f"its work does not fit that of {first.id}"
    because += f" ({', '.join(event.files[:5])})" if event.files else ""
    for name in (record.id for record in again):
        _do_anew(tx, tx.records[name], because, event.files)
        more = dict.fromkeys((*tx.records[first.id].files, *event.files))
        tx.update(first, files=tuple(more))  # others are kept off what it was found to write


def _do_anew(tx: Transaction, record: TodoRecord, because: str, files: tuple[str, ...]) -> None:
    rule = "conflict-is-done-anew"
    tx.withdraw(record.question)
    if record.id in tx.live:
        tx.cancel(record, rule, because)
    lives = (TodoLife.TESTING,) if record.life is TodoLife.ACTIVE else ()
    apart = tuple(dict.fromkeys((*record.files, *files)))
    record = red(tx, tx.records[record.id], *lives, deadline=None, files=apart)
    if record.is_branch:
        attempt_failed(tx, record, because)
    elif record.retries < record.todo.max_retries and not record.by_person:
        record = tx.update(record, retries=record.retries + 1)
        tx.enqueue(record, "implement", rule, because)
    else:
        escalate(tx, record, rule, because)


def sub_plan_loaded(tx: Transaction, event: SubPlanLoaded) -> None:
    """Let the todos of a sub-plan join the run."""
    record = tx.known(event.todo_id)
    if not record.is_parent or record.life is not TodoLife.ACTIVE or record.id in tx.parts:
        raise tx.illegal(record, TodoLife.ACTIVE, "tell only of what load_sub_plan has asked for")
    tx.withdraw(record.question)  # it was asked what is to become of it, and this is the answer
    problems = list(event.problems)
    if event.plan is None:
        problems = problems or ["it could not be loaded"]
    else:
        problems += problems_of(event.plan)
        if record.id.count("/") + 1 > DEEPEST:
            problems.append(f"sub-plans go at most {DEEPEST} levels deep")
        if len(tx.records) + len(event.plan.items) > MAX_TODOS:
            problems.append(f"with this sub-plan there are more than {MAX_TODOS} todos")
    if problems or event.plan is None:
        because = f"the sub-plan of {record.id} cannot be carried out: {problems[0]}"
        rest(tx, record)
        escalate(tx, record, "sub-plan-unfit", because, exhausted=False)
        return
    tx.live.setdefault(record.id)
    names = admit(tx, event.plan, event.digest, record.id, base_of(tx, record, event))
    record = tx.update(record, children=names)
    offer(tx, names)
    if not names:
        end_children(tx, record)


def _at_work(tx: Transaction, event: WorkStarted | WorkFinished, after: TodoLife) -> TodoRecord:
    """Return the todo that somebody works on. Raises :class:`planner.errors.RefusedEvent` for any other."""
    record = tx.known(event.todo_id)
    if record.life is not TodoLife.ACTIVE or record.is_parent:
        raise tx.illegal(record, after, "tell only of what implement has asked for")
    tx.check_answer(record, "work on", event.answers)
    return record


def is_due(tx: Transaction) -> bool:
    """Return whether a limit has passed."""
    return bool(tx.timers) and tx.timers[0][0] < tx.now


def expire(tx: Transaction) -> None:
    """End what has lasted longer than its limit."""
    while is_due(tx):
        time, name = heappop(tx.timers)
        record = tx.records[name]
        if record.life.is_final:
            continue
        if record.expires == time:
            lifetime = record.todo.max_lifetime_seconds
            because = f"{name} is not done within its lifetime"
            because += f" of {lifetime:g} s" if lifetime is not None else ""
            if record.id in tx.live:
                tx.cancel(record, "branch-lifetime", because)
            tx.expired.add(name)
            fail(tx, record)
        # Of a driver that was away, the turns of work that it has lost are asked for again.
        elif record.deadline == time and record.life is TodoLife.ACTIVE and tx.trigger != "run_resumed":
            limit = record.todo.timeout_seconds
            because = f"the turn of work on {name} took longer than {limit:g} s" if limit else ""
            tx.cancel(record, "turn-timed-out", because)
            tx.expired.add(name)
            _turn_failed(tx, record, "turn-timed-out", because)
