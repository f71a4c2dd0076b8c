"""``planner metrics``: the metrics of runs in the exposition format of Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.completing import complete_plan
from planner.cli.ending import Status, UsageMistake, complain, ends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.edges.metrics import RunMetrics
    from planner.store.recorded_run import RecordedRun
    from planner.store.run_log import Step

app = command_app()


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
    from planner.cli.screen import write
    from planner.edges.file_writer import READABLE, write_file
    from planner.edges.metrics import RunMetrics, exposition

    counted = RunMetrics()
    plan_id, logs = _named(plan, log or [], is_stored=store is not None)
    is_complete = True
    for run in _runs(plan_id, logs, store):
        is_complete &= _count(counted, run, plan_id)
    text = exposition(counted)
    if textfile is None:
        write(text)
    else:
        write_file(textfile, text, mode=READABLE)  # its collector is another user
    return Status.OK if is_complete else Status.UNREADABLE


def _named(plan: Path | None, logs: list[Path], *, is_stored: bool) -> tuple[str | None, list[Path]]:
    """The id of the plan that is named, and the logs; a log may stand in the place of the plan."""
    from planner.store.run_log import is_log

    if plan is not None and is_log(plan):
        return None, [plan, *logs]
    if plan is None:
        if not logs and not is_stored:
            raise UsageMistake("name a plan, the log of a run with --log, or a store with --store")
        return None, logs
    from planner.planfile.loader import load_plan
    from planner.store.run_log import latest_log

    loaded = load_plan(plan)
    if not logs and not is_stored:
        logs = [latest_log(loaded, None)]
    return loaded.plan.todo_list_id, logs


def _runs(plan_id: str | None, logs: list[Path], url: str | None) -> Iterator[RecordedRun]:
    from planner.store.recorded_run import run_of_log

    yield from map(run_of_log, logs)
    if url is not None:
        from planner.store.index import Index

        with Index.open(url, create=False) as index:
            yield from map(run_of_log, index.logs(plan_id))


def _count(counted: RunMetrics, run: RecordedRun, plan_id: str | None) -> bool:
    """Take in a run; one that cannot be read is told of on standard error, and leaves the others alone."""
    from planner.errors import PlannerError
    from planner.planfile.loader import collector_paused

    try:
        with collector_paused():
            is_new = counted.add(_of_plan(run, plan_id))
    except PlannerError as error:
        counted.add_unreadable()
        complain(str(error))
        return False
    if not is_new:
        complain(f"{run.name}: this run was counted already, from another place; it is counted once")
    for remark in run.remarks:
        complain(remark)
    return True


def _of_plan(run: RecordedRun, plan_id: str | None) -> Iterator[Step]:
    """The steps of a run, of that plan where one was named."""
    from planner.errors import LogError
    from planner.model.events import PlanSubmitted

    for taken in run.steps:
        event = taken.event
        if isinstance(event, PlanSubmitted) and plan_id not in (None, event.plan.todo_list_id):
            raise LogError(
                f"{run.name}: this is a run of the plan '{event.plan.todo_list_id}', not of '{plan_id}'; "
                "leave the plan out, or the log"
            )
        yield taken
