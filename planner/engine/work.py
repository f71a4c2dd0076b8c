"""Take in what became of turns of work, of sub-plans and of conflicts, and end what lasts too long."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

from planner.engine.admission import DEEPEST, admit, base_of, problems_of
from planner.engine.budget import check_budget, may_work
from planner.engine.consequences import CHILDREN_ENDED, done, fail, offer, red, rest
from planner.engine.dispatch import has_tests
from planner.engine.repair import attempt_failed, escalate, retries_of, to_red
from planner.engine.requests import implement, verify
from planner.engine.state import PendingStep
from planner.engine.transaction import Stop
from planner.errors import IllegalTransition, RefusedEvent
from planner.model.life import TodoLife
from planner.model.plan import MAX_TODOS
from planner.model.taxonomy import Category
from planner.text.display import counted
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


_LONGEST_MESSAGE = 200


def work_started(tx: Transaction, event: WorkStarted) -> None:
    """Count the time of a turn of work from here."""
    record = _at_work(tx, event.todo_id, event.answers, TodoLife.ACTIVE)
    limit = record.todo.timeout_seconds
    if limit is not None:
        tx.put(record._replace(deadline=tx.now + limit))
        tx.remind(tx.now + limit, record.id)


def work_finished(tx: Transaction, event: WorkFinished) -> None:
    """A turn of work is over: verify what was done, or try again."""
    if event.todo_id in tx.expired:  # it was over before: only what it has cost counts
        _count_cost(tx, event)
        check_budget(tx, event.todo_id)
        return
    after = TodoLife.TESTING if event.success else TodoLife.ACTIVE
    record = _at_work(tx, event.todo_id, event.answers, after)
    counted = event.tokens is not None or event.cycles is not None
    record = tx.put(record._replace(told=counted))
    _count_cost(tx, event)
    _stop_on_growth(tx, record, event)
    check_budget(tx, record.id)
    if not event.success:
        told = clean(event.message or "", limit=_LONGEST_MESSAGE).split()
        said = f": {' '.join(told)}" if told else ""
        turn_failed(tx, record, "work-failed", f"whoever worked says that it failed{said}")
    elif has_tests(record):
        because = "the work is said to be done, which a verification has to prove"
        verify(tx, record, "done-means-verified", because, turn=record.turns)
    else:
        done(tx, record, verified=False)


def turn_failed(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """A turn of work has come to nothing. The todo is ``active``."""
    if record.is_branch:
        attempt_failed(tx, record, because)
    elif not record.by_person and not record.branches and record.retries < retries_of(record):
        count = record.retries + 1
        record = tx.put(record._replace(retries=count))
        said = f"{because}; retry {count} of {retries_of(record)}"
        if may_work(tx):
            implement(tx, record, "retry-by-the-same-role", said, retries=count)
        else:
            tx.enqueue(to_red(tx, record), PendingStep("implement", "retry-by-the-same-role", said))
    elif has_tests(record):
        said = f"{because}, and no retry is left: a verification tells what is wrong"
        verify(tx, record, "failed-turn-is-diagnosed", said)
    else:
        fail(tx, record)
        _exhausted(tx, record, rule, because)


def budget_spent(tx: Transaction, event: BudgetSpent) -> None:
    """Something was spent outside the turns of work."""
    if event.todo_id is not None:
        tx.known(event.todo_id)
    tx.spent = tx.spent.plus(event.tokens, event.cycles, event.new_files)
    live = event.todo_id is not None and tx.records[event.todo_id].life.is_live
    check_budget(tx, event.todo_id if live else None)


def conflict_found(tx: Transaction, event: ConflictFound) -> None:
    """Work that was done side by side does not fit together: all but the first is done anew."""
    names = tuple(dict.fromkeys(event.todo_ids))
    records = [tx.known(name) for name in names]
    if len(records) < 2:
        raise RefusedEvent("no-conflict", "a todo cannot be in conflict with itself", "name two todos")
    again = [record for record in records[1:] if record.life.is_live and not record.is_parent]
    if not again:
        record = records[1]
        whose = f"todo '{record.id}'"
        raise IllegalTransition(
            whose,
            record.life,
            TodoLife.ACTIVE,
            "conflict_found",
            remedy="name a todo behind the first that is under work, or being verified",
        )
    for record in again:
        _again_after(tx, tx.records[record.id], records[0].id, event.files)


def sub_plan_loaded(tx: Transaction, event: SubPlanLoaded) -> None:
    """The sub-plan of a parent is there: its todos join the run."""
    record = tx.known(event.todo_id)
    if not record.is_parent or record.life is not TodoLife.ACTIVE or record.id in tx.parts:
        whose = f"todo '{record.id}'"
        raise IllegalTransition(
            whose,
            record.life,
            TodoLife.ACTIVE,
            "sub_plan_loaded",
            remedy="tell only of what load_sub_plan has asked for",
        )
    if record.question is not None:  # it was asked what is to become of it, and this is the answer
        tx.withdraw(record.question)
        record = tx.records[record.id]
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
    tx.live[record.id] = record.rank
    names = admit(tx, event.plan, event.digest, record.id, base_of(tx, record, event))
    record = tx.records[record.id]
    record = tx.put(record._replace(children=names, open_children=len(names)))
    offer(tx, names)
    if not names:
        tx.enqueue(record, CHILDREN_ENDED)


def _at_work(tx: Transaction, todo_id: str, answers: int | None, after: TodoLife) -> TodoRecord:
    """The todo that somebody works on. Raises :class:`planner.errors.RefusedEvent` for any other."""
    record = tx.known(todo_id)
    if record.life is not TodoLife.ACTIVE or record.is_parent:
        whose = f"todo '{record.id}'"
        raise IllegalTransition(
            whose, record.life, after, tx.trigger, remedy="tell only of what implement has asked for"
        )
    if answers is not None and answers != record.asked:
        raise RefusedEvent(
            "late-answer",
            f"the work on '{record.id}' answers action {answers}, and {record.asked} is the one that is "
            "outstanding",
            "tell what came of the later one",
        )
    return record


def _count_cost(tx: Transaction, event: WorkFinished) -> None:
    cycles = 1 if event.cycles is None else event.cycles
    tx.spent = tx.spent.plus(event.tokens or 0, cycles, len(set(event.new_files)))


def _stop_on_growth(tx: Transaction, record: TodoRecord, event: WorkFinished) -> None:
    limit = tx.top.halt.file_growth
    count = len(set(event.new_files))
    if limit is not None and count > limit:
        raise Stop(
            "halt-on-file-growth",
            f"one turn of work on {record.id} has made {count} new files, more than {limit}",
            (record.id,),
            category=Category.BUDGET_EXCEEDED,
            facts={"new_files": count, "limit": limit},
        )


def _exhausted(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """A todo has failed for good, and nobody can be asked to repair it."""
    tx.consecutive += 1
    limit = tx.top.halt.consecutive_failures
    if limit is not None and tx.consecutive >= limit:
        raise Stop(
            "halt-on-consecutive-failures",
            f"the repairs of {counted(tx.consecutive, 'todo')} in a row are used up, "
            f"the last of {record.id} ({because})",
            (record.id,),
            facts={"consecutive": tx.consecutive, "limit": limit, "rule": rule},
        )


def _again_after(tx: Transaction, record: TodoRecord, first: str, files: tuple[str, ...]) -> None:
    """Let a todo be worked on anew when another is out of its way."""
    because = f"its work does not fit that of {first}"
    if files:
        because += f" ({', '.join(files[:5])})"
    if record.question is not None:
        tx.withdraw(record.question)
        record = tx.records[record.id]
    if record.id in tx.live:
        tx.cancel(record, "conflict-is-done-anew", because)
    apart = tuple(dict.fromkeys((*record.files, *files)))
    if record.life is TodoLife.ACTIVE:
        record = tx.move(record, TodoLife.TESTING)
    record = tx.move(record, TodoLife.TEST_FAILED, deadline=None)
    rest(tx, record)
    red(tx, record)
    record = tx.put(tx.records[record.id]._replace(files=apart))
    _claim_more(tx, first, files)
    if record.is_branch:
        attempt_failed(tx, record, because)
    elif record.retries < record.todo.max_retries and not record.by_person:
        record = tx.put(record._replace(retries=record.retries + 1))
        tx.enqueue(record, PendingStep("implement", "conflict-is-done-anew", because))
    else:
        escalate(tx, tx.records[record.id], "conflict-is-done-anew", because)


def _claim_more(tx: Transaction, name: str, files: tuple[str, ...]) -> None:
    """Keep others off files that a todo was found to write."""
    record = tx.records[name]
    more = tuple(dict.fromkeys((*record.files, *files)))
    if more == record.files:
        return
    if record.id in tx.live and not record.is_parent:
        tx.take_files_last(name)
    tx.put(record._replace(files=more))


def is_due(tx: Transaction) -> bool:
    """Whether a limit has passed."""
    return bool(tx.timers) and tx.timers[0][0] < tx.now


def expire(tx: Transaction) -> None:
    """Look at every limit that has passed."""
    while is_due(tx):
        time, name = heappop(tx.timers)
        record = tx.records[name]
        if record.life.is_final:
            continue
        if record.expires == time:
            lifetime = record.todo.max_lifetime_seconds
            because = f"{name} is not done within its lifetime"
            if lifetime is not None:
                because += f" of {lifetime:g} s"
            if record.id in tx.live:
                tx.cancel(record, "branch-lifetime", because)
            tx.expired = tx.expired | {name}
            fail(tx, tx.records[name])
        elif record.deadline == time and record.life is TodoLife.ACTIVE and not _begins_anew(tx):
            limit = record.todo.timeout_seconds
            because = f"the turn of work on {name} took longer than {limit:g} s" if limit else ""
            tx.cancel(record, "turn-timed-out", because)
            tx.expired = tx.expired | {name}
            turn_failed(tx, record, "turn-timed-out", because)


def _begins_anew(tx: Transaction) -> bool:
    """Whether the driver was away: the turns of work that it has lost are asked for again."""
    return tx.trigger == "run_resumed"
