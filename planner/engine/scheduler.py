"""Scheduler: after each event, apply all consequences, grant pending steps, and end the run.

A pending step is granted if it is still valid, if fewer todos than ``jobs`` are live, if the budget leaves
a turn of work, and if no live todo may write the same files.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from planner.engine.repair import branch_ended, open_branch, release_follower
from planner.engine.requests import implement, request, verify
from planner.engine.transaction import Stop, files_of, is_said_to_be_done
from planner.model.actions import Finish, Halt, QuestionKind
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.allowed_files import claims_overlap
from planner.policy.criteria import criterion_ids
from planner.policy.limits import asks_a_person
from planner.text.display import counted

if TYPE_CHECKING:
    from planner.engine.state import PendingStep, TodoRecord
    from planner.engine.transaction import Transaction

_VALID_STATES = {
    "start": (TodoLife.PENDING,),
    "implement": (TodoLife.TEST_FAILED, TodoLife.PENDING),
    "verify": (TodoLife.TEST_FAILED, TodoLife.TESTING, TodoLife.ACTIVE),
    "children": (TodoLife.ACTIVE,),
    "load": (TodoLife.ACTIVE,),
    "branch": (TodoLife.TEST_FAILED,),
}
"""The states in which a pending step of each kind is still valid."""


def apply_consequences(tx: Transaction) -> None:
    """Apply consequences until none is left, then decide whether the run continues.

    Raises :class:`Stop` if the run has to halt.
    """
    while True:
        # Changed criteria come first, as they void verifications on which the other rules would act.
        if tx.judged_anew:
            _reverify(tx, tx.records[tx.judged_anew.pop(0)])
        elif tx.ended_branches:
            branch_ended(tx, tx.records[tx.ended_branches.pop(0)])
        elif not release_follower(tx) and not _take_step(tx):
            break
    _conclude(tx)


def _reverify(tx: Transaction, record: TodoRecord) -> None:
    """Verify a todo whose criteria changed against the new ones, without its open branches."""
    rule, because = "criteria-have-changed", "it is verified against the current criteria"
    if record.life is TodoLife.TEST_FAILED:
        branches = tx.unneeded_branches(record, "its criteria have changed")
        # Without one, the todo is left to the question or step that it waits for.
        # Queued before the branches end: by this step branch_ended() knows that they have not failed.
        if branches:
            tx.enqueue(record, "verify", rule, because)
        for branch in branches:
            tx.fail(branch)
    elif record.life is TodoLife.TESTING and record.id in tx.live:
        tx.cancel(record, rule, "its criteria have changed")
        # The cancelled verification may still be reported, and looks like the new one.
        verify(tx, tx.update(record, must_say_which=True), rule, because)


def _take_step(tx: Transaction) -> bool:
    """Perform the first queued step that is valid and has a free place, budget and free files.

    Returns whether there was one, or one that is no longer valid.
    """
    jobs, can_branch = tx.policy.jobs, tx.open_branches < tx.top.max_concurrent_branches
    is_full = jobs is not None and sum(not tx.records[name].is_parent for name in tx.live) >= jobs
    for at, key in enumerate(tx.queue):
        record = tx.records[key[-1]]
        step = record.next_step
        is_branch = key[0] < 0
        # Keys stay when a step is replaced or a todo moves on.
        if (
            step is None
            or is_branch is not (step.kind == "branch")
            or record.life not in _VALID_STATES[step.kind]
        ):
            del tx.queue[at]
            return True
        if step.behind in tx.live or (is_branch and not can_branch):
            continue
        if step.kind == "start" and tx.waits(record):  # an approved edit has added a dependency
            tx.update(record, next_step=None)
            continue
        # Branches and parents need no place, and come first in the queue.
        if is_full and not is_branch and not record.is_parent:
            return False
        # A parent needs no turn of work, either. Verifications need no budget and continue without one.
        is_work = step.kind in ("start", "implement") and not record.is_parent
        if is_work and not tx.check_budget(before_work=not _may_pass_without_work(record, step)):
            continue
        # The first in order of start that may write one of the same files.
        others = (name for name in tx.live if name != record.id and not is_branch)
        holder = next((n for n in others if claims_overlap(record.files, tx.records[n].files)), None)
        if holder is not None:
            tx.update(record, next_step=step._replace(behind=holder))
            continue
        del tx.queue[at]
        if is_branch:
            open_branch(tx, record, step)
        else:
            _grant(tx, record, step)
        return True
    return False


def _may_pass_without_work(record: TodoRecord, step: PendingStep) -> bool:
    """Return whether a todo that starts was never verified: its dependency may have been all it lacked.

    Not for a todo whose start a person has to approve first.
    """
    is_unseen = record.outcome is None and not record.turns and not record.is_branch
    is_checked = record.todo.requires_testing and not record.is_parent
    return step.kind == "start" and is_unseen and is_checked and not asks_a_person(record.todo)


def _grant(tx: Transaction, record: TodoRecord, step: PendingStep) -> None:
    """Perform a pending step: request work, a verification or a sub-plan, or ask for approval first."""
    rule, because = step.rule, step.because
    starts = step.kind == "start"
    if step.kind == "children":
        _end_parent(tx, record)
        return
    # A parent is not verified by itself at the start: the todos of its sub-plan decide first.
    claimed = starts and not record.is_parent and is_said_to_be_done(tx, record)
    # Branches are approved when they are opened; a parent is not worked on itself.
    is_begun = record.is_parent or record.turns or record.is_branch or record.allowed_start
    if starts and not is_begun and not claimed and asks_a_person(record.todo):
        _ask_to_start(tx, record)
        return
    tx.live.setdefault(record.id)
    # What waited for an earlier turn may fit beside this one, whose files may be fewer.
    for waiting in [tx.records[key[-1]] for key in tx.queue]:
        if waiting.next_step is not None and waiting.next_step.behind == record.id:
            tx.update(waiting, next_step=waiting.next_step._replace(behind=""))
    if record.is_parent and step.kind in ("start", "load"):
        request(tx, tx.move(record, TodoLife.ACTIVE, next_step=None), rule, because)
    elif step.kind == "verify":
        verify(tx, record, rule, because)
    elif claimed and record.todo.requires_testing:
        because = "it is claimed to be done and must be verified"
        verify(tx, record, "claimed-is-verified", because)
    elif _may_pass_without_work(record, step) and tx.spent_budget(before_work=True) is not None:
        because = "it may pass without the turn of work that the budget no longer allows"
        verify(tx, record, "verified-without-a-turn", because)
    elif claimed:
        # The life cycle has no direct move from pending to done.
        tx.done(tx.move(record, TodoLife.ACTIVE), verified=False)
    elif record.is_branch and starts:
        implement(tx, record, "branch-is-worked-on", "its branch is ready")
    else:
        implement(tx, record, rule, because)


def _ask_to_start(tx: Transaction, record: TodoRecord) -> None:
    """Ask a person to approve the start of a todo; the approval is bound to its definition."""
    record = tx.update(record, next_step=None)
    digest = "sha256:" + sha256(record.todo.model_dump_json(exclude_none=True).encode()).hexdigest()
    because = f"the risk of {record.id} is {record.todo.risk_level}"
    text, name = f"may the work on {record.id} start?", f"{record.id}:start"
    rule = "high-risk-asks-first"
    tx.ask(QuestionKind.APPROVE_START, record, text, rule, because, question_id=name, digest=digest)


def _end_parent(tx: Transaction, record: TodoRecord) -> None:
    """Evaluate a parent whose sub-plan's todos are all final."""
    # From here it is an ordinary todo, which claims its own files instead of those of its sub-plan.
    tx.rest(record)
    alone = record.todo.model_copy(update={"sub_plan": None, "is_parent": False, "sub_project_id": None})
    files = files_of(tx, alone, record.within)
    record = tx.update(record, is_parent=False, next_step=None, files=files)
    if any(tx.records[name].life is not TodoLife.DONE for name in record.children):
        tx.fail(record)
    elif record.todo.requires_testing and criterion_ids(record.todo):
        tx.enqueue(record, "verify", "children-first", "all todos of its sub-plan are done")
    else:
        tx.done(record, verified=False)


