"""What a parent has from the todos of its sub-plan."""

from __future__ import annotations

import pytest

from planner.model.outcome import Check, Outcome
from planner.model.verdicts import CheckKind, TodoState, Verdict
from planner.policy.outcomes import sub_plan_reason, sub_plan_verdict, verdict_of

DONE, FAILED, TESTING = TodoState.DONE, TodoState.TEST_FAILED, TodoState.TESTING
BLOCKED, PENDING = TodoState.BLOCKED, TodoState.PENDING


def outcome(
    state: TodoState | None, *verdicts: str, todo_id: str = "p/a", success: bool = False
) -> Outcome:
    checks = tuple(
        Check(id=str(number), kind=CheckKind.TEST, verdict=Verdict(each))
        for number, each in enumerate(verdicts)
    )
    return Outcome(todo_id=todo_id, state=state, success=success, tests_passed=False, checks=checks)


@pytest.mark.parametrize(
    ("child", "verdict"),
    [
        (outcome(DONE, "passed"), "passed"),
        (outcome(DONE), "passed"),
        (outcome(FAILED, "flaky"), "failed"),
        (outcome(BLOCKED, "passed"), "blocked"),
        (outcome(PENDING), "not_run"),
        (outcome(TESTING, "passed", "needs_human"), "needs_human"),
        (outcome(TESTING, "needs_human", "stale"), "stale"),
        (outcome(TESTING, "stale", "inconclusive"), "inconclusive"),
        (outcome(TESTING, "passed", "not_run"), "not_run"),
        (outcome(TESTING, "passed"), "not_run"),
        (outcome(TESTING, "failed", "passed"), "failed"),
        (outcome(None, success=True), "passed"),
        (outcome(None), "failed"),
    ],
)
def test_what_a_todo_says_to_its_parent(child: Outcome, verdict: str):
    assert verdict_of(child) == verdict


@pytest.mark.parametrize(
    ("children", "verdict"),
    [
        (["passed", "passed"], "passed"),
        (["passed", "failed", "blocked", "inconclusive"], "failed"),
        (["blocked", "blocked"], "blocked"),
        (["passed", "inconclusive", "needs_human", "not_run"], "inconclusive"),
        (["passed", "needs_human", "not_run"], "needs_human"),
        (["passed", "not_run"], "not_run"),
        (["not_run"], "not_run"),
        ([], "not_run"),
    ],
)
def test_the_most_serious_todo_decides_for_its_parent(children: list[str], verdict: str):
    assert sub_plan_verdict(Verdict(each) for each in children) == verdict
    assert sub_plan_verdict(Verdict(each) for each in reversed(children)) == verdict


def test_the_reason_names_the_todos_that_decide():
    children = [
        outcome(DONE, todo_id="p/a"),
        *(outcome(FAILED, todo_id=f"p/b{number}") for number in range(7)),
        outcome(BLOCKED, todo_id="p/c"),
    ]

    assert sub_plan_reason(children, Verdict.FAILED) == "p/b0, p/b1, p/b2, p/b3, p/b4 and 2 more failed"
    assert sub_plan_reason(children[:2], Verdict.FAILED) == "p/b0 failed"
    assert sub_plan_reason(children[:1], Verdict.PASSED) is None
