"""Verifications, and the repair of a failing todo: retry, branch, deeper branch, or a person.

:func:`verified` applies an outcome: it refuses unproved and stale ones, halts on violations, and
finishes the todo, verifies it again or repairs it. :mod:`planner.policy.branches` decides how a failing
todo is repaired; this module carries the decision out. Failures of environment and harness are never
repaired, since no role of the plan is responsible for them. Of several todos that fail by one cause,
only the first gets a branch; the others wait for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.engine.requests import implement, instructions_for, request
from planner.engine.state import PendingStep
from planner.engine.transaction import OPTIONS, Stop, digest_of_edits, edited, publish, refusal
from planner.errors import EditConflictError
from planner.model.actions import AskHuman, QuestionKind
from planner.model.base import qualified
from planner.model.edits import (
    AddBranch,
    AddContext,
    AddTodoBefore,
    AssignRole,
    NarrowFiles,
    RaiseLimit,
    RetargetCheck,
)
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category, Family, Owner, Role
from planner.model.verdicts import TodoLife, TodoState, Verdict
from planner.policy.branches import (
    RedTodo,
    approval_setting,
    attempts_of,
    branch_todo,
    decide_repair,
    next_branch_id,
    role_for,
)
from planner.policy.dependencies import reachable
from planner.policy.limits import asks_a_person
from planner.policy.outcomes import (
    HALTING,
    UNDECIDED,
    failures_of,
    is_begun,
    is_unowned,
    may_edit_fault,
    missing_proof,
    sorted_failures,
    state_of,
    violations_of,
)
from planner.revise.situation import Situation
from planner.revise.strategies import revise, set_apart
from planner.text.display import counted
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.edits import Edit
    from planner.model.events import Verified
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Todo

ALERT = "planner.alert"
REVIEW = "planner.review_required"
"""Topics of notifications."""

MOST_TIMES_APART = 3
"""How often pre-existing failures of one todo are moved to todos of their own before a person is asked."""

_MAX_HEADLINE = 500
"""Number of characters of a failure's first line that a reason quotes."""

_LIFE_BY_STATE = {TodoState.DONE: TodoLife.DONE, TodoState.TEST_FAILED: TodoLife.TEST_FAILED}


def verified(tx: Transaction, event: Verified) -> None:
    """Apply the outcome of a verification, requested or from a run that somebody started by hand.

    Raises :class:`planner.errors.RefusedEvent` for an outcome of another plan or of a cancelled request,
    and for one that claims a pass without proof. Raises
    :class:`planner.errors.IllegalTransition` for a todo that is final.
    """
    outcome = event.outcome
    record = tx.known(outcome.todo_id)
    if outcome.plan not in (None, tx.plan_id, tx.parts[record.within].plan.todo_list_id):
        problem = f"the outcome of '{record.id}' belongs to the plan '{outcome.plan}'"
        raise refusal("another-plan", f"{problem}, not to '{tx.plan_id}'")
    state = state_of(outcome)
    if record.id in tx.expired:  # a limit ended the todo before the outcome arrived
        return
    if record.life.is_final:
        raise tx.illegal(
            record, _LIFE_BY_STATE.get(state, TodoLife.TESTING), "start another run of the plan"
        )
    tx.check_answer(record, "verification of", event.answers)
    if record.must_say_which and event.answers is None:
        problem = f"a verification of '{record.id}' was cancelled, and this event does not name the one"
        raise refusal("late-answer", f"{problem} that it answers")
    proof = state is TodoState.DONE and _is_proved(tx, record, outcome)
    is_requested = record.life is TodoLife.TESTING and record.id in tx.live
    if not is_requested and not _accept_unrequested(tx, record, event, state):
        return
    record = tx.update(record, run_id=event.run_id, must_say_which=False)
    if not record.cost_reported:
        # The worker reported no cost, so the outcome's figures count. One of its cycles is the turn of
        # work itself, which was counted when it finished.
        tokens, cycles = outcome.metrics.tokens_used or 0, outcome.metrics.patch_cycles or 0
        cycles -= 1 if record.turns else 0
        tx.spent = tx.spent.plus(tokens=max(tokens, 0), cycles=max(cycles, 0))
        record = tx.update(record, cost_reported=True)
    # A violation counts even if all checks pass.
    if _stop_on_violation(tx, record, event):
        return
    tx.check_budget(record.id)
    if state is TodoState.DONE:
        tx.done(tx.update(record, signature="passed", diff_hash=outcome.diff_hash), verified=proof)
    elif state is TodoState.TEST_FAILED:
        _apply_failure(tx, record, event)
    else:
        _apply_undecided(tx, record, outcome)


