"""What follows when a todo is red: the same role again, a branch, a deeper one, a person."""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING

from planner.engine.budget import may_work
from planner.engine.consequences import fail, offer, red, rest
from planner.engine.proposals import Proposal, propose_branch
from planner.engine.requests import failed_of, implement
from planner.engine.revision import digest_of_edits, draft_of, publish
from planner.engine.state import PendingStep, Question
from planner.engine.transaction import Stop
from planner.errors import EditConflictError
from planner.model.actions import QuestionKind
from planner.model.edits import QuarantineTest
from planner.model.ids import qualified
from planner.model.life import TodoLife
from planner.model.taxonomy import Role
from planner.policy.branches import RETRIED_ONCE, attempts_of, branch_reason, needs_approval, next_branch_id
from planner.policy.outcomes import failures_of
from planner.policy.risk import asks_before_branch
from planner.policy.routing import role_for
from planner.text.display import counted
from planner.text.glob_patterns import allowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.edits import Edit
    from planner.model.outcome import Failure

ALERT = "planner.alert"
REVIEW = "planner.review_required"
"""The topics of what somebody is told."""

REVIEW_OPTIONS = ("retry", "give_up", "stop")
_MOST_NAMED = 10


def repair(tx: Transaction, record: TodoRecord) -> None:
    """Decide what follows for a primary todo whose criteria do not hold; it is in ``test_failed``."""
    failure = record.failure
    assert failure is not None
    if record.by_person:
        escalate(tx, record, "attempts-used-up", "the turn that a person has granted did not mend it")
    elif record.branches:
        _after_branch(tx, record)
    elif record.retries < retries_of(record):
        count = record.retries + 1
        record = tx.put(record._replace(retries=count))
        because = f"its criteria do not hold; retry {count} of {retries_of(record)}"
        tx.enqueue(record, PendingStep("implement", "retry-by-the-same-role", because))
    elif record.todo.is_temporary:
        fail(tx, record)
    else:
        _first_branch(tx, record, failure)


def retries_of(record: TodoRecord) -> int:
    """So many retries by the same role a todo has; what nobody knows the kind of is retried once."""
    limit = record.todo.max_retries
    failure = record.failure
    return min(limit, 1) if failure is not None and failure.category in RETRIED_ONCE else limit


def attempt_failed(tx: Transaction, branch: TodoRecord, because: str) -> None:
    """An attempt of a branch has failed: there is another, or the branch has failed.

    The branch is ``active`` or in ``test_failed``.
    """
    allowed = branch.todo.max_debug_attempts
    if allowed is None:
        allowed = attempts_of(branch.todo.branch_reason, tx.policy_of(branch))
    branch = tx.put(branch._replace(attempts=branch.attempts + 1))
    if branch.attempts >= allowed:
        fail(tx, branch)
        return
    said = f"{because} after attempt {branch.attempts} of {allowed}"
    if branch.life is TodoLife.ACTIVE and may_work(tx):
        implement(tx, branch, "branch-has-attempts-left", said, attempt=branch.attempts + 1)
        return
    if branch.life is TodoLife.ACTIVE:
        branch = to_red(tx, branch)
    tx.enqueue(branch, PendingStep("implement", "branch-has-attempts-left", said))


def to_red(tx: Transaction, record: TodoRecord) -> TodoRecord:
    """A turn of work has come to nothing, and the next has to wait."""
    record = tx.move(tx.move(record, TodoLife.TESTING), TodoLife.TEST_FAILED, deadline=None)
    rest(tx, record)
    red(tx, record)
    return tx.records[record.id]


def escalate(
    tx: Transaction, record: TodoRecord, rule: str, because: str, *, exhausted: bool = True
) -> None:
    """Ask a person how it goes on. Raises :class:`Stop` where too many todos in a row have come to that."""
    tx.notify(rule, because, topic=REVIEW, to=Role.PLANNER, todo_id=record.id)
    if exhausted and not record.exhausted:
        tx.consecutive += 1
        record = tx.put(tx.records[record.id]._replace(exhausted=True))
        limit = tx.top.halt.consecutive_failures
        if limit is not None and tx.consecutive >= limit:
            raise Stop(
                "halt-on-consecutive-failures",
                f"the repairs of {counted(tx.consecutive, 'todo')} in a row are used up, "
                f"the last of {record.id} ({because})",
                (record.id,),
                facts={"consecutive": tx.consecutive, "limit": limit},
            )
    ask_review(tx, tx.records[record.id], rule, because)


