"""What the state of one todo means for the others: who may go on, who is blocked, who is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import TodoLife

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction


def offer(tx: Transaction, todo_ids: Iterable[str]) -> None:
    """Let todos begin that wait for nothing."""
    for name in todo_ids:
        record = tx.records[name]
        if record.life is not TodoLife.PENDING or record.next_step is not None or tx.waits(record):
            continue
        # A branch of an earlier planning is of use only when its todo is found red again.
        if record.parent_id is None or tx.records[record.parent_id].life is TodoLife.TEST_FAILED:
            because = "what it depends on is done" if record.todo.dependencies else "it depends on nothing"
            tx.enqueue(record, "start", "ready-todo", because)


def rest(tx: Transaction, record: TodoRecord) -> None:
    """Free the place and the files of a todo: the driver is no longer at it."""
    if record.id in tx.live:
        del tx.live[record.id]
        for name in tx.held.pop(record.id, ()):
            tx.stand_in_line(tx.records[name])


def done(tx: Transaction, record: TodoRecord, *, verified: bool) -> None:
    """Bring what waits for a done todo nearer to its turn."""
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
    _end(tx, record)
    for branch in open_branches(tx, record, f"{record.id}, which it repairs, is done"):
        if branch.life is TodoLife.ACTIVE:  # worked on, and what it is to repair holds: it has passed
            done(tx, branch, verified=False)
        else:
            fail(tx, branch)
    if not record.is_branch:
        tx.consecutive = 0
    for name in tx.dependents.get(record.id, ()):
        waiting = tx.records[name]
        last = tx.last_branch(waiting)
        is_repaired = waiting.next_step is not None or (last is not None and not last.life.is_final)
        if waiting.life is TodoLife.TEST_FAILED and not is_repaired and not tx.waits(waiting):
            tx.withdraw(waiting.question)
            because = "what it was made to wait for is done"
            tx.enqueue(waiting, "verify", "mended-is-verified-again", because)
    offer(tx, tx.dependents.get(record.id, ()))
    _tell_parent(tx, record)


def red(tx: Transaction, record: TodoRecord, *lives: TodoLife, **changes: object) -> TodoRecord:
    """Block what waits for a todo that has failed and can still be repaired."""
    for life in (*lives, TodoLife.TEST_FAILED):
        record = tx.move(record, life)
    rest(tx, record)
    tx.reds.setdefault(record.id)
    return tx.update(record, **changes)


def fail(tx: Transaction, record: TodoRecord, life: TodoLife = TodoLife.FAILED) -> None:
    """Give a todo up for good, or leave it out (``skipped``), and with it all that waits for it."""
    pending = [(record.id, life)]
    while pending:
        name, life = pending.pop()
        each = tx.records[name]
        if each.life.is_final:
            continue
        each = tx.move(each, life, next_step=None, deadline=None)
        _end(tx, each)
        useless = open_branches(tx, each, f"{each.id}, which it repairs, is given up")
        pending.extend((branch.id, TodoLife.FAILED) for branch in useless)
        for name in tx.dependents.get(each.id, ()):
            waiting = tx.records[name]
            if waiting.life is TodoLife.PENDING:
                pending.append((name, TodoLife.SKIPPED))
            elif waiting.life is TodoLife.TEST_FAILED:
                pending.append((name, TodoLife.FAILED))
        _tell_parent(tx, each)


def open_branches(tx: Transaction, record: TodoRecord, because: str) -> list[TodoRecord]:
    """Return the branches that a todo no longer needs; what the driver does for them is cancelled."""
    found = [tx.records[name] for name in record.branches if not tx.records[name].life.is_final]
    for branch in found:
        if branch.id in tx.live:
            tx.cancel(branch, "branch-without-use", because)
    return found


def _end(tx: Transaction, record: TodoRecord) -> None:
    rest(tx, record)
    tx.reds.pop(record.id, None)
    for question in [each.question_id for each in tx.questions.values() if each.todo_id == record.id]:
        tx.withdraw(question)
    if record.is_branch:
        tx.ended_branches.append(record.id)


def _tell_parent(tx: Transaction, record: TodoRecord) -> None:
    """Let a parent go on when the last todo of its sub-plan has come to its end."""
    if not record.within or record.is_branch:
        return
    parent = tx.records[record.within]
    if all(tx.records[name].life.is_final for name in parent.children):
        end_children(tx, parent)


def end_children(tx: Transaction, parent: TodoRecord) -> None:
    """Let a parent go on: all its todos have ended."""
    tx.enqueue(parent, "children", "children-first", "all todos of its sub-plan have come to their end")
