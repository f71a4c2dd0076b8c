"""Which recorded runs a command line means: logs, the usual log of a plan, or the runs of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.cli.ending import UsageMistake
from planner.edges.told_runs import run_of_log, run_of_store
from planner.edges.usual_log import usual_log
from planner.errors import LogError
from planner.model.events import PlanSubmitted
from planner.planfile.loader import load_plan, shown_path

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from planner.cli.figures import Step
    from planner.edges.told_runs import ToldRun
    from planner.planfile.loader import LoadedPlan


class Run(NamedTuple):
    """One run that can be gone through once."""

    name: str
    """How messages call it."""
    steps: Iterator[Step]
    """Raises :class:`planner.errors.LogError` where the log cannot be read on, or is another plan's."""
    remarks: list[str]
    """Complete when the steps are over."""


def find_runs(
    plan: Path | None, logs: Sequence[Path], store: str | None, run_id: str | None = None
) -> Generator[Run, None, None]:
    """Yield the runs of the logs, then those of a store, the latest first; else that of the usual log.

    Raises :class:`planner.cli.ending.UsageMistake` where nothing names a run that is there.
    """
    loaded = None if plan is None else load_plan(plan)
    if not logs and store is None:
        usual = None if loaded is None else usual_log(loaded, run_id)
        if plan is None or usual is None:
            raise UsageMistake("name a plan, the log of a run with --log, or a store with --store")
        if not usual.is_file():
            raise UsageMistake(
                f"there is no log of a run of {shown_path(plan)}; name it with --log, or its store with "
                "--store"
            )
        logs = [usual]
    for log in logs:
        yield _of_plan(run_of_log(log), loaded)
    if store is not None:
        yield from _stored(store, loaded, run_id)


def _stored(url: str, loaded: LoadedPlan | None, run_id: str | None) -> Iterator[Run]:
    from planner.edges.store import Store

    plan_id = None if loaded is None else loaded.plan.todo_list_id
    with Store.open(url, create=False) as store:
        names = [run.run_id for run in store.runs(plan_id)] if run_id is None else [run_id]
        if not names:
            of_plan = "" if plan_id is None else f" of the plan '{plan_id}'"
            raise LogError(
                f"{store.name}: there is no run{of_plan}; planner history lists those that are there"
            )
        yield from (_of_plan(run_of_store(store, name), loaded) for name in names)


def _of_plan(run: ToldRun, loaded: LoadedPlan | None) -> Run:
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

    return Run(run.name, steps(), run.remarks)
