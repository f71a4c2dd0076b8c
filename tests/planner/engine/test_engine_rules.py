"""From work to done: the testing loop, and what goes wrong around it; one test for each rule."""

from __future__ import annotations

from datetime import UTC, datetime

from engine_telling import Told, todo

from planner.model.actions import Cancel, Halt, Verify
from planner.model.events import BudgetSpent, ConflictFound, WorkStarted
from planner.model.taxonomy import Category
from planner.model.verdicts import Since

# From work to done


def test_a_claimed_todo_is_verified_before_anybody_works_on_it():
    run = Told(todo(status="claimed"))

    assert run.started == []
    assert run.verifying == ["t1"]
    assert run.rules == ["claimed-is-verified"]
    assert run.life() == "testing"


# What goes wrong around it


def test_a_turn_of_work_that_takes_too_long_is_cancelled():
    run = Told(todo(timeout_seconds=60, max_retries=1))
    run.tell(WorkStarted(at=run.now, todo_id="t1"))
    run.waits(59)
    assert run.last == ()

    run.waits(2)

    assert [each.todo_id for each in run.last_of(Cancel)] == ["t1"]


def test_failures_that_are_older_than_the_work_are_set_apart_a_few_times_only():
    run = Told(todo("t1"), halt={"identical_failures": None})
    run.works("t1")
    for number in range(3):
        run.fails("t1", since=Since.PRE_EXISTING, signature=f"{number:012x}")
        older = next(name for name in run.state.todos if name.endswith(f"{number:012x}"))
        run.is_done(older)
        assert run.verifying == ["t1"]

    run.fails("t1", since=Since.PRE_EXISTING, signature="f" * 12)

    assert [each.rule for each in run.questions] == ["pre-existing-failure"]


def test_a_person_may_let_it_go_on_over_its_budget():
    run = Told(todo("t1"), todo("t2", dependencies=("t1",)), budget={"tokens": 9}, halt={"budget": "ask"})
    run.works("t1", tokens=10)
    run.passes("t1")
    assert run.started == []

    run.answers("go_on", run.asked())

    assert run.started == ["t2"]
    run.tell(BudgetSpent(at=run.now, tokens=10**9))
    assert not run.last_of(Halt)


def test_a_turn_that_the_budget_leaves_no_more_stops_it_also_when_a_violation_is_asked_about():
    run = Told(todo("t1"), todo("t2"), budget={"tokens": 10}, halt={"security": "ask"}, run={"jobs": 1})
    run.works("t1", tokens=10)

    run.fails("t1", Category.SANDBOX_VIOLATION)

    (halt,) = run.last_of(Halt)
    assert halt.rule == "halt-on-budget"
    assert halt.because == "the plan's budget allows no further turn of work (tokens: 10 spent, 10 allowed)"


def test_files_that_were_found_to_collide_are_kept_apart_from_then_on():
    run = Told(
        todo("t1", allowed_files=("src/a.py",)),
        todo("t2", allowed_files=("src/b.py",), max_retries=1),
        todo("t3", allowed_files=("src/c.py",), dependencies=("t4",)),
        todo("t4"),
    )

    run.tell(ConflictFound(at=run.now, todo_ids=("t1", "t2"), files=("src/c.py",)))
    run.is_done("t4")

    assert run.started == []
    assert run.record("t1").files == ("src/a.py", "src/c.py")
    assert run.record("t2").files == ("src/b.py", "src/c.py")
    run.is_done("t1")
    assert run.started == ["t2"]
    run.is_done("t2")
    assert run.started == ["t3"]


def test_time_is_told_up_to_its_end():
    run = Told(todo("t1"), run={"environment_delay_seconds": 3600})
    run.now = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    run.works()

    run.fails("t1", Category.ENVIRONMENT_ERROR)

    (action,) = run.last_of(Verify)
    assert action.not_before == "9999-12-31T23:59:59Z"
