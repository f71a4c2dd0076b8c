"""Takes in what a verification has found: done, red, for nobody to mend, or not to be told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.engine.budget import check_budget
from planner.engine.consequences import done, red, rest
from planner.engine.repair import attempt_failed, escalate, repair
from planner.engine.requests import verify_again
from planner.engine.revision import publish
from planner.engine.state import Question
from planner.engine.transaction import Stop
from planner.errors import EditConflictError, IllegalTransition, RefusedEvent
from planner.model.actions import QuestionKind
from planner.model.life import TodoLife
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category, Family
from planner.model.verdicts import TodoState, Verdict
from planner.policy.outcomes import (
    HALTING,
    UNDECIDED,
    failures_of,
    is_begun,
    is_beyond_proof,
    is_harness_fault,
    is_unowned,
    missing_proof,
    open_checks,
    sorted_failures,
    state_of,
)
from planner.revise.preexisting import set_apart
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.engine.state import TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.events import Verified
    from planner.model.outcome import Failure, Outcome

ENVIRONMENT_OPTIONS = ("verify", "give_up", "stop")
ANSWER_OPTIONS = ("answered", "give_up", "stop")

_LONGEST_HEAD = 500

MOST_TIMES_APART = 3
"""So often failures that are older than the work get todos of their own; then a person decides."""

_ENDS = {TodoState.DONE: TodoLife.DONE, TodoState.TEST_FAILED: TodoLife.TEST_FAILED}


def verified(tx: Transaction, event: Verified) -> None:
    """Take a verification in, whether it was asked for or is of a run that somebody made.

    Raises :class:`planner.errors.RefusedEvent` for one that is stale, or proves less than it says.
    """
    outcome = event.outcome
    record = tx.known(outcome.todo_id)
    own = (tx.plan_id, tx.parts[record.within].plan.todo_list_id)
    if outcome.plan is not None and outcome.plan not in own:
        raise RefusedEvent(
            "another-plan",
            f"the outcome of '{record.id}' is of the plan '{outcome.plan}', and this one is '{tx.plan_id}'",
            "tell only outcomes of this plan",
        )
    said = state_of(outcome)
    if record.id in tx.expired:  # what was verified has come to its end by the time alone
        return
    if record.life.is_final:
        after = _ENDS.get(said, TodoLife.TESTING)
        whose = f"todo '{record.id}'"
        raise IllegalTransition(
            whose, record.life, after, "verified", remedy="begin another run of the plan"
        )
    _refuse_stale(tx, record, event)
    proof = _proof(tx, record, outcome) if said is TodoState.DONE else False
    was_asked = record.life is TodoLife.TESTING and record.id in tx.live
    if not was_asked and not _take_up(tx, record, event, said):
        return
    record = tx.put(tx.records[record.id]._replace(run_id=event.run_id))
    _count_cost(tx, record, outcome)
    record = tx.put(tx.records[record.id]._replace(must_say_which=False))
    _stop_on_violation(tx, record, outcome)
    check_budget(tx, record.id)
    if said is TodoState.DONE:
        tx.put(record._replace(signature="passed", diff_hash=outcome.diff_hash))
        done(tx, tx.records[record.id], verified=proof)
    elif said is TodoState.TEST_FAILED:
        _red(tx, record, event)
    else:
        _undecided(tx, record, outcome)


def _proof(tx: Transaction, record: TodoRecord, outcome: Outcome) -> bool:
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


def _take_up(tx: Transaction, record: TodoRecord, event: Verified, said: TodoState) -> bool:
    """Return whether a verification that nobody asked for is judged now; then the todo is ``testing``.

    A pass counts at any time, and so does a violation. A failure counts once somebody can have worked on
    the todo: before that it is the work that is still to be done.
    """
    outcome = event.outcome
    if record.is_parent:  # its todos decide first
        return False
    violates = any(each.category.facts.family in HALTING for each in failures_of(outcome))
    if said is not TodoState.DONE and not violates:
        if record.life is TodoLife.PENDING and (record.waits or record.is_branch):
            return False
        if said is TodoState.TEST_FAILED:
            if record.life is TodoLife.TEST_FAILED:
                _still_red(tx, record, event)
                return False
            if not _is_attempt(record, event):
                return False
        elif said is not TodoState.TESTING or _tells_nothing(tx, record, outcome):
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
    if question is None:
        return False
    if question.kind is QuestionKind.ANSWER:
        return any(check.counts_as is Verdict.NEEDS_HUMAN for check in outcome.checks)
    return question.kind is QuestionKind.MEND_ENVIRONMENT


def _still_red(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    """A todo is red while its repair is under way: that is news of its branch, if somebody worked on it."""
    mine, _ = sorted_failures(record.todo, event.outcome)
    if not mine or is_unowned(mine[0]):
        return
    signature = mine[0].signature or _signature(record, mine[0])
    branch = tx.records[record.branches[-1]] if record.branches else None
    is_attempt = branch is not None and branch.life is TodoLife.ACTIVE and _is_attempt(branch, event)
    before = record.signature
    record = tx.put(
        record._replace(
            outcome=event.outcome,
            context=event.context,
            failure=mine[0],
            signature=signature,
            diff_hash=event.outcome.diff_hash,
            cause=_cause(signature, event),
            run_id=event.run_id,
        )
    )
    if branch is not None and is_attempt:
        _to_testing(tx, branch)
        _red(tx, tx.put(tx.records[branch.id]._replace(run_id=event.run_id)), event)
    elif before != signature:
        tx.changed.append(record.id)


def _to_testing(tx: Transaction, record: TodoRecord) -> None:
    """Judge a todo though nobody has asked for its verification."""
    if record.question is not None:
        tx.withdraw(record.question)
    if record.id in tx.live and record.life is TodoLife.ACTIVE and tx.policy.driven:
        tx.cancel(record, "verified-unasked", "it was verified before its turn of work was told to be over")
    if record.id not in tx.live:
        tx.live[record.id] = record.rank
        tx.working += 1
    record = tx.put(tx.records[record.id]._replace(next_step=None, behind=None))
    if record.life is not TodoLife.TESTING:
        tx.move(record, TodoLife.TESTING, deadline=None)


def _cause(signature: str, event: Verified) -> frozenset[str]:
    """Return the signatures of the cause of a failure."""
    return frozenset((signature,)).union(*(group for group in event.causes if signature in group))


def _refuse_stale(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    if event.answers is not None and event.answers != record.asked:
        raise RefusedEvent(
            "late-answer",
            f"the verification of '{record.id}' answers action {event.answers}, and {record.asked} is the "
            "one that is outstanding",
            "tell what came of the later one",
        )
    part = tx.parts[record.within]
    if event.plan_digest is None:
        if record.must_say_which and event.answers is None:
            raise RefusedEvent(
                "late-answer",
                f"a verification of '{record.id}' was cancelled, and this does not say which one it is of",
                "tell answers, the seq of the action, or plan_digest",
            )
        return
    version = part.versions.get(event.plan_digest)
    if version is None or version < record.judged_since:
        raise RefusedEvent(
            "stale-verification",
            f"'{record.id}' was verified against {event.plan_digest}, and what judges it now is of "
            f"{part.digest}",
            "apply what publish_plan says, and verify again",
        )


def _count_cost(tx: Transaction, record: TodoRecord, outcome: Outcome) -> None:
    """What the turn has cost, where whoever worked has not said so."""
    if record.told:
        return
    tokens, cycles = outcome.metrics.tokens_used or 0, outcome.metrics.patch_cycles or 0
    assumed = 1 if record.turns else 0  # a turn that says nothing counts as one cycle
    tx.spent = tx.spent.plus(tokens=max(tokens, 0), cycles=max(cycles - assumed, 0))
    tx.put(record._replace(told=True))


def _stop_on_violation(tx: Transaction, record: TodoRecord, outcome: Outcome) -> None:
    found = [each for each in failures_of(outcome) if each.category.facts.family in HALTING]
    if not found:
        return
    worst = min(found, key=lambda each: each.category.facts.family.severity)
    said = f": {_head(worst)}" if worst.stack_trace_head else ""
    because = f"{worst.category} in {record.id}{said}"
    if worst.category.facts.family is Family.SANDBOX and tx.top.halt.security == "ask":
        record = _now_red(tx, record, outcome, None, worst)
        red(tx, record)
        escalate(tx, tx.records[record.id], "violation-asks", because, exhausted=False)
        raise Handled
    rule = HALTING[worst.category.facts.family]
    raise Stop(rule, because, (record.id,), category=worst.category)


class Handled(Exception):
    """Nothing more is to be decided about the event."""


def _red(tx: Transaction, record: TodoRecord, event: Verified) -> None:
    outcome = event.outcome
    mine, apart = sorted_failures(record.todo, outcome)
    if mine and is_unowned(mine[0]):
        _later(tx, record, mine[0])
        return
    failure = mine[0] if mine else apart[0]
    signature = failure.signature or _signature(record, failure)
    same = _same(record, signature, outcome.diff_hash)
    flaky = _flaky(record, failure, signature, outcome.diff_hash)
    record = _now_red(tx, record, outcome, event, failure)
    record = tx.put(
        record._replace(
            signature=signature,
            diff_hash=outcome.diff_hash,
            same=same,
            flaky=flaky,
            cause=_cause(signature, event),
        )
    )
    red(tx, record)
    record = tx.put(tx.records[record.id]._replace(must_say_which=False))
    _stop_on_streak(tx, record, failure)
    if record.is_branch:
        assert record.parent_id is not None
        primary = tx.records[record.parent_id]
        tx.put(primary._replace(signature=signature, diff_hash=outcome.diff_hash, same=same))
        attempt_failed(tx, record, f"{record.id} is still red")
        return
    waits = _set_apart(tx, record, apart) if apart else False
    record = tx.records[record.id]
    if mine:
        repair(tx, record)
    elif not waits:
        because = "what it failed with was there before the work, and has been set apart too often"
        escalate(tx, record, "pre-existing-failure", because)


def _signature(record: TodoRecord, failure: Failure) -> str:
    """What tells a failure from others where nobody has given it a signature.

    One of which nothing but the category is known is like no failure of another todo.
    """
    head = re.sub(r"\d+", "#", failure.stack_trace_head or "")
    tests = failure.tests or failure.top_failing_tests
    told = (head, *tests) if head or tests else (record.parent_id or record.id,)
    return "|".join((failure.category.value, *told))


def _now_red(
    tx: Transaction, record: TodoRecord, outcome: Outcome, event: Verified | None, failure: Failure
) -> TodoRecord:
    context = None if event is None else event.context
    record = tx.move(
        record, TodoLife.TEST_FAILED, outcome=outcome, context=context, failure=failure, waited=0
    )
    rest(tx, record)
    return tx.records[record.id]


def _same(record: TodoRecord, signature: str, diff_hash: str | None) -> int:
    """So many times in a row this failure was found in this product."""
    unchanged = diff_hash is not None and diff_hash == record.diff_hash and signature == record.signature
    return record.same + 1 if unchanged else 1


def _flaky(record: TodoRecord, failure: Failure, signature: str, diff_hash: str | None) -> int:
    """So many verifications in a row in which the same code gave both answers."""
    both = failure.category is Category.FLAKY_TEST
    if not both and diff_hash is not None and diff_hash == record.diff_hash and record.outcome is not None:
        both = record.signature != signature
    return record.flaky + 1 if both else 0


def _stop_on_streak(tx: Transaction, record: TodoRecord, failure: Failure) -> None:
    limits = tx.top.halt
    if limits.identical_failures is not None and record.same >= limits.identical_failures:
        raise Stop(
            "halt-on-identical-failure",
            f"{record.id} failed {record.same} times in the same way ({record.signature}), and nothing in "
            "the product had changed",
            (record.parent_id or record.id,),
            category=failure.category,
            facts={"signature": record.signature, "times": record.same},
        )
    if limits.flaky_streak is not None and record.flaky >= limits.flaky_streak:
        raise Stop(
            "halt-on-flaky-streak",
            f"{record.flaky} verifications of {record.id} in a row had different answers for the same code",
            (record.parent_id or record.id,),
            category=failure.category,
            facts={"times": record.flaky},
        )


def _set_apart(tx: Transaction, record: TodoRecord, apart: tuple[Failure, ...]) -> bool:
    """Give failures that are older than the work todos of their own; whether the todo waits for them."""
    if record.set_apart >= MOST_TIMES_APART:
        return False
    known = {(each.within, each.todo.id) for each in _older(tx, record)}
    edits = set_apart(record, apart, known)
    if edits:
        try:
            publish(tx, record.within, edits, "pre-existing-failure", edits[0].because)
        except EditConflictError:
            return False
    record = tx.records[record.id]
    tx.put(record._replace(set_apart=record.set_apart + 1))
    return bool(record.waits)


def _older(tx: Transaction, record: TodoRecord) -> list[TodoRecord]:
    """The todos of the same plan that mend what is older than the work."""
    return [
        each
        for each in tx.records.values()
        if each.within == record.within and each.todo.id.startswith("pre_existing_")
    ]


def _undecided(tx: Transaction, record: TodoRecord, outcome: Outcome) -> None:
    unowned = next((failure for failure in failures_of(outcome) if is_unowned(failure)), None)
    if unowned is not None:
        _later(tx, record, unowned)
        return
    verdicts = {check.counts_as for check in outcome.checks}
    if Verdict.NEEDS_HUMAN in verdicts and not verdicts & UNDECIDED:
        open_ = [check for check in outcome.checks if check.counts_as is Verdict.NEEDS_HUMAN]
        _leave_to_person(
            tx,
            record,
            QuestionKind.ANSWER,
            "; ".join(check.title or check.id for check in open_),
            "question-is-open",
            "only the answer of a person is missing",
            ANSWER_OPTIONS,
        )
        return
    open_ = open_checks(outcome)
    if open_ and all(is_beyond_proof(outcome, check) for check in open_):
        _leave_to_person(
            tx,
            record,
            QuestionKind.REVIEW,
            f"how does it go on with {record.id}?",
            "demand-proves-nothing",
            f"{open_[0].id} stays open however often it is run: {open_[0].reason}",
            ENVIRONMENT_OPTIONS,
        )
        return
    _again(tx, record, "inconclusive-is-verified-again", "the run could not tell whether it holds", None)


def _later(tx: Transaction, record: TodoRecord, failure: Failure) -> None:
    harness = is_harness_fault(failure)
    rule = "harness-blames-nobody" if harness else "environment-blames-nobody"
    said = _head(failure)
    because = f"the run itself went wrong: {said}" if harness else f"something was not there: {said}"
    _again(tx, record, rule, because, failure)


def _head(failure: Failure) -> str:
    """What a failure begins with, on one line; its category where it says nothing."""
    said = " ".join(clean(failure.stack_trace_head or "", limit=_LONGEST_HEAD).split())
    return said or failure.category.value


def _again(tx: Transaction, record: TodoRecord, rule: str, because: str, failure: Failure | None) -> None:
    """Verify again a little later, and when that has been done often enough, ask a person."""
    if record.waited < tx.policy.environment_retries:
        verify_again(tx, record, rule, because, tx.policy.environment_delay_seconds * 2**record.waited)
        return
    _leave_to_person(
        tx,
        tx.put(record._replace(failure=failure or record.failure)),
        QuestionKind.MEND_ENVIRONMENT,
        f"see to what was not there, so that {record.id} can be verified",
        rule,
        f"{because}; it was verified {record.waited + 1} times",
        ENVIRONMENT_OPTIONS,
    )


def _leave_to_person(
    tx: Transaction,
    record: TodoRecord,
    kind: QuestionKind,
    text: str,
    rule: str,
    because: str,
    options: tuple[str, ...],
) -> None:
    """Ask a person; until they answer, the driver is not at the todo, which stays in ``testing``."""
    rest(tx, record)
    tx.asked_questions += 1
    tx.ask(
        Question(
            id=f"{record.id}:{kind.value}:{tx.asked_questions}",
            kind=kind,
            todo_id=record.id,
            text=text,
            options=options,
            rule=rule,
            because=because,
            asked=0,
            failure=record.failure,
        )
    )
