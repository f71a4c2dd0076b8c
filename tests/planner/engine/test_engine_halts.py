"""Halts and budgets: each at its edge, and each switched off."""

from __future__ import annotations

import pytest
from engine_telling import Told, todo

from planner.model.actions import Cancel, Halt
from planner.model.taxonomy import Category

SECURITY = [Category.SANDBOX_VIOLATION, Category.HYGIENE_VIOLATION, Category.ALLOWLIST_VIOLATION]


def halt_of(run: Told) -> Halt:
    (halt,) = run.last_of(Halt)
    assert run.state.plan_state == "halted"
    assert run.state.stopped == halt
    return halt


def goes_on(run: Told) -> bool:
    return not run.all_of(Halt) and not run.state.plan_state.is_final


def exhausted(run: Told, todo_id: str) -> None:
    """Its repairs are used up."""
    run.is_red(todo_id)


@pytest.mark.parametrize("category", SECURITY)
def test_a_violation_stops_everything_at_once(category: Category):
    run = Told(todo("t1", max_retries=5), todo("t2"))

    run.is_red("t1", category)

    halt = halt_of(run)
    assert (halt.rule, halt.todo_ids, halt.category) == ("halt-on-violation", ("t1",), category)
    assert run.life("t1") == "halted"
    assert [each.todo_id for each in run.last_of(Cancel)] == ["t2"]
    assert run.started == []


@pytest.mark.parametrize("category", SECURITY)
def test_a_violation_goes_to_a_person_where_the_policy_says_so(category: Category):
    run = Told(todo("t1", max_retries=5), todo("t2"), halt={"security": "ask"})

    run.is_red("t1", category)

    assert goes_on(run)
    assert [each.todo_id for each in run.questions] == ["t1"]


@pytest.mark.parametrize(("limit", "halts"), [(2, True), (3, False), (None, False)])
def test_so_many_todos_in_a_row_that_are_beyond_repair_stop_everything(limit: int | None, halts: bool):
    run = Told(todo("t1"), todo("t2"), todo("t3"), max_branch_depth=0, halt={"consecutive_failures": limit})

    exhausted(run, "t1")
    assert goes_on(run)
    exhausted(run, "t2")

    assert goes_on(run) is not halts
    if halts:
        assert halt_of(run).rule == "halt-on-consecutive-failures"


def test_a_todo_that_is_done_ends_the_row_of_failures():
    run = Told(
        todo("t1"), todo("t2"), todo("t3"), todo("t4"), max_branch_depth=0, halt={"consecutive_failures": 2}
    )
    exhausted(run, "t1")

    run.is_done("t2")
    exhausted(run, "t3")

    assert goes_on(run)


@pytest.mark.parametrize(("limit", "halts"), [(2, True), (3, False), (None, False)])
def test_the_same_failure_of_the_same_product_so_many_times_stops_everything(
    limit: int | None, halts: bool
):
    run = Told(todo(max_retries=5), halt={"identical_failures": limit})

    run.is_red("t1", message="it broke", diff_hash="sha256:same")
    assert goes_on(run)
    run.is_red("t1", message="it broke", diff_hash="sha256:same")

    assert goes_on(run) is not halts
    if halts:
        assert halt_of(run).rule == "halt-on-identical-failure"


@pytest.mark.parametrize(("limit", "halts"), [(3, True), (4, False), (None, False)])
def test_a_streak_of_flaky_verifications_stops_everything(limit: int | None, halts: bool):
    run = Told(todo(max_retries=9), halt={"flaky_streak": limit, "identical_failures": None})

    for _ in range(2):
        run.is_red("t1", Category.FLAKY_TEST)
        assert goes_on(run)
    run.is_red("t1", Category.FLAKY_TEST)

    assert goes_on(run) is not halts
    if halts:
        assert halt_of(run).rule == "halt-on-flaky-streak"


@pytest.mark.parametrize(("limit", "made", "halts"), [(5, 5, False), (5, 6, True), (None, 600, False)])
def test_more_new_files_than_file_growth_from_one_turn_stop_everything(
    limit: int | None, made: int, halts: bool
):
    run = Told(todo(), halt={"file_growth": limit})

    run.works("t1", new_files=tuple(f"f{at}.py" for at in range(made)))

    assert goes_on(run) is not halts
    if halts:
        assert halt_of(run).rule == "halt-on-file-growth"
        assert run.life() == "halted"


# Budgets


@pytest.mark.parametrize(("seconds", "halts"), [(60, False), (61, True)])
def test_the_time_of_a_run_is_a_budget_that_begins_with_its_start(seconds: int, halts: bool):
    run = Told(todo(), budget={"wall_seconds": 60})

    run.waits(seconds)

    assert goes_on(run) is not halts


def test_a_budget_that_is_used_up_goes_to_a_person_where_the_policy_says_so():
    run = Told(todo("t1"), todo("t2"), budget={"tokens": 100}, halt={"budget": "ask"})

    run.works("t1", tokens=101)

    assert goes_on(run)
    assert len(run.questions) == 1
