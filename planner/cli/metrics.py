"""``planner metrics``: the figures of runs in the exposition format of Prometheus, from their logs alone.

What is told of runs has a ``plan`` label, cleaned, cut and bounded in number. Of several runs of one plan
counters add up; gauges tell of the latest. Nothing is told of this process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from planner.cli.app import command_app
from planner.cli.completing import complete_plan
from planner.cli.ending import Status, complain, ends
from planner.cli.figures import Figures, RunCounter, review
from planner.model.actions import QuestionKind
from planner.model.life import PlanState, TodoLife
from planner.policy.limits import left
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.cli.figures import Step
    from planner.engine import State
    from planner.store.recorded_run import RecordedRun

    Sample: TypeAlias = tuple[str, float, *tuple[tuple[str, str], ...]]
    """The name without ``planverify_``, the number, and labels beside ``plan``."""

app = command_app()

MOST_PLANS = 200
"""So many plans have metrics of their own; those of others are told together."""

OTHER_PLANS = "_other_"

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0)
"""Of times of repair, in seconds: a branch lives ten minutes, unless its plan says otherwise."""

_LONGEST_LABEL = 100


@dataclass(slots=True)
class PlanMetrics:
    """What is told of one plan."""

    name: str
    figures: Figures = field(default_factory=Figures)
    runs: Counter[str] = field(default_factory=Counter[str])
    """By the state that they are in."""
    blocked: Counter[str] = field(default_factory=Counter[str])
    """Runs that are not over, by what stands in their way."""
    latest: State | None = None


class RunMetrics:
    """Takes in runs, one after the other, and tells of all of them."""

    def __init__(self) -> None:
        self._plans: dict[str, PlanMetrics] = {}
        self._runs: set[tuple[str, str]] = set()
        self.unreadable = 0
        """So many runs could not be read to their end."""

    def add(self, steps: Iterable[Step]) -> bool:
        """Take in a run, once: ``False`` for one that was taken in already, from its log or from a store.

        Nothing is taken in of a run that cannot be read to its end. Raises what ``steps`` raises.
        """
        counter = RunCounter()
        for step in steps:
            counter.see(*step)
        submitted, state = counter.submitted, counter.state
        assert submitted is not None  # steps raises where there is no such event
        assert state is not None
        plan_id, run_id = submitted.plan.todo_list_id, submitted.run_id
        if run_id is not None and (plan_id, run_id) in self._runs:
            return False
        if run_id is not None:
            self._runs.add((plan_id, run_id))
        plan = self._plan(plan_id)
        plan.figures.add(counter.figures())
        plan.runs[state.plan_state] += 1
        plan.blocked[_blocked_by(state)] += 1
        if plan.name != OTHER_PLANS and (plan.latest is None or plan.latest.now <= state.now):
            plan.latest = state
        return True

    def plans(self) -> list[PlanMetrics]:
        """Return what is known of each plan, by name."""
        return [self._plans[name] for name in sorted(self._plans)]

    def _plan(self, plan_id: str) -> PlanMetrics:
        name = label(plan_id)
        if name not in self._plans and len(self._plans) >= MOST_PLANS:
            name = OTHER_PLANS
        return self._plans.setdefault(name, PlanMetrics(name))


def exposition(metrics: RunMetrics) -> str:
    """Return the text of all metrics."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    class Families(Collector):
        def collect(self) -> Iterable[Metric]:
            families = {
                name: Metric(f"planverify_{name}", text, kind) for (kind, name), text in FAMILIES.items()
            }
            for plan in metrics.plans():
                for name, value, *labels in chain(_of_plan(plan), _of_latest(plan.latest)):
                    base = name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
                    family = families[base.removesuffix("_total")]
                    told = {"plan": plan.name, **{key: label(text) for key, text in labels}}
                    family.add_sample(f"planverify_{name}", told, value)
            unreadable = families["unreadable_runs"]
            unreadable.add_sample(unreadable.name, {}, metrics.unreadable)
            return families.values()

    registry = CollectorRegistry()
    registry.register(Families())
    return generate_latest(registry).decode()


