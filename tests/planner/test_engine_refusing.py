"""What the engine refuses: by which rule, in which words, and that nothing has changed then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from engine_telling import START, Told, todo

from planner.engine import fold, start, step
from planner.errors import RefusedEvent
from planner.model.events import (
    ClockTicked,
    Verified,
    WorkFinished,
)
from planner.model.verdicts import Verdict
from planner.testing import simulate_success

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.events import Event


def verified(todo_id: str, **fields: object) -> Callable[[Told], Event]:
    outcome = simulate_success(todo(todo_id))
    return lambda run: Verified.model_validate({"at": run.now, "outcome": outcome} | fields)


def test_a_pass_counts_before_the_answer_of_a_person_and_takes_the_question_back():
    run = Told(todo("t1"), run={"environment_retries": 0})
    run.works("t1")
    run.says(Verdict.INCONCLUSIVE)
    assert run.state.questions

    run.passes("t1")

    assert run.life("t1") == "done"
    assert not run.state.questions


@pytest.mark.parametrize(
    ("change", "lack"),
    [
        ({"checks": ()}, "it has no check of tests[0]"),
        ({"verified": False}, "it says that nothing was verified"),
        ({"tests_passed": False}, "it says that the tests have not passed"),
    ],
)
def test_no_outcome_makes_a_todo_done_that_does_not_prove_it(change: dict[str, object], lack: str):
    run = Told(todo("t1"))
    run.works("t1")

    with pytest.raises(RefusedEvent, match=re.escape(lack)) as refusal:
        run.outcome(run.good("t1").model_copy(update=change))

    assert refusal.value.rule == "no-proof"
    assert run.life("t1") == "testing"


def test_an_outcome_without_checks_counts_where_the_run_allows_it_and_is_shown_as_unproved():
    run = Told(todo("t1"), run={"allow_unproved": True})
    run.works("t1")

    run.outcome(run.good("t1").model_copy(update={"checks": (), "verified": False}))

    assert run.life("t1") == "done"
    assert not run.state.todos["t1"].verified


def test_before_a_run_is_started_only_time_passes():
    state, _ = start(Told(todo("t1")).submission)

    with pytest.raises(RefusedEvent) as refusal:
        step(state, WorkFinished(at=START, todo_id="t1"))
    after, actions = step(state, ClockTicked(at=START))

    assert str(refusal.value) == "work_finished comes before run_started; begin with run_started"
    assert refusal.value.rule == "run-not-started"
    assert (after.plan_state, actions) == ("ready", ())


def test_a_fold_begins_with_a_plan():
    for events in ([], [ClockTicked(at=START)]):
        with pytest.raises(RefusedEvent, match="the first event submits no plan; begin with") as refusal:
            fold(events)
        assert refusal.value.rule == "no-plan"
