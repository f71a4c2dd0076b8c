"""What the engine refuses: by which rule, in which words, and that nothing has changed then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from engine_telling import START, Told, todo

from planner.engine import fold, start, step
from planner.errors import RefusedEvent
from planner.model.actions import Implement
from planner.model.edits import AddBranch, AddDependency
from planner.model.events import (
    BranchChanges,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    PlanRevised,
    Verified,
    WorkFinished,
)
from planner.model.verdicts import Verdict
from planner.testing import simulate_success

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.events import Event

BRANCH = AddBranch(rule="r", because="b", todo=todo("b", parent_id="t1"))
DEPENDS = AddDependency(rule="r", because="b", todo_id="t1", on="t3")


def verified(todo_id: str, **fields: object) -> Callable[[Told], Event]:
    outcome = simulate_success(todo(todo_id))
    return lambda run: Verified.model_validate({"at": run.now, "outcome": outcome} | fields)


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
        ({"verified": False}, "it reports that nothing was verified"),
        ({"tests_passed": False}, "it reports that the tests did not pass"),
    ],
)
def test_no_outcome_makes_a_todo_done_that_does_not_prove_it(change: dict[str, object], lack: str):
    run = Told(todo("t1"))
    run.works("t1")

    with pytest.raises(RefusedEvent, match=re.escape(lack)) as refusal:
        run.outcome(run.good("t1").model_copy(update=change))

    assert refusal.value.rule == "no-proof"
    assert run.life("t1") == "testing"


def test_an_outcome_without_checks_counts_where_the_run_allows_it_and_is_shown_as_unproved():
    run = Told(todo("t1"), run={"allow_unproved": True})
    run.works("t1")

    run.outcome(run.good("t1").model_copy(update={"checks": (), "verified": False}))

    assert run.life("t1") == "done"
    assert not run.state.todos["t1"].verified


def test_before_a_run_is_started_only_time_passes():
    state, _ = start(Told(todo("t1")).submission)

    with pytest.raises(RefusedEvent) as refusal:
        step(state, WorkFinished(at=START, todo_id="t1"))
    after, actions = step(state, ClockTicked(at=START))

    assert str(refusal.value) == "work_finished comes before run_started; start with run_started"
    assert refusal.value.rule == "run-not-started"
    assert (after.plan_state, actions) == ("ready", ())


def test_a_fold_begins_with_a_plan():
    for events in ([], [ClockTicked(at=START)]):
        with pytest.raises(
            RefusedEvent, match="the first event does not submit a plan; start with"
        ) as refusal:
            fold(events)
        assert refusal.value.rule == "no-plan"


@pytest.mark.parametrize(
    ("of_start", "changes", "rule", "message"),
    [
        (False, {"max_debug_attempts": 0}, "no-attempts", "a branch without attempts repairs nothing"),
        (False, {"dependencies": ("t9",)}, "unknown-todo", "cannot wait for 't9', which is not a todo"),
        (False, {"dependencies": ("t2",)}, "todo-is-gone", "cannot wait for 't2', which is failed"),
        (
            False,
            {"allowed_files": ("docs/**",)},
            "no-wider-files",
            "'docs/.+' is not within the proposed files",
        ),
        (True, {"allowed_files": ("docs/**",)}, "no-wider-files", "'docs/.+' is not within its"),
        (True, {"role": "tester"}, "no-such-change", "role cannot be changed at the start of 't1'"),
    ],
)
def test_a_person_cannot_change_a_proposal_into_what_cannot_be(
    of_start: bool, changes: dict[str, Any], rule: str, message: str
) -> None:
    first = todo("t1", allowed_files=("src/**",), risk_level="HIGH" if of_start else "LOW")
    run = Told(first, todo("t2", requires_testing=False), auto_fix_mode=False)
    if not of_start:
        run.works("t2", success=False)
        run.is_red("t1")
    before = run.state

    with pytest.raises(RefusedEvent, match=message) as refusal:
        run.decides(Decision.MODIFY, run.asked(), changes=BranchChanges.model_validate(changes))

    assert refusal.value.rule == rule
    assert run.state is before


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (PlanRevised(at=START, within="t1", edits=(DEPENDS,)), "unknown-plan"),
        (
            PlanRevised(
                at=START, edits=(AddBranch(rule="r", because="b", todo=todo("b", parent_id="t1")),)
            ),
            "no-branch-by-hand",
        ),
        (PlanRevised(at=START, edits=(DEPENDS,)), "illegal-transition"),
        (ConflictFound(at=START, todo_ids=("t1", "t1")), "no-conflict"),
        (ConflictFound(at=START, todo_ids=("t1", "t2")), "illegal-transition"),
        (BudgetSpent(at=START, todo_id="t9", tokens=1), "unknown-todo"),
    ],
)
def test_what_a_driver_cannot_tell_of_a_run_is_refused_by_name(event: Event, rule: str) -> None:
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), todo("t3"))

    with pytest.raises(RefusedEvent) as refusal:
        run.tell(event)

    assert refusal.value.rule == rule


def test_a_todo_of_high_risk_is_begun_with_the_files_and_the_words_of_a_person() -> None:
    run = Told(todo("t1", risk_level="HIGH", allowed_files=("src/**",)))

    changes = BranchChanges(allowed_files=("src/a.py",), instructions="Only this file.")
    run.decides(Decision.MODIFY, run.asked(), changes=changes)

    (work,) = run.last_of(Implement)
    assert work.bounds.allowed_files == ("src/a.py",)
    assert work.brief.instructions == "Only this file."
