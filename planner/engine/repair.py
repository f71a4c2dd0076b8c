"""Repair of a red todo: the same role again, a branch, a deeper one, a person.

Which of these is decided by :mod:`planner.policy.branches`; here it is carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.engine.plans import digest_of_edits, draft_of, publish
from planner.engine.requests import implement, instructions_for
from planner.engine.state import PendingStep
from planner.engine.transaction import OPTIONS, Stop, rfc3339
from planner.errors import EditConflictError
from planner.model.actions import AskHuman, QuestionKind
from planner.model.base import qualified
from planner.model.edits import AddBranch, AddContext, QuarantineTest
from planner.model.taxonomy import Role
from planner.model.verdicts import TodoLife
from planner.policy.branches import (
    RedTodo,
    attempts_of,
    branch_todo,
    decide_repair,
    needs_approval,
    next_branch_id,
    role_for,
)
from planner.policy.limits import asks_a_person
from planner.policy.outcomes import failures_of
from planner.revise.situation import Situation
from planner.revise.strategies import revise
from planner.text.display import counted
from planner.text.glob_patterns import allowed

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.edits import Edit
    from planner.model.outcome import Failure

ALERT = "planner.alert"
REVIEW = "planner.review_required"
"""The topics of what somebody is told."""

_MOST_NAMED = 10


def repair(tx: Transaction, record: TodoRecord) -> None:
    """Go on with a primary todo whose criteria do not hold; it is in ``test_failed``."""
    last = tx.last_branch(record)
    if last is not None and last.life is not TodoLife.DONE and not record.by_person:
        _work_on_branch(tx, record, last)
        return
    red = RedTodo(
        id=record.id,
        todo=record.todo,
        failure=failure_of(record),
        retries=record.retries,
        by_person=record.by_person,
        passed_branch=None if last is None else last.id,
        depth=0 if last is None else last.depth,
    )
    kind, rule, because = decide_repair(red, tx.policy_of(record))
    if kind == "ask":
        escalate(tx, record, rule, because)
    elif kind == "give_up":
        tx.fail(record)
    elif kind == "retry":
        record = tx.update(record, retries=record.retries + 1)
        tx.enqueue(record, "implement", rule, because)
    elif last is None and (leader := _leader(tx, record)) is not None:
        tx.update(record, behind=leader.id)
    else:
        open_branch(tx, record, PendingStep("branch", rule, because))


def _work_on_branch(tx: Transaction, record: TodoRecord, last: TodoRecord) -> None:
    """Work on the branch that an earlier planning has made."""
    if last.life.is_final:
        _branch_failed(tx, record, last)
    elif waits_for(tx, last, record):
        because = f"its branch {last.id} waits for the very todo that it is there to repair"
        escalate(tx, record, "branches-in-a-circle", because)
    else:
        tx.offer((last.id,))


def attempt_failed(tx: Transaction, branch: TodoRecord, because: str) -> None:
    """Give a branch its next attempt, or let it fail; it is ``active`` or in ``test_failed``."""
    allowed = branch.todo.max_debug_attempts
    if allowed is None:
        allowed = attempts_of(branch.todo.branch_reason, tx.policy_of(branch))
    tx.begin_lifetime(branch, tx.now)
    branch = tx.update(branch, attempts=branch.attempts + 1)
    if branch.attempts >= allowed or _is_over(tx, branch):
        tx.fail(branch)
        return
    said = f"{because} after attempt {branch.attempts} of {allowed}"
    work_again(tx, branch, "branch-has-attempts-left", said, attempt=branch.attempts + 1)


def work_again(tx: Transaction, record: TodoRecord, rule: str, because: str, **facts: int) -> None:
    """Ask for another turn of work at once, or let it wait for its turn where the todo is red."""
    if record.life is TodoLife.ACTIVE:
        if tx.check_budget(before_work=True):
            implement(tx, record, rule, because, **facts)
            return
        record = tx.red(record, TodoLife.TESTING, deadline=None)
    tx.enqueue(record, "implement", rule, because)


def escalate(
    tx: Transaction, record: TodoRecord, rule: str, because: str, *, exhausted: bool = True
) -> None:
    """Ask a person how it goes on. Raises :class:`Stop` where too many todos in a row have come to that."""
    tx.notify(rule, because, topic=REVIEW, to=Role.PLANNER, todo_id=record.id)
    if exhausted and not record.exhausted:
        record = tx.update(record, exhausted=True)
        count_exhausted(tx, record, because)
    ask_review(tx, record, rule, because)


def count_exhausted(tx: Transaction, record: TodoRecord, because: str, **facts: str) -> None:
    """Count a todo whose repairs are used up. Raises :class:`Stop` where too many in a row are."""
    tx.consecutive += 1
    limit = tx.top.halt.consecutive_failures
    if limit is not None and tx.consecutive >= limit:
        said = f"the repairs of {counted(tx.consecutive, 'todo')} in a row are used up"
        said += f", the last of {record.id} ({because})"
        rule = "halt-on-consecutive-failures"
        raise Stop(rule, said, (record.id,), consecutive=tx.consecutive, limit=limit, **facts)


def ask_review(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Put the question how it goes on with a todo."""
    tx.ask(QuestionKind.REVIEW, record, f"how does it go on with {record.id}?", rule, because)


