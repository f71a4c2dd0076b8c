"""The test kit: simulated failures, their branches, and the completion of a plan."""

import pytest

from planner.model.actions import AskHuman, QuestionKind
from planner.testing import Orchestrator, category_of, create_plan, create_test_workflow

FIRST = "t1_data_integration"
FAILED = "t2_indicators"
BRANCH = "t2_indicators_branch_01"
DEEPER = "t2_indicators_branch_02"


def failed_workflow(**policy):
    workflow = create_test_workflow(**policy)
    workflow.inject_success(FIRST)
    workflow.inject_failure(FAILED, "RSI mismatch")
    return workflow


def question_of(workflow):
    (question,) = [each for each in workflow.outstanding if isinstance(each, AskHuman)]
    return question


def test_a_passed_branch_with_a_red_parent_is_followed_by_a_deeper_one_then_a_person():
    workflow = failed_workflow()
    workflow.inject_success(BRANCH, parent_passes=False)
    deeper = workflow.get_branches(FAILED)[-1]
    assert (deeper.id, deeper.via, deeper.branch_depth) == (DEEPER, BRANCH, 2)
    assert deeper.parent_id == FAILED
    workflow.inject_success(DEEPER, parent_passes=False)
    assert len(workflow.get_branches(FAILED)) == 2
    assert question_of(workflow).rule == "branch-depth"
    assert workflow.get_status(FAILED) == "test_failed"


def test_a_result_of_a_todo_implies_that_the_todos_before_it_passed():
    workflow = create_test_workflow()
    workflow.inject_failure("t3_entry_conditions", "too early")
    assert workflow.get_status(FIRST) == workflow.get_status(FAILED) == "completed"
    assert workflow.has_branch("t3_entry_conditions")
    assert workflow.get_status("t4_exit_conditions") == "blocked"


def test_a_failing_todo_is_not_passed_by_a_result_of_a_later_one():
    workflow = failed_workflow()
    workflow.inject_failure("t3_entry_conditions")
    assert workflow.get_status(FAILED) == "test_failed"
    assert not workflow.has_branch("t3_entry_conditions")


def test_a_branch_that_exceeds_its_lifetime_is_escalated_to_a_person():
    workflow = failed_workflow(branch_timeout_seconds=300)
    assert workflow.inject_failure(BRANCH, "first") is not None
    workflow.wait(301)
    assert workflow.inject_failure(BRANCH, "still") is None
    assert question_of(workflow).rule == "branch-lifetime"


def test_without_auto_fix_a_branch_waits_for_approval():
    asking = failed_workflow(auto_fix_mode=False)
    assert not asking.has_branch(FAILED)
    assert asking.get_status("t3_entry_conditions") == "blocked"
    question = question_of(asking)
    assert (question.kind, question.question_id) == (QuestionKind.APPROVE_BRANCH, BRANCH)
    agreed = create_test_workflow(auto_fix_mode=False, approved=(BRANCH,))
    agreed.inject_success(FIRST)
    agreed.inject_failure(FAILED)
    assert agreed.has_branch(FAILED)


def test_an_unknown_todo_or_error_type_is_refused():
    with pytest.raises(KeyError):
        create_test_workflow().inject_failure("t9")
    with pytest.raises(KeyError):
        create_test_workflow().has_branch("t9")
    with pytest.raises(ValueError, match=r"'wrong' is neither a failure category .* implementation_bug"):
        category_of("wrong")


def test_an_orchestrator_completes_a_plan_after_a_failure():
    orchestrator = Orchestrator()
    workflow_id = orchestrator.load_todo_list(create_plan("Create momentum strategy with RSI"))
    orchestrator.inject_success(FIRST)
    orchestrator.inject_failure(
        task_id=FAILED, error_type="implementation_bug", message="RSI calculation incorrect"
    )

    (branch,) = orchestrator.get_branches(workflow_id)
    assert branch.agent_role == "coder"
    orchestrator.inject_success(branch.id)
    assert orchestrator.get_status(FAILED) == "completed"
    assert orchestrator.get_status("t3_entry_conditions") == "running"

    result = orchestrator.wait_for_completion(workflow_id, timeout=300)

    assert result.status == "completed"
    assert all(task.status == "completed" for task in result.tasks)


@pytest.mark.parametrize(
    ("error_type", "role"),
    [
        ("missing_dependency", "coder"),
        ("timeout", "tester"),
        ("UNKNOWN", "debugger"),
        ("TEST_NOT_FOUND", "tester"),
        ("ARTIFACT_MISSING", "coder"),
    ],
)
def test_a_failure_of_each_error_type_is_an_attempt_of_its_role(error_type, role):
    workflow = create_test_workflow()
    repair = workflow.inject_failure(FIRST, "it broke", error_type=error_type)
    assert repair is not None
    assert (repair.parent_id, repair.agent_role, repair.is_temporary) == (FIRST, role, True)
    assert workflow.get_status(FIRST) == "test_failed"
