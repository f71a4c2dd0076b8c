"""Measure short commands: a worker, a cold start, the momentum example, a hang, and red ones among many."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import Command, expect_in, expect_nothing, paired, python
from projects import expect_done, expect_red, hanging_command, one_test_commands
from table import Row

MOMENTUM = Path(__file__).parents[2] / "examples" / "momentum"
PLAN = python("-m", "pytest", "--planverify", "plan.yaml")
COMMANDS = 50
MANY, RED = 200, 10
LIMIT_SECONDS = 3
COLD_STARTS = 10
"""Commands of a plan: a part of what a run costs is its own, and not that of any start."""


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measure in that folder, each variant so many times."""
    return [
        _worker(folder, rounds),
        _cold_start(folder / "cold", rounds),
        _momentum(folder / "momentum", rounds),
        _hang(folder / "hang", rounds),
        _reds(folder, rounds),
    ]


def _worker(folder: Path, rounds: int) -> Row:
    fifty, one = folder / "fifty", folder / "one"
    one_test_commands(fifty, COMMANDS)
    one_test_commands(one, 1)
    costs = paired({"plan": _green(fifty, COMMANDS), "plan of one": _green(one, 1)}, rounds)
    return Row(
        name=f"a worker's processor time: (plan of {COMMANDS} commands - plan of one) / {COMMANDS - 1}",
        figure=costs.difference("plan", "plan of one") / (COMMANDS - 1) * 1e3,
        unit="ms",
        at_most=20,
        from_what=costs.raw(),
    )


def _cold_start(folder: Path, rounds: int) -> Row:
    nodeids = one_test_commands(folder, COLD_STARTS)
    report = ("--json-report", "--json-report-file=report.json")
    first, *others = (python("-m", "pytest", nodeid, "-q", *report) for nodeid in nodeids)
    costs = paired(
        {
            "isolated": _green(folder, COLD_STARTS, "--planverify-isolate"),
            "process": Command(argv=first, repeat=others, cwd=folder, check=partial(expect_in, "1 passed")),
        },
        rounds,
    )
    return Row(
        name=f"cold starts: {COLD_STARTS} commands with --planverify-isolate / as processes of their own",
        figure=costs.ratio("isolated", "process", what="wall"),
        unit="x",
        at_most=1.15,
        from_what=costs.raw(what="wall", unit_ms=True),
    )


def _momentum(folder: Path, rounds: int) -> Row:
    shutil.copytree(MOMENTUM, folder, ignore=shutil.ignore_patterns(".planverify", "__pycache__"))
    costs = paired(
        {
            "plan": Command(argv=PLAN, cwd=folder, check=expect_nothing),
            "plain": Command(
                argv=python("-m", "pytest", "-q"), cwd=folder, check=partial(expect_in, " passed")
            ),
        },
        rounds,
    )
    return Row(
        name="examples/momentum: time, plan / plain",
        figure=costs.ratio("plan", "plain", what="wall"),
        unit="x",
        at_most=2.5,
        from_what=costs.raw(what="wall"),
    )


def _hang(folder: Path, rounds: int) -> Row:
    hanging_command(folder, limit_seconds=LIMIT_SECONDS)
    run = Command(argv=PLAN, cwd=folder, check=lambda _: expect_red(folder, red=1), exit_code=1)
    return Row(
        name=f"a hang with a limit of {LIMIT_SECONDS} s: duration of the run",
        figure=paired({"plan": run}, min(rounds, 2)).median("plan", what="wall"),
        unit="s",
    )


def _reds(folder: Path, rounds: int) -> Row:
    green, some_red = folder / "green", folder / "red"
    one_test_commands(green, MANY)
    one_test_commands(some_red, MANY, red=RED)
    costs = paired(
        {
            "some red": Command(
                argv=[*PLAN, "--planverify-keep-going"],
                cwd=some_red,
                check=lambda _: expect_red(some_red, red=RED),
                exit_code=1,
            ),
            "all green": _green(green, MANY),
        },
        rounds,
    )
    return Row(
        name=f"{MANY} one-test commands: time, {RED} red / all green",
        figure=costs.ratio("some red", "all green", what="wall"),
        unit="x",
        at_most=1.6,
        from_what=costs.raw(what="wall"),
    )


def _green(folder: Path, count: int, *options: str) -> Command:
    argv: Sequence[str] = [*PLAN, *options]
    return Command(argv=argv, cwd=folder, check=lambda _: expect_done(folder, todos=count, tests=count))
