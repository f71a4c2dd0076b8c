"""``planner metrics``: the figures of runs in the exposition format of Prometheus, from their logs alone.

Counters add up over the runs of one plan; the rest of the budget is that of the latest run. A registry of
its own keeps the metrics of this process, which the library would add by default, out of the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import option
from planner.cli.exits import Status, complain
from planner.cli.figures import Figures, count_run
from planner.cli.runs import recorded_runs
from planner.cli.screen import write
from planner.engine import State
from planner.errors import PlannerError
from planner.model.verdicts import PlanState
from planner.planfile.file_writer import READABLE, write_file
from planner.policy.limits import left
from planner.store.run_log import INTERRUPTED
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.store.run_log import RecordedRun

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0)
"""Histogram buckets for times of repair, in seconds. By default a branch may live ten minutes."""

_LONGEST_LABEL = 100

FAMILIES: Mapping[str, tuple[str, str]] = {
    "runs": ("Gauge state", "Runs of a plan, by state."),
    "blocked_workflows": ("Gauge cause", "Runs that wait for a person, or else for a repair."),
    "halts": ("Counter reason", "Halted runs of a plan, by rule."),
    "branches": ("Counter", "Branches made."),
    "branch_resolution_seconds": (
        "Histogram result",
        "Time from the start of a branch until it passed or failed.",
    ),
    "verdicts": (
        "Counter verdict category",
        "Verifications, by verdict and category of the deciding failure.",
    ),
    "budget_left": ("Gauge kind", "The rest of each budget in the latest run."),
}
"""Every metric of a plan by its name without ``planverify_``: its kind and labels, and its help text.

Every metric has the label ``plan``, too.
"""


@command(
    "\b\nExit status: 0 all runs are counted, 2 wrong usage, 4 a run or a file cannot be read or "
    "written;\nthe metrics of the other runs are written anyway."
)
def metrics(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PLAN|LOG",
            help="Plans, with all their recorded runs, and logs of runs. Default: the usual plan.",
        ),
    ] = None,
    textfile: Annotated[
        Path | None,
        option(
            "--textfile FILE",
            "Write atomically to this file, for the textfile collector of node_exporter; "
            "- is standard output.",
        ),
    ] = None,
) -> int:
    """Print metrics of runs: branches and how long they took, verdicts, halts, budgets.

    Everything is computed from the logs of the runs.
    """
    text, unreadable = exposition(recorded_runs(runs or ()))
    if textfile is None:
        write(text)
    else:
        write_file(textfile, text, mode=READABLE)  # the collector runs as another user
    return Status.UNREADABLE if unreadable else Status.OK


def exposition(runs: Iterable[RecordedRun]) -> tuple[str, int]:
    """Return all metrics in the exposition format, and how many runs cannot be read in full.

    Nothing of such a run is counted; its error is reported on standard error.
    """
    import prometheus_client as client

    # The times at which this process made the counters say nothing about the runs.
    client.disable_created_metrics()
    registry = client.CollectorRegistry()
    families: dict[str, Any] = {}
    for name, (about, text) in FAMILIES.items():
        kind, *labels = about.split()
        more: dict[str, Any] = {"buckets": BUCKETS} if kind == "Histogram" else {}
        made = getattr(client, kind)
        families[name] = made(f"planverify_{name}", text, ("plan", *labels), registry=registry, **more)
    unreadable, latest = 0, dict[str, State]()
    for run in runs:
        try:
            figures, state = count_run(run.steps)
        except PlannerError as error:
            unreadable += 1
            complain(str(error))
            continue
        # For Prometheus an empty label is a missing one.
        plan = one_line(state.plan_id, limit=1_000)[:_LONGEST_LABEL] or "_"
        for name, value, *labels in (*_counts(figures), *_states(state, run.state_name(state))):
            families[name].labels(plan, *labels).inc(value)
        # Both series are exported from the start, even empty: a missing one cannot be told from zero.
        for result in ("passed", "failed"):
            times = families["branch_resolution_seconds"].labels(plan, result)
            for has_passed, seconds in figures.resolutions:
                if has_passed is (result == "passed"):
                    times.observe(seconds)
        if plan not in latest or latest[plan].now <= state.now:
            latest[plan] = state
        for remark in run.remarks:
            complain(remark)
    for plan, state in latest.items():
        wall_seconds = 0.0 if state.started is None else state.now - state.started
        budgets = left(state.parts[""].plan.metadata.budget, state.spent, wall_seconds)
        for kind, (rest, _) in budgets.items():
            families["budget_left"].labels(plan, kind).set(rest)
    return client.generate_latest(registry).decode(), unreadable


def _counts(figures: Figures) -> Iterator[tuple[Any, ...]]:
    """Yield the counters of a run: name, value, labels."""
    yield from (("halts", count, rule) for rule, count in sorted(figures.halts.items()))
    yield "branches", figures.branches
    yield from (("verdicts", count, *labels) for labels, count in sorted(figures.verdicts.items()))


def _states(last: State, name: str) -> Iterator[tuple[Any, ...]]:
    """Yield 1 for the state in which a run is and for what blocks it, 0 for all others."""
    yield from (("runs", state == name, state) for state in (*map(str, PlanState), INTERRUPTED))
    is_over = name == INTERRUPTED or last.plan_state.is_final
    blocked = "" if is_over else "person" if last.questions else "failure" if last.blocked() else ""
    yield from (("blocked_workflows", cause == blocked, cause) for cause in ("person", "failure"))
