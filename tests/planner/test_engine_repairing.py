"""The order of repair: retries, branches, deeper branches, a person; one test for each rule."""

from __future__ import annotations

from typing import Any

import pytest
from engine_telling import Told, chain, todo

from planner.model.actions import Cancel, Halt, Implement, Notify, Verify
from planner.model.outcome import Check, Outcome
from planner.model.taxonomy import BranchReason, Category, Role, RoutingKey
from planner.model.verdicts import CheckKind, Since, TodoState, Verdict
from planner.testing import sample_failure, simulate_failure

ROUTES = {
    Category.TEST_REGRESSION: (Role.CODER, BranchReason.IMPLEMENTATION_BUG),
    Category.SPEC_MISMATCH: (Role.ARCHITECT, BranchReason.SPEC_MISMATCH),
    Category.TEST_TIMEOUT: (Role.TESTER, BranchReason.TIMEOUT),
    Category.FLAKY_TEST: (Role.TESTER, BranchReason.FLAKY_TEST),
    Category.IMPORT_ERROR: (Role.CODER, BranchReason.MISSING_DEPENDENCY),
    Category.UNKNOWN: (Role.DEBUGGER, BranchReason.TEST_FAILURE),
}


def branch_of(run: Told) -> Implement:
    (action,) = run.last_of(Implement)
    assert action.parent_id is not None
    return action


def open_branch(run: Told, todo_id: str = "t1", **failure: Any) -> str:
    """Let a todo fail, and name the branch that it gets."""
    run.is_red(todo_id, **failure)
    return branch_of(run).todo_id


def test_a_red_todo_is_first_repaired_by_the_same_role_as_often_as_max_retries_says():
    run = Told(todo(max_retries=2, agent_role="architect"))

    for attempt in (2, 3):
        run.is_red()
        (action,) = run.last_of(Implement)
        assert (action.todo_id, action.role, action.attempt) == ("t1", Role.ARCHITECT, attempt)
        assert action.rule == "retry-by-the-same-role"
        assert action.brief.failure is not None
    run.is_red()

    assert branch_of(run).parent_id == "t1"


def test_a_red_todo_without_retries_left_gets_a_branch_that_reuses_its_criteria():
    run = Told(todo())

    run.is_red("t1", Category.TEST_REGRESSION, "RSI is 32.1, not 28.5")

    action = branch_of(run)
    branch = run.record("t1_branch_01").todo
    assert run.rules == ["failed-todo-gets-a-branch", "branch-is-worked-on"]
    assert (action.todo_id, action.parent_id, action.role) == ("t1_branch_01", "t1", Role.CODER)
    assert branch.is_temporary
    assert branch.branch_depth == 1
    assert branch.acceptance_criteria.tests == run.record("t1").todo.acceptance_criteria.tests
    assert "RSI is 32.1" in (branch.debug_instructions or "")
    assert (branch.max_debug_attempts, branch.max_lifetime_seconds) == (3, 600)
    assert run.life("t1") == "test_failed"
    assert run.edits()[0].edit == "add_branch"


@pytest.mark.parametrize("category", ROUTES)
def test_a_branch_goes_to_the_role_of_its_failure(category: Category):
    run = Told(todo(), halt={"flaky_streak": None})

    run.is_red("t1", category)

    branch = run.record("t1_branch_01").todo
    assert (branch.agent_role, branch.branch_reason) == ROUTES[category]


def test_the_routing_of_a_todo_goes_before_that_of_the_taxonomy():
    run = Told(todo(failure_routing={RoutingKey.IMPLEMENTATION_BUG: "architect"}))

    run.is_red()

    assert branch_of(run).role is Role.ARCHITECT


def test_what_depends_on_a_red_todo_is_blocked_down_to_the_last():
    run = Told(*chain(), todo("t4"))

    open_branch(run)

    assert [run.life(f"t{at}") for at in range(1, 5)] == ["test_failed", "blocked", "blocked", "active"]


