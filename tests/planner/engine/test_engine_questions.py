"""When a person is asked, what they may say, and what each answer brings about."""

from __future__ import annotations

from typing import Any

import pytest
from engine_telling import Told, todo

from planner.errors import RefusedEvent
from planner.model.actions import AskHuman, Implement, PublishPlan
from planner.model.events import BranchChanges, Decision
from planner.model.plan import Todo
from planner.model.taxonomy import Category, Role

MODES = [
    # auto_fix_mode, require_planner_approval, auto_approve_branches: is a person asked?
    (False, None, False, True),
    (False, None, True, False),
    (False, False, False, True),
    (False, False, True, False),
    (False, True, False, True),
    (False, True, True, True),
    (True, None, False, False),
    (True, None, True, False),
    (True, False, False, False),
    (True, True, False, True),
    (True, True, True, True),
]


def asked_about_a_branch(*todos: Todo, **policy: Any) -> tuple[Told, AskHuman]:
    run = Told(*(todos or (todo(),)), auto_fix_mode=False, **policy)
    run.is_red("t1")
    (question,) = run.questions
    return run, question


@pytest.mark.parametrize(("fixes", "requires", "approves", "asks"), MODES)
def test_the_modes_of_approval(fixes: bool, requires: bool | None, approves: bool, asks: bool):
    run = Told(
        todo(), auto_fix_mode=fixes, require_planner_approval=requires, auto_approve_branches=approves
    )

    run.is_red()

    assert [each.kind.value for each in run.questions] == (["approve_branch"] if asks else [])
    assert run.started == ([] if asks else ["t1_branch_01"])


def test_a_branch_that_is_approved_is_made_as_it_was_shown():
    run, question = asked_about_a_branch()

    run.decides(Decision.APPROVE, question)

    assert run.started == ["t1_branch_01"]
    assert run.record("t1_branch_01").todo == question.branch
    assert run.state.plan_state == "executing"
    assert set(run.state.questions) == set()


def test_a_branch_is_made_with_what_a_person_changes_in_it():
    run, question = asked_about_a_branch()

    run.decides(
        Decision.MODIFY,
        question,
        changes=BranchChanges(
            role=Role.ARCHITECT,
            instructions="Mind the NaNs.",
            allowed_files=("src/a.py",),
            max_debug_attempts=1,
            max_lifetime_seconds=60,
        ),
    )

    branch = run.record("t1_branch_01").todo
    (action,) = run.last_of(Implement)
    assert action.role is Role.ARCHITECT
    assert "Mind the NaNs." in (action.brief.instructions or "")
    assert action.bounds.allowed_files == ("src/a.py",)
    assert (branch.max_debug_attempts, branch.max_lifetime_seconds) == (1, 60)


def test_a_person_may_narrow_the_files_of_a_branch_and_not_widen_them():
    run, question = asked_about_a_branch(todo(allowed_files=("src/**",)))

    with pytest.raises(RefusedEvent):
        run.decides(Decision.MODIFY, question, changes=BranchChanges(allowed_files=("docs/**",)))

    assert set(run.state.questions) == {"t1_branch_01"}


def test_who_approves_what_is_similar_is_not_asked_about_failures_of_that_class_again():
    run, question = asked_about_a_branch(todo("t1"), todo("t2"), todo("t3"))

    run.decides(Decision.APPROVE_SIMILAR, question)
    run.is_red("t2")
    assert run.started == ["t2_branch_01"]
    run.is_red("t3", Category.SPEC_MISMATCH)

    assert [each.question_id for each in run.questions] == ["t3_branch_01"]


def test_an_approval_is_bound_to_what_was_shown():
    run, question = asked_about_a_branch()

    with pytest.raises(RefusedEvent):
        run.decides(Decision.APPROVE, question, digest="sha256:other")
    with pytest.raises(RefusedEvent):
        run.decides(Decision.APPROVE, question, approval_id="t2_branch_01")

    assert set(run.state.questions) == {"t1_branch_01"}


@pytest.mark.parametrize(("risk", "asks"), [("LOW", False), ("MEDIUM", False), ("HIGH", True)])
def test_a_todo_of_high_risk_is_begun_when_a_person_agrees(risk: str, asks: bool):
    run = Told(todo(risk_level=risk))

    assert [each.kind.value for each in run.questions] == (["approve_start"] if asks else [])
    assert run.started == ([] if asks else ["t1"])
    if asks:
        run.decides(Decision.APPROVE, run.questions[0])
        assert run.started == ["t1"]


def test_the_branches_of_a_todo_of_high_risk_need_a_yes_whatever_the_mode():
    run = Told(todo(risk_level="HIGH"), auto_fix_mode=True)
    run.decides(Decision.APPROVE, run.questions[0])

    run.is_red()

    assert [each.kind.value for each in run.questions] == ["approve_branch"]


def test_every_version_of_the_plan_has_a_digest_in_a_chain():
    run = Told(todo("t1"), todo("t2"))
    run.is_red("t1")
    run.is_red("t2")

    published = run.all_of(PublishPlan)

    assert [each.version for each in published] == [2, 3]
    assert [each.previous for each in published] == ["sha256:plan", published[0].digest]


@pytest.mark.parametrize(
    ("waits_for", "is_circle"), [("t2", True), ("t3", True), ("t4", False), ("t5", False)]
)
def test_a_branch_may_wait_for_what_does_not_wait_for_its_todo(waits_for: str, is_circle: bool):
    children = (
        todo("t1"),
        todo("t2", dependencies=("t1",)),
        todo("t3", dependencies=("t4", "t2")),
        todo("t4"),
        todo("t5", dependencies=("t4",)),
    )
    run = Told(todo("p", is_parent=True, sub_project_id="s"), require_planner_approval=True)
    run.loads("p", *children)
    run.is_red("p/t1")

    run.decides(Decision.MODIFY, run.questions[0], changes=BranchChanges(dependencies=(waits_for,)))

    assert ("branches-in-a-circle" in run.rules) is is_circle
    if is_circle:
        assert run.questions[0].because == ("p/t1_branch_01 would wait for p/t1, which it repairs")
    else:
        assert run.record("p/t1_branch_01").todo.dependencies == (waits_for,)
        assert run.started == []


def test_branches_of_the_approved_class_that_are_asked_about_already_are_made_at_once():
    run = Told(todo("t1"), todo("t2"), todo("t3", risk_level="HIGH"), auto_fix_mode=False)
    run.decides(Decision.APPROVE, run.asked())
    for name in ("t1", "t2", "t3"):
        run.is_red(name)
    first = next(each for each in run.all_of(AskHuman) if each.question_id == "t1_branch_01")

    run.decides(Decision.APPROVE_SIMILAR, first)

    assert sorted(run.started) == ["t1_branch_01", "t2_branch_01"]
    assert set(run.state.questions) == {"t3_branch_01"}
