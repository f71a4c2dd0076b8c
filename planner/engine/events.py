"""Handlers of events: turns of work, verifications, sub-plans, conflicts and answers."""

from __future__ import annotations

import re
from heapq import heappop
from typing import TYPE_CHECKING

from planner.engine.plans import admit, base_of, problems_of, publish
from planner.engine.repair import (
    ALERT,
    ask_review,
    attempt_failed,
    count_exhausted,
    escalate,
    failure_class,
    open_branch,
    repair,
    waits_for,
    work_again,
)
from planner.engine.requests import start_clock, verify, verify_again
from planner.engine.state import PendingStep
from planner.engine.transaction import BUDGET_QUESTION, OPTIONS, Stop
from planner.errors import EditConflictError, RefusedEvent
from planner.model.actions import QuestionKind
from planner.model.base import qualified
from planner.model.edits import NarrowFiles
from planner.model.events import Decision
from planner.model.plan import MAX_TODOS, TodoStatus
from planner.model.taxonomy import Category, Family, Role
from planner.model.verdicts import TodoLife, TodoState, Verdict
from planner.policy.allowed_files import widened_by
from planner.policy.branches import retries_of
from planner.policy.limits import asks_a_person
from planner.policy.outcomes import (
    HALTING,
    UNDECIDED,
    failures_of,
    is_begun,
    is_beyond_proof,
    is_harness_fault,
    is_unowned,
    missing_proof,
    sorted_failures,
    state_of,
    violations_of,
)
from planner.revise.strategies import set_apart
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.actions import AskHuman
    from planner.model.edits import Edit
    from planner.model.events import (
        ApprovalGiven,
        BranchChanges,
        BudgetSpent,
        ConflictFound,
        PlanRevised,
        QuestionAnswered,
        StopRequested,
        SubPlanLoaded,
        Verified,
        WorkFinished,
        WorkStarted,
    )
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Todo

DEEPEST = 3
"""A parent may lie so many levels below the top plan, itself not counted."""

MOST_TIMES_APART = 3
"""How often failures that are older than the work get todos of their own; then a person decides."""

_LONGEST_MESSAGE = 200
_LONGEST_HEAD = 500
_LONGEST_REASON = 500
_LONGEST_NAME = 100
_ENDS = {TodoState.DONE: TodoLife.DONE, TodoState.TEST_FAILED: TodoLife.TEST_FAILED}
_GONE = (TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED)

# -- turns of work, and what they cost -----------------------------------------------------------------


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
        told = one_line(event.message or "", limit=_LONGEST_MESSAGE)
        because = f"whoever worked says that it failed{f': {told}' if told else ''}"
        _turn_failed(tx, record, "work-failed", because)
    elif record.todo.requires_testing:
        because = "the work is said to be done, which a verification has to prove"
        verify(tx, record, "done-means-verified", because, turn=record.turns)
    else:
        tx.done(record, verified=False)