def test_a_branch_is_tried_as_often_as_max_debug_attempts_says():
    run = Told(todo(), max_debug_attempts=2)
    branch = open_branch(run)

    run.is_red(branch)
    assert (branch_of(run).todo_id, branch_of(run).attempt) == (branch, 2)
    assert branch_of(run).rule == "branch-has-attempts-left"
    run.is_red(branch)

    assert run.started == []
    assert run.life(branch) == "failed"
    (question,) = run.questions
    assert (question.kind, question.todo_id) == ("review", "t1")
    assert run.state.plan_state == "awaiting_review"


def test_a_branch_for_an_unknown_failure_is_tried_once():
    run = Told(todo())
    branch = open_branch(run, category=Category.UNKNOWN)

    run.is_red(branch)

    assert run.life(branch) == "failed"


def test_a_branch_that_passes_has_its_parent_verified_again():
    run = Told(*chain())
    branch = open_branch(run)

    run.is_done(branch)

    assert run.verifying == ["t1"]
    assert "branch-passed" in run.rules
    assert (run.life(branch), run.life("t1")) == ("done", "testing")


def test_a_parent_that_passes_then_is_done_and_unblocks_what_depends_on_it():
    run = Told(*chain())
    run.is_done(open_branch(run))

    run.passes("t1")

    assert [run.life(f"t{at}") for at in range(1, 4)] == ["done", "active", "pending"]
    assert run.started == ["t2"]


def test_a_parent_that_is_still_red_gets_a_deeper_branch():
    run = Told(todo())
    run.is_done(open_branch(run))

    run.fails("t1")

    deeper = branch_of(run)
    record = run.record(deeper.todo_id)
    assert run.rules == ["deeper-branch", "branch-is-worked-on"]
    assert (deeper.todo_id, record.depth) == ("t1_branch_02", 2)
    assert record.parent_id == "t1"
    assert record.todo.via == "t1_branch_01"


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


def test_no_branches_are_made_where_max_branch_depth_is_zero():
    run = Told(todo(), max_branch_depth=0)

    run.is_red()

    assert run.started == []
    assert [each.rule for each in run.questions] == ["branch-depth"]


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


def test_what_a_run_could_not_tell_is_verified_again():
    run = Told(todo())
    run.works()

    run.says(Verdict.INCONCLUSIVE)

    assert run.verifying == ["t1"]
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


def test_a_failure_that_is_older_than_the_work_gets_a_todo_of_its_own():
    run = Told(todo())

    run.is_red("t1", since=Since.PRE_EXISTING)

    assert "pre-existing-failure" in run.rules
    assert run.record("t1").branches == ()
    assert len(run.state.todos) == 2


def test_an_outcome_that_says_nothing_but_red_is_repaired_all_the_same():
    run = Told(todo())
    run.works()

    run.outcome(Outcome(todo_id="t1", success=False, tests_passed=False))

    assert branch_of(run).role is Role.DEBUGGER


def test_an_outcome_that_contradicts_itself_is_no_pass_and_no_failure():
    run = Told(todo())
    run.works()

    run.outcome(Outcome(todo_id="t1", state=TodoState.DONE, success=False, tests_passed=True))

    assert run.life() == "testing"
    assert run.verifying == ["t1"]


def test_a_todo_that_is_given_up_has_what_depends_on_it_skipped():
    run = Told(*chain(), todo("t4"), max_branch_depth=0)
    run.is_red()

    run.answers("give_up", run.questions[0])

    assert [run.life(f"t{at}") for at in range(1, 5)] == ["failed", "skipped", "skipped", "active"]


def test_the_plan_is_halted_when_nothing_is_left_that_can_be_done():
    run = Told(*chain(), max_branch_depth=0)
    run.is_red()

    run.answers("give_up", run.questions[0])

    assert [each.rule for each in run.last_of(Halt)] == ["nothing-left"]
    assert run.state.plan_state == "halted"


