"""Measure the tests of published packages: under a plan, under plain pytest, and spawned one by one.

A plan has a todo for each green test file of a package, and for up to twenty of its single tests. Every
variant runs the same node ids: plain pytest all in one session, a spawned command each in its own process.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measuring import Command, Row, cost_of, environment, expect_nothing, paired, python
from projects import expect_done, write_plan

PACKAGES = (
    "tinydb",
    "cachetools",
    "toolz",
    "boltons",
    "xmltodict",
    "schema",
    "tomlkit",
    "wrapt",
    "inflection",
    "markupsafe",
)
SINGLE_TESTS = 20
LIMIT_SECONDS = 600


class Skipped(Exception):
    """A package that cannot be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One ratio of two variants, and the bounds of its geometric mean and of its worst value."""

    variant: str
    by: str
    mean: float
    worst: float | None = None
    is_gain: bool = False
    """Whether the bounds are the least values rather than the greatest."""


BOUNDS = (
    Bound("serial", "plain", mean=1.8, worst=2.5),
    Bound("-n 2", "plain", mean=1.2),
    Bound("spawned", "serial", mean=6, is_gain=True),
    Bound("spawned", "-n 2", mean=10, is_gain=True),
)


def rows(folder: Path, rounds: int) -> list[Row]:
    """Measure in a folder, each variant ``rounds`` times."""
    ratios: dict[str, dict[Bound, float]] = {}
    found: list[Row] = []
    skipped: list[str] = []
    for name in PACKAGES:
        try:
            source = _unpacked(name, folder)
            nodeids = _green_nodeids(source)
        except Skipped as reason:
            skipped.append(name)
            print(f"skipping {name}: {reason}", file=sys.stderr, flush=True)
            continue
        seconds = _measured(source, nodeids, rounds)
        ratios[name] = {bound: seconds[bound.variant] / seconds[bound.by] for bound in BOUNDS}
        raw = ", ".join(f"{each} {value:.2f} s" for each, value in seconds.items())
        found += [
            Row(
                name=f"{source.name}, {len(nodeids)} commands: {bound.variant} / {bound.by}",
                figure=ratios[name][bound],
                unit="x",
                from_what=raw if bound is BOUNDS[0] else "",
            )
            for bound in BOUNDS
        ]
    note = f"{len(ratios)} packages" + (f"; skipped: {', '.join(skipped)}" if skipped else "")
    return found + [row for bound in BOUNDS for row in _over_all(bound, ratios, note)]


def _over_all(bound: Bound, ratios: Mapping[str, Mapping[Bound, float]], note: str) -> list[Row]:
    """Return the geometric mean of a ratio and its worst value; NaN meets no bound."""
    by_package = {name: each[bound] for name, each in ratios.items()}
    mean, worst, whose = math.nan, math.nan, note
    if by_package:
        mean = statistics.geometric_mean(by_package.values())
        whose = (min if bound.is_gain else max)(by_package, key=by_package.__getitem__)
        worst = by_package[whose]
    name = f"packages: {bound.variant} / {bound.by}"
    at_most, at_least = (None, bound.mean) if bound.is_gain else (bound.mean, None)
    return [
        Row(
            name=f"{name}, geometric mean",
            figure=mean,
            unit="x",
            at_most=at_most,
            at_least=at_least,
            from_what=note,
        ),
        Row(name=f"{name}, worst", figure=worst, unit="x", at_most=bound.worst, from_what=whose),
    ]


def _unpacked(name: str, folder: Path) -> Path:
    """Download the newest source distribution of a package and return the folder that it holds."""
    # Not `:all:`, which would build what the package is built with from source, too.
    download = (
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-binary",
        name,
        "--dest",
        str(folder / name),
    )
    done = subprocess.run(python(*download, name), capture_output=True, text=True, check=False)
    archives = list((folder / name).glob("*.tar.gz"))
    if done.returncode or not archives:
        raise Skipped(f"it cannot be fetched: {_last_line(done.stderr)}")
    place = folder / f"{name}-source"
    with tarfile.open(archives[0]) as archive:
        archive.extractall(place, filter="data")
    [source] = place.iterdir()
    return source


def _green_nodeids(source: Path) -> list[str]:
    """Return the test files whose tests all passed, and evenly spread single tests of them.

    Raises :class:`Skipped` where there is none, or where one fails without the others.
    """
    report = source / "planverify-bench.json"
    options = ("--json-report", f"--json-report-file={report}", "--json-report-omit", "log", "traceback")
    done = _pytest(source, "-q", "--tb=no", "-p", "no:cacheprovider", *options)
    if not report.exists():
        raise Skipped(f"its tests cannot be run: {_last_line(done.stdout)}")
    document = json.loads(report.read_text())
    report.unlink()
    outcomes: dict[str, list[tuple[str, str]]] = {}
    for each in (*document["collectors"], *document.get("tests", ())):
        outcomes.setdefault(each["nodeid"].split("::")[0], []).append((each["nodeid"], each["outcome"]))
    files = [
        file
        for file, tests in outcomes.items()
        if file.endswith(".py")
        and any("::" in nodeid and outcome == "passed" for nodeid, outcome in tests)
        and not any(outcome in ("failed", "error") for _, outcome in tests)
    ]
    single = [
        each["nodeid"]
        for each in document.get("tests", ())
        if each["outcome"] == "passed"
        and each["nodeid"].split("::")[0] in files
        and "[" not in each["nodeid"]
    ]
    if not files:
        raise Skipped(f"none of its test files is green: {_last_line(done.stdout)}")
    step = max(1, len(single) // SINGLE_TESTS)
    nodeids = [*files, *single[::step][:SINGLE_TESTS]]
    for nodeid in nodeids:
        if _pytest(source, "-q", nodeid).returncode:
            raise Skipped(f"{nodeid} fails alone")
    if _pytest(source, "-q", *nodeids).returncode:
        raise Skipped("its green tests fail together")
    return nodeids


def _measured(source: Path, nodeids: Sequence[str], rounds: int) -> dict[str, float]:
    """Return the seconds of each variant: medians, but of one run where all commands are spawned."""
    commands = {f"t{number}": shlex.join(["pytest", nodeid, "-q"]) for number, nodeid in enumerate(nodeids)}
    write_plan(source, commands, limit_seconds=LIMIT_SECONDS)
    plan = python("-m", "pytest", "--planverify", "plan.yaml")
    command = partial(Command, cwd=source, env=_paths(source))
    done = partial(expect_done, source, todos=len(nodeids))
    first, *others = (python("-m", "pytest", nodeid, "-q") for nodeid in nodeids)
    spawned = command(argv=first, repeat=others, check=expect_nothing)
    runs = paired(
        {
            "plain": command(argv=python("-m", "pytest", "-q", *nodeids), check=expect_nothing),
            "serial": command(argv=plan, check=lambda _: done()),
            "-n 2": command(argv=[*plan, "-n", "2"], check=lambda _: done()),
        },
        rounds,
    )
    return {**runs.medians(), "spawned": cost_of(spawned).wall}


def _pytest(source: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        python("-m", "pytest", *args),
        cwd=source,
        env=environment(_paths(source)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _paths(source: Path) -> dict[str, str]:
    """Return the environment variable with which the package is imported from its unpacked source."""
    return {"PYTHONPATH": os.pathsep.join([str(source / "src"), str(source)])}


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]
