"""What supervision adds to a run of one test, and recording to a run of ten thousand trivial ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measuring import Command, Pairs, paired, python
from projects import expect_done, many_tests, one_test_commands
from table import Row

PLAIN = python("-m", "pytest", "-q", "tests")
PLAN = python("-m", "pytest", "--planverify", "plan.yaml")
RUNS_A_ROUND = 4
"""A run of one test is short: so many are measured for each of the long ones."""
MOST_SUPERVISION_SECONDS = 0.15
MOST_RECORDING = 0.03


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measures in that folder, each variant so many times."""
    one, many = folder / "one", folder / "many"
    one_test_commands(one, 1)
    count = many_tests(many, todos=10, files=10, tests=100)
    short = _measured(one, todos=1, tests=1, rounds=rounds * RUNS_A_ROUND)
    supervision = short.difference("plan", "plain")
    long = _measured(many, todos=10, tests=count, rounds=rounds)
    recording = long.difference("plan", "plain") - supervision
    return [
        Row(
            name="supervision: time of a run, plan - plain",
            figure=short.difference("plan", "plain", what="wall") * 1e3,
            unit="ms",
            at_most=MOST_SUPERVISION_SECONDS * 1e3,
            from_what=short.raw(what="wall", unit_ms=True),
        ),
        Row(
            name="supervision: processor time of a run, plan - plain",
            figure=supervision * 1e3,
            unit="ms",
            from_what=short.raw(unit_ms=True),
        ),
        Row(
            name=f"recording: {count} tests, (plan - plain - supervision) / plain",
            figure=recording / long.median("plain"),
            unit="x",
            at_most=MOST_RECORDING,
            from_what=long.raw(),
        ),
        Row(
            name="recording: cost of one test",
            figure=recording / count * 1e6,
            unit="us",
        ),
    ]


def _measured(folder: Path, *, todos: int, tests: int, rounds: int) -> Pairs:
    return paired(
        {
            "plain": Command(argv=PLAIN, cwd=folder, check=partial(_expect_passed, count=tests)),
            "plan": Command(
                argv=PLAN, cwd=folder, check=lambda _: expect_done(folder, todos=todos, tests=tests)
            ),
        },
        rounds,
    )


def _expect_passed(output: str, count: int) -> None:
    assert f"{count} passed" in output, output[-2000:]
