"""What one outcome file calls for: each rule by its name, and what holds whatever the outcomes are."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.model.decision import Approval, Move, NeedKind
from planner.model.edits import AddBranch, AddDependency, AddTodoBefore, RecordAttempt
from planner.model.outcome import Outcome, OutcomeMetrics, Since, TodoState, Verdict
from planner.model.plan import Plan, Policy, TodoStatus
from planner.model.taxonomy import CATEGORIES, Category, Family, Owner, Role
from planner.planfile.loader import dump_plan, load_plan
from planner.revise.editing import apply_edits
from planner.rules.approving import edits_to_apply
from planner.rules.branching import MEMORY
from planner.rules.deciding import DECISION_RULES, decide, todos_to_explain
from planner.testing import (
    create_sample_todo,
    sample_document,
    sample_failure,
    simulate_failure,
    simulate_success,
)

HALTING = [each for each in Category if each.facts.family in (Family.SANDBOX, Family.BUDGET)]
NOBODYS = [each for each in Category if each.facts.family is Family.ENVIRONMENT]
REPAIRED = [each for each in Category if each not in HALTING and each not in NOBODYS]


def plan_of(*todos, **policy):
    return Plan(
        todo_list_id="p1",
        metadata=Policy.model_validate({"auto_fix_mode": True} | policy),
        items=todos,
    )


def decided(plan, *outcomes, **more):
    run = more.pop("run", {})
    document = sample_document(plan, outcomes)
    document = document.model_copy(update={"run": document.run.model_copy(update=run)})
    return decide(plan, document, **more)


def only_repair(plan, *outcomes, **more):
    (repair,) = decided(plan, *outcomes, **more).repairs
    return repair


def revised(plan, decisions, approved=()):
    edits = [edit for repair in decisions.repairs for edit in edits_to_apply(repair, approved)[0]]
    return apply_edits(plan, edits).plan


@pytest.mark.parametrize("category", REPAIRED)
def test_every_category_that_can_be_repaired_is_routed_by_the_taxonomy(category):
    todo = create_sample_todo("t1")

    repair = only_repair(plan_of(todo), simulate_failure(todo, category, "it broke"))

    assert (repair.move, repair.rule) == (Move.BRANCH, "failed-todo-gets-a-branch")
    assert repair.role is CATEGORIES[category].default_role
    key = CATEGORIES[category].routing_key
    assert repair.reason == (key.value if key else "test_failure")
    assert repair.branch.branch_reason == repair.reason
    assert repair.branch.agent_role is repair.role


@pytest.mark.parametrize("category", HALTING)
def test_a_violation_halts_at_once_whatever_else_failed(category):
    first, second = create_sample_todo("t1"), create_sample_todo("t2")

    decisions = decided(
        plan_of(first, second),
        simulate_failure(first),
        simulate_failure(second, category, "it wrote outside"),
    )

    assert decisions.state == "halted"
    assert (decisions.halt.category, decisions.halt.todo_ids) == (category, ("t2",))
    assert [repair.move for repair in decisions.repairs] == [Move.HALT]
    assert all(not repair.edits for repair in decisions.repairs)
    assert decisions.ready == ()
    assert [need.kind for need in decisions.needs_human] == [NeedKind.HALTED]


def test_a_violation_in_a_blocked_todo_halts_too():
    first = create_sample_todo("t1")
    second = create_sample_todo("t2", dependencies=("t1",))

    decisions = decided(
        plan_of(first, second), simulate_failure(first), simulate_failure(second, "HYGIENE_VIOLATION")
    )

    assert decisions.halt.todo_ids == ("t2",)


@pytest.mark.parametrize("category", NOBODYS)
def test_what_the_environment_lacks_becomes_nobodys_todo(category):
    todo = create_sample_todo("t1")

    decisions = decided(plan_of(todo), simulate_failure(todo, category, "no route to host"))

    (repair,) = decisions.repairs
    assert (repair.move, repair.role, repair.edits) == (Move.RETRY_LATER, None, ())
    assert [need.kind for need in decisions.needs_human] == [NeedKind.MEND_ENVIRONMENT]
    assert "no route to host" in decisions.needs_human[0].why


def test_a_failure_that_the_environment_owns_is_nobodys_whatever_its_category():
    todo = create_sample_todo("t1")
    repair = only_repair(plan_of(todo), simulate_failure(todo, "TEST_CRASH", owner=Owner.ENVIRONMENT))
    assert repair.move is Move.RETRY_LATER


def test_the_failure_that_decides_the_route_decides_the_role():
    todo = create_sample_todo("t1", failure_routing={"implementation_bug": "debugger"})
    compile_error = sample_failure(todo, "IMPORT_ERROR", "no module named x")
    outcome = simulate_failure(todo).model_copy(update={"failure_evidence": compile_error})

    repair = only_repair(plan_of(todo), outcome)

    assert repair.category is Category.IMPORT_ERROR
    assert repair.role is Role.CODER


def test_a_pre_existing_failure_becomes_a_todo_of_its_own_and_blames_nobody():
    todo = create_sample_todo("t1")
    plan = plan_of(todo)

    decisions = decided(plan, simulate_failure(todo, message="old", since=Since.PRE_EXISTING))

    (repair,) = decisions.repairs
    assert (repair.move, repair.rule) == (Move.SEPARATE, "pre-existing-failure")
    (edit,) = repair.edits
    assert isinstance(edit, AddTodoBefore)
    assert edit.todo.parent_id is None
    assert edit.todo.acceptance_criteria.tests[0].cmd == "pytest tests/test_t1.py::test_it"
    after = revised(plan, decisions)
    assert [item.id for item in after.items] == [edit.todo.id, "t1"]
    assert after.todo("t1").dependencies == (edit.todo.id,)


def test_a_todo_with_old_and_new_failures_is_repaired_for_the_new_one_only():
    todo = create_sample_todo("t1")
    old = sample_failure(todo, "TEST_CRASH", "old", since=Since.PRE_EXISTING)
    new = sample_failure(todo, "TEST_REGRESSION", "new", since=Since.NEW)
    outcome = simulate_failure(todo).model_copy(update={"failure_evidence": old, "failures": (old, new)})

    repair = only_repair(plan_of(todo), outcome)

    assert (repair.move, repair.category) == (Move.BRANCH, Category.TEST_REGRESSION)
    assert [edit.edit for edit in repair.edits][:2] == ["add_todo_before", "add_branch"]


def test_one_pre_existing_failure_of_two_todos_becomes_one_todo_that_both_wait_for():
    first, second = create_sample_todo("t1"), create_sample_todo("t2")
    plan = plan_of(first, second)
    same = {"signature": "abcdefabcdef", "since": Since.PRE_EXISTING}

    decisions = decided(plan, simulate_failure(first, **same), simulate_failure(second, **same))

    edits = [edit for repair in decisions.repairs for edit in repair.edits]
    assert [type(edit) for edit in edits] == [AddTodoBefore, AddDependency]
    after = revised(plan, decisions)
    assert len(after.items) == 3
    assert after.todo("t2").dependencies == ("pre_existing_abcdefabcdef",)


def test_a_pre_existing_failure_that_has_its_todo_already_gets_no_second_one():
    todo = create_sample_todo("t1")
    plan = plan_of(todo)
    outcome = simulate_failure(todo, since=Since.PRE_EXISTING, signature="abcdefabcdef")
    after = revised(plan, decided(plan, outcome))

    again = decided(after, outcome)

    assert [repair.edits for repair in again.repairs] == [()]


def test_no_more_branches_than_allowed_are_open_at_once_and_the_most_urgent_come_first():
    todos = [create_sample_todo(f"t{number}", priority=-number) for number in range(4)]
    plan = plan_of(*todos, max_concurrent_branches=2)

    decisions = decided(plan, *map(simulate_failure, todos))

    moves = {repair.todo_id: repair.move for repair in decisions.repairs}
    assert moves == {"t0": Move.WAIT, "t1": Move.WAIT, "t2": Move.BRANCH, "t3": Move.BRANCH}
    assert todos_to_explain(plan, sample_document(plan, map(simulate_failure, todos))) == ("t3", "t2")
    after = revised(plan, decisions)
    again = decided(after, *map(simulate_failure, todos))
    assert Move.BRANCH not in {repair.move for repair in again.repairs}


def test_a_plan_without_branches_goes_to_a_person_at_once():
    todo = create_sample_todo("t1")
    repair = only_repair(plan_of(todo, max_branch_depth=0), simulate_failure(todo))
    assert (repair.move, repair.rule, repair.edits) == (Move.ESCALATE, "branch-depth", ())


def test_an_unknown_failure_is_tried_once():
    todo = create_sample_todo("t1")
    repair = only_repair(plan_of(todo), simulate_failure(todo, "UNKNOWN"))
    assert repair.role is Role.DEBUGGER
    assert repair.branch.max_debug_attempts == 1


def test_the_repair_of_a_flaky_test_has_attempts_of_its_own():
    todo = create_sample_todo("t1")
    flaky = simulate_failure(todo, "FLAKY_TEST")
    assert only_repair(plan_of(todo), flaky).branch.max_debug_attempts == 2
    asked = plan_of(todo, max_debug_attempts=1, flaky_retry={"attempts": 4})
    assert only_repair(asked, flaky).branch.max_debug_attempts == 4
    none = only_repair(plan_of(todo, flaky_retry={"attempts": 0}), flaky)
    assert (none.move, none.rule) == (Move.ESCALATE, "attempts-used-up")
    assert "flaky_retry.attempts" in none.because
    red = only_repair(plan_of(todo, flaky_retry={"attempts": 0}), simulate_failure(todo))
    assert red.branch.max_debug_attempts == 3


@pytest.mark.parametrize(
    ("tests", "rule"),
    [
        ({"t.py::a": "passed"}, "demand-proves-nothing"),
        ({"t.py::a": "passed", "t.py::b": "not_run"}, "inconclusive-is-verified-again"),
        ({}, "inconclusive-is-verified-again"),
    ],
)
def test_what_no_run_can_prove_is_not_verified_again_and_again(tests, rule):
    todo = create_sample_todo("t1", must_turn_green=("t.py::a",))
    results = [{"nodeid": name, "outcome": said} for name, said in tests.items()]
    demand = {"id": "must_turn_green", "kind": "test", "verdict": "inconclusive", "tests": results}
    fine = {"id": "tests[0]", "kind": "test", "verdict": "passed"}
    held = {"todo_id": "t1", "state": "testing", "success": False, "tests_passed": True}
    outcome = Outcome.model_validate(
        {**held, "checks": [{**demand, "reason": "green at the baseline already"}, fine]}
    )
    decisions = decided(plan_of(todo), outcome)
    (repair,) = decisions.repairs
    assert repair.rule == rule
    if rule == "demand-proves-nothing":
        assert repair.move is Move.ESCALATE
        assert "green at the baseline already" in repair.because
        (need,) = decisions.needs_human
        assert need.what == "change the demand, or make the baseline that it needs"
    else:
        assert repair.move is Move.VERIFY


def test_a_failure_without_a_diagnosis_is_unknown():
    todo = create_sample_todo("t1")
    outcome = Outcome(todo_id="t1", success=False, tests_passed=False)
    assert only_repair(plan_of(todo), outcome).category is Category.UNKNOWN


def test_an_untouched_branch_uses_up_no_attempt():
    todo = create_sample_todo("t1")
    plan = plan_of(todo)
    red = simulate_failure(todo).model_copy(update={"diff_hash": "sha256:1"})
    after = revised(plan, decided(plan, red))
    branch = after.todo("t1_branch_01")
    red_branch = simulate_failure(branch).model_copy(update={"diff_hash": "sha256:1"})

    repair = only_repair(after, red, red_branch)
    assert (repair.move, repair.rule, repair.edits) == (Move.WAIT, "branch-under-way", ())

    late = only_repair(after, red, red_branch, run={"finished_at": "2026-01-01T00:10:01Z"})
    assert (late.move, late.rule, late.edits) == (Move.ESCALATE, "branch-lifetime", ())

    worked = red.model_copy(update={"diff_hash": "sha256:2"})
    repair = only_repair(after, worked, red_branch)
    assert repair.move is Move.RETRY
    assert isinstance(repair.edits[0], RecordAttempt)
    assert repair.branch.extensions[MEMORY]["attempts"] == 1


def test_a_branch_that_the_environment_failed_uses_up_no_attempt():
    todo = create_sample_todo("t1")
    plan = plan_of(todo)
    after = revised(plan, decided(plan, simulate_failure(todo)))
    branch = after.todo("t1_branch_01")

    repair = only_repair(after, simulate_failure(todo), simulate_failure(branch, "ENVIRONMENT_ERROR"))

    assert repair.move is Move.WAIT


def test_branches_that_came_out_of_each_other_in_a_circle_go_to_a_person():
    todo = create_sample_todo("t1")
    branch = {"parent_id": "t1", "branch_depth": 1, "is_temporary": True}
    one = create_sample_todo("t1_branch_01", via="t1_branch_02", **branch)
    two = create_sample_todo("t1_branch_02", via="t1_branch_01", **branch)

    repair = only_repair(plan_of(todo, one, two), simulate_failure(todo))

    assert (repair.move, repair.rule) == (Move.ESCALATE, "branches-in-a-circle")


@pytest.mark.parametrize(
    "memory", ["nonsense", {"attempts": "many", "opened_at": 7}, {"attempts": -3}, None]
)
def test_a_spoilt_memory_of_a_branch_is_passed_over(memory):
    todo = create_sample_todo("t1")
    branch = create_sample_todo("t1_branch_01", parent_id="t1", extensions={MEMORY: memory})
    repair = only_repair(plan_of(todo, branch), simulate_failure(todo), simulate_failure(branch))
    assert repair.move is Move.RETRY
    assert repair.branch.extensions[MEMORY] == memory or repair.branch.extensions[MEMORY]["attempts"] == 1


def test_a_step_that_nobody_has_claimed_is_work_and_no_failure():
    step = create_sample_todo("t1_step_01", is_temporary=True)
    todo = create_sample_todo("t2", dependencies=("t1_step_01",))

    decisions = decided(plan_of(step, todo), simulate_failure(step))
    assert (decisions.repairs, [each.todo_id for each in decisions.ready]) == ((), ["t1_step_01"])

    claimed = step.model_copy(update={"status": TodoStatus.CLAIMED})
    assert only_repair(plan_of(claimed, todo), simulate_failure(claimed)).move is Move.BRANCH


def test_the_branch_of_a_todo_that_is_tested_by_convention_runs_the_parents_tests():
    todo = create_sample_todo("shop-cart", acceptance_criteria={})
    outcome = Outcome(todo_id="shop-cart", success=False, tests_passed=False)
    branch = only_repair(plan_of(todo), outcome).branch
    assert branch.test_command == "pytest tests/test_shop_cart.py"


def test_many_failed_branches_reach_a_person():
    todos = [create_sample_todo(f"t{number}") for number in range(2)]
    branches = [
        create_sample_todo(f"{each.id}_branch_01", parent_id=each.id, extensions={MEMORY: {"attempts": 1}})
        for each in todos
    ]
    plan = plan_of(*todos, *branches, notify_after_n_failures=1)

    decisions = decided(plan, *map(simulate_failure, [*todos, *branches]))

    (notice,) = decisions.notices
    assert (notice.rule, notice.to) == ("many-failed-branches", Role.HUMAN)


@pytest.mark.parametrize(
    ("policy", "approved", "approval"),
    [
        ({"auto_fix_mode": True}, (), Approval.NOT_NEEDED),
        ({"auto_fix_mode": False}, (), Approval.NEEDED),
        ({"auto_fix_mode": False}, ("t1_branch_01",), Approval.GRANTED),
        ({"auto_fix_mode": False}, ("all",), Approval.GRANTED),
        ({"auto_fix_mode": False}, ("t2_branch_01",), Approval.NEEDED),
        ({"auto_fix_mode": False, "auto_approve_branches": True}, (), Approval.GRANTED),
        ({"auto_fix_mode": True, "require_planner_approval": True}, (), Approval.NEEDED),
        (
            {"auto_fix_mode": True, "require_planner_approval": True, "auto_approve_branches": True},
            (),
            Approval.NEEDED,
        ),
        ({"auto_fix_mode": False, "require_planner_approval": False}, (), Approval.NEEDED),
    ],
)
def test_the_policy_says_whether_a_person_is_asked(policy, approved, approval):
    todo = create_sample_todo("t1")
    plan = plan_of(todo, **policy)
    decisions = decided(plan, simulate_failure(todo), approved=approved)

    assert decisions.repairs[0].approval is approval
    made = "t1_branch_01" in {item.id for item in revised(plan, decisions, approved).items}
    assert made == (approval is not Approval.NEEDED)
    assert (decisions.state == "awaiting_review") == (approval is Approval.NEEDED)


def test_an_edit_of_what_judges_a_todo_waits_for_approval_by_its_own_name():
    todo = create_sample_todo("t1")
    plan = plan_of(todo)
    outcome = simulate_failure(todo, "TEST_TIMEOUT")
    decisions = decided(plan, outcome)
    asked = {need.approval_id for need in decisions.needs_human if need.kind is NeedKind.APPROVE_EDIT}
    assert "t1:raise_limit" in asked

    untouched = revised(plan, decisions).todo("t1").acceptance_criteria
    assert untouched == todo.acceptance_criteria
    raised = revised(plan, decisions, ("t1:raise_limit",)).todo("t1").acceptance_criteria
    assert raised.tests[0].timeout_seconds > todo.acceptance_criteria.tests[0].timeout_seconds


@pytest.mark.parametrize(
    ("metrics", "budget"),
    [
        ({"tokens_used": 11}, {"tokens": 10}),
        ({"patch_cycles": 3}, {"cycles": 2}),
        ({}, {"wall_seconds": 0.5}),
    ],
)
def test_a_budget_that_is_used_up_halts(metrics, budget):
    todo = create_sample_todo("t1")
    outcome = simulate_success(todo).model_copy(update={"metrics": OutcomeMetrics(**metrics)})

    decisions = decided(plan_of(todo, budget=budget), outcome)

    assert (decisions.halt.rule, decisions.halt.category) == ("halt-on-budget", Category.BUDGET_EXCEEDED)


def test_a_budget_that_is_just_met_does_not_halt():
    todo = create_sample_todo("t1")
    outcome = simulate_success(todo).model_copy(update={"metrics": OutcomeMetrics(tokens_used=10)})
    assert decided(plan_of(todo, budget={"tokens": 10}), outcome).state == "completed"


def test_under_the_scope_of_claims_an_unclaimed_red_todo_is_work_and_no_failure():
    open_todo = create_sample_todo("t1")
    claimed = create_sample_todo("t2", status=TodoStatus.CLAIMED)

    decisions = decided(
        plan_of(open_todo, claimed),
        simulate_failure(open_todo),
        simulate_failure(claimed),
        run={"scope": "claimed"},
    )

    assert [repair.todo_id for repair in decisions.repairs] == ["t2"]
    assert [ready.todo_id for ready in decisions.ready] == ["t1"]


def test_a_claim_that_was_not_run_is_verified():
    todo = create_sample_todo("t1", status=TodoStatus.CLAIMED)
    repair = only_repair(plan_of(todo))
    assert (repair.move, repair.rule) == (Move.VERIFY, "claimed-but-not-run")


@pytest.mark.parametrize(
    ("verdict", "move", "kind"),
    [(Verdict.INCONCLUSIVE, Move.VERIFY, None), (Verdict.NEEDS_HUMAN, Move.WAIT, NeedKind.ANSWER)],
)
def test_what_is_open_is_verified_again_or_asked(verdict, move, kind):
    todo = create_sample_todo("t1")
    green = simulate_success(todo)
    check = green.checks[0].model_copy(update={"verdict": verdict, "title": "Does it look right?"})
    outcome = green.model_copy(update={"state": TodoState.TESTING, "success": False, "checks": (check,)})

    decisions = decided(plan_of(todo), outcome)

    assert [repair.move for repair in decisions.repairs] == [move]
    assert [need.kind for need in decisions.needs_human] == ([kind] if kind else [])


def test_an_outcome_that_says_done_and_failed_at_once_is_no_pass():
    todo = create_sample_todo("t1")
    outcome = simulate_success(todo).model_copy(update={"success": False})
    assert decided(plan_of(todo), outcome).progress.done == 0


def test_children_are_decided_under_their_qualified_ids_and_edited_in_their_own_plan():
    child = create_sample_todo("impl")
    phase = create_sample_todo("phase-1", acceptance_criteria={}, sub_plan="phase.yaml")
    later = create_sample_todo(
        "phase-2", acceptance_criteria={}, sub_plan="phase2.yaml", dependencies=("phase-1",)
    )
    other = create_sample_todo("other")
    plan, sub, sub2 = plan_of(phase, later), plan_of(child), plan_of(other)
    red = simulate_failure(child).model_copy(update={"todo_id": "phase-1/impl"})
    document = sample_document(plan, [])
    bubbled = document.outcomes[0].model_copy(
        update={
            "state": TodoState.TESTING,
            "checks": (
                red.checks[0].model_copy(update={"id": "sub_plan", "kind": "sub_plan", "cmd": None}),
            ),
        }
    )
    document = document.model_copy(
        update={"outcomes": (bubbled, document.outcomes[1], red.model_copy(update={"plan": "p1"}))}
    )

    decisions = decide(plan, document, subs={"phase-1": sub, "phase-2": sub2})

    repairs = {repair.todo_id: repair for repair in decisions.repairs}
    repair = repairs["phase-1/impl"]
    assert (repair.within, repair.branch_id, repair.branch.id) == (
        "phase-1",
        "phase-1/impl_branch_01",
        "impl_branch_01",
    )
    assert repairs["phase-1"].move is Move.WAIT
    assert {blocked.todo_id for blocked in decisions.blocked} == {"phase-2", "phase-2/other"}
    assert decisions.progress.total == 2


def test_every_rule_that_decides_is_explained():
    todo = create_sample_todo("t1")
    seen = {only_repair(plan_of(todo), simulate_failure(todo, category)).rule for category in Category}
    assert seen <= set(DECISION_RULES)


FAILED_WORDS = st.sampled_from(["E   assert 1 == 2", "boom", "", "```\nignore all of this", "\x1b[31mred"])


@st.composite
def plans_and_documents(draw):
    count = draw(st.integers(1, 8))
    todos = []
    for number in range(count):
        names = [todo.id for todo in todos if todo.parent_id is None]
        is_branch = bool(names) and draw(st.integers(0, 4)) == 0
        parent = draw(st.sampled_from(names)) if is_branch else None
        siblings = sum(todo.parent_id == parent for todo in todos) if parent else 0
        todos.append(
            create_sample_todo(
                f"{parent}_branch_{siblings + 1:02d}" if parent else f"t{number}",
                dependencies=()
                if parent
                else tuple(draw(st.sets(st.sampled_from(names), max_size=2)) if names else ()),
                priority=draw(st.integers(-2, 2)),
                status=draw(st.sampled_from(TodoStatus)),
                max_retries=draw(st.integers(0, 2)),
                failure_routing=draw(
                    st.dictionaries(
                        st.sampled_from(["implementation_bug", "timeout", "IMPORT_ERROR"]),
                        st.sampled_from(["coder", "human", "planner"]),
                        max_size=2,
                    )
                ),
                **(
                    {"allowed_files": draw(st.sampled_from([("src/**",), ("a.py", "b/*.py")]))}
                    if draw(st.booleans())
                    else {}
                ),
                **(
                    {
                        "parent_id": parent,
                        "branch_depth": draw(st.integers(1, 3)),
                        "is_temporary": True,
                        "extensions": {MEMORY: {"attempts": draw(st.integers(0, 3))}},
                    }
                    if parent
                    else {}
                ),
            )
        )
    plan = plan_of(
        *todos,
        auto_fix_mode=draw(st.booleans()),
        max_branch_depth=draw(st.integers(0, 3)),
        max_debug_attempts=draw(st.integers(0, 3)),
        max_concurrent_branches=draw(st.integers(0, 3)),
        notify_after_n_failures=draw(st.integers(0, 3)),
    )
    outcomes = []
    for todo in todos:
        kind = draw(st.sampled_from(["none", "pass", "fail", "fail"]))
        if kind == "pass":
            outcomes.append(simulate_success(todo))
        elif kind == "fail":
            failures = [
                sample_failure(
                    todo,
                    draw(st.sampled_from(REPAIRED + NOBODYS)),
                    draw(FAILED_WORDS),
                    since=draw(st.sampled_from(Since)),
                    location=draw(
                        st.sampled_from([None, {"path": "src/a.py", "line": 3, "function": "f"}])
                    ),
                )
                for _ in range(draw(st.integers(1, 2)))
            ]
            outcomes.append(
                simulate_failure(todo).model_copy(
                    update={"failure_evidence": failures[0], "failures": tuple(failures)}
                )
            )
    return plan, sample_document(plan, outcomes)


def blocked_by_failures(plan, document):
    failed = {each.todo_id for each in document.outcomes if each.state is TodoState.TEST_FAILED}
    waits = {todo.id: set(todo.dependencies) for todo in plan.items}
    blocked: set[str] = set()
    for _ in plan.items:
        blocked |= {name for name, before in waits.items() if before & (failed | blocked)}
    return blocked


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans_and_documents(), st.booleans())
def test_whatever_the_outcomes_are_the_limits_hold_and_nothing_blocked_is_worked_on(case, approve):
    plan, document = case
    approved = ("all",) if approve else ()
    decisions = decide(plan, document, approved=approved)

    blocked = blocked_by_failures(plan, document)
    working = {
        each.todo_id for each in decisions.repairs if each.move in (Move.BRANCH, Move.RETRY, Move.SEPARATE)
    }
    assert not blocked & (working | {each.todo_id for each in decisions.ready})
    done = {each.todo_id for each in document.outcomes if each.success}
    assert not done & {each.todo_id for each in decisions.repairs}
    edited = {getattr(edit, "todo_id", None) for each in decisions.repairs for edit in each.edits}
    assert not done & edited
    new = [each.branch for each in decisions.repairs if each.move is Move.BRANCH]
    assert len(new) <= plan.metadata.max_concurrent_branches
    assert all(branch.branch_depth <= plan.metadata.max_branch_depth for branch in new)
    assert all(each.rule in DECISION_RULES for each in decisions.repairs)
    assert decide(plan, document, approved=approved).model_dump_json() == decisions.model_dump_json()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(plans_and_documents(), st.booleans())
def test_the_plan_that_comes_of_it_loads_and_says_the_same(tmp_path, case, approve):
    plan, document = case
    approved = ("all",) if approve else ()
    decisions = decide(plan, document, approved=approved)

    after = revised(plan, decisions, approved)

    path = tmp_path / "plan.yaml"
    path.write_text(dump_plan(after, format="yaml"), encoding="utf-8")
    assert load_plan(path, boundary=tmp_path).plan == after
    adds = [edit for each in decisions.repairs for edit in each.edits if isinstance(edit, AddBranch)]
    assert {edit.todo.id for edit in adds}.isdisjoint(todo.id for todo in plan.items)
