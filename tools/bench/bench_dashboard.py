"""Measure the dashboard of ``planner serve`` over ten thousand logs, and the first indexing of these."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from engine_logs import plan_of, run_of
from fastapi.testclient import TestClient
from table import Row

from planner.model.events import PlanSubmitted
from planner.planfile.writer import dump_plan
from planner.store.chain import GENESIS, chained
from planner.store.index import open_index
from planner.store.lines import body
from planner.store.run_log import FOLDER
from planner.web.app import LOOK_SECONDS, create_app

LOGS = 10_000
TODOS = 3
MOST_MS = 50.0
MOST_INDEXING_SECONDS = 25.0


def rows(folder: Path, rounds: int) -> list[Row]:
    """How long a page takes, and the processor time that the index of all logs takes."""
    _write_logs(folder)
    begun = time.process_time()
    open_index(folder).close()
    indexing = time.process_time() - begun
    app = create_app(folder / "plan.yaml", folder, "secret", {"testserver"}, _record)
    client = TestClient(app)
    client.get("/?token=secret")
    taken: list[float] = []
    for _ in range(rounds):
        time.sleep(LOOK_SECONDS)  # so that each page looks at the files
        start = time.perf_counter()
        assert client.get("/").status_code == 200
        taken.append((time.perf_counter() - start) * 1000)
    return [
        Row(
            name=f"page of the dashboard, {LOGS:,} logs",
            figure=statistics.median(taken),
            unit="ms",
            at_most=MOST_MS,
            from_what=f"slowest {max(taken):.1f} ms of {len(taken)}",
        ),
        Row(
            name=f"first indexing of {LOGS:,} logs",
            figure=indexing,
            unit="s",
            at_most=MOST_INDEXING_SECONDS,
            from_what="processor time",
        ),
    ]


def _record(_plan: Path, _question_id: str, _said: Mapping[str, str]) -> list[str]:
    """Record nothing: no question is answered here."""
    return []


def _write_logs(folder: Path) -> None:
    """Write logs of one run each, which differ by its id."""
    (folder / FOLDER).mkdir(parents=True)
    (folder / "plan.yaml").write_text(dump_plan(plan_of(TODOS), format="yaml"), encoding="utf-8")
    steps = [(event, actions) for event, actions, _ in run_of(TODOS)]
    bodies = [body(at, *step) for at, step in enumerate(steps)]
    first, actions = steps[0]
    assert isinstance(first, PlanSubmitted)
    for number in range(LOGS):
        run_id, digest, lines = f"run-{number:05}", GENESIS, list[str]()
        named = body(0, first.model_copy(update={"run_id": run_id}), actions)
        for each in (named, *bodies[1:]):
            line, digest = chained(each, digest)
            lines.append(f"{line}\n")
        (folder / FOLDER / f"{run_id}.jsonl").write_text("".join(lines), encoding="utf-8")
