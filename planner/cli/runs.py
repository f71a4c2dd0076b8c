"""Which recorded runs a command line means: logs, the usual log of a plan, or the runs of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.cli.ending import UsageMistake
from planner.errors import LogError
from planner.model.events import PlanSubmitted
from planner.planfile.loader import load_plan
from planner.store.recorded_run import RecordedRun, run_of_log
from planner.store.run_log import latest_log

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan
    from planner.store.run_log import Step


def find_runs(
    plan: Path | None, logs: Sequence[Path], store: str | None, run_id: str | None = None
) -> Generator[RecordedRun, None, None]:
    """Yield the runs of the logs, then those of an index, the latest first; else the newest of the plan.

    A plan that no driver carries out has a run, too: that of its verifications. Raises
    :class:`planner.cli.ending.UsageMistake` where nothing names a run that is there.
    """
    loaded = None if plan is None else load_plan(plan)
    if not logs and store is None:
        if plan is None or loaded is None:
            raise UsageMistake("name a plan, the log of a run with --log, or an index with --store")
        yield _newest(plan, loaded, run_id)
        return
    for log in logs:
        yield _of_plan(run_of_log(log), loaded)
    if store is not None:
        yield from _indexed(store, loaded, run_id)


def _newest(plan: Path, loaded: LoadedPlan, run_id: str | None) -> RecordedRun:
    from planner.store.plan_run import PlanRun

    log = latest_log(loaded, run_id)
    if log.is_file():
        return _of_plan(run_of_log(log), loaded)
    run = PlanRun.open(plan)
    if run_id is not None or run.found.document is None:
        raise UsageMistake(
            f"there is no run of {plan} yet; run first: {run.found.verify}, or name a log with --log"
        )
    return run.recorded()


def _indexed(url: str, loaded: LoadedPlan | None, run_id: str | None) -> Iterator[RecordedRun]:
    from planner.store.index import Index

    plan_id = None if loaded is None else loaded.plan.todo_list_id
    with Index.open(url, create=False) as index:
        logs = list(index.logs(plan_id, run_id))
        if not logs:
            named = "" if run_id is None else f" '{run_id}'"
            of_plan = "" if plan_id is None else f" of the plan '{plan_id}'"
            raise LogError(
                f"{index.name}: there is no run{named}{of_plan}; planner history lists those that are there"
            )
        yield from (_of_plan(run_of_log(log), loaded) for log in logs)


def _of_plan(run: RecordedRun, loaded: LoadedPlan | None) -> RecordedRun:
    def steps() -> Iterator[Step]:
        for step in run.steps:
            event = step.event
            if loaded is not None and isinstance(event, PlanSubmitted):
                meant, found = loaded.plan.todo_list_id, event.plan.todo_list_id
                if meant != found:
                    raise LogError(
                        f"{run.name}: this is a run of the plan '{found}', not of '{meant}'; leave the plan"
                        " out, or name another run"
                    )
            yield step

    return run._replace(steps=steps())
