"""Repairs by branches, revisions of the plan, and the sub-plans of parents."""

from __future__ import annotations

from typing import Any

import pytest
from engine_telling import START, Told, plan_of, todo

from planner.engine import Engine
from planner.engine.state import current_plan
from planner.model.actions import (
    AskHuman,
    Finish,
    Implement,
    LoadSubPlan,
    Notify,
    PublishPlan,
    QuestionKind,
)
from planner.model.events import BranchChanges, Decision
from planner.model.outcome import Check
from planner.model.plan import AcceptanceCriteria
from planner.model.taxonomy import Category, Role
from planner.model.verdicts import CheckKind, Since, Verdict


def open_branch(run: Told, todo_id: str = "t1", **failure: Any) -> str:
    """Let a todo fail, and return the id of its new branch."""
    run.is_red(todo_id, **failure)
    (action,) = run.last_of(Implement)
    assert action.parent_id == todo_id
    return action.todo_id


def test_an_environment_error_does_not_use_up_an_attempt_of_a_branch():
    run = Told(todo(), max_debug_attempts=1)
    branch = open_branch(run)
    run.is_red(branch, Category.ENVIRONMENT_ERROR)
    assert run.verifying == [branch]
    assert run.record(branch).attempts == 0


def test_a_brief_names_only_attempts_that_count():
    run = Told(todo(), halt={"security": "ask"})
    branch = open_branch(run)
    run.is_red(branch, Category.SANDBOX_VIOLATION)
    run.answers("retry", run.asked())
    (action,) = run.last_of(Implement)
    assert "Tried without success" not in (action.brief.instructions or "")


def test_todos_with_one_failure_of_the_environment_wait_once_and_are_answered_at_once():
    run = Told(todo("t1"), todo("t2"), todo("t3"), run={"environment_retries": 1})
    for name in ("t1", "t2", "t3"):
        run.works(name)
    for name in ("t1", "t1", "t2"):
        run.fails(name, Category.ENVIRONMENT_ERROR, signature="a" * 12)
    run.fails("t3", Category.ENVIRONMENT_ERROR, signature="b" * 12)

    first, second = run.state.questions.values()
    assert (first.todo_id, second.todo_id) == ("t1", "t2")
    assert second.because.endswith("it was verified 1 time")
    assert run.record("t3").waited == 1

    run.answers("verify", second)

    assert not run.state.questions
    assert run.verifying == ["t1", "t2"]


def test_an_answer_to_another_question_leaves_those_about_the_environment_open():
    run = Told(todo("t1"), todo("t2"), run={"environment_retries": 0})
    for name in ("t1", "t2"):
        run.works(name)
    run.fails("t1", Category.ENVIRONMENT_ERROR, signature="a" * 12)
    run.answers("verify", run.asked())
    check = Check(id="manual[0]", kind=CheckKind.MANUAL, verdict=Verdict.NEEDS_HUMAN)
    run.outcome(run.good("t1").model_copy(update={"success": False, "checks": (check,)}))
    manual = run.asked()
    run.fails("t2", Category.ENVIRONMENT_ERROR, signature="a" * 12)

    run.answers("answered", manual)

    assert run.verifying == ["t1"]
    assert [each.todo_id for each in run.state.questions.values()] == ["t2"]


def test_a_person_and_the_turn_they_grant_are_told_what_the_last_attempt_of_a_branch_left():
    run = Told(todo(), max_debug_attempts=1)
    branch = open_branch(run, message="got 10", rerun="pytest --planverify plan.yaml::t1")
    run.is_red(branch, message="got 11", rerun=f"pytest --planverify plan.yaml::{branch}")

    (question,) = run.questions
    assert question.failure is not None
    assert question.failure.stack_trace_head == "got 11"
    assert question.failure.rerun == "pytest --planverify plan.yaml::t1"

    run.answers("retry", question)
    instructions = run.last_of(Implement)[0].brief.instructions
    assert instructions is not None
    assert "got 11" in instructions
    assert "got 10" not in instructions


# Admission of plans


def test_all_problems_of_a_plan_are_reported_together():
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


def test_a_plan_with_too_many_todos_is_rejected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("planner.engine.events.MAX_TODOS", 1)
    state = Engine.start(plan_of(todo("t1"), todo("t2")), at=START)
    assert isinstance(state.stopped, Finish)
    assert state.stopped.problems == ("the plan has more than 1 todos; split it",)
    assert Engine.start(plan_of(todo("t1")), at=START).plan_state == "ready"


