"""Causes that halt a run, limits of branches, and notifications."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine_telling import Told, todo

from planner.model.actions import Halt, Notify
from planner.model.taxonomy import Category


def halt_of(run: Told) -> Halt:
    (halt,) = run.last_of(Halt)
    assert run.state.plan_state == "halted"
    assert run.state.stopped == halt
    return halt


def goes_on(run: Told) -> bool:
    return not run.all_of(Halt) and not run.state.plan_state.is_final


def is_exhausted(run: Told, time: int) -> None:
    run.is_red(f"t{time}")


def is_same(run: Told, time: int) -> None:
    run.is_red("t1", message="it broke", diff_hash="sha256:same")


def is_flaky(run: Told, time: int) -> None:
    run.is_red("t1", Category.FLAKY_TEST)


@pytest.mark.parametrize(
    ("key", "rule", "times", "fails", "retries"),
    [
        ("consecutive_failures", "halt-on-consecutive-failures", 2, is_exhausted, 0),
        ("identical_failures", "halt-on-identical-failure", 2, is_same, 9),
        ("flaky_streak", "halt-on-flaky-streak", 3, is_flaky, 9),
    ],
)
def test_failures_in_a_row_halt_the_run_at_the_limit_of_the_policy(
    key: str, rule: str, times: int, fails: Callable[[Told, int], None], retries: int
):
    for limit in (times, times + 1, None):
        todos = (todo(f"t{number}", max_retries=retries) for number in range(1, times + 2))
        run = Told(*todos, max_branch_depth=0, halt={"identical_failures": None, key: limit})
        for time in range(1, times + 1):
            assert goes_on(run)
            fails(run, time)
        if limit == times:
            assert halt_of(run).rule == rule
        else:
            assert goes_on(run)


def test_a_halt_on_identical_failures_names_the_todo_and_halts_it_with_its_branch():
    run = Told(todo("t1"))
    run.is_red("t1", message="it broke", diff_hash="sha256:same")
    run.is_red(
        "t1_branch_01", message="it broke", diff_hash="sha256:same", signature=run.record().signature
    )
    assert halt_of(run).because.startswith("t1 failed 2 times in the same way")
    assert [run.life(each) for each in halt_of(run).todo_ids] == ["halted", "halted"]


def test_flaky_verifications_of_a_todo_and_its_branch_are_one_streak():
    run = Told(todo("t1"), todo("t2"), halt={"identical_failures": None})
    run.is_red("t1", Category.FLAKY_TEST)
    run.is_red("t1_branch_01", Category.FLAKY_TEST)
    assert goes_on(run)
    run.is_red("t1_branch_01", Category.FLAKY_TEST)
    assert halt_of(run).because == "3 verifications of t1 in a row were flaky"


def test_a_branch_that_passes_breaks_the_streak_of_flaky_verifications():
    run = Told(todo("t1"), halt={"identical_failures": None})
    run.is_red("t1", Category.FLAKY_TEST)
    run.is_red("t1_branch_01", Category.FLAKY_TEST)
    run.is_done("t1_branch_01")
    run.fails("t1", Category.FLAKY_TEST)
    assert goes_on(run)


def test_a_done_todo_resets_the_count_of_consecutive_failures():
    run = Told(*map(todo, ("t1", "t2", "t3", "t4")), max_branch_depth=0, halt={"consecutive_failures": 2})
    run.is_red("t1")
    run.is_done("t2")
    run.is_red("t3")
    assert goes_on(run)


def test_a_circular_wait_between_a_branch_and_its_parent_blocks_the_workflow_and_alerts():
    branch = todo("t1_branch_01", parent_id="t1", dependencies=("t2",))
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), branch)
    run.fails("t1")
    assert "branches-in-a-circle" in run.rules
    assert "planner.alert" in [each.topic for each in run.last_of(Notify)]
    assert run.state.plan_state == "awaiting_review"
