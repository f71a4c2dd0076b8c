"""What is decided where an outcome file, or the branches of a plan, are as nobody expected them."""

import pytest

from planner.model.decision import Move, NeedKind
from planner.model.outcome import Outcome, OutcomeMetrics, Since, TodoState
from planner.model.plan import Plan, Policy
from planner.model.taxonomy import Category, Owner
from planner.rules.branching import MEMORY
from planner.rules.deciding import decide
from planner.testing import (
    create_sample_todo,
    sample_document,
    sample_failure,
    simulate_failure,
    simulate_success,
)


def plan_of(*todos, **policy):
    settings = Policy.model_validate({"auto_fix_mode": True} | policy)
    return Plan(todo_list_id="p1", metadata=settings, items=todos)


def decided(plan, *outcomes, run=None):
    document = sample_document(plan, outcomes)
    return decide(plan, document.model_copy(update={"run": document.run.model_copy(update=run or {})}))


def only_repair(plan, *outcomes):
    (repair,) = decided(plan, *outcomes).repairs
    return repair


def test_branches_whose_first_attempt_this_run_has_seen_are_counted_as_failed():
    todos = [create_sample_todo(f"t{number}") for number in range(2)]
    branches = [
        create_sample_todo(f"{each.id}_branch_01", parent_id=each.id, extensions={MEMORY: {"attempts": 0}})
        for each in todos
    ]
    plan = plan_of(*todos, *branches, notify_after_n_failures=1)

    decisions = decided(plan, *map(simulate_failure, [*todos, *branches]))

    assert [notice.rule for notice in decisions.notices] == ["many-failed-branches"]


def test_a_branch_that_waits_for_a_failed_todo_is_not_worked_on():
    first, second = create_sample_todo("t1"), create_sample_todo("t2")
    branch = create_sample_todo("t2_branch_01", parent_id="t2", dependencies=("t1",))
    todos = (first, second, branch)

    found = {each.todo_id: each for each in decided(plan_of(*todos), *map(simulate_failure, todos)).repairs}

    assert found["t1"].move is Move.BRANCH
    assert (found["t2"].move, found["t2"].rule) == (Move.WAIT, "branch-under-way")
    assert "waits for t1" in found["t2"].because


@pytest.mark.parametrize("waiting", ["t1", "t1_branch_01"])
def test_a_todo_and_its_branch_that_wait_for_each_other_go_to_a_person(waiting):
    pair = {"t1": "t1_branch_01", "t1_branch_01": "t1"}
    waits = {each: (pair[each],) if each == waiting else () for each in pair}
    todo = create_sample_todo("t1", dependencies=waits["t1"])
    branch = create_sample_todo("t1_branch_01", parent_id="t1", dependencies=waits["t1_branch_01"])

    repair = only_repair(plan_of(todo, branch), simulate_failure(todo), simulate_failure(branch))

    assert (repair.move, repair.rule) == (Move.ESCALATE, "branches-in-a-circle")


def test_a_red_branch_of_no_todo_goes_to_a_person_and_the_plan_is_not_completed():
    todo, orphan = create_sample_todo("t1"), create_sample_todo("gone_branch_01", parent_id="gone")

    decisions = decided(plan_of(todo, orphan), simulate_success(todo), simulate_failure(orphan))

    (repair,) = decisions.repairs
    assert (repair.move, repair.rule) == (Move.ESCALATE, "branch-without-parent")
    assert decisions.state == "awaiting_review"


@pytest.mark.parametrize(
    "contradiction",
    [
        {"success": True},
        {"success": True, "state": None},
        {"success": True, "state": "done"},
        {"success": True, "state": None, "failure_evidence": None, "failures": ()},
        {"success": True, "state": None, "failure_evidence": None, "tests_passed": True},
    ],
)
def test_an_outcome_that_is_a_success_and_a_failure_at_once_is_neither(contradiction):
    todo = create_sample_todo("t1")
    outcome = Outcome.model_validate(simulate_failure(todo).model_dump() | contradiction)

    decisions = decided(plan_of(todo), outcome)

    assert [repair.move for repair in decisions.repairs] == [Move.VERIFY]
    assert decisions.state == "executing"


def test_a_success_without_any_command_is_no_contradiction():
    todo = create_sample_todo("t1")
    outcome = Outcome(todo_id="t1", state=TodoState.DONE, success=True, tests_passed=False)

    assert decided(plan_of(todo), outcome).state == "completed"


