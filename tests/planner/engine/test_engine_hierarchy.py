"""Parents and their sub-plans: one test for each rule."""

from __future__ import annotations

from engine_telling import Told, todo

from planner.model.actions import LoadSubPlan
from planner.model.plan import AcceptanceCriteria, Todo


def phases() -> list[Todo]:
    return [
        todo("p1", is_parent=True, sub_project_id="foundation", acceptance_criteria=AcceptanceCriteria()),
        todo("p2", sub_plan="phase2.yaml", dependencies=("p1",)),
    ]


def test_the_sub_plan_of_a_parent_is_loaded_when_its_turn_comes():
    run = Told(*phases())

    (action,) = run.last_of(LoadSubPlan)

    assert (action.todo_id, action.sub_project_id) == ("p1", "foundation")
    assert run.life("p1") == "active"


def test_a_parent_with_criteria_of_its_own_is_verified_when_its_todos_are_done():
    run = Told(todo("p1", is_parent=True, sub_project_id="s"))
    run.loads("p1", todo("a"))

    run.is_done("p1/a")
    assert run.verifying == ["p1"]
    run.passes("p1")

    assert run.record("p1").verified


def test_a_red_todo_of_a_sub_plan_leaves_its_parent_active_and_blocks_what_waits_for_that():
    run = Told(*phases())
    run.loads("p1", todo("a"))

    run.is_red("p1/a")

    assert run.life("p1") == "active"
    assert run.life("p2") == "blocked"


def test_a_parent_fails_when_one_of_its_todos_has_failed_for_good_and_nothing_else_goes_on():
    run = Told(*phases(), todo("t9"), max_branch_depth=0)
    run.loads("p1", todo("a", requires_testing=False), todo("b", requires_testing=False))

    run.works("p1/a", success=False)
    assert run.life("p1") == "active"
    run.works("p1/b")

    assert run.life("p1/a") == "failed"
    assert (run.life("p1"), run.life("p2"), run.life("t9")) == ("failed", "skipped", "active")


def test_sub_plans_are_nested_three_levels_deep_and_no_deeper():
    run = Told(todo("p", is_parent=True, sub_project_id="s", acceptance_criteria=AcceptanceCriteria()))
    name = "p"
    for _ in range(3):
        run.loads(name, todo("p", is_parent=True, sub_project_id="s"))
        name += "/p"
        assert [each.todo_id for each in run.last_of(LoadSubPlan)] == [name]

    run.loads(name, todo("a"))

    (question,) = run.questions
    assert question.because == (
        "the sub-plan of p/p/p/p cannot be carried out: sub-plans go at most 3 levels deep"
    )
    assert f"{name}/a" not in run.state.todos