def test_an_invalid_sub_plan_is_referred_to_a_person():
    run = Told(todo("p", is_parent=True, sub_project_id="s"), todo("t2", dependencies=("p",)))
    run.loads("p", todo("a", dependencies=("b",)))
    (question,) = run.questions
    assert (question.kind, question.rule) == ("review", "sub-plan-unfit")
    assert "the sub-plan of p cannot be carried out: 'a' depends on 'b'" in question.because
    run.answers("retry", question)
    assert [each.todo_id for each in run.last_of(LoadSubPlan)] == ["p"]
    run.loads("p", todo("a"))
    assert run.started == ["p/a"]


# Branches of earlier runs


def test_an_earlier_branch_is_reused_after_its_todo_was_verified_and_the_next_one_counts_on():
    run = Told(todo("t1", max_retries=5), todo("t1_branch_01", parent_id="t1", is_temporary=True))
    assert (run.verifying, run.started) == (["t1"], [])
    run.fails("t1")
    assert run.started == ["t1_branch_01"]
    run.is_done("t1_branch_01")
    run.fails("t1")
    assert run.started == ["t1_branch_02"]


def test_a_reason_names_the_attempt_before_the_words_of_the_agent():
    run = Told(todo("t1"))
    run.fails("t1")
    run.works("t1_branch_01", success=False, message="no key")
    said = "after attempt 1 of 3, the worker reported a failure: no key"
    assert [each.because for each in run.last_of(Implement)] == [said]


def test_a_todo_that_passes_ends_its_branch_and_the_steps_before_it():
    run = Told(todo("t1"))
    run.is_red("t1", Category.IMPORT_ERROR)
    assert run.life("t1_step_01") == "active"
    run.passes("t1")
    assert [run.life(name) for name in ("t1", "t1_step_01", "t1_branch_01")] == ["done", "done", "skipped"]
    assert run.state.plan_state == "completed"


# Edits that need approval


def test_an_approved_branch_whose_id_is_taken_since_is_proposed_again():
    first, second = "t" * 190 + "1", "t" * 190 + "2"
    todos = (todo("t0"), todo(first), todo(second, priority=-1))
    run = Told(*todos, require_planner_approval=True, max_concurrent_branches=1)
    asked: dict[str, AskHuman] = {}
    for name in ("t0", first):
        run.is_red(name)
        asked[name] = run.asked()
    for question in asked.values():
        run.decides(Decision.APPROVE, question)
    run.is_red(second)
    run.passes("t0")
    again = next(each for each in run.questions if each.todo_id == second)
    run.decides(Decision.APPROVE, again)

    run.passes(first)

    assert [each.todo_id for each in run.questions] == [second]
    assert run.asked().question_id != again.question_id


def test_an_approved_edit_that_no_longer_fits_the_plan_is_reported_and_not_applied():
    run = Told(todo("t1"))
    run.is_red("t1", Category.TEST_TIMEOUT)
    first = run.asked()
    run.is_done("t1_branch_01")
    run.fails("t1", Category.TEST_TIMEOUT)
    second = run.asked()
    run.decides(Decision.APPROVE, second)

    run.decides(Decision.APPROVE, first)

    (told,) = run.last_of(Notify)
    assert (told.rule, told.topic, told.to) == ("revision-conflict", "planner.alert", "planner")
    assert "the approved change of t1 no longer fits the plan" in told.because
    assert run.last_of(PublishPlan) == []


def test_a_branch_follows_its_todo_and_a_step_precedes_its_branch():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)))
    run.is_red("t1", Category.IMPORT_ERROR)
    names = [each.id for each in current_plan(run.state).items]
    assert names == ["t1", "t1_step_01", "t1_branch_01", "t2"]


def test_a_todo_added_to_a_sub_plan_must_be_done_before_its_parent():
    run = Told(todo("p", is_parent=True, sub_project_id="s", requires_testing=False))
    run.loads("p", todo("a"))
    run.is_red("p/a", since=Since.PRE_EXISTING, signature="f" * 12)
    (added,) = run.started
    run.is_done(added)
    assert run.life("p") == "active"
    run.passes("p/a")
    assert (run.life(added), run.life("p")) == ("done", "done")


def test_a_parent_fails_once_a_child_has_failed_and_no_other_can_continue():
    run = Told(
        todo("p1", sub_plan="a.yaml"), todo("t2", dependencies=("p1",)), todo("t3"), max_branch_depth=0
    )
    run.loads("p1", todo("a", requires_testing=False), todo("b", requires_testing=False))
    run.works("p1/a", success=False)
    assert run.life("p1") == "active"
    run.works("p1/b")
    assert run.life("p1/a") == "failed"
    assert (run.life("p1"), run.life("t2"), run.life("t3")) == ("failed", "skipped", "active")


