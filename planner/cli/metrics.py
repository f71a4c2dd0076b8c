"""``planner metrics``: the figures of runs in the exposition format of Prometheus, from their logs alone.

Counters add up over the runs of one plan; gauges describe the latest run. A registry of its own keeps the
metrics of this process, which the library would add by default, out of the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import complete_plan, option
from planner.cli.exits import Status, complain
from planner.cli.figures import Figures, count_run
from planner.cli.runs import recorded_runs
from planner.cli.screen import write
from planner.errors import PlannerError
from planner.model.actions import QuestionKind
from planner.model.verdicts import PlanState, TodoLife
from planner.planfile.file_writer import READABLE, write_file
from planner.planfile.loader import collector_paused
from planner.policy.limits import left
from planner.store.run_log import INTERRUPTED
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.engine import State
    from planner.store.run_log import RecordedRun

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0)
"""Histogram buckets for times of repair, in seconds. By default a branch may live ten minutes."""

_LONGEST_LABEL = 100

FAMILIES: Mapping[str, tuple[str, str]] = {
    "runs": ("Gauge state", "Runs of a plan, by state."),
    "blocked_workflows": (
        "Gauge cause",
        "Runs that wait for a person, or else for a repair.",
    ),
    "halts": ("Counter reason", "Halted runs of a plan, by rule."),
    "last_event_timestamp_seconds": ("Gauge", "The time of the latest event of the latest run."),
    "branches": ("Counter", "Branches made."),
    "open_branches": ("Gauge", "Unresolved branches of the latest run."),
    "branch_resolution_seconds": (
        "Histogram result",
        "Time from the start of a branch until it passed or failed.",
    ),
    "todos": ("Gauge state", "Todos of the latest run without branches, by state."),
    "turns": ("Counter role", "Requested turns of work, by role."),
    "retries": ("Counter", "Retries by the same role."),
    "tokens": ("Counter", "Tokens used, as far as drivers reported them."),
    "cycles": ("Counter", "Patch cycles used, as far as drivers reported them."),
    "verdicts": (
        "Counter verdict category",
        "Verifications, by verdict and category of the deciding failure.",
    ),
    "open_questions": ("Gauge kind", "Open questions of the latest run, by kind."),
    "budget_left": ("Gauge kind", "The rest of each budget in the latest run."),
    "budget_left_ratio": (
        "Gauge kind",
        "The rest of each budget in the latest run, as a ratio.",
    ),
    "spent_seconds": ("Counter on", "Time spent, by purpose."),
}
"""Every metric of a plan by its name without ``planverify_``: its kind and labels, and its help text.

