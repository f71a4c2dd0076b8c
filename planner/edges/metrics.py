"""Metrics of runs in the exposition format of Prometheus, made from their logs alone.

What is told of runs has a ``plan`` label, cleaned, cut and bounded in number. Of several runs of one plan
counters add up; gauges tell of the latest. Nothing is told of this process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from planner.model.actions import QuestionKind
from planner.model.life import PlanState, TodoLife
from planner.rules.reviewing import judge
from planner.rules.run_counts import RunCounts, counted
from planner.rules.run_view import budget_left
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.rules.run_view import RunView

MOST_PLANS = 200
"""So many plans have metrics of their own; those of others are told together."""

OTHER_PLANS = "_other_"

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0)
"""Of times of repair, in seconds: a branch lives ten minutes, unless its plan says otherwise."""

_LONGEST_LABEL = 100
_PERSON, _FAILURE = "person", "failure"


@dataclass(slots=True)
class PlanMetrics:
    """What is told of one plan."""

    name: str
    counts: RunCounts = field(default_factory=RunCounts)
    runs: Counter[PlanState] = field(default_factory=Counter[PlanState])
    """By the state that they are in."""
    blocked: Counter[str] = field(default_factory=Counter[str])
    """Runs that are not over, by what stands in their way."""
    latest: RunView | None = None


class RunMetrics(Collector):
    """Takes in runs, one after the other, and gives metrics of all of them."""

    def __init__(self) -> None:
        self._plans: dict[str, PlanMetrics] = {}
        self._runs: set[tuple[str, str]] = set()
        self._unreadable = 0

    def add(self, steps: Iterable[tuple[Event, Sequence[Action], RunView | None, RunView]]) -> bool:
        """Take in a run, once: ``False`` for one that was taken in already, from its log or from a store.

        Nothing is taken in of a run that cannot be read to its end. Raises what ``steps`` raises.
        """
        submitted, state, counts = counted(steps)
        plan_id, run_id = submitted.plan.todo_list_id, submitted.run_id
        if run_id is not None:
            if (plan_id, run_id) in self._runs:
                return False
            self._runs.add((plan_id, run_id))
        plan = self._plan(plan_id)
        plan.counts.add(counts)
        plan.runs[state.plan_state] += 1
        plan.blocked[_blocked_by(state)] += 1
        if plan.name != OTHER_PLANS and (plan.latest is None or plan.latest.now <= state.now):
            plan.latest = state
        return True

    def add_unreadable(self) -> None:
        """Tell that there is a run of which nothing is told."""
        self._unreadable += 1

    def collect(self) -> Iterator[Metric]:
        """The metric families, as the registry asks for them."""
        plans = [self._plans[name] for name in sorted(self._plans)]
        yield from _of_runs(plans)
        yield from _of_branches(plans)
        yield from _of_work(plans)
        yield from _of_budgets(plans)
        yield from _of_reviews(plans)
        unreadable = GaugeMetricFamily(
            "planverify_unreadable_runs", "Runs whose log cannot be read, and that are not counted."
        )
        unreadable.add_metric([], self._unreadable)
        yield unreadable

    def _plan(self, plan_id: str) -> PlanMetrics:
        name = label(plan_id)
        if name not in self._plans and len(self._plans) >= MOST_PLANS:
            name = OTHER_PLANS
        return self._plans.setdefault(name, PlanMetrics(name))


def exposition(metrics: RunMetrics) -> str:
    """The text of all metrics."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry).decode()


def label(text: str) -> str:
    """The value of a label: clean, on one line, short."""
    line = " ".join(clean(text, limit=10 * _LONGEST_LABEL).split()) or "_"
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"


def _blocked_by(state: RunView) -> str:
    """What stands in the way of a run; the empty text where nothing does."""
    if state.plan_state.is_final:
        return ""
    if state.questions:
        return _PERSON
    return _FAILURE if state.blocked() else ""


def _of_runs(plans: Sequence[PlanMetrics]) -> Iterator[Metric]:
    runs = GaugeMetricFamily("planverify_runs", "Runs of a plan, by its state.", labels=["plan", "state"])
    blocked = GaugeMetricFamily(
        "planverify_blocked_workflows",
        "Runs of a plan in which something waits for a person, or else for a repair.",
        labels=["plan", "cause"],
    )
    halts = CounterMetricFamily(
        "planverify_halts", "Runs of a plan that were halted, by the rule.", labels=["plan", "reason"]
    )
    seen = GaugeMetricFamily(
        "planverify_last_event_timestamp_seconds",
        "When the latest event of the latest run of a plan happened.",
        labels=["plan"],
    )
    for plan in plans:
        for state in PlanState:
            runs.add_metric([plan.name, state.value], plan.runs[state])
        for cause in (_PERSON, _FAILURE):
            blocked.add_metric([plan.name, cause], plan.blocked[cause])
        for reason, count in sorted(plan.counts.halts.items()):
            halts.add_metric([plan.name, label(reason)], count)
        if plan.latest is not None:
            seen.add_metric([plan.name], plan.latest.now)
    yield from (runs, blocked, halts, seen)


