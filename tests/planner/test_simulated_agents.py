"""Whole workflows with agents of every kind, honest to hostile, on projects of which the truth is known."""

from __future__ import annotations

import pytest

from tools.bench.simulated_agents import AGENTS, carry_out, is_broken

COUNT = 25


@pytest.mark.parametrize("kind", AGENTS)
def test_no_workflow_is_done_with_something_red_goes_over_a_limit_or_never_ends(kind: str) -> None:
    told = [carry_out(kind, seed) for seed in range(COUNT)]

    assert [seed for seed, each in enumerate(told) if is_broken(each)] == []
    assert any(each.red_at_first for each in told), "nothing was ever red, and nothing is proved"


def test_honest_agents_recover_most_of_what_was_red() -> None:
    told = [carry_out("honest", seed) for seed in range(COUNT)]

    assert sum(each.recovered for each in told) > 0.8 * sum(each.red_at_first for each in told)
