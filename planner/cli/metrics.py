"""``planner metrics``: the figures of runs in the exposition format of Prometheus, from their logs alone.

Of several runs of one plan counters add up; gauges tell of the latest. Nothing is told of this process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from planner.cli.app import command
from planner.cli.arguments import complete_plan, option
from planner.cli.exits import Status, complain
from planner.cli.figures import Figures, count_run
from planner.model.actions import QuestionKind
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.limits import left
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.engine import State
    from planner.store.recorded_run import RecordedRun

    Sample: TypeAlias = tuple[str, float, *tuple[tuple[str, str], ...]]
    """The name without ``planverify_``, the number, and labels beside ``plan``."""

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0)
"""Of times of repair, in seconds: a branch lives ten minutes, unless its plan says otherwise."""

_LONGEST_LABEL = 100

FAMILIES: Mapping[tuple[str, str], str] = {
    ("gauge", "runs"): "Runs of a plan, by its state.",
    ("gauge", "blocked_workflows"): "Runs in which something waits for a person, or else for a repair.",
    ("counter", "halts"): "Runs of a plan that were halted, by the rule.",
    ("gauge", "last_event_timestamp_seconds"): "When the latest event of the latest run happened.",
    ("counter", "branches"): "Branches that were made.",
    ("gauge", "open_branches"): "Branches of the latest run that are not resolved.",
    ("histogram", "branch_resolution_seconds"): "From the making of a branch until it passed or failed.",
    ("gauge", "todos"): "Todos of the latest run, branches not counted, by state.",
    ("counter", "turns"): "Turns of work that were asked for, by role.",
    ("counter", "retries"): "Turns of work that were retries by the same role.",
    ("counter", "tokens"): "Tokens that were used; only where drivers told them.",
    ("counter", "cycles"): "Cycles of patching that were used; only where drivers told them.",
    ("counter", "verdicts"): "Verifications, by what they said and the category of what decides.",
    ("gauge", "open_questions"): "Questions of the latest run that wait for a person, by kind.",
    ("gauge", "budget_left"): "What the latest run has left of each budget of the plan.",
    ("gauge", "budget_left_ratio"): "The part that the latest run has left of each budget of the plan.",
    ("counter", "spent_seconds"): "Time that was spent, by what it was spent on.",
    ("gauge", "unreadable_runs"): "Runs whose log cannot be read, and that are not counted.",
}
"""Every metric by kind and name, ``planverify_`` before it, and its help."""


@dataclass(slots=True)
class PlanMetrics:
    """What is told of one plan."""

    figures: Figures = field(default_factory=Figures)
    runs: Counter[str] = field(default_factory=Counter[str])
    """By the state that they are in."""
    blocked: Counter[str] = field(default_factory=Counter[str])
    """Runs that are not over, by what stands in their way."""
    latest: State | None = None

    def add(self, figures: Figures, state: State) -> None:
        """Take in a run."""
        self.figures.add(figures)
        self.runs[state.plan_state] += 1
        if not state.plan_state.is_final:
            self.blocked["person" if state.questions else "failure" if state.blocked() else ""] += 1
        if self.latest is None or self.latest.now <= state.now:
            self.latest = state


@command(
    "\b\nExit status: 0 all runs are told of, 2 wrong usage, 4 a run or a file cannot be read or "
    "written;\nthe metrics of the other runs are written all the same."
)
def metrics(
    plan: Annotated[
        Path | None,
        typer.Argument(
            metavar="PLAN",
            help="The plan; without --log, all runs of it that are kept. Or the log of a run.",
            autocompletion=complete_plan,
        ),
    ] = None,
    log: Annotated[
        list[Path] | None, option("--log FILE", "The log of a run; may be given several times.")
    ] = None,
    textfile: Annotated[
        Path | None,
        option(
            "--textfile FILE",
            "Write to this file, at once and whole, for the textfile collector of node_exporter; "
            "- is standard output.",
        ),
    ] = None,
) -> int:
    """Print metrics of runs: branches and how long they took, verdicts, halts, budgets.

    Everything is counted from the logs of the runs; nothing is kept beside them.
    """
    from planner.cli.runs import recorded_runs
    from planner.cli.screen import write
    from planner.planfile.file_writer import READABLE, write_file
    from planner.store.run_log import is_log

    logs = log or []
    if plan is not None and is_log(plan):
        plan, logs = None, [plan, *logs]
    plans, unreadable = count_runs(recorded_runs(plan, logs))
    text = exposition(plans, unreadable)
    if textfile is None:
        write(text)
    else:
        write_file(textfile, text, mode=READABLE)  # its collector is another user
    return Status.UNREADABLE if unreadable else Status.OK


def count_runs(runs: Iterable[RecordedRun]) -> tuple[dict[str, PlanMetrics], int]:
    """Return what is told of each plan, and how many runs cannot be read to their end.

    Of such a run nothing is counted; it is told of on standard error.
    """
    from planner.errors import PlannerError
    from planner.planfile.loader import collector_paused

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
        plans.setdefault(_label(state.plan_id), PlanMetrics()).add(figures, state)
        for remark in run.remarks:
            complain(remark)
    return plans, unreadable


def exposition(plans: Mapping[str, PlanMetrics], unreadable: int = 0) -> str:
    """Return the text of all metrics."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    families = {name: Metric(f"planverify_{name}", text, kind) for (kind, name), text in FAMILIES.items()}
    for plan in sorted(plans):
        for name, value, *labels in (*_of_plan(plans[plan]), *_of_latest(plans[plan].latest)):
            base = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
            told = {"plan": plan, **{key: _label(text) for key, text in labels}}
            families[base.removesuffix("_total")].add_sample(f"planverify_{name}", told, value)
    families["unreadable_runs"].add_sample("planverify_unreadable_runs", {}, unreadable)

    class Families(Collector):
        def collect(self) -> Iterable[Metric]:
            return families.values()

    registry = CollectorRegistry()
    registry.register(Families())
    return generate_latest(registry).decode()