# -- the end -------------------------------------------------------------------------------------------


def _conclude(tx: Transaction) -> None:
    """Decide whether the plan continues, waits for a person, or is completed.

    Raises :class:`Stop` if nothing can continue although some todos are not done.
    """
    # The clock may tick before the start, when there is nothing to conclude.
    if tx.plan_state not in (PlanState.EXECUTING, PlanState.REVISING, PlanState.AWAITING_REVIEW):
        return
    # A parent with a loaded sub-plan is always live; only its todos count.
    if any(name not in tx.parts or not tx.records[name].is_parent for name in tx.live):
        revisions = (QuestionKind.APPROVE_BRANCH, QuestionKind.APPROVE_EDITS)
        waiting = any(question.kind in revisions for question in tx.questions.values())
        tx.plan_to(PlanState.REVISING if waiting else PlanState.EXECUTING)
        return
    primary = [record for record in tx.records.values() if not record.is_branch]
    # A step that nobody needs any more was skipped.
    left = [
        record
        for record in primary
        if record.life is not TodoLife.DONE
        and not (record.todo.is_temporary and record.life is TodoLife.SKIPPED)
    ]
    if not left:
        for question_id in sorted(tx.questions):
            tx.withdraw(question_id)
        # Only an executing plan can be completed; this one may be in revision or await a review.
        tx.plan_to(PlanState.EXECUTING, PlanState.COMPLETED)
        finish = Finish(rule="all-done", because="all todos are done", result="completed")
        tx.stopped = tx.emit(finish)
    elif tx.questions:
        tx.plan_to(PlanState.AWAITING_REVIEW)
    else:
        named = ", ".join(each.id for each in sorted(left, key=lambda each: each.rank)[:10])
        because = f"nothing is left to do, with {counted(len(left), 'todo')} not done ({named})"
        raise Stop("nothing-left", because)


