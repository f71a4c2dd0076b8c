"""Properties of every run, for any plan, outcomes, decisions, clock and driver."""

from __future__ import annotations

from datetime import UTC, datetime

from simulation import Simulation
from simulation_laws import Laws

from planner.engine import State, start, step
from planner.store.chain import GENESIS, chained, check_link
from planner.store.run_log import action_text, body, parse_line

SEEDS = 100


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


def test_replaying_a_log_gives_equal_states_and_identical_bytes_and_changes_no_earlier_state():
    for seed in range(2000, 2018):
        run = Simulation.begin(seed).run()
        states: list[State] = []
        shown: list[str] = []
        written = read = GENESIS
        for number, (event, actions) in enumerate(run.history):
            line, written = chained(body(number, event, actions), written)
            read = check_link(line, number, read)
            logged = parse_line(line, number)
            assert logged == event, f"seed {seed}"
            state, decided = step(states[-1], logged) if states else start(logged)
            assert list(map(action_text, decided)) == list(map(action_text, actions)), f"seed {seed}"
            states.append(state)
            shown.append(repr(state))

        assert states[-1] == run.state, f"seed {seed}"
        assert run.state.events == len(run.history)
        assert list(map(repr, states)) == shown, f"seed {seed}"


def test_a_restarted_driver_is_given_all_open_actions_again():
    for seed in range(5000, 5018):
        run = Simulation.begin(seed, Laws())
        while not run.is_over and run.turns < 60:
            due = set(run.work), set(run.checks), set(run.loads), set(run.asked)
            run.now = datetime.fromtimestamp(run.state.now, UTC)  # no time passes, so no work times out
            run.forget(after_seconds=0)
            assert (set(run.work), set(run.checks), set(run.loads), set(run.asked)) == due, f"seed {seed}"
            run.turn()
