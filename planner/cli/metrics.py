"""``planner metrics``: totals of a project's runs in the exposition format of Prometheus.

They are counted from the rows of the index (:mod:`planner.store.index`). A registry of its own keeps the
metrics of this process, which the library would add by default, out of the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import option
from planner.cli.history import (
    StoreOption,
    open_index_of,
    project_of,
    project_root,
    require_rows,
    status_of,
)
from planner.cli.screen import write
from planner.model.verdicts import PlanState
from planner.planfile.file_writer import READABLE, write_file
from planner.store.run_log import INTERRUPTED
from planner.store.run_rows import PASSED
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.store.index import Found

_LONGEST_LABEL = 100

# By default a branch may live ten minutes.
_BUCKETS = (1, 5, 15, 60, 300, 600, 1_800, 3_600, 14_400, 86_400)


@command(
    "\b\nExit status: 0 all runs are counted, 2 wrong usage, 4 a run or a file cannot be read or "
    "written;\nthe metrics of the other runs are written anyway."
)
def metrics(
    plan: Annotated[
        Path | None,
        typer.Argument(metavar="PLAN", help="The plan file. Default: all plans of the project."),
    ] = None,
    store: StoreOption = None,
    textfile: Annotated[
        Path | None,
        option(
            "--textfile FILE",
            "Write atomically to this file, for the textfile collector of node_exporter; "
            "- is standard output.",
        ),
    ] = None,
) -> int:
    """Print metrics of runs: their states, branches and how long these took, verifications."""
    root, plan_id, shown = (project_root(), None, "") if plan is None else project_of(plan)
    with open_index_of(root, store) as index:
        runs, verified = index.runs(plan_id), index.verifications(plan_id)
    if plan_id is not None and shown == plan_id:
        require_rows(plan_id, runs, verified)
    text = exposition(runs, verified)
    if textfile is None:
        write(text)
    else:
        write_file(textfile, text, mode=READABLE)  # the collector runs as another user
    return status_of(index)


def exposition(runs: Iterable[Found], verifications: Iterable[Found]) -> str:
    """Return the metrics of rows of the index in the exposition format."""
    import prometheus_client as client

    # The times at which this process made the counters say nothing about the runs.
    client.disable_created_metrics()
    registry = client.CollectorRegistry()

    def family(kind: Any, name: str, label: str, about: str, **more: Any) -> Any:
        return kind(f"planverify_{name}", about, ("plan", label), registry=registry, **more)

    states = family(client.Gauge, "runs", "state", "Runs of a plan, by state.")
    blocked = family(
        client.Gauge, "blocked_workflows", "cause", "Runs that wait for a person, or else for a repair."
    )
    branches = family(client.Counter, "branches", "category", "Branches made, by category of the failure.")
    seconds = family(
        client.Histogram,
        "branch_resolution_seconds",
        "result",
        "Time from the start of a branch until it passed or failed.",
        buckets=_BUCKETS,
    )
    # No counter: as only the last runs of a project are kept, it would fall.
    verified = family(client.Gauge, "verifications", "exit_status", "Kept runs of pytest --planverify.")
    for run in runs:
        plan = _label(run["plan_id"])
        # The state in which the run is and what blocks it are 1, all others 0: a missing series cannot be
        # told from zero.
        for state in (*map(str, PlanState), INTERRUPTED):
            states.labels(plan, state).inc(state == run["state"])
        is_asked = any(each["decision"] is None for each in run["questions"])
        waits_for = run["blocked_since"] and ("person" if is_asked else "failure")
        for cause in ("person", "failure"):
            blocked.labels(plan, cause).inc(cause == waits_for)
        for result in ("passed", "failed"):
            seconds.labels(plan, result)
        for branch in run["branches"]:
            branches.labels(plan, branch["category"]).inc()
            if branch["duration_seconds"] is not None:
                result = "passed" if branch["outcome"] == PASSED else "failed"
                seconds.labels(plan, result).observe(branch["duration_seconds"])
    for each in verifications:
        verified.labels(_label(each["plan_id"]), each["exit_status"]).inc()
    return client.generate_latest(registry).decode()


def _label(plan_id: str) -> str:
    # For Prometheus an empty label is a missing one.
    return one_line(plan_id, limit=1_000)[:_LONGEST_LABEL] or "_"