def _turn_failed(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Try again, or let a verification tell what is wrong. The todo is ``active``."""
    if record.is_branch:
        attempt_failed(tx, record, because)
    elif record.retries < (limit := retries_of(record.todo, record.failure)) and not (
        record.by_person or record.branches
    ):
        record = tx.update(record, retries=record.retries + 1)
        because += f"; retry {record.retries} of {limit}"
        work_again(tx, record, "retry-by-the-same-role", because, retries=record.retries)
    elif record.todo.requires_testing:
        because += ", and no retry is left: a verification tells what is wrong"
        verify(tx, record, "failed-turn-is-diagnosed", because)
    else:  # it has failed for good, and nobody can be asked to repair it
        tx.fail(record)
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
    record = tx.red(tx.records[record.id], *lives, deadline=None, files=apart)
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
        tx.rest(record)
        escalate(tx, record, "sub-plan-unfit", because, exhausted=False)
        return
    tx.live.setdefault(record.id)
    names = admit(tx, event.plan, event.digest, record.id, base_of(tx, record, event))
    record = tx.update(record, children=names)
    tx.offer(names)
    if not names:
        tx.end_children(record)


def _at_work(tx: Transaction, event: WorkStarted | WorkFinished, after: TodoLife) -> TodoRecord:
    """Return the todo that somebody works on. Raises :class:`planner.errors.RefusedEvent` for any other."""
    record = tx.known(event.todo_id)
    if record.life is not TodoLife.ACTIVE or record.is_parent:
        raise tx.illegal(record, after, "tell only of what implement has asked for")
    tx.check_answer(record, "work on", event.answers)
    return record


def expire(tx: Transaction) -> None:
    """End what has lasted longer than its limit."""
    while tx.timers and tx.timers[0][0] < tx.now:
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
            tx.fail(record)
        # Of a driver that was away, the turns of work that it has lost are asked for again.
        elif record.deadline == time and record.life is TodoLife.ACTIVE and tx.trigger != "run_resumed":
            limit = record.todo.timeout_seconds
            because = f"the turn of work on {name} took longer than {limit:g} s" if limit else ""
            tx.cancel(record, "turn-timed-out", because)
            tx.expired.add(name)
            _turn_failed(tx, record, "turn-timed-out", because)


# -- verifications ------------------------------------------------------------------------------------


def verified(tx: Transaction, event: Verified) -> None:
    """Take a verification in, whether it was asked for or is of a run that somebody made.

    Raises :class:`planner.errors.RefusedEvent` for one that is stale, or proves less than it says.
    """
    outcome = event.outcome
    record = tx.known(outcome.todo_id)
    if outcome.plan not in (None, tx.plan_id, tx.parts[record.within].plan.todo_list_id):
        raise RefusedEvent(
            "another-plan",
            f"the outcome of '{record.id}' is of the plan '{outcome.plan}', and this one is '{tx.plan_id}'",
            "tell only outcomes of this plan",
        )
    said = state_of(outcome)
    if record.id in tx.expired:  # what was verified has come to its end by the time alone
        return
    if record.life.is_final:
        raise tx.illegal(record, _ENDS.get(said, TodoLife.TESTING), "begin another run of the plan")
    _refuse_stale(tx, record, event)
    proof = said is TodoState.DONE and _is_proved(tx, record, outcome)
    was_asked = record.life is TodoLife.TESTING and record.id in tx.live
    if not was_asked and not _take_up(tx, record, event, said):
        return
    record = tx.update(record, run_id=event.run_id, must_say_which=False)
    if not record.told:  # whoever worked has not said what it has cost; a turn counts as one cycle
        tokens, cycles = outcome.metrics.tokens_used or 0, outcome.metrics.patch_cycles or 0
        cycles -= 1 if record.turns else 0
        tx.spent = tx.spent.plus(tokens=max(tokens, 0), cycles=max(cycles, 0))
        record = tx.update(record, told=True)
    if _stop_on_violation(tx, record, outcome):
        return
    tx.check_budget(record.id)
    if said is TodoState.DONE:
        tx.done(tx.update(record, signature="passed", diff_hash=outcome.diff_hash), verified=proof)
    elif said is TodoState.TEST_FAILED:
        _red(tx, record, event)
    else:
        _undecided(tx, record, outcome)


def _is_proved(tx: Transaction, record: TodoRecord, outcome: Outcome) -> bool:
    """Return whether a pass is proved. Raises :class:`planner.errors.RefusedEvent` where it has to be."""
    lack = missing_proof(record.todo, outcome, is_parent=record.id in tx.parts)
    if lack is None:
        return outcome.verified
    if tx.policy.allow_unproved and not outcome.checks:
        return False
    raise RefusedEvent(
        "no-proof",
        f"the outcome of '{record.id}' says that it is done, but {lack}",
        "tell the outcome as pytest --planverify wrote it; outcomes without checks count only in a run "
        "that was begun with planner step --allow-unproved",
    )


def _refuse_stale(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    tx.check_answer(record, "verification of", event.answers)
    part = tx.parts[record.within]
    if event.plan_digest is None:
        if record.must_say_which and event.answers is None:
            raise RefusedEvent(
                "late-answer",
                f"a verification of '{record.id}' was cancelled, and this does not say which one it is of",
                "tell answers, the seq of the action, or plan_digest",
            )
    elif part.versions.get(event.plan_digest, 0) < record.judged_since:
        raise RefusedEvent(
            "stale-verification",
            f"'{record.id}' was verified against {event.plan_digest}, and what judges it now is of "
            f"{part.digest}",
            "apply what publish_plan says, and verify again",
        )


def _take_up(tx: Transaction, record: TodoRecord, event: Verified, said: TodoState) -> bool:
    """Return whether a verification that nobody asked for is judged now; then the todo is ``testing``.

    A pass counts at any time, and so does a violation. A failure counts once somebody can have worked on
    the todo: before that it is the work that is still to be done.
    """
    if record.is_parent:  # its todos decide first
        return False
    if said is not TodoState.DONE and not violations_of(event.outcome):
        if record.life is TodoLife.PENDING and (record.is_branch or tx.waits(record)):
            return False
        if said is TodoState.TEST_FAILED:
            if record.life is TodoLife.TEST_FAILED:
                _still_red(tx, record, event)
                return False
            if not _is_attempt(record, event):
                return False
        elif said is not TodoState.TESTING or _tells_nothing(tx, record, event.outcome):
            return False
    _to_testing(tx, record)
    return True


def _is_attempt(record: TodoRecord, event: Verified) -> bool:
    """Return whether somebody can have worked on a red todo since it was asked for."""
    if record.life is TodoLife.TESTING:
        return True
    if record.outcome is None and not record.is_branch:
        return is_begun(record.todo, event.outcome)
    if event.run_id is not None and event.run_id == record.run_id:
        return False
    if record.opened is not None and event.at.timestamp() <= record.opened:  # the run that it was made for
        return False
    unchanged = record.diff_hash is not None and record.diff_hash == event.outcome.diff_hash
    return not unchanged or record.todo.status is TodoStatus.CLAIMED


def _tells_nothing(tx: Transaction, record: TodoRecord, outcome: Outcome) -> bool:
    """Return whether an undecided outcome changes nothing about a todo."""
    verdicts = {check.counts_as for check in outcome.checks}
    if record.life is TodoLife.TEST_FAILED or verdicts == {Verdict.NOT_RUN}:
        return True
    question = tx.questions.get(record.question or "")
    if question is None or question.kind is not QuestionKind.ANSWER:
        return question is not None and question.kind is QuestionKind.MEND_ENVIRONMENT
    return Verdict.NEEDS_HUMAN in verdicts


def _still_red(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    """Take in news of a todo that is being repaired: of its branch, if somebody worked on it."""
    mine, _ = sorted_failures(record.todo, event.outcome)
    if not mine or is_unowned(mine[0]):
        return
    branch = tx.last_branch(record)
    is_attempt = branch is not None and branch.life is TodoLife.ACTIVE and _is_attempt(branch, event)
    before = record.signature
    record = tx.update(record, run_id=event.run_id, **_findings(record, event, mine[0]))
    if branch is not None and is_attempt:
        _to_testing(tx, branch)
        _red(tx, tx.update(branch, run_id=event.run_id), event)
    elif before != record.signature:
        tx.changed.append(record.id)


def _findings(record: TodoRecord, event: Verified, failure: Failure) -> dict[str, object]:
    """Return what is kept of a red verification."""
    signature = failure.signature
    if not signature:  # one of which nothing but the category is known is like no failure of another todo
        head = re.sub(r"\d+", "#", failure.stack_trace_head or "")
        tests = failure.tests or failure.top_failing_tests
        told = (head, *tests) if head or tests else (record.parent_id or record.id,)
        signature = "|".join((failure.category.value, *told))
    return {
        "outcome": event.outcome,
        "context": event.context,
        "failure": failure,
        "signature": signature,
        "diff_hash": event.outcome.diff_hash,
        "cause": frozenset((signature,)).union(*(group for group in event.causes if signature in group)),
    }


def _to_testing(tx: Transaction, record: TodoRecord) -> None:
    """Judge a todo though nobody has asked for its verification."""
    tx.withdraw(record.question)
    if record.id in tx.live and record.life is TodoLife.ACTIVE and tx.policy.driven:
        tx.cancel(record, "verified-unasked", "it was verified before its turn of work was told to be over")
    tx.live.setdefault(record.id)
    record = tx.update(record, next_step=None, behind=None)
    if record.life is not TodoLife.TESTING:
        tx.move(record, TodoLife.TESTING, deadline=None)


def _stop_on_violation(tx: Transaction, record: TodoRecord, outcome: Outcome) -> bool:
    """Stop where rules were violated, or put it before a person; return whether that was done."""
    found = violations_of(outcome)
    if not found:
        return False
    worst = min(found, key=lambda each: each.category.facts.family.severity)
    because = f"{worst.category} in {record.id}"
    because += f": {_head(worst)}" if worst.stack_trace_head else ""
    family = worst.category.facts.family
    if family is not Family.SANDBOX or tx.top.halt.security != "ask":
        raise Stop(HALTING[family], because, (record.id,), worst.category)
    record = tx.red(record, outcome=outcome, context=None, failure=worst, waited=0)
    escalate(tx, record, "violation-asks", because, exhausted=False)
    return True


def _red(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    mine, apart = sorted_failures(record.todo, event.outcome)
    if mine and is_unowned(mine[0]):
        _later(tx, record, mine[0])
        return
    failure = mine[0] if mine else apart[0]
    found = _findings(record, event, failure)
    unchanged = found["diff_hash"] is not None and found["diff_hash"] == record.diff_hash
    alike = found["signature"] == record.signature
    both = failure.category is Category.FLAKY_TEST or (
        unchanged and not alike and record.outcome is not None
    )
    same = record.same + 1 if unchanged and alike else 1
    flaky = record.flaky + 1 if both else 0
    record = tx.red(record, **found, same=same, flaky=flaky, waited=0)
    _stop_on_streak(tx, record, failure)
    if record.parent_id is not None:
        primary = tx.records[record.parent_id]
        tx.update(primary, signature=record.signature, diff_hash=record.diff_hash, same=same)
        attempt_failed(tx, record, f"{record.id} is still red")
        return
    waits = bool(apart) and _set_apart(tx, record, apart)
    record = tx.records[record.id]
    if mine:
        repair(tx, record)
    elif not waits:
        because = "what it failed with was there before the work, and has been set apart too often"
        escalate(tx, record, "pre-existing-failure", because)


def _stop_on_streak(tx: Transaction, record: TodoRecord, failure: Failure) -> None:
    limits, culprit = tx.top.halt, (record.parent_id or record.id,)
    if limits.identical_failures is not None and record.same >= limits.identical_failures:
        raise Stop(
            "halt-on-identical-failure",
            f"{record.id} failed {record.same} times in the same way ({record.signature}), and nothing in "
            "the product had changed",
            culprit,
            failure.category,
            signature=record.signature,
            times=record.same,
        )
    if limits.flaky_streak is not None and record.flaky >= limits.flaky_streak:
        because = (
            f"{record.flaky} verifications of {record.id} in a row had different answers for the same code"
        )
        raise Stop("halt-on-flaky-streak", because, culprit, failure.category, times=record.flaky)


def _set_apart(tx: Transaction, record: TodoRecord, apart: tuple[Failure, ...]) -> bool:
    """Give failures older than the work todos of their own; return whether the todo waits for them."""
    if record.set_apart >= MOST_TIMES_APART:
        return False
    assert record.outcome is not None
    known = {each.todo.id for each in tx.records.values() if each.within == record.within}
    edits = set_apart(record.todo, record.outcome, apart, known)
    if edits:
        try:
            publish(tx, record.within, edits, "pre-existing-failure", edits[0].because)
        except EditConflictError:
            return False
    return tx.waits(tx.update(record, set_apart=record.set_apart + 1))


def _undecided(tx: Transaction, record: TodoRecord, outcome: Outcome) -> None:
    unowned = next((failure for failure in failures_of(outcome) if is_unowned(failure)), None)
    if unowned is not None:
        _later(tx, record, unowned)
        return
    open_ = [check for check in outcome.checks if check.counts_as in UNDECIDED]
    asked = [check for check in outcome.checks if check.counts_as is Verdict.NEEDS_HUMAN]
    if asked and not open_:
        text = "; ".join(check.title or check.id for check in asked)
        because = "only the answer of a person is missing"
        tx.rest(record)
        tx.ask(QuestionKind.ANSWER, record, text, "question-is-open", because)
    elif open_ and all(is_beyond_proof(outcome, check) for check in open_):
        text = f"how does it go on with {record.id}?"
        because = f"{open_[0].id} stays open however often it is run: {open_[0].reason}"
        options = OPTIONS[QuestionKind.MEND_ENVIRONMENT]
        tx.rest(record)
        tx.ask(QuestionKind.REVIEW, record, text, "demand-proves-nothing", because, options=options)
    else:
        _again(tx, record, "inconclusive-is-verified-again", "the run could not tell whether it holds")


def _later(tx: Transaction, record: TodoRecord, failure: Failure) -> None:
    """Verify again what no role of the plan can answer for."""
    if is_harness_fault(failure):
        rule, because = "harness-blames-nobody", f"the run itself went wrong: {_head(failure)}"
    else:
        rule, because = "environment-blames-nobody", f"something was not there: {_head(failure)}"
    _again(tx, record, rule, because, failure)


def _head(failure: Failure) -> str:
    """Return what a failure begins with, on one line; its category where it says nothing."""
    return one_line(failure.stack_trace_head or "", limit=_LONGEST_HEAD) or failure.category.value


def _again(
    tx: Transaction, record: TodoRecord, rule: str, because: str, failure: Failure | None = None
) -> None:
    """Verify again a little later, and when that has been done often enough, ask a person.

    Until they answer, the driver is not at the todo, which stays in ``testing``.
    """
    if record.waited < tx.policy.environment_retries:
        verify_again(tx, record, rule, because, tx.policy.environment_delay_seconds * 2**record.waited)
        return
    record = tx.update(record, failure=failure or record.failure)
    text = f"see to what was not there, so that {record.id} can be verified"
    tx.rest(record)
    because += f"; it was verified {record.waited + 1} times"
    tx.ask(QuestionKind.MEND_ENVIRONMENT, record, text, rule, because)


# -- what people say ----------------------------------------------------------------------------------


def approval_given(tx: Transaction, event: ApprovalGiven) -> None:
    """Go on as a person has decided about a proposal."""
    question = _open_question(tx, event.approval_id)
    if not question.kind.is_approval:
        said = f"'{event.approval_id}' is a question, and nothing to approve"
        remedy = f"answer it by question_answered with {', '.join(question.options)}"
        raise RefusedEvent("no-such-approval", said, remedy)
    if event.digest != question.digest:
        said = f"what was decided about '{event.approval_id}' has the digest {event.digest or '(none)'}"
        said += f", and what is proposed now has {question.digest}"
        raise RefusedEvent("stale-approval", said, "look at what is proposed now, and decide anew")
    _check_option("no-such-decision", event.decision.value, question)
    tx.withdraw(question.question_id)
    record = tx.records[question.todo_id]
    if question.kind is QuestionKind.APPROVE_START:
        _about_start(tx, record, event)
    elif question.kind is QuestionKind.APPROVE_EDITS:
        _about_edits(tx, record, question, event)
    else:
        _about_branch(tx, record, question, event)


def question_answered(tx: Transaction, event: QuestionAnswered) -> None:
    """Go on as a person has answered."""
    question = _open_question(tx, event.question_id)
    if question.kind.is_approval:
        said = f"'{event.question_id}' is to be approved or rejected"
        remedy = f"decide it by approval_given with the digest {question.digest}"
        raise RefusedEvent("no-such-question", said, remedy)
    _check_option("no-such-answer", event.answer, question)
    said, who = _reason(event.because), _name(event.by)
    tx.withdraw(question.question_id)
    if event.answer == "stop":
        found = (question.todo_id,) if question.todo_id else ()
        raise Stop("stopped-by-person", f"{who} wants everything to stop{said}", found)
    if question.question_id == BUDGET_QUESTION:
        tx.overspent = True
        return
    record = tx.records[question.todo_id]
    if event.answer == "give_up":
        tx.fail(record)
    elif event.answer == "retry":
        because = f"{who} wants it tried once more{said}"
        if not record.is_parent:
            told = event.because or record.instructions
            record = tx.update(record, by_person=True, instructions=told)
        tx.enqueue(record, "load" if record.is_parent else "implement", "person-grants-a-turn", because)
    else:
        record = tx.update(record, waited=0)
        tx.enqueue(record, "verify", "answered-is-verified-again", f"{who} has answered{said}")


def _open_question(tx: Transaction, question_id: str) -> AskHuman:
    if question_id not in tx.questions:
        open_ = ", ".join(sorted(tx.questions)[:10]) or "none"
        said = f"'{question_id}' is not asked (open are: {open_})"
        raise RefusedEvent("no-such-question", said, "answer one that is asked")
    return tx.questions[question_id]


def _check_option(rule: str, answer: str, question: AskHuman) -> None:
    if answer not in question.options:
        said = f"'{answer[:100]}' is no answer to '{question.question_id}'"
        raise RefusedEvent(rule, said, f"say {', '.join(question.options)}")


def plan_revised(tx: Transaction, event: PlanRevised) -> None:
    """Change the plan as a person wants; what is done, or under work, stays judged as it is."""
    if event.within not in tx.parts:
        raise RefusedEvent(
            "unknown-plan",
            f"there is no loaded sub-plan '{event.within}'",
            "name the parent whose sub-plan is meant, or nothing for the plan at the top",
        )
    if any(edit.edit == "add_branch" for edit in event.edits):
        raise RefusedEvent(
            "no-branch-by-hand",
            "a branch is made by the engine, which counts it and ends it",
            "answer the question about its todo, or add a todo",
        )
    before = tx.records.copy()
    because = f"{_name(event.by)} has changed the plan"
    try:
        publish(tx, event.within, event.edits, "revised-by-person", because)
    except EditConflictError as error:
        raise RefusedEvent(
            "revision-conflict", error.args[0], "decide anew from the plan as it is"
        ) from None
    for name, was in sorted(before.items()):
        record = tx.records[name]
        if not (was.life.is_final or was.life.is_live) or record.todo == was.todo:
            continue
        if record.life.is_final or set(record.todo.dependencies) - set(was.todo.dependencies):
            raise tx.illegal(record, TodoLife.PENDING, "add a todo of its own for what is missing")


def stop_requested(tx: Transaction, event: StopRequested) -> None:
    """Stop everything, as a person wants."""
    because = f"{_name(event.by)} wants everything to stop{_reason(event.because)}"
    raise Stop("stopped-by-person", because)


def _about_start(tx: Transaction, record: TodoRecord, event: ApprovalGiven) -> None:
    if event.decision is Decision.REJECT:
        tx.fail(record)
        return
    if event.decision is Decision.MODIFY:
        _narrow(tx, record, event.changes)
        record = tx.update(record, instructions=event.changes.instructions)
    tx.update(record, allowed_start=True)
    tx.offer((record.id,))


def _narrow(tx: Transaction, record: TodoRecord, changes: BranchChanges) -> None:
    """Give a todo that is begun fewer files; what else it is told stands in its record."""
    named = changes.model_dump(exclude_none=True)
    other = [name for name in named if name not in ("instructions", "allowed_files")]
    if other:
        raise RefusedEvent(
            "no-such-change",
            f"{other[0]} cannot be changed at the start of '{record.id}'",
            "change its instructions and allowed_files, or revise the plan",
        )
    if changes.allowed_files is None:
        return
    edit = NarrowFiles(
        rule="high-risk-asks-first",
        because="a person lets it begin with these files only",
        todo_id=record.todo.id,
        allowed_files=changes.allowed_files,
    )
    try:
        publish(tx, record.within, (edit,), edit.rule, edit.because)
    except EditConflictError as error:
        raise RefusedEvent("no-wider-files", error.problem, error.remedy) from None


def _about_edits(tx: Transaction, record: TodoRecord, question: AskHuman, event: ApprovalGiven) -> None:
    if event.decision is Decision.REJECT or record.life.is_final:  # it has come to its end meanwhile
        return
    because = f"{_name(event.by)} has agreed to it"
    try:
        publish(tx, record.within, question.edits, "approved-edits", because)
    except EditConflictError as error:
        because = f"the approved change of {record.id} no longer fits the plan: {error}"
        tx.notify("revision-conflict", because, topic=ALERT, to=Role.PLANNER, todo_id=record.id)
        return
    record = tx.records[record.id]
    if record.life is TodoLife.TEST_FAILED and record.question is not None and not tx.waits(record):
        tx.withdraw(record.question)
        tx.enqueue(record, "verify", "criteria-have-changed", "its criteria have changed")


def _about_branch(tx: Transaction, record: TodoRecord, question: AskHuman, event: ApprovalGiven) -> None:
    if event.decision is Decision.REJECT:
        because = f"{_name(event.by)} has rejected {question.question_id}{_reason(event.because)}"
        escalate(tx, record, "branch-rejected", because, exhausted=False)
        return
    if event.decision is Decision.MODIFY:
        modified = _modified(tx, record, question, event.changes)
        if modified is None:
            because = f"{question.question_id} would wait for {record.id}, which it is there to repair"
            tx.notify("branches-in-a-circle", because, topic=ALERT, to=Role.HUMAN, todo_id=record.id)
            ask_review(tx, record, "branches-in-a-circle", because)
            return
        question = modified
    _open_approved(tx, question)
    if event.decision is Decision.APPROVE_SIMILAR and question.failure is not None:
        alike = failure_class(question.failure)
        tx.approved = tx.approved | {alike}
        for other in sorted(tx.questions.values(), key=lambda each: each.seq):
            if other.kind is not QuestionKind.APPROVE_BRANCH or other.failure is None:
                continue
            own = asks_a_person(tx.records[other.todo_id].todo)
            if failure_class(other.failure) == alike and not own:
                tx.withdraw(other.question_id)
                _open_approved(tx, other)


def _open_approved(tx: Transaction, question: AskHuman) -> None:
    step = PendingStep("branch", question.rule, question.because, question)
    open_branch(tx, tx.records[question.todo_id], step)


def _modified(
    tx: Transaction, record: TodoRecord, question: AskHuman, changes: BranchChanges
) -> AskHuman | None:
    """Return a proposal with what a person has changed; ``None`` where it would wait for its own todo."""
    assert question.branch is not None
    if changes.max_debug_attempts == 0:
        raise RefusedEvent("no-attempts", "a branch without attempts mends nothing", "reject it instead")
    for name in changes.dependencies or ():
        other = tx.records.get(qualified(record.within, name))
        if other is None:
            said = f"the branch cannot wait for '{name}', which is no todo"
            raise RefusedEvent("unknown-todo", said, "name one of its plan")
        if other.life in _GONE:
            said = f"the branch cannot wait for '{name}', which is {other.life}"
            raise RefusedEvent("todo-is-gone", said, "name one that can still be done")
        if waits_for(tx, other, record):
            return None
    branch = _changed(question.branch, changes)
    told = None
    if changes.instructions is not None:
        told = f"{changes.instructions}\n\n{branch.debug_instructions or ''}".strip() + "\n"
        branch = branch.model_copy(update={"debug_instructions": told})
    edits: list[Edit] = []
    for edit in question.edits:
        if edit.edit == "add_branch":
            edit = edit.model_copy(update={"todo": _changed(edit.todo, changes)})
        elif edit.edit == "narrow_files" and changes.allowed_files is not None:
            continue
        elif edit.edit == "add_context" and edit.todo_id == branch.id and told is not None:
            edit = edit.model_copy(update={"text": told})
        edits.append(edit)
    return question.model_copy(update={"branch": branch, "edits": tuple(edits)})


def _changed(todo: Todo, changes: BranchChanges) -> Todo:
    """Return a branch with what a person has changed. Raises :class:`planner.errors.RefusedEvent`."""
    files, allowed = changes.allowed_files, todo.allowed_files
    wider = None if files is None or allowed is None else widened_by(allowed, files)
    if wider is not None:
        raise RefusedEvent(
            "no-wider-files",
            f"'{wider}' is not within the files that were proposed ({', '.join(allowed or ()) or 'none'})",
            "name patterns that lie within them",
        )
    fields = {
        "agent_role": changes.role,
        "target_agent_role": changes.role,
        "allowed_files": files,
        "dependencies": changes.dependencies,
        "max_debug_attempts": changes.max_debug_attempts,
        "max_lifetime_seconds": changes.max_lifetime_seconds,
    }
    return todo.model_copy(update={name: held for name, held in fields.items() if held is not None})


def _reason(because: str | None) -> str:
    """Return what a person gives as a reason, on one line, behind a colon."""
    said = one_line(because or "", limit=_LONGEST_REASON)
    return f": {said}" if said else ""


def _name(person: str | None) -> str:
    return one_line(person or "", limit=_LONGEST_NAME) or "a person"
