"""Ten thousand trivial tests: verified under a plan, under plain pytest, and with a JSON report."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measuring import Command, interleaved, peak_memory, python
from projects import expect_done, many_tests
from table import Row

TODOS, FILES, TESTS = 10, 10, 100


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measures in that folder, each variant so many times."""
    count = many_tests(folder, todos=TODOS, files=FILES, tests=TESTS)
    passed = partial(_expect_passed, count=count)
    commands = {
        "plain": Command(argv=python("-m", "pytest", "-q"), cwd=folder, check=passed),
        "json-report": Command(
            argv=python("-m", "pytest", "-q", "--json-report", "--json-report-file=report.json"),
            cwd=folder,
            check=passed,
        ),
        "plan": Command(
            argv=python("-m", "pytest", "--planverify", "plan.yaml"),
            cwd=folder,
            check=lambda _: expect_done(folder, todos=TODOS, tests=count),
        ),
    }
    seconds = interleaved(commands, rounds)
    memory = {name: peak_memory(command) for name, command in commands.items()}
    times = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    trees = ", ".join(f"{name} {value.tree_mib:.0f} MiB" for name, value in memory.items())
    largest = ", ".join(f"{name} {value.largest_mib:.0f} MiB" for name, value in memory.items())
    return [
        Row(
            name=f"{count} tests: time, plan / plain",
            figure=seconds["plan"] / seconds["plain"],
            unit="x",
            at_most=1.10,
            from_what=times,
        ),
        Row(
            name=f"{count} tests: time, plan / json-report",
            figure=seconds["plan"] / seconds["json-report"],
            unit="x",
            at_most=1.0,
        ),
        Row(
            name=f"{count} tests: peak memory of all processes, plan / plain",
            figure=memory["plan"].tree_mib / memory["plain"].tree_mib,
            unit="x",
            at_most=1.25,
            from_what=trees,
        ),
        Row(
            name=f"{count} tests: peak memory of all processes, plan / json-report",
            figure=memory["plan"].tree_mib / memory["json-report"].tree_mib,
            unit="x",
            at_most=1.0,
        ),
        Row(
            name=f"{count} tests: peak of the largest process, plan / plain",
            figure=memory["plan"].largest_mib / memory["plain"].largest_mib,
            unit="x",
            at_most=1.25,
            from_what=largest,
        ),
    ]


def _expect_passed(output: str, count: int) -> None:
    assert f"{count} passed" in output, output[-2000:]