def ask_review(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Put the question how it goes on with a todo."""
    tx.asked_questions += 1
    tx.ask(
        Question(
            id=f"{record.id}:review:{tx.asked_questions}",
            kind=QuestionKind.REVIEW,
            todo_id=record.id,
            text=f"how does it go on with {record.id}?",
            options=REVIEW_OPTIONS,
            rule=rule,
            because=because,
            asked=0,
            failure=record.failure,
        )
    )


def branch_ended(tx: Transaction, branch: TodoRecord) -> None:
    """A branch is done, or has failed, or was left out: go on with the todo that it was made for."""
    tx.open_branches -= 1
    assert branch.parent_id is not None
    primary = tx.records[branch.parent_id]
    if branch.life is TodoLife.DONE:
        if primary.life is TodoLife.TEST_FAILED:
            because = f"{branch.id} passed, so its criteria may hold now"
            tx.enqueue(primary, PendingStep("verify", "branch-passed", because))
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
    if primary.life is TodoLife.TEST_FAILED:
        _branch_failed(tx, primary, branch)


def _branch_failed(tx: Transaction, primary: TodoRecord, branch: TodoRecord) -> None:
    """Ask a person about a red todo whose branch has come to nothing."""
    if branch.life is TodoLife.SKIPPED:
        rule, because = "step-failed", f"a step that {branch.id} waits for has failed"
    elif branch.expires is not None and tx.now > branch.expires:
        rule, because = "branch-lifetime", f"{branch.id} is not done within its lifetime"
    else:
        rule = "attempts-used-up"
        because = f"{branch.id} is still red"
        if branch.attempts:
            because += f" after {counted(branch.attempts, 'attempt')}"
    escalate(tx, primary, rule, because)


def open_branch(tx: Transaction, record: TodoRecord, step: PendingStep) -> None:
    """Make the branch of a todo, or ask a person whether it may be made, or let it wait for a place."""
    limit = tx.top.max_concurrent_branches
    if limit < 1:
        escalate(tx, record, "branch-limit", "the plan allows no branches (max_concurrent_branches is 0)")
        return
    if tx.open_branches >= limit:
        tx.put(record._replace(next_step=step))
        heappush(tx.queue, (record.todo.priority, record.rank, record.id))
        return
    record = tx.put(record._replace(next_step=None))
    if step.proposal is not None:
        make_branch(tx, record, step.proposal, step.rule, step.because)
        return
    proposal, because = _proposed(tx, record, step)
    failure = record.failure
    assert failure is not None
    if _must_ask(tx, record, failure):
        _ask_for(tx, record, proposal, step.rule, because)
    else:
        make_branch(tx, record, proposal, step.rule, because)


def make_branch(tx: Transaction, record: TodoRecord, proposal: Proposal, rule: str, because: str) -> None:
    """Publish a branch. Raises :class:`planner.errors.EditConflictError` where it no longer fits."""
    edits = [edit for edit in proposal.edits if not edit.requires_approval]
    publish(tx, record.within, edits, rule, because)
    tx.open_branches += 1
    asked = tuple(edit for edit in proposal.edits if edit.requires_approval)
    if asked:
        ask_for_edits(tx, tx.records[record.id], asked)


def ask_for_edits(tx: Transaction, record: TodoRecord, edits: tuple[Edit, ...]) -> None:
    """Ask a person about edits that change what judges a todo, or what is borne."""
    tx.asked_questions += 1
    tx.ask(
        Question(
            id=f"{record.id}:edits:{tx.asked_questions}",
            kind=QuestionKind.APPROVE_EDITS,
            todo_id=record.id,
            text=f"may the plan be changed ({', '.join(dict.fromkeys(edit.edit for edit in edits))})?",
            options=("approve", "reject"),
            rule=edits[0].rule,
            because=edits[0].because,
            asked=0,
            digest=digest_of_edits("", edits),
            edits=edits,
            failure=record.failure,
        )
    )


def failure_class(failure: Failure) -> str:
    """The class of a failure, of which a person may approve all: its category, the kind of exception or
    complaint that it begins with, and the role that its todo routes it to.
    """
    head = (failure.stack_trace_head or "").partition(":")[0].strip()
    kind = head if head.replace(".", "").replace("_", "").isalnum() else ""
    return f"{failure.category}/{kind}/{failure.target_agent or ''}"


def _first_branch(tx: Transaction, record: TodoRecord, failure: Failure) -> None:
    policy = tx.policy_of(record)
    if policy.max_branch_depth < 1:
        escalate(tx, record, "branch-depth", "the plan allows no branches (max_branch_depth is 0)")
    elif attempts_of(branch_reason(failure.category), policy) < 1:
        escalate(tx, record, "attempts-used-up", "the plan allows no attempts at a repair")
    elif (leader := _leader(tx, record)) is not None:
        tx.put(record._replace(behind=leader.id))
    else:
        because = "its criteria do not hold"
        if record.retries:
            because += f" after {counted(record.retries, 'retry')}"
        open_branch(tx, record, PendingStep("branch", "failed-todo-gets-a-branch", because))


def _leader(tx: Transaction, record: TodoRecord) -> TodoRecord | None:
    """Return the todo whose repair is under way and mends all that this one fails by.

    One that may not write the file at fault leads nobody who may.
    """
    assert record.outcome is not None
    own = {each.signature for each in failures_of(record.outcome)} - {None}
    own.add(record.signature)
    for name in sorted(tx.reds, key=lambda name: tx.records[name].rank):
        other = tx.records[name]
        if name == record.id or other.is_branch or not _is_under_repair(tx, other):
            continue
        if own <= other.cause and (_may_mend(other) or not _may_mend(record)):
            return other
    return None


def _is_under_repair(tx: Transaction, record: TodoRecord) -> bool:
    """Return whether a red todo has an open branch, or one that is asked about or waits for a place."""
    if record.life is not TodoLife.TEST_FAILED or record.behind is not None:
        return False
    if record.branches and not tx.records[record.branches[-1]].life.is_final:
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
    for name in tx.reds:
        record = tx.records[name]
        if record.behind is None:
            continue
        leader = tx.records[record.behind]
        if _is_under_repair(tx, leader) or leader.life.is_live:
            continue
        record = tx.put(record._replace(behind=None))
        if leader.life is TodoLife.DONE:
            because = f"{leader.id}, which failed by the same cause, is done"
            tx.enqueue(record, PendingStep("verify", "shared-cause", because))
        else:
            _first_branch(tx, record, _failure(record))
        return True
    return False


def _failure(record: TodoRecord) -> Failure:
    assert record.failure is not None  # it is red
    return record.failure


def _after_branch(tx: Transaction, record: TodoRecord) -> None:
    """Work on the branch that an earlier planning has made, or go deeper: a branch has passed in vain."""
    last = tx.records[record.branches[-1]]
    if not last.life.is_final:
        if waits_for(tx, last.id, record.id):
            because = f"its branch {last.id} waits for the very todo that it is there to repair"
            escalate(tx, record, "branches-in-a-circle", because)
        else:
            offer(tx, (last.id,))
        return
    if last.life is not TodoLife.DONE:
        _branch_failed(tx, record, last)
        return
    limit = tx.policy_of(record).max_branch_depth
    because = f"{last.id} passed and {record.id} is still red"
    failure = record.failure
    assert failure is not None
    if attempts_of(branch_reason(failure.category), tx.policy_of(record)) < 1:
        escalate(tx, record, "attempts-used-up", f"{because}; the plan allows no attempts at such a repair")
    elif last.depth + 1 > limit:
        because += f"; a deeper branch would have depth {last.depth + 1}, and max_branch_depth is {limit}"
        escalate(tx, record, "branch-depth", because)
    else:
        open_branch(tx, record, PendingStep("branch", "deeper-branch", because))


def _proposed(tx: Transaction, record: TodoRecord, step: PendingStep) -> tuple[Proposal, str]:
    failed = failed_of(tx, record)
    assert failed is not None
    part = tx.parts[record.within]
    last = tx.records[record.branches[-1]] if record.branches else None
    known = {tx.records[name].todo.id for name in record.branches}
    branch_id = next_branch_id(record.todo.id, known)
    while qualified(record.within, branch_id) in tx.records:
        known |= {branch_id}
        branch_id = next_branch_id(record.todo.id, known)
    role = role_for(failed.failure, record.todo)
    because = step.because
    if tx.memory is not None:
        advice = tx.memory.route(failed.failure, record.todo, role, tx.now)
        if advice.changed:
            role, because = advice.role, f"{because}; memory: {advice.because}"
    ids = {other.todo.id for other in _family(tx, record)}
    borne = {each.nodeid for each in part.plan.metadata.flaky_retry.quarantine}
    asked = {
        edit.nodeid
        for question in tx.questions.values()
        for edit in question.edits
        if isinstance(edit, QuarantineTest)
    }

    def keep(edits: Sequence[Edit]) -> list[Edit]:
        told = borne | asked
        return [edit for edit in edits if not (isinstance(edit, QuarantineTest) and edit.nodeid in told)]

    proposal = propose_branch(
        failed,
        draft_of(tx, record.within, {record.todo.id, *(each.todo.id for each in _family(tx, record))}),
        branch_id=branch_id,
        role=role,
        depth=1 if last is None else last.depth + 1,
        via=None if last is None else last.todo.id,
        rule=step.rule,
        because=because,
        taken=ids,
        keep=keep,
    )
    return proposal, because


def _family(tx: Transaction, record: TodoRecord) -> list[TodoRecord]:
    """A todo, its branches, and the steps that were put before them."""
    found = [record]
    for name in record.branches:
        branch = tx.records[name]
        found.append(branch)
        steps = (qualified(record.within, each) for each in branch.todo.dependencies)
        found.extend(tx.records[each] for each in steps if each in tx.records)
    return found


def _must_ask(tx: Transaction, record: TodoRecord, failure: Failure) -> bool:
    if failure_class(failure) in tx.approved and not asks_before_branch(record.todo):
        return False
    if asks_before_branch(record.todo):
        return True
    return needs_approval(tx.policy_of(record), tx.top)


def _ask_for(tx: Transaction, record: TodoRecord, proposal: Proposal, rule: str, because: str) -> None:
    name = qualified(record.within, proposal.branch.id)
    why = "the plan does not repair by itself"
    if asks_before_branch(record.todo):
        why = f"the risk of {record.id} is {record.todo.risk_level}"
    tx.notify(rule, f"{because}; {why}", topic=REVIEW, to=Role.HUMAN, todo_id=record.id)
    tx.ask(
        Question(
            id=name,
            kind=QuestionKind.APPROVE_BRANCH,
            todo_id=record.id,
            text=f"may {name} be made?",
            options=("approve", "reject", "modify", "approve_similar"),
            rule=rule,
            because=because,
            asked=0,
            digest=digest_of_edits("", proposal.edits),
            proposal=proposal,
            failure=record.failure,
        )
    )


def publish_anew(tx: Transaction, record: TodoRecord, question: Question) -> None:
    """Make the branch that was approved, or, where the plan has changed since, propose it anew."""
    assert question.proposal is not None
    step = PendingStep("branch", question.rule, question.because, question.proposal)
    try:
        open_branch(tx, record, step)
    except EditConflictError:
        open_branch(tx, tx.records[record.id], step._replace(proposal=None))


def waits_for(tx: Transaction, name: str, goal: str) -> bool:
    """Return whether a todo is another, or waits for it, directly or not."""
    pending, seen = [name], {name}
    while pending:
        each = pending.pop()
        if each == goal:
            return True
        record = tx.records.get(each)
        for dependency in () if record is None else record.todo.dependencies:
            before = qualified("" if record is None else record.within, dependency)
            if before not in seen:
                seen.add(before)
                pending.append(before)
    return False
