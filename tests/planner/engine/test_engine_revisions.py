"""Plans that change while they are carried out, plans with a history, and plans that are not fit for it."""

from __future__ import annotations

from typing import Any

import pytest
from engine_telling import START, Told, plan_of, todo

from planner.engine import Engine
from planner.engine.state import current_plan
from planner.model.actions import AskHuman, Finish, LoadSubPlan, Notify, PublishPlan
from planner.model.edits import (
    AddDependency,
    AddTodoBefore,
    Edit,
    RaiseLimit,
)
from planner.model.events import (
    Decision,
    PlanRevised,
)
from planner.model.taxonomy import Category

SAID: dict[str, Any] = {"rule": "by-hand", "because": "somebody thinks so"}


def revise(run: Told, *edits: Edit, within: str = "") -> None:
    run.tell(PlanRevised(at=run.now, within=within, edits=edits, by="ada"))


# Fit or not


def test_all_that_is_wrong_with_a_plan_is_said_at_once():
    plan = plan_of(
        todo("t1"),
        todo("t1"),
        todo("t2", dependencies=("t9",)),
        todo("t3", dependencies=("t4",)),
        todo("t4", dependencies=("t3",)),
        todo("b1", parent_id="t8"),
    )

    state = Engine.start(plan, at=START, problems=("validation says so",))

    assert state.plan_state == "rejected"
    assert isinstance(state.stopped, Finish)
    assert state.stopped.problems == (
        "validation says so",
        "several todos have the id t1; give each a unique id",
        "'t2' depends on 't9', which is not a todo of the plan; name another",
        "'b1' is a branch of 't8', which is not a todo of the plan",
        "the todos depend on each other in a circle: t3 -> t4 -> t3; remove one dependency",
    )
    assert state.stopped.because == "the plan failed validation (5 problems)"
    assert (state.stopped.rule, state.stopped.seq) == ("unfit-plan", 1)


