"""What the plugin costs where it is installed and nobody asks for it."""

from __future__ import annotations

import re
import statistics
import subprocess
from functools import partial
from pathlib import Path

from measuring import Command, paired, python
from projects import many_tests
from table import Row

WITHOUT = ("-p", "no:planverify")
START = python("-m", "pytest", "-q")
STARTS_A_ROUND = 6
"""Starts are short: so many are measured for each round of the long runs."""
NOISE = 1.02
"""What two series of the same runs may differ by."""


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measures in that folder, each variant so many times."""
    count = many_tests(folder, files=100, tests=100)
    passed = partial(_expect_in, text=f"{count} passed")
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
    started = partial(_expect_in, text="no tests ran")
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
    """The cumulative time of the outermost imports of this plugin's modules, in milliseconds."""
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


def _expect_in(output: str, text: str) -> None:
    assert text in output, output[-2000:]
