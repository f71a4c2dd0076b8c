"""Life cycles of todos and plans, and the verdict of a parent."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from planner.errors import IllegalTransition
from planner.model.outcome import Check, Outcome
from planner.model.verdicts import CheckKind, PlanState, TodoLife, TodoState, Verdict
from planner.policy.lifecycle import PLAN_MOVES, TODO_MOVES, check_move
from planner.policy.outcomes import sub_plan_reason, sub_plan_verdict, verdict_of
from tools import reference_pages

if TYPE_CHECKING:
    from collections.abc import Collection


@pytest.mark.parametrize(
    ("name", "states", "moves"), [("todo 't1'", TodoLife, TODO_MOVES), ("the plan", PlanState, PLAN_MOVES)]
)
def test_an_illegal_transition_is_refused_with_its_states(
    name: str, states: type[TodoLife] | type[PlanState], moves: Collection[tuple[str, str]]
) -> None:
    for before, after in product(states, repeat=2):
        if (before, after) not in moves:
            with pytest.raises(IllegalTransition) as refused:
                check_move(name, before, after, "work_finished")
            error = refused.value
            assert (error.before, error.after, error.trigger) == (before, after, "work_finished")
            assert error.rule == "illegal-transition"
            assert f"{name} cannot go from {before} to {after} by work_finished; " in str(error)
            ways = [other.value for other in states if (before, other) in moves]
            assert str(error).endswith(", ".join(ways) or "nothing, because it has ended")


@pytest.mark.parametrize(("states", "moves"), [(TodoLife, TODO_MOVES), (PlanState, PLAN_MOVES)])
def test_every_state_is_reachable_and_only_final_states_have_no_exit(
    states: type[TodoLife] | type[PlanState], moves: Collection[tuple[str, str]]
) -> None:
    first, *_ = states
    reached = {first.value}
    while True:
        further = {after for before, after in moves if before in reached} - reached
        if not further:
            break
        reached |= further
    assert reached == set(states)
    assert not [after for _, after in moves if after == first and first is PlanState.CREATED]
    for state in states:
        ways = {after for before, after in moves if before == state}
        expected_end = state.is_final
        assert (not ways) == expected_end or (state is TodoLife.FAILED and ways == {TodoLife.HALTED})


def test_a_todo_becomes_done_only_by_verification_or_work_without_tests() -> None:
    before_done = {before for before, after in TODO_MOVES if after is TodoLife.DONE}
    assert before_done == {TodoLife.ACTIVE, TodoLife.TESTING}


def test_every_transition_label_is_valid_in_the_diagram() -> None:
    # A colon or a semicolon would end the label in the diagram.
    triggers = (*TODO_MOVES.values(), *PLAN_MOVES.values())
    assert not [each for each in triggers if set(each) & set(":;|\n")]


def test_the_lifecycle_page_shows_each_transition_in_diagram_and_table() -> None:
    lines = reference_pages.lifecycle_text().splitlines()
    for (before, after), trigger in (*TODO_MOVES.items(), *PLAN_MOVES.items()):
        assert f"    {before} --> {after}: {trigger}" in lines
        assert f"| `{before}` | `{after}` | {trigger} |" in lines
    for state in (*TodoLife, *PlanState):
        assert (f"    {state} --> [*]" in lines) == state.is_final


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
def test_the_verdict_of_a_child_follows_from_its_outcome(child: Outcome, verdict: str):
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
        ([], "not_run"),
    ],
)
def test_the_most_serious_child_decides_the_verdict_of_its_parent(children: list[str], verdict: str):
    assert sub_plan_verdict(Verdict(each) for each in children) == verdict
    assert sub_plan_verdict(Verdict(each) for each in reversed(children)) == verdict


def test_the_reason_of_a_sub_plan_names_the_deciding_todos():
    children = [
        outcome(DONE, todo_id="p/a"),
        *(outcome(FAILED, todo_id=f"p/b{number}") for number in range(7)),
        outcome(BLOCKED, todo_id="p/c"),
    ]
    assert sub_plan_reason(children, Verdict.FAILED) == "p/b0, p/b1, p/b2, p/b3, p/b4 and 2 more failed"
    assert sub_plan_reason(children[:2], Verdict.FAILED) == "p/b0 failed"
    assert sub_plan_reason(children[:1], Verdict.PASSED) is None