def branch_ended(tx: Transaction, branch: TodoRecord) -> None:
    """Go on with a todo whose branch is done, or has failed, or was left out."""
    tx.open_branches -= 1
    assert branch.parent_id is not None
    primary = tx.records[branch.parent_id]
    is_red = primary.life is TodoLife.TEST_FAILED
    if branch.life is TodoLife.DONE:
        if is_red:
            because = f"{branch.id} passed, so its criteria may hold now"
            tx.enqueue(primary, "verify", "branch-passed", because)
        return
    anew = primary.next_step is not None and primary.next_step.rule == "criteria-have-changed"
    if anew or primary.life is TodoLife.DONE:
        return
    tx.failed_branches += 1
    tx.last_failed_branches = (*tx.last_failed_branches, branch.id)[-_MOST_NAMED:]
    limit = tx.top.notify_after_n_failures
    if tx.failed_branches > limit:
        named = ", ".join(tx.last_failed_branches)
        because = f"{tx.failed_branches} branches have failed, more than {limit}: {named}"
        tx.notify("many-failed-branches", because, topic=ALERT, to=Role.HUMAN, todo_id=None, limit=limit)
    if is_red:
        _branch_failed(tx, primary, branch)


def _branch_failed(tx: Transaction, primary: TodoRecord, branch: TodoRecord) -> None:
    """Ask a person about a red todo whose branch has come to nothing."""
    if branch.life is TodoLife.SKIPPED:
        rule, because = "step-failed", f"a step that {branch.id} waits for has failed"
    elif _is_over(tx, branch):
        rule, because = "branch-lifetime", f"{branch.id} is not done within its lifetime"
    else:
        rule, because = "attempts-used-up", f"{branch.id} is still red"
        because += f" after {counted(branch.attempts, 'attempt')}" if branch.attempts else ""
    escalate(tx, primary, rule, because)


def _is_over(tx: Transaction, branch: TodoRecord) -> bool:
    return branch.expires is not None and tx.now > branch.expires


def failure_of(record: TodoRecord) -> Failure:
    """Return the failure that has decided about a red todo."""
    assert record.failure is not None
    return record.failure


def waits_for(tx: Transaction, record: TodoRecord, goal: TodoRecord) -> bool:
    """Return whether a todo is another, or waits for it, directly or not."""
    found = {record.id: record}
    for each in (pending := [record]):
        new = [before for before in tx.dependencies(each) if before.id not in found]
        found |= {before.id: before for before in new}
        pending.extend(new)
    return goal.id in found


# -- todos that fail by one cause ----------------------------------------------------------------------


def _leader(tx: Transaction, record: TodoRecord) -> TodoRecord | None:
    """Return the todo whose repair is under way and mends all that this one fails by.

    One that may not write the file at fault leads nobody who may.
    """
    assert record.outcome is not None
    own = {each.signature for each in failures_of(record.outcome)} - {None} | {record.signature}
    leaders = [
        other
        for other in (tx.records[name] for name in tx.reds)
        if own <= other.cause
        and other.id != record.id
        and not other.is_branch
        and _is_under_repair(tx, other)
        and (_may_mend(other) or not _may_mend(record))
    ]
    return min(leaders, key=lambda other: other.rank, default=None)


def _is_under_repair(tx: Transaction, record: TodoRecord) -> bool:
    """Return whether a red todo has an open branch, or one that is asked about or waits for a place."""
    if record.life is not TodoLife.TEST_FAILED or record.behind is not None:
        return False
    last = tx.last_branch(record)
    if last is not None and not last.life.is_final:
        return True
    question = tx.questions.get(record.question or "")
    if question is not None:
        return question.kind is QuestionKind.APPROVE_BRANCH
    return record.next_step is not None


def _may_mend(record: TodoRecord) -> bool:
    place = None if record.failure is None else record.failure.location
    files = record.todo.allowed_files
    return place is None or files is None or allowed(place.path, files)


def release_follower(tx: Transaction) -> bool:
    """Go on with one todo that has waited for the repair of another; return whether there was one."""
    for record in [tx.records[name] for name in tx.reds]:
        if record.behind is None:
            continue
        leader = tx.records[record.behind]
        if _is_under_repair(tx, leader) or leader.life.is_live:
            continue
        record = tx.update(record, behind=None)
        if leader.life is TodoLife.DONE:
            because = f"{leader.id}, which failed by the same cause, is done"
            tx.enqueue(record, "verify", "shared-cause", because)
        else:
            repair(tx, record)
        return True
    return False


# -- the branch ----------------------------------------------------------------------------------------


