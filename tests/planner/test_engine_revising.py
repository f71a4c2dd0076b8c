"""Plans that change while they are carried out, plans with a history, and plans that are not fit for it."""

from __future__ import annotations

from typing import Any

import pytest
from engine_telling import START, Told, plan_of, todo

from planner.engine import Engine, step
from planner.errors import IllegalTransition
from planner.model.actions import AskHuman, Cancel, Finish, Implement, LoadSubPlan, Notify, PublishPlan
from planner.model.edits import (
    AddCheck,
    AddContext,
    AddDependency,
    AddTodoBefore,
    Edit,
    NarrowFiles,
    RaiseLimit,
    SplitTodo,
)
from planner.model.events import (
    Decision,
    PlanRevised,
    StopRequested,
)
from planner.model.plan import CommandSpec
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
        "more than one todo has the id t1; give each an id of its own",
        "'t2' depends on 't9', which is no todo of the plan; name another",
        "'b1' is a branch of 't8', which is no todo of the plan",
        "the todos depend on each other in a circle: t3 -> t4 -> t3; remove one dependency",
    )
    assert state.stopped.because == "the plan is not fit to be carried out (5 problems)"
    assert (state.stopped.rule, state.stopped.seq) == ("unfit-plan", 1)


def test_a_plan_has_only_so_many_todos(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("planner.engine.MAX_TODOS", 1)

    state = Engine.start(plan_of(todo("t1"), todo("t2")), at=START)

    assert isinstance(state.stopped, Finish)
    assert state.stopped.problems == ("the plan has more than 1 todos; split it",)
    assert Engine.start(plan_of(todo("t1")), at=START).plan_state == "ready"


@pytest.mark.parametrize(
    ("todos", "problem"),
    [
        ((todo("a"), todo("a")), "more than one todo has the id a"),
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


def test_a_parent_whose_sub_plan_is_given_up_has_failed():
    run = Told(todo("p", is_parent=True, sub_project_id="s"), todo("t2", dependencies=("p",)), todo("t3"))
    run.loads("p", problems=("there is no such file",))

    run.answers("give_up", run.asked())

    assert [run.life(name) for name in ("p", "t2", "t3")] == ["failed", "skipped", "active"]


def test_a_run_can_be_stopped_before_it_is_started():
    state = Engine.start(plan_of(todo("t1")), at=START)

    after, actions = step(state, StopRequested(at=START))

    assert (after.plan_state, [action.action for action in actions]) == ("halted", ["halt"])


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


def test_a_person_may_let_a_todo_wait_for_another():
    run = Told(todo("t1"), todo("t2"), run={"jobs": 1})

    revise(run, AddDependency(**SAID, todo_id="t2", on="t1"), AddContext(**SAID, todo_id="t2", text="!"))
    (published,) = run.last_of(PublishPlan)
    run.works("t1")

    assert (published.version, published.because, published.within) == (2, "ada has changed the plan", "")
    assert published.rule == "revised-by-person"
    assert run.record("t2").todo.dependencies == ("t1",)
    assert run.started == []
    run.passes("t1")
    assert run.started == ["t2"]


def test_a_todo_that_is_let_wait_for_what_is_gone_is_left_out():
    run = Told(todo("t1", requires_testing=False), todo("t2"), todo("t3"), run={"jobs": 1})
    run.works("t1", success=False)
    assert run.life("t1") == "failed"

    revise(run, AddDependency(**SAID, todo_id="t3", on="t1"))

    assert run.life("t3") == "skipped"


def test_a_todo_that_a_person_puts_before_another_is_done_first():
    run = Told(todo("t1"), todo("t2"), run={"jobs": 1})

    revise(run, AddTodoBefore(**SAID, todo_id="t2", todo=todo("t0")))
    run.is_done("t1")

    assert run.started == ["t0"]
    run.is_done("t0")
    assert run.started == ["t2"]


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


def test_a_todo_that_a_person_splits_is_done_in_its_parts():
    run = Told(todo("t0"), todo("t1", dependencies=("t0",)), run={"jobs": 1})
    parts = (todo("t1_part_1"), todo("t1", dependencies=("t1_part_1",)))

    revise(run, SplitTodo(**SAID, todo_id="t1", parts=parts))
    run.is_done("t0")

    assert run.started == ["t1_part_1"]
    run.is_done("t1_part_1")
    assert run.started == ["t1"]


def test_what_is_being_verified_is_verified_against_the_criteria_that_count_now():
    run = Told(todo("t1"), todo("t2"))
    run.works("t1")

    revise(run, AddCheck(**SAID, todo_id="t1", check=CommandSpec(cmd="ruff check .")))

    assert [each.todo_id for each in run.last_of(Cancel)] == ["t1"]
    assert run.verifying == ["t1"]
    assert "criteria-have-changed" in run.rules


def test_a_change_of_another_todo_makes_no_verification_stale():
    run = Told(todo("t1"), todo("t2"))
    run.works("t1")
    digest = run.state.parts[""].digest

    revise(run, AddCheck(**SAID, todo_id="t2", check=CommandSpec(cmd="ruff check .")))
    assert run.verifying == []
    run.outcome(run.good("t1"), plan_digest=digest)

    assert run.life("t1") == "done"


def test_what_is_done_cannot_be_judged_by_something_else():
    run = Told(todo("t1"), todo("t2"))
    run.is_done("t1")

    with pytest.raises(IllegalTransition) as refusal:
        revise(run, AddCheck(**SAID, todo_id="t1", check=CommandSpec(cmd="ruff check .")))

    assert str(refusal.value).startswith("todo 't1' cannot go from done to pending by plan_revised; ")
    assert (refusal.value.before, refusal.value.after) == ("done", "pending")
    assert run.life("t1") == "done"


def test_files_that_are_narrowed_during_a_turn_are_free_for_others_after_it():
    run = Told(todo("t1", allowed_files=("src/**",)), todo("t2", allowed_files=("src/b.py",)))

    revise(run, NarrowFiles(**SAID, todo_id="t1", allowed_files=("src/a.py",)))
    assert run.started == []
    run.is_done("t1")

    assert run.started == ["t2"]


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


def test_a_change_that_a_person_rejects_is_not_made():
    run = Told(todo("t1"))
    run.is_red("t1", Category.TEST_TIMEOUT)
    (question,) = (each for each in run.questions if each.kind == "approve_edits")

    run.decides(Decision.REJECT, question)

    assert run.last == ()
    assert question.question_id not in run.state.questions


def test_a_branch_that_was_approved_and_no_longer_fits_is_proposed_anew():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), auto_fix_mode=False)
    run.is_red("t1")
    (question,) = run.questions
    revise(run, AddTodoBefore(**SAID, todo_id="t2", todo=todo("t1_branch_01")))

    run.decides(Decision.APPROVE, question)

    assert [each.question_id for each in run.questions] == ["t1_branch_02"]


def test_a_revision_narrows_the_files_of_the_next_turn():
    run = Told(todo("t1", allowed_files=("src/**",), max_retries=1), todo("t2"))

    revise(run, NarrowFiles(**SAID, todo_id="t1", allowed_files=("src/a.py",)))
    run.is_red("t1")

    (action,) = run.last_of(Implement)
    assert action.bounds.allowed_files == ("src/a.py",)


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