def test_without_a_deciding_failure_the_most_severe_one_decides():
    todo = create_sample_todo("t1")
    failures = [
        sample_failure(todo, "TEST_REGRESSION", "a"),
        sample_failure(todo, "IMPORT_ERROR", "b", confidence=0.4),
        sample_failure(todo, "TYPE_ERROR", "c", confidence=None),
    ]
    outcome = simulate_failure(todo).model_copy(
        update={"failure_evidence": None, "failures": tuple(failures)}
    )

    assert only_repair(plan_of(todo), outcome).category is Category.IMPORT_ERROR


@pytest.mark.parametrize(
    "failure",
    [{"error_type": "ENVIRONMENT_ERROR"}, {"error_type": "TEST_CRASH", "owner": Owner.ENVIRONMENT}],
)
def test_what_the_environment_lacks_is_nobodys_todo_however_long_it_lacks_it(failure):
    todo = create_sample_todo("t1")

    repair = only_repair(plan_of(todo), simulate_failure(todo, since=Since.PRE_EXISTING, **failure))

    assert (repair.move, repair.edits) == (Move.RETRY_LATER, ())


def test_a_pre_existing_failure_that_is_routed_to_a_person_waits_for_one():
    todo = create_sample_todo("t1", failure_routing={"implementation_bug": "human"})

    decisions = decided(plan_of(todo), simulate_failure(todo, since=Since.PRE_EXISTING))

    assert [need.kind for need in decisions.needs_human] == [NeedKind.WORK]


@pytest.mark.parametrize("number", ["9" * 191, "0" * 180 + "7"])
def test_a_number_that_nobody_counted_does_not_make_the_next_id_too_long(number):
    todo = create_sample_todo("t")
    other = create_sample_todo(f"t_branch_{number}")

    repair = only_repair(plan_of(todo, other), simulate_failure(todo))

    assert repair.branch_id == ("t_branch_01" if number.startswith("9") else "t_branch_08")


@pytest.mark.parametrize(
    ("metrics", "run", "state"),
    [
        ({"tokens_used": 10**400}, {}, "halted"),
        ({}, {"duration_ms": 10**400}, "halted"),
        ({"tokens_used": -(10**400)}, {}, "revising"),
    ],
)
def test_no_number_is_too_large_for_a_budget(metrics, run, state):
    todo = create_sample_todo("t1")
    outcome = simulate_failure(todo).model_copy(update={"metrics": OutcomeMetrics(**metrics)})
    plan = plan_of(todo, budget={"tokens": 5, "wall_seconds": 5})

    assert decided(plan, outcome, run=run).state == state


def test_a_module_that_the_environment_lacks_is_declared_and_installed_by_a_role():
    todo = create_sample_todo("t1")
    said = "ModuleNotFoundError: No module named 'pandas'"

    repair = only_repair(
        plan_of(todo), simulate_failure(todo, "IMPORT_ERROR", said, owner=Owner.ENVIRONMENT)
    )

    assert (repair.move, repair.role) == (Move.BRANCH, "coder")
    assert [edit.edit for edit in repair.edits] == ["add_branch", "add_todo_before", "add_context"]


def test_a_test_without_a_name_cannot_be_borne():
    todo = create_sample_todo("t1")
    names = ("", "tests/test_a.py::test_it", "\x1b[31m", "x" * 2000)

    repair = only_repair(plan_of(todo), simulate_failure(todo, "FLAKY_TEST", tests=names))

    borne = [edit.nodeid for edit in repair.edits if edit.edit == "quarantine"]
    assert borne == ["tests/test_a.py::test_it"]


@pytest.mark.parametrize(
    ("insists", "approval"), [(True, "needed"), (None, "not_needed"), (False, "not_needed")]
)
def test_a_plan_that_insists_on_a_person_does_so_in_its_sub_plans_too(insists, approval):
    child = create_sample_todo("impl")
    parent = create_sample_todo("phase", acceptance_criteria={}, sub_plan="phase.yaml")
    plan, sub = plan_of(parent, require_planner_approval=insists), plan_of(child)
    red = simulate_failure(child).model_copy(update={"todo_id": "phase/impl", "plan": "p1"})
    document = sample_document(plan, []).model_copy(update={"outcomes": (red,)})

    (repair,) = decide(plan, document, subs={"phase": sub}).repairs

    assert (repair.todo_id, repair.approval) == ("phase/impl", approval)