def open_branch(tx: Transaction, record: TodoRecord, step: PendingStep) -> None:
    """Make the branch of a todo, or ask a person whether it may be made, or let it wait for a place."""
    limit = tx.top.max_concurrent_branches
    if limit < 1:
        escalate(tx, record, "branch-limit", "the plan allows no branches (max_concurrent_branches is 0)")
    elif tx.open_branches >= limit:
        tx.enqueue(record, *step)
    elif step.proposal is not None:
        try:
            _make_branch(tx, record, step.proposal)
        except EditConflictError:  # the plan has changed since it was approved
            open_branch(tx, record, step._replace(proposal=None))
    else:
        proposal = _proposal(tx, record, step)
        if asks_a_person(record.todo):
            why = f"the risk of {record.id} is {record.todo.risk_level}"
        elif failure_class(failure_of(record)) in tx.approved or not needs_approval(
            tx.policy_of(record), tx.top
        ):
            _make_branch(tx, record, proposal)
            return
        else:
            why = "the plan does not repair by itself"
        because = f"{proposal.because}; {why}"
        tx.notify(step.rule, because, topic=REVIEW, to=Role.HUMAN, todo_id=record.id)
        tx.update(record, next_step=None, question=proposal.question_id)
        tx.show(proposal.model_copy(update={"digest": digest_of_edits("", proposal.edits)}))


def _make_branch(tx: Transaction, record: TodoRecord, proposal: AskHuman) -> None:
    """Publish a branch. Raises :class:`planner.errors.EditConflictError` where it no longer fits."""
    tx.update(record, next_step=None)
    edits = [each for each in proposal.edits if not each.requires_approval]
    publish(tx, record.within, edits, proposal.rule, proposal.because)
    tx.open_branches += 1
    asked = tuple(edit for edit in proposal.edits if edit.requires_approval)
    if asked:  # these change what judges a todo, or what is borne
        text = f"may the plan be changed ({', '.join(dict.fromkeys(edit.edit for edit in asked))})?"
        kind, digest = QuestionKind.APPROVE_EDITS, digest_of_edits("", asked)
        record = tx.records[record.id]
        tx.ask(kind, record, text, asked[0].rule, asked[0].because, digest=digest, edits=asked)


def failure_class(failure: Failure) -> str:
    """Return the class of a failure, of which a person may approve all: its category, the kind of exception
    or complaint that it begins with, and the role that its todo routes it to.
    """
    head = (failure.stack_trace_head or "").partition(":")[0].strip()
    kind = head if head.replace(".", "").replace("_", "").isalnum() else ""
    return f"{failure.category}/{kind}/{failure.target_agent or ''}"


def _proposal(tx: Transaction, record: TodoRecord, step: PendingStep) -> AskHuman:
    """Return the branch for a red todo, revised as the category of its failure calls for, as a question."""
    failure, last = failure_of(record), tx.last_branch(record)
    assert record.outcome is not None
    taken = {each.todo.id for each in tx.records.values() if each.within == record.within}
    branch_id = next_branch_id(record.todo.id, taken)
    role, because = role_for(failure, record.todo), step.because
    if tx.memory is not None:
        advice = tx.memory.route(failure, record.todo, role, tx.now)
        if advice.changed:
            role, because = advice.role, f"{because}; memory: {advice.because}"
    plan = tx.parts[record.within].plan
    branch = branch_todo(
        record.todo,
        record.outcome,
        plan.metadata,
        branch_id=branch_id,
        failure=failure,
        role=role,
        after=None if last is None else last.todo,
        opened_at=rfc3339(tx.now),
    )
    situation = Situation(
        plan=plan,
        todo=record.todo,
        outcome=record.outcome,
        failure=failure,
        branch=branch,
        context=record.context,
        at=rfc3339(tx.now),
        tools=frozenset(tx.policy.tools),
        taken=frozenset((*taken, branch_id)),
    )
    asked = (edit for each in tx.questions.values() if not each.branch for edit in each.edits)
    borne = {edit.nodeid for edit in asked if isinstance(edit, QuarantineTest)}
    edits: list[Edit] = [
        edit
        for edit in revise(situation)
        if not (isinstance(edit, QuarantineTest) and edit.nodeid in borne)
    ]
    added = AddBranch(rule=step.rule, because=because, todo=branch)
    draft = draft_of(tx, record.within)
    try:
        draft.apply(each for each in (added, *edits) if not each.requires_approval)
        final = draft.items[branch_id]
    except EditConflictError:  # the edits do not fit the plan
        edits, final = [], branch
    tried = () if last is None else (f"branch {last.todo.id}",)
    told = AddContext(
        rule="context-for-the-repair",
        because="whoever repairs it sees nothing else",
        todo_id=branch_id,
        text=instructions_for(tx, record, record, final, tried),
    )
    name = qualified(record.within, branch_id)
    return AskHuman(
        kind=QuestionKind.APPROVE_BRANCH,
        question_id=name,
        todo_id=record.id,
        question=f"may {name} be made?",
        options=OPTIONS[QuestionKind.APPROVE_BRANCH],
        rule=step.rule,
        because=because,
        branch=final.model_copy(update={"debug_instructions": told.text}),
        edits=(added, *edits, told),
        failure=failure,
    )
