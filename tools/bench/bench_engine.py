"""Measure the engine: replaying a log relative to ``json.loads``, long logs, memory, and many runs."""

from __future__ import annotations

import gc
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine_logs import EVENTS_OF_A_TODO, folded, log_of, replayed, run_of
from measuring import Row
from simulation import Simulation
from simulation_laws import Laws

from planner.model.plan import MAX_TODOS

TODOS = MAX_TODOS // 10
LONGER = 10
MOST_TIMES = 5.0
MOST_TIMES_LONGER = 11.0
EVENTS = EVENTS_OF_A_TODO * MAX_TODOS
MOST_MIB = 256.0
WORKFLOWS = 10_000
MOST_SECONDS = 120.0
WATCHED_EVERY = 10
"""In one of this many simulated workflows the invariants are checked after each step, which takes time."""


def rows(folder: Path, rounds: int) -> list[Row]:
    """Return all figures of the engine."""
    short, long = log_of(TODOS), log_of(TODOS * LONGER)
    return [*_folding(short, long, rounds), _stepping(rounds), _memory(), _workflows()]


def _folding(short: list[str], long: list[str], rounds: int) -> list[Row]:
    works: dict[str, Callable[[], object]] = {
        "fold": lambda: folded(short),
        "json.loads": lambda: [json.loads(line) for line in short],
        "replay": lambda: replayed(short),
        "long": lambda: folded(long),
    }
    took: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(max(rounds, 3)):
        for name, work in works.items():
            took[name].append(_seconds(work))
    middle = {name: statistics.median(values) for name, values in took.items()}

    def times(ours: str, theirs: str) -> float:
        return statistics.median(a / b for a, b in zip(took[ours], took[theirs], strict=True))

    lines = len(long) / len(short)
    size = sum(map(len, short)) / len(short)
    how = f"json.loads {middle['json.loads'] * 1e3:.0f} ms, {size:.0f} bytes a line"
    return [
        Row(
            name=f"folding a log of {len(short)} lines / json.loads of its lines",
            figure=times("fold", "json.loads"),
            unit="x",
            at_most=MOST_TIMES,
            from_what=f"fold {middle['fold'] * 1e3:.0f} ms, {how}",
        ),
        Row(
            name="deciding all of it anew, held against what was written / json.loads of its lines",
            figure=times("replay", "json.loads"),
            unit="x",
            from_what=f"replay {middle['replay'] * 1e3:.0f} ms",
        ),
        Row(
            name=f"folding a log {lines:.1f} times as long / folding the short one, for {LONGER} times",
            figure=times("long", "fold") * LONGER / lines,
            unit="x",
            at_most=MOST_TIMES_LONGER,
            from_what=f"{middle['long']:.2f} s for {len(long)} lines",
        ),
    ]


def _stepping(rounds: int) -> Row:
    best = min(_seconds(lambda: [None for _ in run_of(TODOS)]) for _ in range(max(rounds, 3)))
    count = sum(1 for _ in run_of(TODOS))
    return Row(
        name="one step, with the making of its event",
        figure=best / count * 1e6,
        unit="us",
        from_what=f"{count / best:,.0f} steps a second",
    )


def _memory() -> Row:
    command = [sys.executable, str(Path(__file__).with_name("engine_logs.py")), str(EVENTS)]
    start = time.perf_counter()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.fullmatch(r"(\d+) events, (\d+) todos, peak (\d+) MiB\n", said)
    assert found is not None, said
    assert int(found[1]) >= EVENTS * 0.9, said
    return Row(
        name=f"peak memory of a run of {found[1]} events",
        figure=float(found[3]),
        unit="MiB",
        at_most=MOST_MIB,
        from_what=f"{found[2]} todos, {time.perf_counter() - start:.0f} s",
    )


def _workflows() -> Row:
    ends: dict[str, int] = {}
    events = 0
    start = time.process_time()
    for seed in range(WORKFLOWS):
        run = Simulation.begin(seed, *((Laws(),) if seed % WATCHED_EVERY == 0 else ())).run()
        ends[run.state.plan_state.value] = ends.get(run.state.plan_state.value, 0) + 1
        events += len(run.history) + run.refusals
    took = time.process_time() - start
    said = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    return Row(
        name=f"{WORKFLOWS} simulated workflows with seeded faults",
        figure=took,
        unit="s",
        at_most=MOST_SECONDS,
        from_what=f"{events} events; {said}",
    )


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time, without garbage collection of earlier objects."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start