def test_a_plan_has_only_so_many_todos(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("planner.engine.events.MAX_TODOS", 1)

    state = Engine.start(plan_of(todo("t1"), todo("t2")), at=START)

    assert isinstance(state.stopped, Finish)
    assert state.stopped.problems == ("the plan has more than 1 todos; split it",)
    assert Engine.start(plan_of(todo("t1")), at=START).plan_state == "ready"


@pytest.mark.parametrize(
    ("todos", "problem"),
    [
        ((todo("a"), todo("a")), "several todos have the id a"),
        ((todo("a", dependencies=("b",)),), "'a' depends on 'b'"),
    ],
)
def test_a_sub_plan_that_is_not_fit_goes_to_a_person(todos: tuple[Any, ...], problem: str):
    run = Told(todo("p", is_parent=True, sub_project_id="s"), todo("t2", dependencies=("p",)))

    run.loads("p", *todos)

    (question,) = run.questions
    assert (question.kind, question.rule) == ("review", "sub-plan-unfit")
    assert f"the sub-plan of p cannot be carried out: {problem}" in question.because
    assert run.life("p") == "active"
    run.answers("retry", question)
    assert [each.todo_id for each in run.last_of(LoadSubPlan)] == ["p"]
    run.loads("p", todo("a"))
    assert run.started == ["p/a"]


# With a history


def history(**branch: Any) -> Told:
    """Somebody has tried to repair t1 before this run."""
    return Told(
        todo("t1", max_retries=5),
        todo("t1_branch_01", parent_id="t1", is_temporary=True, branch_depth=1, **branch),
        todo("t2", dependencies=("t1",)),
    )


def test_a_todo_that_was_repaired_before_is_verified_before_anybody_works_on_it():
    run = history()

    assert run.verifying == ["t1"]
    assert run.started == []
    assert run.life("t1_branch_01") == "pending"


def test_the_branch_of_before_is_worked_on_when_its_todo_is_red_again_and_the_next_has_the_next_number():
    run = history()

    run.fails("t1")
    assert run.started == ["t1_branch_01"]
    run.is_done("t1_branch_01")
    run.fails("t1")

    assert run.started == ["t1_branch_02"]


# Changed by a person


def test_a_todo_that_is_let_wait_for_what_is_gone_is_left_out():
    run = Told(todo("t1", requires_testing=False), todo("t2"), todo("t3"), run={"jobs": 1})
    run.works("t1", success=False)
    assert run.life("t1") == "failed"

    revise(run, AddDependency(**SAID, todo_id="t3", on="t1"))

    assert run.life("t3") == "skipped"


def test_a_todo_that_a_person_adds_to_a_sub_plan_is_one_of_its_parents():
    run = Told(todo("p", is_parent=True, sub_project_id="s", requires_testing=False))
    run.loads("p", todo("a"), todo("b", dependencies=("a",)))

    revise(run, AddTodoBefore(**SAID, todo_id="b", todo=todo("c")), within="p")
    assert run.started == ["p/c"]
    run.is_done("p/a")
    run.is_done("p/c")
    assert run.life("p") == "active"
    run.is_done("p/b")

    assert run.life("p") == "done"


def test_an_approved_change_that_no_longer_fits_the_plan_is_told_and_not_made():
    run = Told(todo("t1"))
    run.is_red("t1", Category.TEST_TIMEOUT)
    (question,) = (each for each in run.questions if each.kind == "approve_edits")
    assert [edit.edit for edit in question.edits] == ["raise_limit"]

    revise(run, RaiseLimit(**SAID, todo_id="t1", check_id="tests[0]", from_seconds=20, to_seconds=21))
    run.decides(Decision.APPROVE, question)

    (told,) = run.last_of(Notify)
    assert (told.rule, told.topic, told.to) == ("revision-conflict", "planner.alert", "planner")
    assert "the approved change of t1 no longer fits the plan" in told.because
    assert run.last_of(PublishPlan) == []


def test_a_change_that_a_person_agrees_to_is_published_and_verified():
    run = Told(todo("t1"))
    run.is_red("t1", Category.TEST_TIMEOUT)
    (question,) = (each for each in run.questions if each.kind == "approve_edits")

    run.decides(Decision.APPROVE, question)

    (published,) = run.last_of(PublishPlan)
    assert published.rule == "approved-edits"
    assert published.edits == question.edits
    assert run.record("t1").todo.acceptance_criteria.tests[0].timeout_seconds > 20


def test_an_approved_branch_that_had_to_wait_and_no_longer_fits_is_proposed_anew():
    last = todo("t3", dependencies=("t2",))
    run = Told(todo("t1"), todo("t2"), last, auto_fix_mode=False, max_concurrent_branches=1)
    run.is_red("t1")
    run.is_red("t2")
    first, second = (each for each in run.all_of(AskHuman) if each.kind == "approve_branch")
    run.decides(Decision.APPROVE, first)
    run.decides(Decision.APPROVE, second)
    assert run.started == []
    revise(run, AddTodoBefore(**SAID, todo_id="t3", todo=todo("t2_branch_01")))

    run.is_done("t1_branch_01")

    assert [each.question_id for each in run.questions] == ["t2_branch_02"]


def test_a_branch_stands_behind_its_todo_and_a_step_in_front_of_what_waits_for_it():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)))
    run.works("t1")
    run.fails("t1")
    step = AddTodoBefore(**SAID, todo_id="t2", todo=todo("s1", requires_testing=False))
    revise(run, step)

    assert [each.id for each in current_plan(run.state).items] == ["t1", "t1_branch_01", "s1", "t2"]


def test_a_step_that_a_revision_adds_stands_right_before_its_branch():
    run = Told(todo("t1"), todo("t2"), todo("t3"))
    run.is_red("t1", Category.IMPORT_ERROR)

    assert [each.id for each in current_plan(run.state).items] == [
        *("t1", "t1_step_01", "t1_branch_01", "t2", "t3")
    ]
