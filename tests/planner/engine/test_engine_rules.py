"""Rules of the engine: requested actions, refusals, and decisions of people."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from engine_telling import START, Told, todo

from planner.engine import fold
from planner.errors import RefusedEvent
from planner.model.actions import AskHuman, Halt, Verify
from planner.model.events import (
    BranchChanges,
    BudgetSpent,
    ClockTicked,
    ConflictFound,
    Decision,
    RunStarted,
    WorkFinished,
)
from planner.model.plan import Todo
from planner.model.taxonomy import Category
from planner.model.verdicts import PlanState, Since, Verdict

if TYPE_CHECKING:
    from planner.model.events import Event


PLAN = Told(todo("t1")).submission


# Limits, conflicts and refusals


def test_pre_existing_failures_are_split_off_a_limited_number_of_times():
    run = Told(todo("t1"), halt={"identical_failures": None})
    run.works("t1")
    for number in range(3):
        run.fails("t1", since=Since.PRE_EXISTING, signature=f"{number:012x}")
        older = next(name for name in run.state.todos if name.endswith(f"{number:012x}"))
        run.is_done(older)
        assert run.verifying == ["t1"]
    run.fails("t1", since=Since.PRE_EXISTING, signature="f" * 12)
    assert [each.rule for each in run.questions] == ["pre-existing-failure"]


def test_a_person_can_let_a_run_continue_over_its_budget():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), budget={"tokens": 9}, halt={"budget": "ask"})
    run.works("t1", tokens=10)
    run.passes("t1")
    assert run.started == []
    run.answers("go_on", run.asked())
    assert run.started == ["t2"]
    run.tell(BudgetSpent(at=run.now, tokens=10**9))
    assert not run.last_of(Halt)


def test_an_exhausted_budget_halts_a_run_even_if_violations_ask_a_person():
    run = Told(todo("t1"), todo("t2"), budget={"tokens": 10}, halt={"security": "ask"}, run={"jobs": 1})
    run.works("t1", tokens=10)
    run.fails("t1", Category.SANDBOX_VIOLATION)
    assert run.verifying == ["t2"]
    run.fails("t2")
    (halt,) = run.last_of(Halt)
    assert halt.rule == "halt-on-budget"
    assert halt.because == "the plan's budget allows no further turn of work (tokens: 10 spent, 10 allowed)"


def test_todos_with_a_detected_file_conflict_no_longer_run_in_parallel():
    run = Told(
        todo("t1", allowed_files=("src/a.py",)),
        todo("t2", allowed_files=("src/b.py",), max_retries=1),
        todo("t3", allowed_files=("src/c.py",), dependencies=("t4",)),
        todo("t4"),
    )

    run.tell(ConflictFound(at=run.now, todo_ids=("t1", "t2"), files=("src/c.py",)))
    run.is_done("t4")

    assert run.started == []
    run.is_done("t1")
    assert run.started == ["t2"]
    run.is_done("t2")
    assert run.started == ["t3"]


def test_a_delay_past_the_latest_representable_time_is_capped():
    run = Told(todo("t1"), run={"environment_delay_seconds": 3600})
    run.now = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    run.works()
    run.fails("t1", Category.ENVIRONMENT_ERROR)
    (action,) = run.last_of(Verify)
    assert action.not_before == "9999-12-31T23:59:59Z"


def test_a_pass_before_the_answer_of_a_person_withdraws_the_question():
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
def test_an_outcome_without_proof_does_not_complete_a_todo(change: dict[str, object], lack: str):
    run = Told(todo("t1"))
    run.works("t1")
    with pytest.raises(RefusedEvent, match=re.escape(lack)) as refusal:
        run.outcome(run.good("t1").model_copy(update=change))
    assert refusal.value.rule == "no-proof"
    assert run.life("t1") == "testing"


def test_an_outcome_without_checks_counts_as_unproved_if_the_run_allows_it():
    run = Told(todo("t1"), run={"allow_unproved": True})
    run.works("t1")
    run.outcome(run.good("t1").model_copy(update={"checks": (), "verified": False}))
    assert run.life("t1") == "done"
    assert not run.state.todos["t1"].verified


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ([], "no-plan"),
        ([ClockTicked(at=START)], "no-plan"),
        ([PLAN, WorkFinished(at=START, todo_id="t1")], "run-not-started"),
        ([PLAN, RunStarted(at=START), ConflictFound(at=START, todo_ids=("t1", "t1"))], "no-conflict"),
        ([PLAN, RunStarted(at=START), BudgetSpent(at=START, todo_id="t9", tokens=1)], "unknown-todo"),
    ],
)
def test_an_event_that_does_not_fit_what_came_before_is_refused_with_its_rule(
    events: list[Event], rule: str
):
    with pytest.raises(RefusedEvent) as refusal:
        fold(events)
    assert refusal.value.rule == rule


def test_the_clock_may_tick_before_the_start():
    assert fold([PLAN, ClockTicked(at=START)]).plan_state is PlanState.READY


@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"max_debug_attempts": 0}, "no-attempts"), ({"allowed_files": ("docs/**",)}, "no-wider-files")],
)
def test_an_approval_with_invalid_changes_is_refused(changes: dict[str, Any], rule: str) -> None:
    run, question = asked_about_a_branch(todo(allowed_files=("src/**",)))
    before = run.state
    with pytest.raises(RefusedEvent) as refusal:
        run.decides(Decision.MODIFY, question, changes=BranchChanges.model_validate(changes))
    assert refusal.value.rule == rule
    assert run.state is before


def asked_about_a_branch(*todos: Todo, **policy: Any) -> tuple[Told, AskHuman]:
    run = Told(*(todos or (todo(),)), auto_fix_mode=False, **policy)
    run.is_red("t1")
    (question,) = run.questions
    return run, question


@pytest.mark.parametrize(
    ("fixes", "requires", "approves", "setting"),
    [
        (False, None, False, "auto_fix_mode: false"),
        (False, None, True, None),
        (False, False, True, None),
        (False, True, True, "require_planner_approval: true"),
        (True, None, False, None),
        (True, True, False, "require_planner_approval: true"),
    ],
)
def test_a_branch_needs_approval_by_a_setting_that_the_question_names(
    fixes: bool, requires: bool | None, approves: bool, setting: str | None
):
    policy = {"require_planner_approval": requires, "auto_approve_branches": approves}
    run = Told(todo(), auto_fix_mode=fixes, **policy)
    run.is_red()
    asked = [("approve_branch", f"its criteria failed; the plan asks before repairs ({setting})")]
    assert [(each.kind.value, each.because) for each in run.questions] == (asked if setting else [])
    assert run.started == ([] if setting else ["t1_branch_01"])


def test_a_branch_is_created_as_proposed_and_only_by_an_approval_with_its_id_and_digest():
    run, question = asked_about_a_branch()

    with pytest.raises(RefusedEvent):
        run.decides(Decision.APPROVE, question, digest="sha256:other")
    with pytest.raises(RefusedEvent):
        run.decides(Decision.APPROVE, question, approval_id="t2_branch_01")
    with pytest.raises(RefusedEvent):
        run.answers("yes", question)

    assert set(run.state.questions) == {"t1_branch_01"}
    run.decides(Decision.APPROVE, question)
    assert run.started == ["t1_branch_01"]
    assert run.record("t1_branch_01").todo == question.branch
    assert (run.state.plan_state, set(run.state.questions)) == ("executing", set())


def test_approve_similar_covers_open_questions_and_later_failures_of_that_class():
    others = map(todo, ("t1", "t2", "t4", "t5"))
    run = Told(todo("t3", risk_level="HIGH"), *others, auto_fix_mode=False)
    run.decides(Decision.APPROVE, run.asked())
    for name in ("t1", "t2", "t3"):
        run.is_red(name)
    first = next(each for each in run.all_of(AskHuman) if each.question_id == "t1_branch_01")

    run.decides(Decision.APPROVE_SIMILAR, first)

    assert sorted(run.started) == ["t1_branch_01", "t2_branch_01"]
    run.is_red("t4")
    assert run.started == ["t4_branch_01"]
    run.is_red("t5", Category.SPEC_MISMATCH)
    assert set(run.state.questions) == {"t3_branch_01", "t5_branch_01"}


def test_no_start_approval_is_requested_once_the_budget_is_used_up():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",), risk_level="HIGH"), budget={"cycles": 1})
    run.works("t1")
    run.passes("t1")
    assert run.state.plan_state is PlanState.HALTED
