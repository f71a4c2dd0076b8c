"""Properties of every run, for any plan, outcomes, decisions, clock and driver."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulation import Simulation, invent_submission
from simulation_laws import Laws

from planner.engine import State, start, step
from planner.model.actions import Action
from planner.model.events import Event, PlanSubmitted
from planner.store.chain import GENESIS, chained, check_link
from planner.store.run_log import action_text, body, event_text, parse_event, parse_line

SEEDS = 150


def folded(events: Sequence[Event]) -> tuple[State, list[tuple[Action, ...]]]:
    """Return the state after the events, and the actions that each of them caused."""
    first, *rest = events
    assert isinstance(first, PlanSubmitted)
    state, actions = start(first)
    said = [actions]
    for event in rest:
        state, actions = step(state, event)
        said.append(actions)
    return state, said


def text(actions: tuple[Action, ...]) -> str:
    return "\n".join(map(action_text, actions))


def test_every_simulated_run_ends_within_its_limits_and_keeps_the_invariants():
    ends = {"completed": 0, "halted": 0, "rejected": 0}
    mistakes = refusals = 0
    for seed in range(SEEDS):
        try:
            simulation = Simulation.begin(seed, Laws()).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        ends[simulation.state.plan_state] += 1
        last = simulation.state
        assert not simulation.tell(simulation.random.choice(simulation.history)[0])
        assert simulation.state is last, f"seed {seed}: an event is taken in after the end"
        mistakes += simulation.mistakes
        refusals += simulation.refusals
    assert ends["completed"] > SEEDS / 10
    assert ends["halted"] > SEEDS / 10
    assert mistakes > SEEDS
    assert refusals > SEEDS / 2


def test_replaying_a_log_gives_equal_states_and_identical_bytes():
    for seed in range(2000, 2025):
        run = Simulation.begin(seed).run()
        lines: list[str] = []
        digest = GENESIS
        for number, (event, actions) in enumerate(run.history):
            line, digest = chained(body(number, event, actions), digest)
            lines.append(line)
            assert parse_event(event_text(event)) == event, f"seed {seed}"

        read: list[Event] = []
        digest = GENESIS
        for number, line in enumerate(lines):
            digest = check_link(line, number, digest)
            read.append(parse_line(line, number))
        state, said = folded(read)

        assert state == run.state, f"seed {seed}"
        assert state.events == len(run.history)
        assert list(map(text, said)) == [text(actions) for _, actions in run.history], f"seed {seed}"


def test_a_step_does_not_mutate_the_previous_state():
    for seed in range(3000, 3015):
        run = Simulation.begin(seed).run()
        first, *rest = (event for event, _ in run.history)
        assert isinstance(first, PlanSubmitted)
        states = [start(first)[0]]
        for event in rest:
            states.append(step(states[-1], event)[0])
        shown = [repr(each) for each in states]
        for before, event, after in zip(states, rest, states[1:], strict=False):
            again, actions = step(before, event)
            assert again == after, f"seed {seed}"
            assert text(step(before, event)[1]) == text(actions)
        assert [repr(each) for each in states] == shown, f"seed {seed}"


def test_a_restarted_driver_is_given_all_open_actions_again():
    for seed in range(5000, 5025):
        run = Simulation.begin(seed, Laws())
        while not run.is_over and run.turns < 60:
            due = set(run.work), set(run.checks), set(run.loads), set(run.asked)
            run.now = datetime.fromtimestamp(run.state.now, UTC)  # no time passes, so no work times out
            run.forget(after_seconds=0)
            assert (set(run.work), set(run.checks), set(run.loads), set(run.asked)) == due, f"seed {seed}"
            run.turn()


@given(random=st.randoms(use_true_random=False))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_plan_can_be_submitted_and_no_todo_starts_before_the_run(random: Random):
    submission = invent_submission(random)
    state, actions = start(submission)

    assert not actions or submission.problems
    assert all(record.life == "pending" for record in state.todos.values())
    admitted = [] if submission.problems else [todo.id for todo in submission.plan.items]
    assert sorted(state.todos) == sorted(admitted)