def test_sub_plans_are_nested_at_most_three_levels_deep():
    run = Told(todo("p", is_parent=True, sub_project_id="s", acceptance_criteria=AcceptanceCriteria()))
    (action,) = run.last_of(LoadSubPlan)
    assert (action.todo_id, action.sub_project_id, run.life("p")) == ("p", "s", "active")
    name = "p"
    for _ in range(3):
        run.loads(name, todo("p", is_parent=True, sub_project_id="s"))
        name += "/p"
        assert [each.todo_id for each in run.last_of(LoadSubPlan)] == [name]

    run.loads(name, todo("a"))

    (question,) = run.questions
    assert question.because.endswith("p/p/p/p cannot be carried out: sub-plans go at most 3 levels deep")
    assert f"{name}/a" not in run.state.todos


# Branches whose cause changes


FIRST, SECOND = ({"location": {"path": f"src/{name}/x.py"}, "signature": name * 12} for name in "ab")


def branch_files(run: Told) -> tuple[str, ...] | None:
    return run.record("t1_branch_01").todo.allowed_files


def test_the_role_and_files_of_its_latest_cause_work_on_a_branch_without_what_was_proposed_before():
    run = Told(todo(allowed_files=("src/**",), contract_path="contracts/a.json"))
    run.is_red(category=Category.SPEC_MISMATCH, **FIRST)
    assert run.record("t1_branch_01").todo.agent_role is Role.ARCHITECT
    assert run.asked().kind is QuestionKind.APPROVE_EDITS
    run.is_red("t1_branch_01", Category.TEST_REGRESSION, **SECOND)

    branch = run.record("t1_branch_01").todo
    assert (branch.agent_role, branch.target_agent_role) == (Role.CODER, Role.CODER)
    assert branch_files(run) == run.last_of(Implement)[0].bounds.allowed_files == ("src/b/**",)
    assert not run.state.questions


def test_a_role_that_a_person_has_chosen_stays_whatever_the_cause():
    run = Told(todo(), auto_fix_mode=False)
    run.is_red(category=Category.TEST_CRASH, **FIRST)
    run.decides(Decision.MODIFY, run.asked(), changes=BranchChanges(role=Role.ARCHITECT))
    run.is_red("t1_branch_01", Category.TEST_REGRESSION, **SECOND)
    assert run.record("t1_branch_01").todo.agent_role is Role.ARCHITECT


def test_the_instructions_of_a_branch_agree_with_the_changes_of_a_person():
    run = Told(todo(), auto_fix_mode=False)
    run.is_red(**FIRST)
    changes = BranchChanges(role=Role.TESTER, allowed_files=("src/a/x.py",), instructions="Look twice.")
    run.decides(Decision.MODIFY, run.asked(), changes=changes)
    said = run.record("t1_branch_01").todo.debug_instructions or ""
    assert said.startswith("Look twice.\n\n# Repair")
    assert "**Who**: tester;" in said
    assert "**May edit**: `src/a/x.py`\n" in said


def test_a_branch_whose_new_cause_names_no_file_may_change_the_files_of_its_parent():
    run = Told(todo())
    run.is_red(**FIRST)
    run.is_red("t1_branch_01", Category.METRIC_UNMET)
    assert branch_files(run) is None


def test_a_waiting_branch_is_updated_to_the_latest_cause_of_its_todo():
    run = Told(todo(), run={"jobs": 1})
    run.is_red(**FIRST)
    run.fails("t1", **SECOND)
    assert branch_files(run) == ("src/b/**",)


@pytest.mark.parametrize(("files", "after"), [(None, ("src/b/**",)), (("src/a/x.py",), ("src/a/x.py",))])
def test_a_branch_follows_its_cause_within_the_files_set_by_a_person(
    files: tuple[str, ...] | None, after: tuple[str, ...]
):
    run = Told(todo(), auto_fix_mode=False)
    run.is_red(**FIRST)
    run.decides(Decision.MODIFY, run.asked(), changes=BranchChanges(allowed_files=files))
    run.is_red("t1_branch_01", **SECOND)
    assert branch_files(run) == after


def test_a_todo_starts_beside_a_branch_whose_next_turn_has_other_files():
    run = Told(todo("t1", allowed_files=("src/**",)), todo("t2", allowed_files=("src/a/x.py",)))
    run.is_red(**FIRST)
    assert run.started == ["t1_branch_01"]
    run.is_red("t1_branch_01", **SECOND)
    assert run.started == ["t1_branch_01", "t2"]
