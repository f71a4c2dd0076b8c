"""What the state of one todo means for the others: who may go on, who is blocked, who is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.engine.state import PendingStep
from planner.model.life import TodoLife

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction

_START = PendingStep("start", "ready-todo", "what it depends on is done")
_START_AT_ONCE = PendingStep("start", "ready-todo", "it depends on nothing")
_MENDED = PendingStep("verify", "mended-is-verified-again", "what it was made to wait for is done")
CHILDREN_ENDED = PendingStep(
    "children", "children-first", "all todos of its sub-plan have come to their end"
)


def offer(tx: Transaction, todo_ids: Iterable[str]) -> None:
    """Let todos begin that wait for nothing."""
    for name in todo_ids:
        record = tx.records[name]
        if record.life is not TodoLife.PENDING or record.waits or record.next_step is not None:
            continue
        # A branch of an earlier planning is of use only when its todo is found red again.
        if record.parent_id is None or tx.records[record.parent_id].life is TodoLife.TEST_FAILED:
            tx.enqueue(record, _START if record.todo.dependencies else _START_AT_ONCE)


def rest(tx: Transaction, record: TodoRecord) -> None:
    """The driver is no longer at a todo: its files, and its place, are free."""
    if record.id not in tx.live:
        return
    del tx.live[record.id]
    if not record.is_parent:
        tx.working -= 1
    if record.next_files is not None:
        tx.put(tx.records[record.id]._replace(files=record.next_files, next_files=None))
    for name in tx.held.pop(record.id, ()):
        tx.stand_in_line(tx.records[name])


def done(tx: Transaction, record: TodoRecord, *, verified: bool) -> None:
    """A todo is done: what waits for it comes nearer to its turn."""
    record = tx.move(
        record,
        TodoLife.DONE,
        verified=verified,
        next_step=None,
        outcome=None,
        context=None,
        failure=None,
        deadline=None,
        same=0,
        waited=0,
    )
    rest(tx, record)
    _ask_no_more(tx, record)
    for name in open_branches(tx, record, f"{record.id}, which it repairs, is done"):
        branch = tx.records[name]
        if branch.life is TodoLife.ACTIVE:  # worked on, and what it is to repair holds: it has passed
            done(tx, branch, verified=False)
        else:
            fail(tx, branch)
    if record.is_branch:
        tx.ended_branches.append(record.id)
    else:
        tx.unfinished -= 1
        tx.not_done -= 1
        tx.consecutive = 0
    tx.reds.pop(record.id, None)
    nearer: list[str] = []
    for name in tx.dependents.get(record.id, ()):
        waiting = tx.records[name]
        waiting = tx.put(waiting._replace(waits=waiting.waits - 1))
        nearer.append(name)
        if waiting.life is TodoLife.TEST_FAILED and not waiting.waits and not _is_repaired(tx, waiting):
            if waiting.question is not None:
                tx.withdraw(waiting.question)
            tx.enqueue(tx.records[name], _MENDED)
    offer(tx, nearer)
    _tell_parent(tx, record)


def red(tx: Transaction, record: TodoRecord) -> None:
    """A todo has failed and can still be repaired: what waits for it is blocked."""
    tx.reds.setdefault(record.id)


def fail(tx: Transaction, record: TodoRecord, life: TodoLife = TodoLife.FAILED) -> None:
    """A todo has failed for good, or is left out (``skipped``): what waits for it is left out, too."""
    pending = [(record.id, life)]
    while pending:
        name, life = pending.pop()
        each = tx.records[name]
        if each.life.is_final:
            continue
        each = tx.move(each, life, next_step=None, deadline=None)
        rest(tx, each)
        tx.reds.pop(each.id, None)
        _ask_no_more(tx, each)
        if each.is_branch:
            tx.ended_branches.append(each.id)
        else:
            tx.unfinished -= 1
        useless = open_branches(tx, each, f"{each.id}, which it repairs, is given up")
        pending.extend((name, TodoLife.FAILED) for name in useless)
        for name in tx.dependents.get(each.id, ()):
            waiting = tx.records[name]
            if waiting.life is TodoLife.PENDING:
                pending.append((name, TodoLife.SKIPPED))
            elif waiting.life is TodoLife.TEST_FAILED:
                pending.append((name, TodoLife.FAILED))
        _tell_parent(tx, each)


def open_branches(tx: Transaction, record: TodoRecord, because: str) -> list[str]:
    """The branches that a todo no longer needs; what the driver does for them is cancelled."""
    found: list[str] = []
    for name in record.branches:
        branch = tx.records[name]
        if branch.life.is_final:
            continue
        if name in tx.live:
            tx.cancel(branch, "branch-without-use", because)
        found.append(name)
    return found


def _is_repaired(tx: Transaction, record: TodoRecord) -> bool:
    """Whether something is to become of a red todo in any case: its branch is open, or its turn comes."""
    branch = tx.records[record.branches[-1]] if record.branches else None
    return record.next_step is not None or (branch is not None and not branch.life.is_final)


def _ask_no_more(tx: Transaction, record: TodoRecord) -> None:
    """What a person was asked about a todo that has come to its end is of no use."""
    if tx.questions:
        for question in [each for each in tx.questions.values() if each.todo_id == record.id]:
            tx.withdraw(question.id)


def _tell_parent(tx: Transaction, record: TodoRecord) -> None:
    """A todo of a sub-plan has come to its end."""
    if not record.within or record.is_branch:
        return
    parent = tx.records[record.within]
    parent = tx.put(parent._replace(open_children=parent.open_children - 1))
    if not parent.open_children:
        tx.enqueue(parent, CHILDREN_ENDED)
