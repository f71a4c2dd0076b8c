"""Lets todos have their turn: in order, while there is a place and nobody else has their files."""

from __future__ import annotations

from hashlib import sha256
from heapq import heappop
from typing import TYPE_CHECKING

from planner.engine.admission import files_of, is_said_to_be_done
from planner.engine.budget import may_work
from planner.engine.consequences import done, fail, rest
from planner.engine.requests import implement, load_sub_plan, verify
from planner.engine.state import PendingStep, Question
from planner.model.actions import QuestionKind
from planner.model.life import TodoLife
from planner.policy.criteria import commands_of
from planner.policy.file_claims import claims_overlap
from planner.policy.risk import asks_before_start

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction

_WORK = frozenset(("start", "implement"))
"""Wishes for a turn of work."""

_AWAITED = {
    "start": frozenset((TodoLife.PENDING,)),
    "implement": frozenset((TodoLife.TEST_FAILED, TodoLife.PENDING)),
    "verify": frozenset((TodoLife.TEST_FAILED, TodoLife.TESTING, TodoLife.ACTIVE)),
    "children": frozenset((TodoLife.ACTIVE,)),
    "load": frozenset((TodoLife.ACTIVE,)),
}
"""In which states a step may still be granted."""


def dispatch(tx: Transaction) -> None:
    """Grant every step whose turn has come."""
    aside: list[TodoRecord] = []
    while tx.ready:
        record = tx.records[tx.ready[0][-1]]
        step = record.next_step
        if step is None or record.life not in _AWAITED.get(step.kind, ()):
            heappop(tx.ready)
            continue
        if step.kind == "start" and record.waits:  # a revision lets it wait for something
            heappop(tx.ready)
            tx.put(record._replace(next_step=None))
            continue
        if not record.is_parent:
            if tx.policy.jobs is not None and tx.working >= tx.policy.jobs:
                break
            if step.kind in _WORK and not may_work(tx):  # what needs no further budget goes on
                heappop(tx.ready)
                aside.append(record)
                continue
        heappop(tx.ready)
        holder = _holder(tx, record.files)
        if holder not in (None, record.id):
            tx.held[holder] = (*tx.held.get(holder, ()), record.id)
            continue
        _grant(tx, record, step)
    for record in aside:
        tx.stand_in_line(record)


def _holder(tx: Transaction, files: tuple[str, ...]) -> str | None:
    """Return the first of the todos under work that may write one of the files."""
    if not files:
        return None
    live = (tx.records[name] for name in tx.live)
    return next(
        (each.id for each in live if not each.is_parent and claims_overlap(files, each.files)), None
    )


def has_tests(record: TodoRecord) -> bool:
    """Whether a todo is verified when its work is over."""
    return record.todo.requires_testing


def has_own_criteria(record: TodoRecord) -> bool:
    """Whether a parent is judged by more than its todos."""
    todo = record.todo
    named = todo.acceptance_criteria or todo.contract_path is not None
    return todo.requires_testing and bool(named or next(commands_of(todo), None))


def _grant(tx: Transaction, record: TodoRecord, step: PendingStep) -> None:
    if step.kind == "children":
        _end_parent(tx, record)
        return
    if step.kind == "start" and not record.is_parent and _asks_first(tx, record):
        return
    _begin(tx, record)
    if record.is_parent and step.kind in ("start", "load"):
        load_sub_plan(tx, record, step.rule, step.because)
    elif step.kind == "verify":
        verify(tx, record, step.rule, step.because)
    elif step.kind == "start" and is_said_to_be_done(tx, record):
        _take_claim(tx, record)
    elif record.is_branch:
        because = step.because if step.kind != "start" else "its branch is made, and waits for nothing"
        rule = step.rule if step.kind != "start" else "branch-is-worked-on"
        implement(tx, record, rule, because, attempt=record.attempts + 1, depth=record.depth)
    elif tx.memory is not None and step.kind == "start":
        chance = round(tx.memory.order_bias(record.todo, tx.now), 3)
        implement(tx, record, step.rule, step.because, chance_at_once=chance)
    else:
        implement(tx, record, step.rule, step.because, retries=record.retries)


def _take_claim(tx: Transaction, record: TodoRecord) -> None:
    """A todo is said to be done before the run has asked for it."""
    if has_tests(record):
        because = "it is said to be done already, which a verification has to prove"
        verify(tx, record, "claimed-is-verified", because)
    else:
        done(tx, tx.move(record, TodoLife.ACTIVE), verified=False)


def _begin(tx: Transaction, record: TodoRecord) -> None:
    tx.live[record.id] = record.rank
    if not record.is_parent:
        tx.working += 1


def _asks_first(tx: Transaction, record: TodoRecord) -> bool:
    """Whether a person is asked before a todo is begun."""
    if record.is_branch or record.allowed_start or record.turns or not asks_before_start(record.todo):
        return False
    if is_said_to_be_done(tx, record):
        return False
    record = tx.put(record._replace(next_step=None))
    tx.ask(
        Question(
            id=f"{record.id}:start",
            kind=QuestionKind.APPROVE_START,
            todo_id=record.id,
            text=f"may the work on {record.id} begin?",
            options=("approve", "reject", "modify"),
            rule="high-risk-asks-first",
            because=f"the risk of {record.id} is {record.todo.risk_level}",
            asked=0,
            digest=start_digest(record),
        )
    )
    return True


def start_digest(record: TodoRecord) -> str:
    """The digest of what is begun: the todo as it is now."""
    text = record.todo.model_dump_json(exclude_none=True)
    return "sha256:" + sha256(text.encode()).hexdigest()


def _end_parent(tx: Transaction, record: TodoRecord) -> None:
    """All todos of a sub-plan have come to their end."""
    if record.open_children:  # a revision has added one meanwhile
        tx.put(record._replace(next_step=None))
        return
    rest(tx, record)
    record = tx.records[record.id]
    alone = record.todo.model_copy(update={"sub_plan": None, "is_parent": False, "sub_project_id": None})
    record = tx.put(
        record._replace(is_parent=False, next_step=None, files=files_of(tx, alone, record.within))
    )
    if any(tx.records[name].life is not TodoLife.DONE for name in record.children):
        fail(tx, record)
    elif has_own_criteria(record):
        tx.enqueue(record, PendingStep("verify", "children-first", "all todos of its sub-plan are done"))
    else:
        done(tx, record, verified=False)