def label(text: str) -> str:
    """Return the value of a label: clean, on one line, short."""
    line = " ".join(clean(text, limit=10 * _LONGEST_LABEL).split()) or "_"
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"


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
    ("gauge", "budget_left_ratio"): "The part that the latest run has left of each budget of the plan.",
    ("gauge", "budget_left_tokens"): "Tokens that the latest run may still use.",
    ("gauge", "budget_left_cycles"): "Cycles of patching that the latest run may still use.",
    ("gauge", "budget_left_files"): "New files that the latest run may still make.",
    ("gauge", "budget_left_seconds"): "Time that the latest run may still take.",
    ("gauge", "review_ratio"): "The figures of the review that are shares.",
    ("gauge", "review_limit_ratio"): "The limits of these shares.",
    ("gauge", "review_met"): "Whether a figure of the review keeps its limit; absent where unknown.",
    ("gauge", "hierarchy_levels"): "Levels of plans within plans that were used.",
    ("gauge", "done_while_red_todos"): "Done todos whose last verification was red: must be 0.",
    ("counter", "spent_seconds"): "Time that was spent, by what it was spent on.",
    ("gauge", "unreadable_runs"): "Runs whose log cannot be read, and that are not counted.",
}
"""Every metric by kind and name, ``planverify_`` before it, and its help."""

_UNITS = {"new_files": "files", "wall_seconds": "seconds"}
"""By the kind of a budget, what its metric ends with; others are called as they are."""


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
        times = [seconds for each, seconds in figures.repairs if each is passed]
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
    for each in review(figures):
        if each.is_share and each.figure is not None:
            yield "review_ratio", each.figure, ("figure", each.id)
            yield "review_limit_ratio", each.limit, ("figure", each.id)
        if each.met is not None:
            yield "review_met", each.met, ("figure", each.id)
    yield "hierarchy_levels", figures.levels
    yield "done_while_red_todos", figures.done_while_red
    yield "spent_seconds_total", figures.verification_seconds, ("on", "verification")
    yield "spent_seconds_total", figures.work_seconds, ("on", "work")


def _of_latest(run: State | None) -> Iterator[Sample]:
    """Yield what is told of the latest run alone."""
    if run is None:
        return
    yield "last_event_timestamp_seconds", run.now
    blocked = run.blocked()
    lives = Counter(
        TodoLife.BLOCKED if name in blocked else each.life
        for name, each in run.records.items()
        if not each.is_branch
    )
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
        yield f"budget_left_{_UNITS.get(name, name)}", rest


def _blocked_by(state: State) -> str:
    """Return what stands in the way of a run: ``person``, ``failure`` or nothing."""
    if state.plan_state.is_final:
        return ""
    if state.questions:
        return "person"
    return "failure" if state.blocked() else ""


@app.command(
    epilog="\b\nExit status: 0 all runs are told of, 2 wrong usage, 4 a run or a file cannot be read or "
    "written;\nthe metrics of the other runs are written all the same."
)
@ends
def metrics(
    plan: Annotated[
        Path | None,
        typer.Argument(
            metavar="PLAN",
            help="Only runs of this plan; without --log and --store, its usual log. Or the log of a run.",
            autocompletion=complete_plan,
        ),
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option("--log", metavar="FILE", help="The log of a run; may be given several times."),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="All runs of this store.")
    ] = None,
    textfile: Annotated[
        Path | None,
        typer.Option(
            "--textfile",
            metavar="FILE",
            help="Write to this file, at once and whole, for the textfile collector of node_exporter; "
            "- is standard output.",
        ),
    ] = None,
) -> int:
    """Print metrics of runs: branches and how long they took, verdicts, halts, budgets, reviews.

    Everything is counted from the logs of the runs; nothing is kept beside them.
    """
    from planner.cli.runs import find_runs
    from planner.cli.screen import write
    from planner.planfile.file_writer import READABLE, write_file
    from planner.store.run_log import is_log

    logs = log or []
    if plan is not None and is_log(plan):
        plan, logs = None, [plan, *logs]
    counted = RunMetrics()
    for run in find_runs(plan, logs, store):
        _count(counted, run)
    text = exposition(counted)
    if textfile is None:
        write(text)
    else:
        write_file(textfile, text, mode=READABLE)  # its collector is another user
    return Status.UNREADABLE if counted.unreadable else Status.OK


def _count(counted: RunMetrics, run: RecordedRun) -> None:
    """Take in a run; one that cannot be read is told of on standard error, and leaves the others alone."""
    from planner.errors import PlannerError
    from planner.planfile.loader import collector_paused

    try:
        with collector_paused():
            is_new = counted.add(run.steps)
    except PlannerError as error:
        counted.unreadable += 1
        complain(str(error))
        return
    if not is_new:
        complain(f"{run.name}: this run was counted already, from another place; it is counted once")
    for remark in run.remarks:
        complain(remark)
