"""The order of repair: retries, branches, deeper branches, a person; one test for each rule."""

from __future__ import annotations

from typing import Any

import pytest
from engine_telling import Told, chain, todo

from planner.model.actions import Implement, Notify, Verify
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import Verdict
from planner.testing import simulate_failure


def branch_of(run: Told) -> Implement:
    (action,) = run.last_of(Implement)
    assert action.parent_id is not None
    return action


def open_branch(run: Told, todo_id: str = "t1", **failure: Any) -> str:
    """Let a todo fail, and name the branch that it gets."""
    run.is_red(todo_id, **failure)
    return branch_of(run).todo_id


def test_branches_are_nested_no_deeper_than_max_branch_depth_then_a_person_is_asked():
    run = Told(*chain(), max_branch_depth=2)
    run.is_done(open_branch(run))
    run.fails("t1")
    run.is_done("t1_branch_02")

    run.fails("t1")

    assert run.started == []
    (question,) = run.questions
    assert (question.kind, question.rule) == ("review", "branch-depth")
    assert [each.to for each in run.last_of(Notify)] == [Role.PLANNER]
    assert run.life("t2") == "blocked"
    assert run.state.plan_state == "awaiting_review"


def test_a_branch_that_is_red_for_what_the_environment_lacks_keeps_its_attempts():
    run = Told(todo(), max_debug_attempts=1)
    branch = open_branch(run)

    run.is_red(branch, Category.ENVIRONMENT_ERROR)

    assert run.verifying == [branch]
    assert run.record(branch).attempts == 0


@pytest.mark.parametrize("category", [Category.ENVIRONMENT_ERROR, Category.HARNESS_ERROR])
def test_what_nobody_is_to_blame_for_is_verified_later_and_then_a_person_is_asked(category: Category):
    run = Told(todo(max_retries=1), run={"environment_retries": 2, "environment_delay_seconds": 30})

    waits: list[str | None] = []
    run.works()
    for _ in range(2):
        run.fails("t1", category)
        (action,) = run.last_of(Verify)
        waits.append(action.not_before)
    run.fails("t1", category)

    assert waits == ["2026-01-01T10:00:30Z", "2026-01-01T10:01:00Z"]
    (question,) = run.questions
    assert question.kind == "mend_environment"
    assert run.record().retries == 0
    assert run.life() == "testing"


def test_a_question_of_the_plan_waits_for_an_answer_and_is_verified_with_it():
    run = Told(todo())
    run.works()

    run.says(Verdict.NEEDS_HUMAN)
    (question,) = run.questions
    assert question.kind == "answer"
    assert run.verifying == []
    run.answers("answered", question)

    assert run.verifying == ["t1"]


def test_a_person_can_have_it_tried_once_more():
    run = Told(todo(), max_branch_depth=0)
    run.is_red()

    run.answers("retry", run.questions[0])

    assert run.started == ["t1"]
    run.is_red()
    assert [each.kind for each in run.questions] == ["review"]


@pytest.mark.parametrize(("tools", "checked"), [((), False), (("mypy",), True)])
def test_a_type_checker_that_the_project_has_looks_at_it_first(tools: tuple[str, ...], checked: bool):
    run = Told(todo("t1"), run={"tools": tools})
    run.works()
    outcome = simulate_failure(todo("t1"), Category.TYPE_ERROR, location={"path": "src/a.py", "line": 3})

    run.outcome(outcome)

    assert (
        "mypy src/a.py" in [edit.check.cmd for edit in run.edits() if edit.edit == "add_check"]
    ) is checked
