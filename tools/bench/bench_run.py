"""Measure the cost of ``planverify run`` itself, and the gain of a second worker.

The cost of the loop is the wall time of a run without its agents and verifications. Two workers of a dask
cluster take independent turns of one second each; the time counts from the first turn to the last
verified todo.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

from measuring import Row
from module_project import write_module_project

from pytest_planverify.harness import command, loop

CHECKOUT = Path(__file__).resolve().parents[2]
AGENT = CHECKOUT / "tests/support/vi_editor/agent.py"
INDEPENDENT_TODOS = 8
SLOW_AGENT = """\
import os, pathlib, time
time.sleep(1)
todo = os.environ["PLANVERIFY_TODO"]
pathlib.Path(f"shop/{todo}.py").write_text(f"NAME = '{todo}'\\n")
"""


def rows(folder: Path, rounds: int) -> list[Row]:
    """Return the cost of the loop on the example with 29 todos, and the ratio of one worker to two."""
    total, own, turns = _cost_of_vi_editor(folder / "vi_editor")
    ratios = [_seconds(folder, 1, each) / _seconds(folder, 2, each) for each in range(min(rounds, 3))]
    return [
        Row(
            name="planverify run: own share of the vi example",
            figure=100 * own / total,
            unit="points",
            at_most=5,
            from_what=f"{own:.1f} s of {total:.1f} s",
        ),
        Row(
            name="planverify run: own time a turn",
            figure=1_000 * own / turns,
            unit="ms",
            at_most=150,
            from_what=f"{turns} turns",
        ),
        Row(
            name="planverify run: one dask worker to two",
            figure=statistics.median(ratios),
            unit="x",
            at_least=1.7,
            from_what=", ".join(f"{each:.2f}" for each in ratios),
        ),
    ]


def _cost_of_vi_editor(root: Path) -> tuple[float, float, int]:
    """Return the time of the run, the time of the loop itself, and the number of turns."""
    copytree(
        CHECKOUT / "examples/vi_editor", root, ignore=ignore_patterns(".planverify", "__pycache__", "diag*")
    )
    spent: list[float] = []

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **keys: Any) -> Any:
            begun = time.perf_counter()
            try:
                return work(*args, **keys)
            finally:
                spent.append(time.perf_counter() - begun)

        return run

    options = loop.RunOptions(agents=[f"{shlex.quote(sys.executable)} {AGENT} {{json}}"], as_json=True)
    with _replaced((loop, "run_turn", timed), (loop, "verify", timed), (command, "record_baseline", timed)):
        told = io.StringIO()
        here = os.getcwd()
        os.chdir(root)
        begun = time.perf_counter()
        try:
            with contextlib.redirect_stdout(told):
                status = command.run_command(Path("plan.yaml"), options)
        finally:
            total = time.perf_counter() - begun
            os.chdir(here)
    events = [json.loads(line) for line in told.getvalue().splitlines()]
    assert status == 0, events[-3:]
    turns = sum(each["event"] == "turn_finished" for each in events)
    return total, total - sum(spent), turns


@contextlib.contextmanager
def _replaced(*places: tuple[Any, str, Callable[[Any], Any]]) -> Generator[None]:
    kept = [(where, name, getattr(where, name)) for where, name, _ in places]
    for where, name, change in places:
        setattr(where, name, change(getattr(where, name)))
    try:
        yield
    finally:
        for where, name, value in kept:
            setattr(where, name, value)


def _seconds(folder: Path, workers: int, number: int) -> float:
    """Return the time of independent todos of one second with ``workers`` workers of a local cluster."""
    from distributed import LocalCluster

    root = folder / f"independent-{workers}-{number}"
    _make_project(root)
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", processes=True, silence_logs=50
    )
    with cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        words = ["run", "plan.yaml", "--json", "--executor", f"dask://{address}"]
        words += ["--agent", f"{shlex.quote(sys.executable)} {folder / 'agent.py'} {{brief}}"]
        done = subprocess.run(
            [str(Path(sys.executable).with_name("planverify")), *words],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    events = [json.loads(line) for line in done.stdout.splitlines()]
    first = next(each["seconds"] for each in events if each["event"] == "turn_started")
    return [each["seconds"] for each in events if each["event"] == "verified"][-1] - first


def _make_project(root: Path) -> None:
    names = [f"part_{number:02d}" for number in range(INDEPENDENT_TODOS)]
    write_module_project(root, names, {"../agent.py": SLOW_AGENT})
