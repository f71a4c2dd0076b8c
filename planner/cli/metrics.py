"""``planner metrics``: totals of runs in the exposition format of Prometheus, from their logs alone.

Counters add up over the runs of one plan; the rest of the budget is that of the latest run. A registry of
its own keeps the metrics of this process, which the library would add by default, out of the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from planner.catalog.tables import load_table
from planner.cli.app import command
from planner.cli.arguments import option, plan_or_usual
from planner.cli.exits import Status, UsageMistake, complain
from planner.cli.screen import write
from planner.engine import State
from planner.errors import PlannerError
from planner.model.actions import Halt
from planner.model.events import ApprovalGiven, Verified, WorkFinished
from planner.model.taxonomy import Category
from planner.model.verdicts import PlanState, TodoState, Verdict
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.file_writer import READABLE, write_file
from planner.planfile.loader import load_plan
from planner.policy.limits import left
from planner.policy.outcomes import UNDECIDED, failures_of, is_unowned, state_of
from planner.store.plan_run import PlanRun
from planner.store.run_log import INTERRUPTED, plan_logs, run_of_log
from planner.store.run_rows import PASSED, RunRows
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.outcome import Failure, Outcome
    from planner.store.run_log import RecordedRun

_LONGEST_LABEL = 100

FAMILIES = load_table("data/metrics", "planner.cli")
"""Every metric by its name without ``planverify_``: its kind, its labels besides ``plan``, and its help."""

Sample: TypeAlias = "tuple[str, tuple[str, ...], float]"
"""What is added to a metric: its name, its labels except the plan, and the value."""


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
    for name, row in FAMILIES.items():
        labels = ("plan", *row.get("labels", ()))
        more: dict[str, Any] = {"buckets": row["buckets"]} if "buckets" in row else {}
        made = getattr(client, row["kind"])
        families[name] = made(f"planverify_{name}", row["help"], labels, registry=registry, **more)
    unreadable, latest = 0, dict[str, State]()
    for run in runs:
        try:
            samples, state = count_run(run)
        except PlannerError as error:
            unreadable += 1
            complain(str(error))
            continue
        # For Prometheus an empty label is a missing one.
        plan = one_line(state.plan_id, limit=1_000)[:_LONGEST_LABEL] or "_"
        # Both series are exported from the start, even empty: a missing one cannot be told from zero.
        for result in ("passed", "failed"):
            families["branch_resolution_seconds"].labels(plan, result)
        for name, labels, value in samples:
            family = families[name].labels(plan, *labels)
            (family.observe if isinstance(family, client.Histogram) else family.inc)(value)
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


def count_run(run: RecordedRun) -> tuple[list[Sample], State]:
    """Return what a run adds to the metrics, and the state after it.

    Raises :class:`planner.errors.LogError` if its log cannot be read.
    """
    rows, after, samples = RunRows(run), None, list[Sample]()
    for step in run.steps:
        rows.add(step)
        event, actions, _, after = step
        match event:
            case Verified(outcome=outcome):
                verdict, failure = verdict_of(outcome)
                category = "none" if failure is None else failure.category.value
                seconds = (outcome.metrics.duration_ms or 0) / 1000
                samples += ("verdicts", (verdict.value, category), 1), ("verification_seconds", (), seconds)
            case WorkFinished():
                samples.append(("work_seconds", (), (event.duration_ms or 0) / 1000))
            case ApprovalGiven():
                samples.append(("decisions", (event.decision.value,), 1))
            case _:
                pass
        samples += [("halts", (action.rule,), 1) for action in actions if isinstance(action, Halt)]
    assert after is not None  # a log without a line cannot be read
    made = rows.finish()
    branches = [row for row in made["repairs"] if "branch_id" in row]
    samples.append(("branches", (), len(branches)))
    for row in branches:
        if "closed" in row:
            result = "passed" if row["outcome"] == PASSED else "failed"
            samples.append(("branch_resolution_seconds", (result,), row["duration_seconds"]))
    # Repairs whose verification is outstanding have no result yet.
    results = (row["fixed"] for row in made["repairs"] if row.get("fixed") is not None)
    samples += [("repairs", ("fixed" if is_fixed else "failed",), 1) for is_fixed in results]
    # The state in which the run is and what blocks it are 1, all others 0.
    (row,) = made["runs"]
    samples += [("runs", (state,), state == row["state"]) for state in (*map(str, PlanState), INTERRUPTED)]
    blocked = row["blocked_since"] and ("person" if after.questions else "failure")
    samples += [("blocked_workflows", (cause,), cause == blocked) for cause in ("person", "failure")]
    return samples, after


def verdict_of(outcome: Outcome) -> tuple[Verdict, Failure | None]:
    """Return the verdict of a verification of a todo, and the failure that decided it, if there is one.

    The verdict is ``passed``, ``failed``, ``flaky``, ``needs_human`` or ``inconclusive``. It is
    inconclusive where only the environment or the verifier failed, or the outcome contradicts itself.
    """
    state = state_of(outcome)
    if state is TodoState.DONE:
        return Verdict.PASSED, None
    failure = next(failures_of(outcome), None)
    if failure is not None and is_unowned(failure):
        return Verdict.INCONCLUSIVE, failure
    if state is TodoState.TEST_FAILED:
        is_flaky = failure is not None and failure.category is Category.FLAKY_TEST
        return (Verdict.FLAKY if is_flaky else Verdict.FAILED), failure
    verdicts = {Verdict.NEEDS_HUMAN if each.is_unanswered else each.counts_as for each in outcome.checks}
    if Verdict.NEEDS_HUMAN in verdicts and not verdicts & UNDECIDED:
        return Verdict.NEEDS_HUMAN, None
    return Verdict.INCONCLUSIVE, None


def names_log(path: Path) -> bool:
    """Return whether a path is the log of a run: ``*.jsonl``, or another file that has no plan's suffix."""
    return path.suffix == ".jsonl" or (path.suffix not in ("", *PLAN_ENDINGS) and path.is_file())


def recorded_runs(named: Sequence[Path]) -> Iterator[RecordedRun]:
    """Yield the runs of the named logs and all recorded runs of the named plans, or of the usual plan.

    The newest run of a plan comes last. A plan without a log has the run that follows from the outcomes of
    its last verification. Raises :class:`planner.cli.exits.UsageMistake` if a plan has no run at all.
    """
    # A plan that is named twice has its runs once: metrics add them up.
    for path in {each.absolute(): each for each in named or [plan_or_usual(None)]}.values():
        if names_log(path):
            yield run_of_log(path)
            continue
        logs = [log for log in plan_logs(load_plan(path)) if log.is_file() and log.stat().st_size]
        if not logs:
            opened = PlanRun.open(path)
            if opened.found.document is None:
                raise UsageMistake(
                    f"{path} has no run yet; run first: {opened.found.verify}, or name a log"
                )
            yield opened.recorded()
        yield from map(run_of_log, logs)
