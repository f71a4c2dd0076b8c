"""The rule and the reason of each ruling, word for word: they are what a person reads."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.outcome import Check, Outcome, OutcomeMetrics
from planner.model.plan import Plan, Policy, Todo
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import CheckKind, Since, TestOutcome, TodoState, Verdict
from planner.rules.board import lay_out
from planner.rules.halting import halt_of
from planner.rules.triage import Ruling, triage
from planner.testing import (
    create_sample_todo,
    sample_document,
    sample_failure,
    simulate_failure,
    simulate_success,
)

NOW = "2026-01-01T00:20:00Z"


def plan_of(*todos: Todo, **policy: Any) -> Plan:
    return Plan(todo_list_id="p1", metadata=Policy.model_validate(policy), items=todos)


def ruled(plan: Plan, *outcomes: Outcome) -> Ruling:
    (ruling,) = triage(lay_out(plan, sample_document(plan, outcomes), {}), NOW)
    return ruling


def open_(verdict: Verdict, **fields: Any) -> Outcome:
    check = Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict, reason="so", **fields)
    return Outcome(
        todo_id="t1", state=TodoState.TESTING, success=False, tests_passed=False, checks=(check,)
    )


def branch(number: int = 1, **fields: Any) -> Todo:
    said = {"parent_id": "t1", "is_temporary": True, "branch_depth": number}
    return create_sample_todo(f"t1_branch_{number:02d}", **(said | fields))


T1 = create_sample_todo("t1")
RED = simulate_failure(T1)
RED_BRANCH = simulate_failure(branch())
ATTEMPTED = {"x-planner": {"attempts": 1, "opened_at": "2026-01-01T00:00:00Z"}}

RULINGS: dict[str, tuple[Plan, tuple[Outcome, ...], str, str]] = {
    "a first branch": (plan_of(T1), (RED,), "branch", "its acceptance criteria failed"),
    "no branches": (
        plan_of(T1, max_branch_depth=0),
        (RED,),
        "escalate",
        "the plan allows no branches (max_branch_depth is 0)",
    ),
    "no attempts": (
        plan_of(T1, max_debug_attempts=0),
        (RED,),
        "escalate",
        "the plan allows no attempts at a repair (max_debug_attempts is 0)",
    ),
    "no attempts at flaky tests": (
        plan_of(T1, flaky_retry={"attempts": 0}),
        (simulate_failure(T1, Category.FLAKY_TEST),),
        "escalate",
        "the plan allows no attempts at mending a flaky test (flaky_retry.attempts is 0)",
    ),
    "one attempt at flaky tests": (
        plan_of(T1, flaky_retry={"attempts": 1}),
        (simulate_failure(T1, Category.FLAKY_TEST),),
        "branch",
        "its acceptance criteria failed",
    ),
    "a deeper branch": (
        plan_of(T1, branch()),
        (RED, simulate_success(branch())),
        "branch",
        "t1_branch_01 passed and t1 is still red",
    ),
    "too deep": (
        plan_of(T1, branch(), max_branch_depth=1),
        (RED, simulate_success(branch())),
        "escalate",
        "t1_branch_01 passed and t1 is still red; a deeper branch would have depth 2, and max_branch_depth "
        "is 1",
    ),
    "another attempt": (
        plan_of(T1, branch()),
        (RED, RED_BRANCH),
        "retry",
        "t1_branch_01 is still red after 1 of 3 attempts",
    ),
    "the last attempt": (
        plan_of(T1, branch(max_debug_attempts=1)),
        (RED, RED_BRANCH),
        "escalate",
        "t1_branch_01 is still red after 1 of 1 attempts",
    ),
    "too late": (
        plan_of(T1, branch(extensions=ATTEMPTED)),
        (RED, RED_BRANCH),
        "escalate",
        "t1_branch_01 is still red 1200 s after it was made; it had 600 s",
    ),
    "under way": (
        plan_of(T1, branch()),
        (RED,),
        "wait",
        "t1_branch_01 is open, and this run says nothing final about it",
    ),
    "in a circle": (
        plan_of(T1, branch(1, via="t1_branch_02"), branch(2, via="t1_branch_01")),
        (RED,),
        "escalate",
        "its branches came out of each other: t1_branch_02 -> t1_branch_01 -> t1_branch_02",
    ),
    "without parent": (
        plan_of(branch()),
        (RED_BRANCH,),
        "escalate",
        "it is a branch of 't1', and the plan has no such todo",
    ),
    "before the work": (
        plan_of(T1),
        (simulate_failure(T1, since=Since.PRE_EXISTING),),
        "separate",
        "it failed before the work began, so the todo is not to blame",
    ),
    "environment": (
        plan_of(T1),
        (simulate_failure(T1, Category.ENVIRONMENT_ERROR),),
        "retry_later",
        "something that the work does not own was not there",
    ),
    "harness": (
        plan_of(T1),
        (simulate_failure(T1, Category.TEST_REGRESSION, owner=Owner.HARNESS),),
        "retry_later",
        "the run itself went wrong, which says nothing about the work",
    ),
    "a question": (
        plan_of(T1),
        (open_(Verdict.NEEDS_HUMAN),),
        "wait",
        "only the answer of a person is missing",
    ),
    "undecided": (
        plan_of(T1),
        (open_(Verdict.INCONCLUSIVE),),
        "verify",
        "the run could not tell whether it holds",
    ),
    "children": (
        plan_of(create_sample_todo("t1", sub_plan="s.yaml")),
        (open_(Verdict.PASSED),),
        "wait",
        "its state comes from the todos of its sub-plan",
    ),
    "claimed": (
        plan_of(create_sample_todo("t1", status="claimed")),
        (),
        "verify",
        "it is said to be done, and nothing of it was run",
    ),
}
RULES = {
    "a first branch": "failed-todo-gets-a-branch",
    "no branches": "branch-depth",
    "no attempts": "attempts-used-up",
    "no attempts at flaky tests": "attempts-used-up",
    "one attempt at flaky tests": "failed-todo-gets-a-branch",
    "a deeper branch": "deeper-branch",
    "too deep": "branch-depth",
    "another attempt": "branch-has-attempts-left",
    "the last attempt": "attempts-used-up",
    "too late": "branch-lifetime",
    "under way": "branch-under-way",
    "in a circle": "branches-in-a-circle",
    "without parent": "branch-without-parent",
    "before the work": "pre-existing-failure",
    "environment": "environment-blames-nobody",
    "harness": "harness-blames-nobody",
    "a question": "question-is-open",
    "undecided": "inconclusive-is-verified-again",
    "children": "children-first",
    "claimed": "claimed-but-not-run",
}


@pytest.mark.parametrize("case", RULINGS)
def test_each_ruling_says_its_rule_and_its_reason(case: str):
    plan, outcomes, move, because = RULINGS[case]

    ruling = ruled(plan, *outcomes)

    assert (ruling.move, ruling.rule, ruling.because) == (move, RULES[case], because)


def test_a_demand_that_nothing_can_prove_goes_to_a_person():
    outcome = open_(Verdict.INCONCLUSIVE, tests=({"nodeid": "t.py::a", "outcome": TestOutcome.PASSED},))
    checks = tuple(each.model_copy(update={"id": "must_turn_green"}) for each in outcome.checks)

    ruling = ruled(plan_of(T1), outcome.model_copy(update={"checks": checks}))

    assert (ruling.move, ruling.rule) == ("escalate", "demand-proves-nothing")
    assert ruling.because == "must_turn_green stays open however often it is run: so"


def test_a_ruling_names_the_failure_that_decides_and_those_that_are_set_apart():
    old = sample_failure(T1, message="old", since=Since.PRE_EXISTING)
    outcome = RED.model_copy(update={"failures": (*RED.failures, old)})

    ruling = ruled(plan_of(T1), outcome)

    assert ruling.failure == RED.failure_evidence
    assert ruling.before_the_work == (old,)


def test_a_question_about_the_environment_names_what_was_not_there():
    failure = sample_failure(T1, Category.ENVIRONMENT_ERROR)
    outcome = open_(Verdict.INCONCLUSIVE).model_copy(
        update={"failures": (failure,), "failure_evidence": failure}
    )

    ruling = ruled(plan_of(T1), outcome)

    assert (ruling.rule, ruling.failure) == ("environment-blames-nobody", failure)
    assert ruling.before_the_work == ()


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (1, "t0"),
        (5, "t0, t1, t2, t3, t4"),
        (6, "t0, t1, t2, t3, t4 and 1 more"),
        (9, "t0, t1, t2, t3, t4 and 4 more"),
    ],
)
def test_a_halt_names_a_few_of_its_todos(count: int, named: str):
    todos = [create_sample_todo(f"t{at}") for at in range(count)]
    plan = plan_of(*todos)
    outcomes = [simulate_failure(each, Category.HYGIENE_VIOLATION, "it wrote") for each in todos]
    document = sample_document(plan, outcomes)

    halt = halt_of(lay_out(plan, document, {}), document, plan.metadata)

    assert halt is not None
    assert (halt.rule, halt.because) == ("halt-on-violation", f"HYGIENE_VIOLATION in {named}: it wrote")
    assert halt.todo_ids == tuple(each.id for each in todos)


def test_of_several_reasons_to_halt_the_most_severe_is_named():
    todos = [create_sample_todo(name) for name in ("t1", "t2")]
    plan = plan_of(*todos)
    outcomes = [
        simulate_failure(todos[0], Category.BUDGET_EXCEEDED),
        simulate_failure(todos[1], Category.SANDBOX_VIOLATION, "it called home"),
    ]
    document = sample_document(plan, outcomes)

    halt = halt_of(lay_out(plan, document, {}), document, plan.metadata)

    assert halt is not None
    assert (halt.category, halt.todo_ids) == (Category.SANDBOX_VIOLATION, ("t2",))


def test_a_halt_says_which_budgets_are_used_up():
    plan = plan_of(T1, budget={"tokens": 9, "cycles": 3, "wall_seconds": 0.5})
    spent = OutcomeMetrics(tokens_used=1200, patch_cycles=4)
    outcomes = [RED.model_copy(update={"metrics": spent}), simulate_success(create_sample_todo("t2"))]
    document = sample_document(plan_of(T1, create_sample_todo("t2")), outcomes)

    halt = halt_of(lay_out(plan, document, {}), document, plan.metadata)

    assert halt is not None
    assert halt.because == (
        "the plan's budget is used up (wall_seconds: 1 spent, 0.5 allowed; tokens: 1,200 spent, 9 allowed; "
        "cycles: 4 spent, 3 allowed)"
    )
    assert (halt.rule, halt.todo_ids, halt.category) == ("halt-on-budget", (), "BUDGET_EXCEEDED")
