"""Measure one command of ten thousand trivial tests: time and memory, beside plain pytest."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measuring import Command, expect_in, paired, peak_memory, python
from projects import expect_done, many_tests
from table import Row

FILES, TESTS = 100, 100


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measure in that folder, each variant so many times."""
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