def _of_branches(plans: Sequence[PlanMetrics]) -> Iterator[Metric]:
    made = CounterMetricFamily("planverify_branches", "Branches that were made.", labels=["plan"])
    alive = GaugeMetricFamily(
        "planverify_open_branches", "Branches of the latest run that are not resolved.", labels=["plan"]
    )
    took = HistogramMetricFamily(
        "planverify_branch_resolution_seconds",
        "From the making of a branch until it passed or failed for good.",
        labels=["plan", "result"],
    )
    for plan in plans:
        made.add_metric([plan.name], plan.counts.branches)
        latest = plan.latest
        if latest is not None:
            branches = (record for record in latest.records.values() if record.is_branch)
            count = sum(not branch.life.is_final for branch in branches)
            alive.add_metric([plan.name], 0 if latest.plan_state.is_final else count)
        for result, passed in (("passed", True), ("failed", False)):
            times = [seconds for each, seconds in plan.counts.repairs if each is passed]
            took.add_metric([plan.name, result], buckets=_buckets(times), sum_value=sum(times))
    yield from (made, alive, took)


def _buckets(times: Sequence[float]) -> list[tuple[str, float]]:
    held = [(f"{limit:.1f}", float(sum(each <= limit for each in times))) for limit in BUCKETS]
    return [*held, ("+Inf", float(len(times)))]


def _of_work(plans: Sequence[PlanMetrics]) -> Iterator[Metric]:
    todos = GaugeMetricFamily(
        "planverify_todos",
        "Todos of the latest run, branches not counted, by state.",
        labels=["plan", "state"],
    )
    turns = CounterMetricFamily(
        "planverify_turns", "Turns of work that were asked for, by role.", labels=["plan", "role"]
    )
    retries = CounterMetricFamily(
        "planverify_retries", "Turns of work that were retries by the same role.", labels=["plan"]
    )
    verdicts = CounterMetricFamily(
        "planverify_verdicts",
        "Verifications of a todo, by what they said and the category of the failure that decides.",
        labels=["plan", "verdict", "category"],
    )
    questions = GaugeMetricFamily(
        "planverify_open_questions",
        "Questions of the latest run that wait for a person, by kind.",
        labels=["plan", "kind"],
    )
    for plan in plans:
        for role, count in sorted(plan.counts.turns.items()):
            turns.add_metric([plan.name, role], count)
        retries.add_metric([plan.name], plan.counts.retries)
        for (verdict, category), count in sorted(plan.counts.verdicts.items()):
            verdicts.add_metric([plan.name, verdict, category], count)
        latest = plan.latest
        if latest is None:
            continue
        lives = Counter(record.life for record in latest.todos.values() if not record.is_branch)
        asked = () if latest.plan_state.is_final else latest.questions.values()
        kinds = Counter(question.kind for question in asked)
        for life in TodoLife:
            todos.add_metric([plan.name, life.value], lives[life])
        for kind in QuestionKind:
            questions.add_metric([plan.name, kind.value], kinds[kind])
    yield from (todos, turns, retries, verdicts, questions)


_BUDGETS = {
    "tokens": ("planverify_budget_left_tokens", "Tokens that the latest run may still use."),
    "cycles": ("planverify_budget_left_cycles", "Cycles of patching that the latest run may still use."),
    "new_files": ("planverify_budget_left_files", "New files that the latest run may still make."),
    "wall_seconds": ("planverify_budget_left_seconds", "Time that the latest run may still take."),
}
"""By the kind of a budget, the metric that tells how much of it is left, in its own unit."""


def _of_budgets(plans: Sequence[PlanMetrics]) -> Iterator[Metric]:
    ratio = GaugeMetricFamily(
        "planverify_budget_left_ratio",
        "The part of a budget that the latest run has left, by kind; only of budgets that the plan sets.",
        labels=["plan", "kind"],
    )
    left = {kind: GaugeMetricFamily(*named, labels=["plan"]) for kind, named in _BUDGETS.items()}
    for plan in plans:
        if plan.latest is None:
            continue
        for kind, (rest, limit) in budget_left(plan.latest).items():
            ratio.add_metric([plan.name, kind], rest / limit if limit else 0.0)
            left[kind].add_metric([plan.name], rest)
    yield from (ratio, *left.values())


def _of_reviews(plans: Sequence[PlanMetrics]) -> Iterator[Metric]:
    shares = GaugeMetricFamily(
        "planverify_review_ratio", "The figures of the review that are shares.", labels=["plan", "figure"]
    )
    limits = GaugeMetricFamily(
        "planverify_review_limit_ratio", "The limits of these shares.", labels=["plan", "figure"]
    )
    met = GaugeMetricFamily(
        "planverify_review_met",
        "Whether a figure of the review keeps its limit (1) or not (0); absent where nothing is known.",
        labels=["plan", "figure"],
    )
    levels = GaugeMetricFamily(
        "planverify_hierarchy_levels", "Levels of plans within plans that were used.", labels=["plan"]
    )
    red = GaugeMetricFamily(
        "planverify_done_while_red_todos",
        "Done todos with a red check in their last verification: must be 0.",
        labels=["plan"],
    )
    spent = CounterMetricFamily(
        "planverify_spent_seconds", "Time that was spent, by what it was spent on.", labels=["plan", "on"]
    )
    for plan in plans:
        tally = plan.counts.tally
        for review in judge(tally):
            if review.figure is not None and review.is_share:
                shares.add_metric([plan.name, review.id], review.figure)
                limits.add_metric([plan.name, review.id], review.limit)
            if review.met is not None:
                met.add_metric([plan.name, review.id], review.met)
        levels.add_metric([plan.name], tally.levels)
        red.add_metric([plan.name], tally.done_while_red)
        spent.add_metric([plan.name, "verification"], tally.verification_seconds)
        spent.add_metric([plan.name, "work"], tally.work_seconds)
    yield from (shares, limits, met, levels, red, spent)
