"""Fifty one-test commands: in one folded session, isolated, as fifty processes, and under plain pytest."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measuring import Command, paired, python
from projects import expect_done, one_test_commands
from table import Row

COMMANDS = 50


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measures in that folder, each variant so many times."""
    nodeids = one_test_commands(folder, COMMANDS)
    done = partial(expect_done, folder, todos=COMMANDS, tests=COMMANDS)
    report = "--json-report-file=report.json"
    spawned = [python("-m", "pytest", nodeid, "-q", "--json-report", report) for nodeid in nodeids]
    costs = paired(
        {
            "spawned": Command(
                argv=spawned[0], repeat=spawned[1:], cwd=folder, check=partial(_expect_passed, count=1)
            ),
            "plain": Command(
                argv=python("-m", "pytest", "-q", *nodeids),
                cwd=folder,
                check=partial(_expect_passed, count=COMMANDS),
            ),
            "folded": Command(
                argv=python("-m", "pytest", "--planverify", "plan.yaml"), cwd=folder, check=lambda _: done()
            ),
            "isolated": Command(
                argv=python("-m", "pytest", "--planverify", "--planverify-isolate", "plan.yaml"),
                cwd=folder,
                check=lambda _: done(),
            ),
        },
        rounds,
    )
    return [
        Row(
            name=f"{COMMANDS} commands: spawned / folded",
            figure=costs.ratio("spawned", "folded"),
            unit="x",
            at_least=25,
            from_what=costs.raw(),
        ),
        Row(
            name=f"{COMMANDS} commands: (folded - 200 ms) / plain",
            figure=(costs.median("folded", what="wall") - 0.2) / costs.median("plain", what="wall"),
            unit="x",
            at_most=1.15,
            from_what=costs.raw(what="wall"),
        ),
        Row(
            name=f"{COMMANDS} commands: isolated / spawned",
            figure=costs.ratio("isolated", "spawned"),
            unit="x",
            at_most=1 / 4,
        ),
        Row(
            name=f"{COMMANDS} commands: one isolated command",
            figure=costs.median("isolated") / COMMANDS * 1e3,
            unit="ms",
            from_what=f"spawned {costs.median('spawned') / COMMANDS * 1e3:.0f} ms",
        ),
    ]


def _expect_passed(output: str, count: int) -> None:
    assert f"{count} passed" in output, output[-2000:]