Every metric has the label ``plan``, too.
"""


@dataclass(slots=True)
class PlanMetrics:
    """The metrics of one plan."""

    figures: Figures = field(default_factory=Figures)
    runs: Counter[str] = field(default_factory=Counter[str])
    """The number of runs by state."""
    blocked: Counter[str] = field(default_factory=Counter[str])
    """The number of unfinished runs by what blocks them: ``person``, ``failure``, or nothing."""
    latest: State | None = None
    """The last state of the run with the latest event."""

    def add(self, figures: Figures, state: State, name: str) -> None:
        """Add a run with its figures, its last state, and the name of that state."""
        self.figures.add(figures)
        self.runs[name] += 1
        if name != INTERRUPTED and not state.plan_state.is_final:
            self.blocked["person" if state.questions else "failure" if state.blocked() else ""] += 1
        if self.latest is None or self.latest.now <= state.now:
            self.latest = state


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
            autocompletion=complete_plan,
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
    plans, unreadable = count_runs(recorded_runs(runs or ()))
    text = exposition(plans, unreadable)
    if textfile is None:
        write(text)
    else:
        write_file(textfile, text, mode=READABLE)  # the collector runs as another user
    return Status.UNREADABLE if unreadable else Status.OK


def count_runs(runs: Iterable[RecordedRun]) -> tuple[dict[str, PlanMetrics], int]:
    """Return the metrics of each plan by its id, and how many runs have a log that cannot be read in full.

    Nothing of such a run is counted; its error is reported on standard error.
    """
    plans: dict[str, PlanMetrics] = {}
    unreadable = 0
    for run in runs:
        try:
            with collector_paused():
                figures, state = count_run(run.steps)
        except PlannerError as error:
            unreadable += 1
            complain(str(error))
            continue
        name = one_line(state.plan_id, limit=1_000)[:_LONGEST_LABEL] or "_"
        plans.setdefault(name, PlanMetrics()).add(figures, state, run.state_name(state))
        for remark in run.remarks:
            complain(remark)
    return plans, unreadable


def exposition(plans: Mapping[str, PlanMetrics], unreadable: int = 0) -> str:
    """Return the text of all metrics in the exposition format."""
    import prometheus_client as client

    client.disable_created_metrics()
    registry = client.CollectorRegistry()
    families: dict[str, Any] = {}
    for name, (about, text) in FAMILIES.items():
        kind, *labels = about.split()
        more: dict[str, Any] = {"buckets": BUCKETS} if kind == "Histogram" else {}
        made = getattr(client, kind)
        families[name] = made(f"planverify_{name}", text, ("plan", *labels), registry=registry, **more)
    for plan, plan_metrics in sorted(plans.items()):
        for name, value, *labels in (*_of_plan(plan_metrics), *_of_latest(plan_metrics.latest)):
            family = families[name].labels(plan, *labels)
            (family.inc if isinstance(families[name], client.Counter) else family.set)(value)
        for result, has_passed in (("passed", True), ("failed", False)):
            times = families["branch_resolution_seconds"].labels(plan, result)
            for passed, seconds in plan_metrics.figures.resolutions:
                if passed is has_passed:
                    times.observe(seconds)
    text = "Runs that are not counted because their log cannot be read."
    client.Gauge("planverify_unreadable_runs", text, registry=registry).set(unreadable)
    return client.generate_latest(registry).decode()


def _of_plan(plan: PlanMetrics) -> Iterator[tuple[Any, ...]]:
    """Yield the metrics that add up over the runs of a plan: name, value, labels."""
    figures = plan.figures
    yield from (("runs", plan.runs[state], state) for state in (*map(str, PlanState), INTERRUPTED))
    yield from (("blocked_workflows", plan.blocked[cause], cause) for cause in ("person", "failure"))
    yield from (("halts", count, rule) for rule, count in sorted(figures.halts.items()))
    yield "branches", figures.branches
    yield from (("turns", count, role) for role, count in sorted(figures.turns.items()))
    yield "retries", figures.retries
    spent = (("tokens", figures.tokens), ("cycles", figures.cycles))
    yield from ((name, count) for name, count in spent if count)
    yield from (("verdicts", count, *labels) for labels, count in sorted(figures.verdicts.items()))
    yield "spent_seconds", figures.verification_seconds, "verification"
    yield "spent_seconds", figures.work_seconds, "work"


def _of_latest(run: State | None) -> Iterator[tuple[Any, ...]]:
    """Yield the metrics of the latest run alone: name, value, labels."""
    if run is None:
        return
    yield "last_event_timestamp_seconds", run.now
    lives = Counter(each.life for each in run.todos.values() if not each.is_branch)
    yield from (("todos", lives[life], life.value) for life in TodoLife)
    is_over = run.plan_state.is_final
    branches = sum(each.is_branch and not each.life.is_final for each in run.records.values())
    yield "open_branches", 0 if is_over else branches
    kinds = Counter(question.kind for question in run.questions.values())
    yield from (("open_questions", 0 if is_over else kinds[kind], kind.value) for kind in QuestionKind)
    wall_seconds = 0.0 if run.started is None else run.now - run.started
    budgets = left(run.parts[""].plan.metadata.budget, run.spent, wall_seconds)
    for name, (rest, limit) in budgets.items():
        yield "budget_left_ratio", rest / limit if limit else 0.0, name
        yield "budget_left", rest, name
