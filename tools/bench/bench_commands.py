"""Measure runs of the plugin beside plain pytest: short commands, many tests, and no plan at all."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import Command, Row, expect_in, expect_nothing, paired, peak_memory, python
from projects import expect_done, expect_red, hanging_command, many_tests, one_test_commands

MOMENTUM = Path(__file__).parents[2] / "examples" / "momentum"
PLAN = python("-m", "pytest", "--planverify", "plan.yaml")
COMMANDS = 50
MANY_COMMANDS, RED = 200, 10
LIMIT_SECONDS = 3
COLD_STARTS = 10
"""Number of commands of the plan that is started cold."""


def commands(folder: Path, rounds: int) -> list[Row]:
    """Measure in a folder, each variant ``rounds`` times."""
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
    one_test_commands(green, MANY_COMMANDS)
    one_test_commands(some_red, MANY_COMMANDS, red=RED)
    costs = paired(
        {
            "some red": Command(
                argv=[*PLAN, "--planverify-keep-going"],
                cwd=some_red,
                check=lambda _: expect_red(some_red, red=RED),
                exit_code=1,
            ),
            "all green": _green(green, MANY_COMMANDS),
        },
        rounds,
    )
    return Row(
        name=f"{MANY_COMMANDS} one-test commands: time, {RED} red / all green",
        figure=costs.ratio("some red", "all green", what="wall"),
        unit="x",
        at_most=1.6,
        from_what=costs.raw(what="wall"),
    )


def _green(folder: Path, count: int, *options: str) -> Command:
    argv: Sequence[str] = [*PLAN, *options]
    return Command(argv=argv, cwd=folder, check=lambda _: expect_done(folder, todos=count, tests=count))


FILES, TESTS = 100, 100


def many_tests_in_one_command(folder: Path, rounds: int) -> list[Row]:
    """Measure in a folder, each variant ``rounds`` times."""
    count = many_tests(folder, files=FILES, tests=TESTS)
    commands = {
        "plain": Command(
            argv=python("-m", "pytest", "tests", "-q"),
            cwd=folder,
            check=partial(expect_in, f"{count} passed"),
        ),
        "plan": Command(
            argv=python("-m", "pytest", "--planverify", "plan.yaml"),
            cwd=folder,
            check=lambda _: expect_done(folder, todos=1, tests=count),
        ),
    }
    costs = paired(commands, rounds)
    memory = {name: peak_memory(command) for name, command in commands.items()}
    return [
        Row(
            name=f"one command of {count} tests: time, plan / plain",
            figure=costs.ratio("plan", "plain", what="wall"),
            unit="x",
            at_most=1.10,
            from_what=costs.raw(what="wall"),
        ),
        Row(
            name=f"one command of {count} tests: peak of the largest process, plan / plain",
            figure=memory["plan"].largest_mib / memory["plain"].largest_mib,
            unit="x",
            at_most=1.25,
            from_what=", ".join(f"{name} {value.largest_mib:.0f} MiB" for name, value in memory.items()),
        ),
        Row(
            name=f"one command of {count} tests: peak of all processes, plan / plain",
            figure=memory["plan"].tree_mib / memory["plain"].tree_mib,
            unit="x",
            from_what=", ".join(f"{name} {value.tree_mib:.0f} MiB" for name, value in memory.items()),
        ),
    ]


WITHOUT = ("-p", "no:planverify")
START = python("-m", "pytest", "-q")
STARTS_A_ROUND = 6
"""Number of short starts that are measured for each round of the long runs."""
NOISE = 1.02
"""Largest ratio by which two series of equal runs may differ."""


def unused(folder: Path, rounds: int) -> list[Row]:
    """Measure in a folder, each variant ``rounds`` times."""
    count = many_tests(folder, files=100, tests=100)
    passed = partial(expect_in, f"{count} passed")
    runs = paired(
        {
            "with": Command(argv=python("-m", "pytest", "-q"), cwd=folder, check=passed),
            "without": Command(argv=python("-m", "pytest", "-q", *WITHOUT), cwd=folder, check=passed),
        },
        rounds,
    )
    # A session that finds nothing: `pytest --version` would answer before it loads any plugin.
    empty = folder / "empty"
    empty.mkdir()
    (empty / "pytest.ini").write_text("[pytest]\n")
    started = partial(expect_in, "no tests ran")
    starts = paired(
        {
            "with": Command(argv=START, cwd=empty, check=started, exit_code=5),
            "without": Command(argv=[*START, *WITHOUT], cwd=empty, check=started, exit_code=5),
        },
        rounds * STARTS_A_ROUND,
    )
    return [
        Row(
            name=f"unused: {count} tests, with / without",
            figure=runs.ratio("with", "without"),
            unit="x",
            at_most=NOISE,
            from_what=runs.raw(),
        ),
        Row(
            name="unused: cost of one test",
            figure=runs.difference("with", "without") / count * 1e6,
            unit="us",
        ),
        Row(
            name="unused: start, with - without",
            figure=starts.difference("with", "without") * 1e3,
            unit="ms",
            at_most=30,
            from_what=starts.raw(unit_ms=True),
        ),
        Row(
            name="unused: start, imports of both packages",
            figure=statistics.median(_import_ms(empty) for _ in range(STARTS_A_ROUND)),
            unit="ms",
            at_most=30,
            from_what="python -X importtime",
        ),
    ]


def _import_ms(folder: Path) -> float:
    """Return the cumulative import time of the outermost modules of the plugin, in milliseconds."""
    done = subprocess.run(
        python("-X", "importtime", *START[1:]),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    total, outermost = 0, None
    # The listing is in order of completion: what a module imported stands above it, indented deeper.
    for line in reversed(done.stderr.splitlines()):
        match = re.match(r"import time:\s+\d+ \|\s+(\d+) \|( +)(\S+)$", line)
        if not match:
            continue
        depth = len(match[2])
        if outermost is not None and depth > outermost:
            continue
        outermost = None
        if match[3].split(".")[0] in ("planner", "pytest_planverify"):
            total, outermost = total + int(match[1]), depth
    return total / 1e3