def test_a_person_can_have_it_tried_once_more():
    run = Told(todo(), max_branch_depth=0)
    run.is_red()

    run.answers("retry", run.questions[0])

    assert run.started == ["t1"]
    run.is_red()
    assert [each.kind for each in run.questions] == ["review"]


def test_a_person_can_stop_everything():
    run = Told(todo(), todo("t2"), max_branch_depth=0)
    run.is_red()

    run.answers("stop", run.questions[0])

    assert run.state.plan_state == "halted"
    assert [each.todo_id for each in run.last_of(Cancel)] == ["t2"]


def test_a_failure_that_several_todos_share_gets_one_todo_that_all_of_them_wait_for():
    run = Told(todo("t1"), todo("t2"))
    for name in ("t1", "t2"):
        run.is_red(name, since=Since.PRE_EXISTING, signature="a" * 12)
    (older,) = set(run.state.todos) - {"t1", "t2"}

    assert [run.record(name).todo.dependencies for name in ("t1", "t2")] == [(older,), (older,)]
    run.is_done(older)

    assert sorted(run.verifying) == ["t1", "t2"]


def test_a_branch_that_is_worked_on_has_passed_when_its_todo_is_verified_without_it():
    """As where the plan file does not hold the branch, so that no run verifies it by itself."""
    run = Told(todo())
    branch = open_branch(run)

    run.passes("t1")

    assert (run.life("t1"), run.life(branch)) == ("done", "done")
    assert run.record(branch).verified is False


def test_a_branch_ends_with_the_todo_that_it_repairs():
    run = Told(todo("t1"), max_debug_attempts=1)
    old = sample_failure(todo("t1"), message="old", since=Since.PRE_EXISTING)
    new = simulate_failure(todo("t1"))
    run.works("t1")
    run.outcome(new.model_copy(update={"failures": (*new.failures, old)}))
    (older,) = set(run.state.todos) - {"t1", "t1_branch_01"}
    assert run.life("t1_branch_01") == "active"

    for name in (older, f"{older}_branch_01"):
        run.is_red(name)
    run.answers("give_up", run.asked())

    (cancelled,) = run.last_of(Cancel)
    assert (cancelled.todo_id, cancelled.rule) == ("t1_branch_01", "branch-without-use")
    assert cancelled.because == "t1, which it repairs, is given up"
    assert [run.life(name) for name in (older, "t1", "t1_branch_01")] == ["failed"] * 3
    assert run.state.plan_state == "halted"


def test_a_person_is_shown_every_question_that_is_open_of_a_todo():
    run = Told(todo("t1"))
    run.works()
    checks = tuple(
        Check(id=f"manual[{at}]", kind=CheckKind.MANUAL, verdict=Verdict.NEEDS_HUMAN, title=title)
        for at, title in enumerate(("Is it pretty?", None))
    )

    run.outcome(
        Outcome(todo_id="t1", state=TodoState.TESTING, success=False, tests_passed=False, checks=checks)
    )

    assert [each.question for each in run.questions] == ["Is it pretty?; manual[1]"]


def test_whoever_repairs_is_told_which_files_are_protected():
    run = Told(todo("t1"), protected_files=("secrets.ini",))

    run.is_red()

    action = branch_of(run)
    assert "secrets.ini" in (action.brief.instructions or "")
    assert action.bounds.protected_files == ("secrets.ini",)


@pytest.mark.parametrize(("tools", "checked"), [((), False), (("mypy",), True)])
def test_a_type_checker_that_the_project_has_looks_at_it_first(tools: tuple[str, ...], checked: bool):
    run = Told(todo("t1"), run={"tools": tools})
    run.works()
    outcome = simulate_failure(todo("t1"), Category.TYPE_ERROR, location={"path": "src/a.py", "line": 3})

    run.outcome(outcome)

    assert (
        "mypy src/a.py" in [edit.check.cmd for edit in run.edits() if edit.edit == "add_check"]
    ) is checked