def halt(tx: Transaction, action: Halt) -> None:
    """Halt the run: cancel live work, move it and the todos that caused the halt to ``halted``, and emit
    the action.
    """
    for record in _live(tx):
        # The event just reported the end of the culprit's own work, so nothing of it is left to cancel.
        if not (record.id in action.todo_ids and tx.trigger in ("verified", "work_finished")):
            tx.cancel(record, action.rule, action.because)
    over = (TodoLife.DONE, TodoLife.SKIPPED)
    culprits = tuple(name for name in action.todo_ids if tx.records[name].life not in over)
    for name in culprits:
        # What is neither worked on nor verified has no direct move to ``halted``.
        if tx.records[name].life in (TodoLife.PENDING, TodoLife.TEST_FAILED):
            tx.move(tx.records[name], TodoLife.FAILED)
        tx.move(tx.records[name], TodoLife.HALTED)
    # By state: todos in testing that wait for a person are not among the live ones above.
    for record in [each for each in tx.records.values() if each.life.is_live]:
        tx.move(record, TodoLife.HALTED)
    # A plan that was stopped before its start has no direct transition to ``halted``.
    if tx.plan_state is PlanState.READY:
        tx.plan_to(PlanState.EXECUTING)
    tx.plan_to(PlanState.HALTED)
    # Nothing is outstanding any more; the driver has been asked to cancel above.
    tx.live, tx.questions = {}, {}
    tx.stopped = tx.emit(action.model_copy(update={"todo_ids": culprits}))


def repeat_requests(tx: Transaction) -> None:
    """Emit every outstanding request and question again, for a driver that was restarted."""
    for record in _live(tx):
        if not (record.is_parent and record.id in tx.parts):  # a loaded sub-plan is not requested again
            request(tx, record, "resumed", "the run was resumed")
    for question in sorted(tx.questions.values(), key=lambda each: each.seq):
        tx.show(question)


def _live(tx: Transaction) -> list[TodoRecord]:
    """Return the live todos in plan order."""
    return sorted((tx.records[name] for name in tx.live), key=lambda record: (record.rank, record.id))