def _label(text: str) -> str:
    """Return the value of a label: clean, on one line, short."""
    line = " ".join(clean(text, limit=10 * _LONGEST_LABEL).split()) or "_"
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"


def _of_plan(plan: PlanMetrics) -> Iterator[Sample]:
    """Yield what adds up over the runs of a plan."""
    figures = plan.figures
    yield from (("runs", plan.runs[state], ("state", state.value)) for state in PlanState)
    for cause in ("person", "failure"):
        yield "blocked_workflows", plan.blocked[cause], ("cause", cause)
    for rule, count in sorted(figures.halts.items()):
        yield "halts_total", count, ("reason", rule)
    yield "branches_total", figures.branches
    for result, passed in (("passed", True), ("failed", False)):
        times = [seconds for each, seconds in figures.resolutions if each is passed]
        name, of = "branch_resolution_seconds", ("result", result)
        for bound in BUCKETS:
            yield f"{name}_bucket", sum(each <= bound for each in times), of, ("le", f"{bound:.1f}")
        yield f"{name}_bucket", len(times), of, ("le", "+Inf")
        yield f"{name}_count", len(times), of
        yield f"{name}_sum", sum(times), of
    for role, count in sorted(figures.turns.items()):
        yield "turns_total", count, ("role", role)
    yield "retries_total", figures.retries
    for name, count in (("tokens", figures.tokens), ("cycles", figures.cycles)):
        if count:
            yield f"{name}_total", count
    for (verdict, category), count in sorted(figures.verdicts.items()):
        yield "verdicts_total", count, ("verdict", verdict), ("category", category)
    yield "spent_seconds_total", figures.verification_seconds, ("on", "verification")
    yield "spent_seconds_total", figures.work_seconds, ("on", "work")


def _of_latest(run: State | None) -> Iterator[Sample]:
    """Yield what is told of the latest run alone."""
    if run is None:
        return
    yield "last_event_timestamp_seconds", run.now
    lives = Counter(each.life for each in run.todos.values() if not each.is_branch)
    yield from (("todos", lives[life], ("state", life.value)) for life in TodoLife)
    is_over = run.plan_state.is_final
    branches = sum(each.is_branch and not each.life.is_final for each in run.records.values())
    yield "open_branches", 0 if is_over else branches
    kinds = Counter(question.kind for question in run.questions.values())
    for kind in QuestionKind:
        yield "open_questions", 0 if is_over else kinds[kind], ("kind", kind.value)
    wall_seconds = 0.0 if run.started is None else run.now - run.started
    budgets = left(run.parts[""].plan.metadata.budget, run.spent, wall_seconds)
    for name, (rest, limit) in budgets.items():
        yield "budget_left_ratio", rest / limit if limit else 0.0, ("kind", name)
        yield "budget_left", rest, ("kind", name)