def _is_proved(tx: Transaction, record: TodoRecord, outcome: Outcome) -> bool:
    """Return whether a passing outcome is proved by its checks.

    Raises :class:`planner.errors.RefusedEvent` if it is not, unless the outcome has no checks at all and
    the run allows unproved passes.
    """
    lack = missing_proof(record.todo, outcome, is_parent=record.id in tx.parts)
    if lack is None:
        return outcome.verified
    if tx.policy.allow_unproved and not outcome.checks:
        return False
    raise refusal("no-proof", f"the outcome of '{record.id}' says that it is done, but {lack}")


def _accept_unrequested(tx: Transaction, record: TodoRecord, event: Verified, state: TodoState) -> bool:
    """Return whether to apply an outcome that was not requested; if so, move the todo to ``testing``.

    Passes and violations always count, a failure only once somebody can have worked on the todo. A
    failure of a todo that is under repair already is recorded here, and does not move it.
    """
    if record.is_parent:  # the todos of its sub-plan decide first
        return False
    if state is not TodoState.DONE and not violations_of(event.outcome):
        # A pending branch, and a todo whose dependencies are not done yet, are expected to fail.
        if record.life is TodoLife.PENDING and (record.is_branch or tx.waits(record)):
            return False
        if state is TodoState.TEST_FAILED:
            if record.life is TodoLife.TEST_FAILED:
                _record_repeated_failure(tx, record, event)
                return False
            # A verification does not replace a person's approval of the start; a claim does.
            asked = tx.questions.get(record.question or "")
            waits = asked is not None and asked.kind is QuestionKind.APPROVE_START
            if waits and record.todo.status is not TodoStatus.CLAIMED:
                return False
            # Before any work, a failure shows only the work that is still to be done.
            if not _is_attempt(record, event):
                return False
        elif state is not TodoState.TESTING or _adds_nothing(tx, record, event.outcome):
            return False
    _to_testing(tx, record)
    return True


def _is_attempt(record: TodoRecord, event: Verified) -> bool:
    """Return whether somebody can have worked on a failing todo since its last verification."""
    if record.life is TodoLife.TESTING:
        return True
    if record.outcome is None and not record.is_branch:
        return is_begun(record.todo, event.outcome)
    # The same run shows the same state of the files again.
    if event.run_id is not None and event.run_id == record.run_id:
        return False
    if record.opened is not None and event.at.timestamp() <= record.opened:  # older than the branch
        return False
    # A claim is taken for work even if the diff shows none.
    unchanged = record.diff_hash is not None and record.diff_hash == event.outcome.diff_hash
    return not unchanged or record.todo.status is TodoStatus.CLAIMED


def _adds_nothing(tx: Transaction, record: TodoRecord, outcome: Outcome) -> bool:
    """Return whether an undecided outcome adds nothing to what is known of the todo."""
    verdicts = {check.counts_as for check in outcome.checks}
    question = tx.questions.get(record.question or "")
    kind = None if question is None else question.kind
    # A person may have been asked already, for the answer or to repair the environment.
    is_asked = kind is QuestionKind.ANSWER and any(check.is_unanswered for check in outcome.checks)
    is_asked |= kind is QuestionKind.MEND_ENVIRONMENT
    return is_asked or record.life is TodoLife.TEST_FAILED or verdicts == {Verdict.NOT_RUN}


