"""What the engine refuses: by which rule, in which words, and that nothing has changed then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from engine_telling import START, Told, todo

from planner.engine import fold, start, step
from planner.errors import RefusedEvent
from planner.model.edits import AddBranch, AddDependency
from planner.model.events import (
    ApprovalGiven,
    BranchChanges,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    PlanRevised,
    QuestionAnswered,
    RunResumed,
    RunStarted,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.verdicts import Verdict
from planner.testing import simulate_success

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.events import Event

SAID: dict[str, Any] = {"rule": "by-hand", "because": "somebody thinks so"}


def working() -> Told:
    """t1 is worked on, t2 waits for it, t3 is verified."""
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), todo("t3"))
    run.works("t3")
    return run


def approving() -> Told:
    """A branch of t1 may be made; t2 has failed for good."""
    run = Told(
        todo("t1", allowed_files=("src/**",)),
        todo("t2", requires_testing=False),
        auto_fix_mode=False,
    )
    run.works("t2", success=False)
    run.is_red("t1", diff_hash="sha256:1")
    return run


def beginning() -> Told:
    """t1 is of high risk, and is about to begin."""
    return Told(todo("t1", risk_level="HIGH", allowed_files=("src/**",)))


def reviewing() -> Told:
    """Nothing mends t1."""
    run = Told(todo("t1"), max_branch_depth=0)
    run.is_red("t1")
    return run


def loading() -> Told:
    """The sub-plan of t1 is to be loaded."""
    return Told(todo("t1", is_parent=True, sub_project_id="s"))


def verified(todo_id: str, **fields: object) -> Callable[[Told], Event]:
    outcome = simulate_success(todo(todo_id))
    return lambda run: Verified.model_validate({"at": run.now, "outcome": outcome} | fields)


def approved(**fields: object) -> Callable[[Told], Event]:
    """A person has agreed, but for what ``fields`` say."""

    def make(run: Told) -> Event:
        (question,) = run.state.questions.values()
        said = {"approval_id": question.id, "digest": question.digest, "decision": "approve"}
        return ApprovalGiven.model_validate({"at": run.now} | said | fields)

    return make


def modified(**changes: object) -> Callable[[Told], Event]:
    return approved(decision=Decision.MODIFY, changes=BranchChanges.model_validate(changes))


def answered(answer: str) -> Callable[[Told], Event]:
    def make(run: Told) -> Event:
        (question,) = run.state.questions
        return QuestionAnswered(at=run.now, question_id=question, answer=answer)

    return make


REFUSED: list[tuple[Callable[[], Told], Callable[[Told], Event], str, str]] = [
    (
        working,
        lambda run: RunStarted(at=run.now),
        "illegal-transition",
        "the plan cannot go from executing to executing by run_started; a run is started once; go"
        " on with run_resumed",
    ),
    (
        working,
        lambda run: run.submission,
        "plan-is-submitted",
        "a plan is submitted once, as the first event; leave it out",
    ),
    (
        working,
        lambda run: WorkFinished(at=run.now, todo_id="t9"),
        "unknown-todo",
        "there is no todo 't9' in the plan 'p1'; name one of the state line; those of a sub-plan "
        "are qualified by their parent, as in a/b",
    ),
    (
        working,
        lambda run: WorkFinished(at=run.now, todo_id="t2"),
        "illegal-transition",
        "todo 't2' cannot go from pending to testing by work_finished; tell only of what "
        "implement has asked for",
    ),
    (
        working,
        lambda run: WorkFinished(at=run.now, todo_id="t3", success=False),
        "illegal-transition",
        "todo 't3' cannot go from testing to active by work_finished; tell only of what implement"
        " has asked for",
    ),
    (
        working,
        lambda run: WorkStarted(at=run.now, todo_id="t3"),
        "illegal-transition",
        "todo 't3' cannot go from testing to active by work_started; tell only of what implement "
        "has asked for",
    ),
    (
        working,
        lambda run: WorkFinished(at=run.now, todo_id="t1", answers=9),
        "late-answer",
        "the work on 't1' answers action 9, and 1 is the one that is outstanding; tell what came "
        "of the later one",
    ),
    (
        working,
        lambda run: WorkStarted(at=run.now, todo_id="t1", answers=0),
        "late-answer",
        "the work on 't1' answers action 0, and 1 is the one that is outstanding; tell what came "
        "of the later one",
    ),
    (
        working,
        verified("t3", answers=1),
        "late-answer",
        "the verification of 't3' answers action 1, and 3 is the one that is outstanding; tell "
        "what came of the later one",
    ),
    (
        working,
        verified("t3", plan_digest="sha256:other"),
        "stale-verification",
        "'t3' was verified against sha256:other, and what judges it now is of sha256:plan; apply "
        "what publish_plan says, and verify again",
    ),
    (
        working,
        lambda run: BudgetSpent(at=run.now, todo_id="t9", tokens=1),
        "unknown-todo",
        "there is no todo 't9' in the plan 'p1'; name one of the state line; those of a sub-plan "
        "are qualified by their parent, as in a/b",
    ),
    (
        working,
        lambda run: ConflictFound(at=run.now, todo_ids=("t1", "t1")),
        "no-conflict",
        "a todo cannot be in conflict with itself; name two todos",
    ),
    (
        working,
        lambda run: ConflictFound(at=run.now, todo_ids=("t1", "t2")),
        "illegal-transition",
        "todo 't2' cannot go from pending to active by conflict_found; name a todo behind the "
        "first that is under work, or being verified",
    ),
    (
        working,
        lambda run: SubPlanLoaded(at=run.now, todo_id="t1"),
        "illegal-transition",
        "todo 't1' cannot go from active to active by sub_plan_loaded; tell only of what "
        "load_sub_plan has asked for",
    ),
    (
        working,
        lambda run: PlanRevised(
            at=run.now, within="t1", edits=(AddDependency(**SAID, todo_id="t1", on="t3"),)
        ),
        "unknown-plan",
        "there is no loaded sub-plan 't1'; name the parent whose sub-plan is meant, or nothing "
        "for the plan at the top",
    ),
    (
        working,
        lambda run: PlanRevised(at=run.now, edits=(AddDependency(**SAID, todo_id="t1", on="t2"),)),
        "revision-conflict",
        "add_dependency of 't1' does not fit the plan: the dependencies would go in a circle; "
        "name others that do not wait for it; decide anew from the plan as it is",
    ),
    (
        working,
        lambda run: PlanRevised(at=run.now, edits=(AddBranch(**SAID, todo=todo("b", parent_id="t1")),)),
        "no-branch-by-hand",
        "a branch is made by the engine, which counts it and ends it; answer the question about "
        "its todo, or add a todo",
    ),
    (
        working,
        lambda run: QuestionAnswered(at=run.now, question_id="q", answer="a"),
        "no-such-question",
        "'q' is not asked (open are: none); answer one that is asked",
    ),
    (
        approving,
        approved(digest="sha256:other"),
        "stale-approval",
        "what was decided about 't1_branch_01' has the digest sha256:other, and what is proposed "
        "now has {digest}; look at what is proposed now, and decide anew",
    ),
    (
        approving,
        approved(digest=""),
        "stale-approval",
        "what was decided about 't1_branch_01' has the digest (none), and what is proposed now "
        "has {digest}; look at what is proposed now, and decide anew",
    ),
    (
        approving,
        approved(approval_id="t1_branch_02"),
        "no-such-question",
        "'t1_branch_02' is not asked (open are: t1_branch_01); answer one that is asked",
    ),
    (
        approving,
        answered("approve"),
        "no-such-question",
        "'t1_branch_01' is to be approved or rejected; decide it by approval_given with the "
        "digest {digest}",
    ),
    (
        approving,
        modified(max_debug_attempts=0),
        "no-attempts",
        "a branch without attempts mends nothing; reject it instead",
    ),
    (
        approving,
        modified(dependencies=("t9",)),
        "unknown-todo",
        "the branch cannot wait for 't9', which is no todo; name one of its plan",
    ),
    (
        approving,
        modified(dependencies=("t2",)),
        "todo-is-gone",
        "the branch cannot wait for 't2', which is failed; name one that can still be done",
    ),
    (
        approving,
        modified(allowed_files=("docs/**",)),
        "no-wider-files",
        "'docs/**' is not within the files that were proposed (src/**); name patterns that lie within them",
    ),
    (
        beginning,
        approved(decision="approve_similar"),
        "no-such-decision",
        "'approve_similar' is no answer to 't1:start'; say approve, reject, modify",
    ),
    (
        beginning,
        modified(role="tester"),
        "no-such-change",
        "role cannot be changed at the start of 't1'; change its instructions and allowed_files, "
        "or revise the plan",
    ),
    (
        beginning,
        modified(allowed_files=("docs/**",)),
        "no-wider-files",
        "'docs/**' is not within its allowed_files (src/**); name patterns that lie within them, "
        "and keep its exclusions at the end",
    ),
    (
        reviewing,
        approved(),
        "no-such-approval",
        "'t1:review:1' is a question, and nothing to approve; answer it by question_answered with"
        " retry, give_up, stop",
    ),
    (
        reviewing,
        answered("perhaps"),
        "no-such-answer",
        "'perhaps' is no answer to 't1:review:1'; say retry, give_up, stop",
    ),
    (
        loading,
        lambda run: WorkFinished(at=run.now, todo_id="t1"),
        "illegal-transition",
        "todo 't1' cannot go from active to testing by work_finished; tell only of what implement"
        " has asked for",
    ),
]


@pytest.mark.parametrize(
    ("story", "telling", "rule", "message"),
    REFUSED,
    ids=[f"{number}-{rule}" for number, (_, _, rule, _) in enumerate(REFUSED)],
)
def test_what_is_refused_is_refused_by_name_and_changes_nothing(
    story: Callable[[], Told], telling: Callable[[Told], Event], rule: str, message: str
):
    run = story()
    before, shown = run.state, repr(run.state)
    event = telling(run)

    with pytest.raises(RefusedEvent) as refusal:
        run.tell(event)

    digest = next((question.digest for question in run.state.questions.values()), "")
    assert (refusal.value.rule, str(refusal.value)) == (rule, message.replace("{digest}", digest))
    assert run.state is before
    assert repr(run.state) == shown
    run.tell(RunResumed(at=run.now))


def test_a_pass_counts_before_the_answer_of_a_person_and_takes_the_question_back():
    run = Told(todo("t1"), run={"environment_retries": 0})
    run.works("t1")
    run.says(Verdict.INCONCLUSIVE)
    assert run.state.questions

    run.passes("t1")

    assert run.life("t1") == "done"
    assert not run.state.questions


@pytest.mark.parametrize(
    ("change", "lack"),
    [
        ({"checks": ()}, "it has no check of tests[0]"),
        ({"verified": False}, "it says that nothing was verified"),
        ({"tests_passed": False}, "it says that the tests have not passed"),
    ],
)
def test_no_outcome_makes_a_todo_done_that_does_not_prove_it(change: dict[str, object], lack: str):
    run = Told(todo("t1"))
    run.works("t1")

    with pytest.raises(RefusedEvent, match=re.escape(lack)) as refusal:
        run.outcome(run.good("t1").model_copy(update=change))

    assert refusal.value.rule == "no-proof"
    assert run.life("t1") == "testing"


def test_a_check_that_the_plan_lacks_proves_nothing():
    run = Told(todo("t1"))
    run.works("t1")
    good = run.good("t1")
    more = good.checks[0].model_copy(update={"id": "tests[7]"})

    with pytest.raises(RefusedEvent, match=r"its check tests\[7\] is of no criterion"):
        run.outcome(good.model_copy(update={"checks": (*good.checks, more)}))


def test_an_outcome_without_checks_counts_where_the_run_allows_it_and_is_shown_as_unproved():
    run = Told(todo("t1"), run={"allow_unproved": True})
    run.works("t1")

    run.outcome(run.good("t1").model_copy(update={"checks": (), "verified": False}))

    assert run.life("t1") == "done"
    assert not run.state.todos["t1"].verified


def test_a_wrong_answer_is_told_which_questions_are_open():
    run = Told(todo("t1"), todo("t2"), max_branch_depth=0)
    run.is_red("t1")
    run.is_red("t2")

    with pytest.raises(RefusedEvent) as refusal:
        run.tell(QuestionAnswered(at=run.now, question_id="t1", answer="retry"))

    said = "'t1' is not asked (open are: t1:review:1, t2:review:2); answer one that is asked"
    assert str(refusal.value) == said


def test_before_a_run_is_started_only_time_passes():
    state, _ = start(Told(todo("t1")).submission)

    with pytest.raises(RefusedEvent) as refusal:
        step(state, WorkFinished(at=START, todo_id="t1"))
    after, actions = step(state, ClockTicked(at=START))

    assert str(refusal.value) == "work_finished comes before run_started; begin with run_started"
    assert refusal.value.rule == "run-not-started"
    assert (after.plan_state, actions) == ("ready", ())


def test_a_fold_begins_with_a_plan():
    for events in ([], [ClockTicked(at=START)]):
        with pytest.raises(RefusedEvent, match="the first event submits no plan; begin with") as refusal:
            fold(events)
        assert refusal.value.rule == "no-plan"
