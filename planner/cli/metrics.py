"""``planner metrics``: the figures of runs in the exposition format of Prometheus, from their logs alone.

Counters add up over the runs of one plan; gauges describe the latest run. A registry of its own keeps the
metrics of this process, which the library would add by default, out of the text.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import complete_plan, option
from planner.cli.exits import Status, complain
from planner.cli.figures import Figures, count_run
from planner.cli.runs import recorded_runs
from planner.cli.screen import write
from planner.engine import State
from planner.errors import PlannerError
from planner.model.actions import QuestionKind
from planner.model.verdicts import PlanState, TodoLife
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
    "budget_left_ratio": ("Gauge kind", "The rest of each budget in the latest run, as a ratio."),
    "spent_seconds": ("Counter on", "Time spent, by purpose."),
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
        plan = one_line(state.plan_id, limit=1_000)[:_LONGEST_LABEL] or "_"
        for name, value, *labels in (*_counts(figures), *_states(state, run.state_name(state))):
            families[name].labels(plan, *labels).inc(value)
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
        for name, value, *labels in _of_latest(state):
            families[name].labels(plan, *labels).set(value)
    text = "Runs that are not counted because their log cannot be read."
    client.Gauge("planverify_unreadable_runs", text, registry=registry).set(unreadable)
    return client.generate_latest(registry).decode(), unreadable


def _counts(figures: Figures) -> Iterator[tuple[Any, ...]]:
    """Yield the counters of a run: name, value, labels."""
    yield from (("halts", count, rule) for rule, count in sorted(figures.halts.items()))
    yield "branches", figures.branches
    yield from (("turns", count, role) for role, count in sorted(figures.turns.items()))
    yield "retries", figures.retries
    spent = (("tokens", figures.tokens), ("cycles", figures.cycles))
    yield from ((name, count) for name, count in spent if count)
    yield from (("verdicts", count, *labels) for labels, count in sorted(figures.verdicts.items()))
    yield "spent_seconds", figures.verification_seconds, "verification"
    yield "spent_seconds", figures.work_seconds, "work"


def _states(last: State, name: str) -> Iterator[tuple[Any, ...]]:
    """Yield 1 for the state in which a run is and for what blocks it, 0 for all others."""
    yield from (("runs", state == name, state) for state in (*map(str, PlanState), INTERRUPTED))
    is_over = name == INTERRUPTED or last.plan_state.is_final
    blocked = "" if is_over else "person" if last.questions else "failure" if last.blocked() else ""
    yield from (("blocked_workflows", cause == blocked, cause) for cause in ("person", "failure"))


def _of_latest(run: State) -> Iterator[tuple[Any, ...]]:
    """Yield the metrics of the latest run alone: name, value, labels."""
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