def _record_repeated_failure(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    """Record an unrequested failure of a todo under repair, perhaps as a failed attempt of its branch."""
    own, _ = sorted_failures(record.todo, event.outcome)
    # Only a failure that a role of the plan has to repair says something about the repair.
    if not own or is_unowned(own[0]):
        return
    branch = tx.last_branch(record)
    is_attempt = branch is not None and branch.life is TodoLife.ACTIVE and _is_attempt(branch, event)
    if branch is not None and not tx.policy.driven and _is_attempt(record, event):
        # Without a driver, nobody reports that the steps before the branch are done.
        for step in tx.dependencies(branch):
            is_step = step.todo.is_temporary and not step.todo.requires_testing
            if is_step and step.life is TodoLife.ACTIVE:
                tx.done(step, verified=False)
    before, old = record.signature, record.failure
    record = tx.update(record, run_id=event.run_id, **_findings(record, event, own[0]))
    if branch is not None and is_attempt:
        _to_testing(tx, branch)
        _apply_failure(tx, tx.update(branch, run_id=event.run_id, failure=branch.failure or old), event)
    # The files of a branch are for the failure before, and so is an open proposal.
    elif before != record.signature and branch is not None and not branch.life.is_final:
        _refit(tx, tx.records[branch.id], record, old)
    elif before != record.signature:
        proposal = tx.questions.get(record.question or "")
        if proposal is not None and proposal.kind is QuestionKind.APPROVE_BRANCH:
            tx.withdraw(proposal.question_id)
            # Without the reason for asking, which the new proposal adds again.
            step = PendingStep("branch", proposal.rule, proposal.edits[0].because)
            open_branch(tx, tx.records[record.id], step)


def _findings(record: TodoRecord, event: Verified, failure: Failure) -> dict[str, object]:
    """Return the fields of a record that describe a failing verification."""
    signature = failure.signature
    if not signature:
        # Numbers (addresses, times) differ between equal failures. Without any text the todo's id keeps
        # the signature apart from those of other todos; a branch shares that of the todo it repairs.
        head = re.sub(r"\d+", "#", failure.stack_trace_head or "")
        tests = failure.tests or failure.top_failing_tests
        parts = (head, *tests) if head or tests else (record.parent_id or record.id,)
        signature = "|".join((failure.category.value, *parts))
    return {
        "outcome": event.outcome,
        "context": event.context,
        "failure": failure,
        "signature": signature,
        "diff_hash": event.outcome.diff_hash,
        "cause": frozenset((signature,)).union(*(group for group in event.causes if signature in group)),
    }


def _to_testing(tx: Transaction, record: TodoRecord) -> None:
    """Move a todo to ``testing`` without a request, cancelling a turn of work in progress."""
    # The outcome replaces an open question and a queued step, and ends the wait for a shared repair.
    tx.withdraw(record.question)
    if record.life is TodoLife.ACTIVE and tx.policy.driven:
        tx.cancel(record, "verified-unasked", "it was verified before the end of its turn was reported")
    tx.live.setdefault(record.id)
    record = tx.update(record, next_step=None, behind=None)
    if record.life is not TodoLife.TESTING:
        tx.move(record, TodoLife.TESTING, deadline=None)


def _stop_on_violation(tx: Transaction, record: TodoRecord, event: Verified) -> bool:
    """Process a violation of the sandbox or the budget; return whether there was one.

    Raises :class:`Stop`, unless the policy has a person decide about violations of the sandbox.
    """
    found = violations_of(event.outcome)
    if not found:
        return False
    # Not the first one: failures_of() begins with the one that decided the route.
    worst = min(found, key=lambda each: each.category.facts.family.severity)
    because = f"{worst.category} in {record.id}"
    because += f": {_headline(worst)}" if worst.stack_trace_head else ""
    family = worst.category.facts.family
    # Also before a halt: briefs and screens show the failure of a halted todo.
    findings = {"outcome": event.outcome, "context": event.context, "failure": worst}
    if family is not Family.SANDBOX or tx.top.halt.security != "ask":
        tx.update(record, **findings)
        raise Stop(HALTING[family], because, (record.id,), worst.category)
    record = tx.red(record, **findings, waited=0)
    escalate(tx, record, "violation-asks", because, exhausted=False)
    return True


def _apply_failure(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    """Apply a failing outcome to a todo in ``testing``."""
    own, preexisting = sorted_failures(record.todo, event.outcome)
    if own and is_unowned(own[0]):
        _verify_again_or_ask(tx, record, own[0])
        return
    failure = own[0] if own else preexisting[0]
    findings = _findings(record, event, failure)
    # Without a digest it is unknown whether the product has changed.
    unchanged = findings["diff_hash"] is not None and findings["diff_hash"] == record.diff_hash
    is_same_failure = findings["signature"] == record.signature
    # Different failures of the same code show flakiness as well as the category does.
    is_flaky = failure.category is Category.FLAKY_TEST or (
        unchanged and not is_same_failure and record.outcome is not None
    )
    same = record.same + 1 if unchanged and is_same_failure else 1
    flaky = record.flaky + 1 if is_flaky else 0
    old = record.failure or (tx.records[record.parent_id].failure if record.parent_id else None)
    record = tx.red(record, **findings, same=same, flaky=flaky, waited=0)
    _stop_on_streak(tx, record, failure)
    if record.parent_id is not None:
        # A deeper branch of the same todo continues the counts.
        primary = tx.records[record.parent_id]
        counts = {"diff_hash": record.diff_hash, "same": same, "flaky": flaky}
        tx.update(primary, signature=record.signature, **counts)
        if not is_same_failure:
            record = _refit(tx, record, record, old)
        attempt_failed(tx, record, f"{record.id} still fails")
        return
    waits = bool(preexisting) and _move_preexisting(tx, record, preexisting)
    # Replaced, if the plan was edited.
    record = tx.records[record.id]
    if own:
        repair(tx, record)
    elif not waits:
        because = "the failure existed before the work, and was moved to a todo of its own too often"
        escalate(tx, record, "pre-existing-failure", because)


def _stop_on_streak(tx: Transaction, record: TodoRecord, failure: Failure) -> None:
    """Raise :class:`Stop` if the same failure, or flakiness, has repeated as often as the policy allows."""
    limits, culprits = tx.top.halt, tuple(filter(None, (record.parent_id, record.id)))
    if limits.identical_failures is not None and record.same >= limits.identical_failures:
        because = f"{culprits[0]} failed {record.same} times in the same way ({record.signature}), and the "
        because += "product did not change"
        raise Stop("halt-on-identical-failure", because, culprits, failure.category)
    if limits.flaky_streak is not None and record.flaky >= limits.flaky_streak:
        because = f"{record.flaky} verifications of {culprits[0]} in a row were flaky"
        raise Stop("halt-on-flaky-streak", because, culprits, failure.category)


def _move_preexisting(tx: Transaction, record: TodoRecord, failures: tuple[Failure, ...]) -> bool:
    """Move pre-existing failures to todos of their own; return whether the todo now waits for them.

    It does not if this was done :data:`MOST_TIMES_APART` times, or if the edits conflict with the plan.
    """
    if record.set_apart >= MOST_TIMES_APART:
        return False
    assert record.outcome is not None
    within = record.within
    edits = set_apart(
        record.todo, record.outcome, failures, lambda name: qualified(within, name) in tx.records
    )
    if edits:
        try:
            publish(tx, record.within, edits, "pre-existing-failure", edits[0].because)
        except EditConflictError:
            return False
    return tx.waits(tx.update(record, set_apart=record.set_apart + 1))


def _apply_undecided(tx: Transaction, record: TodoRecord, outcome: Outcome) -> None:
    """Apply an undecided outcome: verify again, or ask a person if that cannot help."""
    unowned = next((failure for failure in failures_of(outcome) if is_unowned(failure)), None)
    manual = [check for check in outcome.checks if check.is_unanswered]
    others = {check.counts_as for check in outcome.checks if not check.is_unanswered}
    if unowned is None and manual and not others & UNDECIDED:
        text = "; ".join(check.title or check.id for check in manual)
        because = "only the answer of a person is missing"
        tx.rest(record)
        tx.ask(QuestionKind.ANSWER, record, text, "question-is-open", because)
    else:
        _verify_again_or_ask(tx, record, unowned)


def _verify_again_or_ask(tx: Transaction, record: TodoRecord, failure: Failure | None) -> None:
    """Verify again, each time after twice the delay; ask a person once the retries are exhausted.

    ``failure`` is the one of environment or harness, if any: no role is responsible for it. If a person is
    asked already to repair the same failure, nothing is gained by waiting.
    """
    if failure is None:
        rule, because = "inconclusive-is-verified-again", "the verdict was inconclusive"
    elif failure.category is Category.HARNESS_ERROR or failure.owner is Owner.HARNESS:
        rule, because = "harness-blames-nobody", f"the run itself failed: {_headline(failure)}"
    else:
        rule, because = "environment-blames-nobody", f"the environment is at fault: {_headline(failure)}"
    if record.waited < tx.policy.environment_retries and not same_environment_questions(tx, failure):
        # The todo keeps its place and its files during the delay.
        delay = tx.policy.environment_delay_seconds * 2**record.waited
        record = tx.move(record, TodoLife.TESTING, waited=record.waited + 1)
        at = tx.now + delay if delay > 0 else None
        request(tx, record, rule, because, at)
        return
    record = tx.update(record, failure=failure or record.failure)
    text = f"repair the environment, so that {record.id} can be verified"
    # While the question is open, the todo stays in testing and occupies no place.
    tx.rest(record)
    because += f"; it was verified {counted(record.waited + 1, 'time')}"
    tx.ask(QuestionKind.MEND_ENVIRONMENT, record, text, rule, because)


def same_environment_questions(tx: Transaction, failure: Failure | None) -> list[AskHuman]:
    """Return the open questions that ask a person to repair this failure of the environment."""
    signature = None if failure is None else failure.signature
    return [
        each
        for each in tx.questions.values()
        if each.kind is QuestionKind.MEND_ENVIRONMENT
        and each.failure is not None
        and each.failure.signature == signature is not None
    ]


def _headline(failure: Failure) -> str:
    """Return the first line of a failure, or its category if it has none."""
    return one_line(failure.stack_trace_head or "", limit=_MAX_HEADLINE) or failure.category.value


# -- repair --------------------------------------------------------------------------------------------


def repair(tx: Transaction, record: TodoRecord) -> None:
    """Start or continue the repair of a primary todo in ``test_failed``.

    The first branch is not created while the repair of another todo covers the same cause.
    """
    last = tx.last_branch(record)
    if last is not None and last.life is not TodoLife.DONE and not record.by_person:
        if last.life.is_final:
            _branch_failed(tx, record, last)
        # Branches are left out of the search for cycles when a plan is submitted.
        elif record.id in reachable((last.id,), tx.ids_before):
            because = f"its branch {last.id} waits for the todo that it repairs"
            tx.notify("branches-in-a-circle", because, topic=ALERT, to=Role.HUMAN, todo_id=record.id)
            escalate(tx, record, "branches-in-a-circle", because)
        else:
            tx.offer((last.id,))
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


def attempt_failed(tx: Transaction, branch: TodoRecord, because: str) -> None:
    """Count a failed attempt of a branch; grant it the next one, or fail it if none is left.

    The branch is ``active`` or ``test_failed``. It also fails once its lifetime has passed.
    """
    allowed = branch.todo.max_debug_attempts
    if allowed is None:
        allowed = attempts_of(branch.todo.branch_reason, tx.policy_of(branch))
    # Without a driver, the first failed attempt is the first sign of work on the branch.
    tx.begin_lifetime(branch, tx.now)
    branch = tx.update(branch, attempts=branch.attempts + 1)
    if branch.attempts >= allowed or _is_expired(tx, branch):
        tx.fail(branch)
        return
    # First, as the reason may end with the words of an agent.
    reason = f"after attempt {branch.attempts} of {allowed}, {because}"
    work_again(tx, branch, "branch-has-attempts-left", reason)


def work_again(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Request another turn of work: at once for an active todo, which keeps its place, else by the queue.

    If the budget leaves no further turn, an active todo becomes ``test_failed`` and is queued, too.
    """
    if record.life is TodoLife.ACTIVE:
        if tx.check_budget(before_work=True):
            implement(tx, record, rule, because)
            return
        # The life cycle has no direct move from active to test_failed.
        record = tx.red(record, TodoLife.TESTING, deadline=None)
    tx.enqueue(record, "implement", rule, because)


def escalate(
    tx: Transaction, record: TodoRecord, rule: str, because: str, *, exhausted: bool = True
) -> None:
    """Notify the planner and ask a person how to continue with a todo.

    ``exhausted`` counts it, once, among the todos whose repairs are exhausted. Raises :class:`Stop` if
    there are too many of these in a row.
    """
    tx.notify(rule, because, topic=REVIEW, to=Role.PLANNER, todo_id=record.id)
    if exhausted and not record.exhausted:
        record = tx.update(record, exhausted=True)
        count_exhausted(tx, record, because)
    tx.ask(QuestionKind.REVIEW, record, f"how should {record.id} continue?", rule, because)


def count_exhausted(tx: Transaction, record: TodoRecord, because: str) -> None:
    """Count a todo whose repairs are exhausted.

    Raises :class:`Stop` at the plan's limit of consecutive ones.
    """
    tx.consecutive += 1
    limit = tx.top.halt.consecutive_failures
    if limit is not None and tx.consecutive >= limit:
        reason = f"the repairs of {counted(tx.consecutive, 'todo')} in a row are used up"
        reason += f", the last of {record.id} ({because})"
        raise Stop("halt-on-consecutive-failures", reason, (record.id,))


def branch_ended(tx: Transaction, branch: TodoRecord) -> None:
    """Continue with the todo of a branch that is done, failed or skipped."""
    tx.open_branches -= 1
    assert branch.parent_id is not None
    primary = tx.records[branch.parent_id]
    is_red = primary.life is TodoLife.TEST_FAILED
    if branch.life is TodoLife.DONE:
        primary = tx.update(primary, flaky=0)  # a passed verification breaks the streak
        if is_red:
            because = f"{branch.id} passed, so its criteria may pass now"
            tx.enqueue(primary, "verify", "branch-passed", because)
        return
    # The branch was ended because the criteria of its todo changed, which is no failure of the branch.
    is_reverified = primary.next_step is not None and primary.next_step.rule == "criteria-have-changed"
    if is_reverified or primary.life is TodoLife.DONE:
        return
    tx.failed_branches += 1
    limit = tx.top.notify_after_n_failures
    if tx.failed_branches > limit:
        because = f"{tx.failed_branches} branches have failed, more than {limit}; the last is {branch.id}"
        tx.notify("many-failed-branches", because, topic=ALERT, to=Role.HUMAN, todo_id=None)
    if is_red:
        if branch.outcome is not None and branch.failure is not None:
            # A person, and the turn that they may grant, need what the last attempt left. The command to
            # rerun is that of the todo, since the plan file need not have the branch.
            rerun = primary.failure and primary.failure.rerun
            failure = branch.failure.model_copy(update={"rerun": rerun})
            primary = tx.update(primary, outcome=branch.outcome, context=branch.context, failure=failure)
        _branch_failed(tx, primary, branch)


def _branch_failed(tx: Transaction, primary: TodoRecord, branch: TodoRecord) -> None:
    """Escalate a failing todo whose branch did not repair it, with the reason why the branch ended."""
    if branch.life is TodoLife.SKIPPED:
        rule, because = "step-failed", f"a step that {branch.id} waits for failed"
    elif _is_expired(tx, branch):
        rule, because = "branch-lifetime", f"{branch.id} is not done within its lifetime"
    else:
        rule, because = "attempts-used-up", f"{branch.id} still fails"
        because += f" after {counted(branch.attempts, 'attempt')}" if branch.attempts else ""
        because += f"; {branch.asked_by[1]}" if branch.asked_by[0] == "work-failed" else ""
    escalate(tx, primary, rule, because)


def _is_expired(tx: Transaction, branch: TodoRecord) -> bool:
    """Return whether the lifetime of a branch has passed."""
    return branch.expires is not None and tx.now > branch.expires


def failure_of(record: TodoRecord) -> Failure:
    """Return the failure that decides the repair of a todo, which must be failing."""
    assert record.failure is not None
    return record.failure


# -- todos that fail by one cause ----------------------------------------------------------------------


def _leader(tx: Transaction, record: TodoRecord) -> TodoRecord | None:
    """Return the first todo in plan order, if any, whose repair covers every failure of this one.

    A todo that may not edit the file at fault cannot lead one that may.
    """
    assert record.outcome is not None
    # The record's own signature is never empty: _findings() composes one for a failure without.
    own = {each.signature for each in failures_of(record.outcome)} - {None} | {record.signature}
    leaders = [
        other
        for other in (tx.records[name] for name in tx.reds)
        if own <= other.cause
        and other.id != record.id
        and not other.is_branch
        and _is_under_repair(tx, other)
        and (may_edit_fault(other.todo, other.failure) or not may_edit_fault(record.todo, record.failure))
    ]
    return min(leaders, key=lambda other: other.rank, default=None)


def _is_under_repair(tx: Transaction, record: TodoRecord) -> bool:
    """Return whether a failing todo has an open branch, proposed, waiting or in progress."""
    # A todo that waits for another's repair leads nobody, so that todos cannot wait in a circle.
    if record.life is not TodoLife.TEST_FAILED or record.behind is not None:
        return False
    last = tx.last_branch(record)
    if last is not None and not last.life.is_final:
        return True
    question = tx.questions.get(record.question or "")
    if question is not None:
        return question.kind is QuestionKind.APPROVE_BRANCH
    return record.next_step is not None


def release_follower(tx: Transaction) -> bool:
    """Continue one todo that waited for the repair of another; return whether there was one.

    The todo is verified if that repair succeeded, and repaired on its own if not.
    """
    for name in tx.reds:  # the repair below may change its size, so the function returns right after
        record = tx.records[name]
        if record.behind is None:
            continue
        leader = tx.records[record.behind]
        if _is_under_repair(tx, leader) or leader.life.is_live:
            continue
        record = tx.update(record, behind=None)
        if leader.life is TodoLife.DONE:
            because = f"{leader.id}, which failed for the same cause, is done"
            tx.enqueue(record, "verify", "shared-cause", because)
        else:
            repair(tx, record)
        return True
    return False


# -- the branch ----------------------------------------------------------------------------------------


def open_branch(tx: Transaction, record: TodoRecord, step: PendingStep) -> None:
    """Create the branch of a todo, ask for its approval, or queue it until the branch limit allows it.

    ``step`` carries the proposal if a person has approved it. A plan that allows no branches escalates.
    """
    limit = tx.top.max_concurrent_branches
    if limit < 1:
        escalate(tx, record, "branch-limit", "the plan allows no branches (max_concurrent_branches is 0)")
    elif tx.open_branches >= limit:
        tx.enqueue(record, step.kind, step.rule, step.because, step.proposal)
    elif step.proposal is not None:
        try:
            _make_branch(tx, record, step.proposal)
        except EditConflictError:
            # Its id is taken since, by the branch of a todo with a similar, very long id. It is proposed
            # again without the reason for asking, which the new proposal adds.
            open_branch(tx, record, step._replace(proposal=None, because=step.proposal.edits[0].because))
    else:
        proposal = _proposal(tx, record, step)
        setting = approval_setting(tx.policy_of(record), tx.top)
        if asks_a_person(record.todo):
            why = f"the risk of {record.id} is {record.todo.risk_level}"
        elif setting is None or failure_class(failure_of(record)) in tx.approved:
            _make_branch(tx, record, proposal)
            return
        else:
            why = f"the plan asks before repairs ({setting})"
        because = f"{proposal.because}; {why}"
        tx.notify(step.rule, because, topic=REVIEW, to=Role.HUMAN, todo_id=record.id)
        tx.update(record, next_step=None, question=proposal.question_id)
        digest = digest_of_edits("", proposal.edits)
        tx.show(proposal.model_copy(update={"digest": digest, "because": because}))


def _make_branch(tx: Transaction, record: TodoRecord, proposal: AskHuman) -> None:
    """Publish a branch and the edits that need no approval; ask a person about the others.

    Raises :class:`planner.errors.EditConflictError` if the proposal no longer fits the plan.
    """
    tx.update(record, next_step=None)
    # Edits of criteria always need a person; the branch does not wait for them.
    edits = [each for each in proposal.edits if not each.requires_approval]
    publish(tx, record.within, edits, proposal.rule, proposal.because)
    tx.open_branches += 1
    unapproved = tuple(edit for edit in proposal.edits if edit.requires_approval)
    if unapproved:
        text = f"may the plan be changed: {'; '.join(map(_in_words, unapproved))}?"
        kind, digest = QuestionKind.APPROVE_EDITS, digest_of_edits("", unapproved)
        record = tx.records[record.id]
        tx.ask(
            kind, record, text, unapproved[0].rule, unapproved[0].because, digest=digest, edits=unapproved
        )


def _in_words(edit: Edit) -> str:
    """Return what an edit that needs approval changes, without an end of the sentence."""
    match edit:
        case AddTodoBefore():
            return f"a todo before the repair, '{edit.todo.title}', for the {edit.todo.agent_role}"
        case RaiseLimit():
            return f"{edit.to_seconds:g} s instead of {edit.from_seconds:g} s for {edit.check_id}"
        case RetargetCheck():
            return f"{edit.check_id} runs '{edit.to_cmd}' instead of '{edit.from_cmd}'"
        case _:
            return edit.edit


def failure_class(failure: Failure) -> str:
    """Return the class of failures that one approval may cover.

    It consists of the category, the exception's name (empty if the first line names none) and the role
    to which the failure is routed.
    """
    head = (failure.stack_trace_head or "").partition(":")[0].strip()
    # Free text instead of an exception's name would make nearly every failure a class of its own.
    kind = head if head.replace(".", "").replace("_", "").isalnum() else ""
    return f"{failure.category}/{kind}/{failure.target_agent or ''}"


def _proposal(tx: Transaction, record: TodoRecord, step: PendingStep) -> AskHuman:
    """Return the question that proposes a branch, with the revisions for the failure's category."""
    failure, last = failure_of(record), tx.last_branch(record)
    assert record.outcome is not None
    branch_id = next_branch_id(
        record.todo.id, len(record.branches), lambda name: qualified(record.within, name) in tx.records
    )
    role, because = role_for(failure, record.todo), step.because
    if tx.memory is not None:
        advice = tx.memory.route(failure, record.todo, role, tx.now)
        if advice.changed:
            role, because = advice.role, f"{because}; memory: {advice.because}"
    branch = branch_todo(
        record.todo,
        record.outcome,
        tx.policy_of(record),
        branch_id=branch_id,
        failure=failure,
        role=role,
        after=None if last is None else last.todo,
    )
    edits: tuple[Edit, ...] = revise(_situation(tx, record, record, branch))
    added = AddBranch(rule=step.rule, because=because, todo=branch)
    # Edits that need an approval are decided separately, so the branch must fit the plan without them.
    try:
        agreed = [each for each in (added, *edits) if not each.requires_approval]
        final = edited(tx, record.within, agreed)[branch_id]
    except EditConflictError:  # propose the branch alone
        edits, final = (), branch
    context = AddContext(
        rule="context-for-the-repair",
        because="the branch needs instructions",
        todo_id=branch_id,
        text=instructions_of_branch(tx, record, final),
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
        branch=final.model_copy(update={"debug_instructions": context.text}),
        edits=(added, *edits, context),
        failure=failure,
    )


def instructions_of_branch(tx: Transaction, record: TodoRecord, branch: Todo) -> str:
    """Return the instructions for a new branch of a failed todo; they name the last one as tried."""
    last = tx.last_branch(record)
    tried = () if last is None else (f"branch {last.todo.id}",)
    return instructions_for(tx, record, record, branch, tried)


def _situation(tx: Transaction, primary: TodoRecord, red: TodoRecord, branch: Todo) -> Situation:
    """Return the input of the revision strategies for a branch of ``primary``.

    ``red`` holds the failure: that of the todo, or of its branch.
    """
    assert red.outcome is not None
    return Situation(
        plan=tx.parts[primary.within].plan,
        todo=primary.todo,
        outcome=red.outcome,
        failure=failure_of(red),
        branch=branch,
        context=red.context,
        tools=frozenset(tx.policy.tools),
        is_taken=lambda name: qualified(primary.within, name) in tx.records,
    )


def _refit(tx: Transaction, branch: TodoRecord, red: TodoRecord, old: Failure | None) -> TodoRecord:
    """Let a branch follow its new cause; return its record.

    It may change the files of the cause, within those that it was granted, and gets its role, unless a
    person has chosen another. ``red`` holds the failure by the new cause, ``old`` is the one before.
    """
    assert branch.parent_id is not None
    primary, granted = tx.records[branch.parent_id], branch.granted
    # The strategies only narrow, so they start from all files that were granted.
    todo = branch.todo.model_copy(update={"allowed_files": granted})
    revised = revise(_situation(tx, primary, red, todo))
    files = next((edit.allowed_files for edit in revised if isinstance(edit, NarrowFiles)), granted)
    because = f"{branch.id} fails for another cause than before"
    edits: list[Edit] = []
    if files != branch.todo.allowed_files:
        rule = "files-follow-cause"
        edits.append(NarrowFiles(rule=rule, because=because, todo_id=todo.id, allowed_files=files))
    failure = failure_of(red)
    role = role_for(failure, primary.todo)
    if old is not None and todo.agent_role is role_for(old, primary.todo) is not role:
        rule = "role-follows-cause"
        edits.append(AssignRole(rule=rule, because=because, todo_id=todo.id, role=role))
    # What was proposed against the cause before is no longer of use.
    question = tx.questions.get(primary.question or "")
    is_of_edits = question is not None and question.kind is QuestionKind.APPROVE_EDITS
    if is_of_edits and old is not None and old.category is not failure.category:
        tx.withdraw(primary.question)
    if edits:
        publish(tx, branch.within, edits, edits[0].rule, because)
    return tx.records[branch.id]
