"""Take in what a verification has found: done, red, for nobody to mend, or not to be told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.engine.consequences import done, red, rest
from planner.engine.plans import publish
from planner.engine.repair import attempt_failed, escalate, repair
from planner.engine.requests import verify_again
from planner.engine.transaction import OPTIONS, Stop
from planner.errors import EditConflictError, RefusedEvent
from planner.model.actions import QuestionKind
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category, Family
from planner.model.verdicts import TodoLife, TodoState, Verdict
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
from planner.revise.preexisting import set_apart
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.events import Verified
    from planner.model.outcome import Failure, Outcome

_LONGEST_HEAD = 500

MOST_TIMES_APART = 3
"""How often failures that are older than the work get todos of their own; then a person decides."""

_ENDS = {TodoState.DONE: TodoLife.DONE, TodoState.TEST_FAILED: TodoLife.TEST_FAILED}


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
        done(tx, tx.update(record, signature="passed", diff_hash=outcome.diff_hash), verified=proof)
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
    record = red(tx, record, outcome=outcome, context=None, failure=worst, waited=0)
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
    record = red(tx, record, **found, same=same, flaky=flaky, waited=0)
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
        rest(tx, record)
        tx.ask(QuestionKind.ANSWER, record, text, "question-is-open", because)
    elif open_ and all(is_beyond_proof(outcome, check) for check in open_):
        text = f"how does it go on with {record.id}?"
        because = f"{open_[0].id} stays open however often it is run: {open_[0].reason}"
        options = OPTIONS[QuestionKind.MEND_ENVIRONMENT]
        rest(tx, record)
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
    said = " ".join(clean(failure.stack_trace_head or "", limit=_LONGEST_HEAD).split())
    return said or failure.category.value


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
    rest(tx, record)
    because += f"; it was verified {record.waited + 1} times"
    tx.ask(QuestionKind.MEND_ENVIRONMENT, record, text, rule, because)
