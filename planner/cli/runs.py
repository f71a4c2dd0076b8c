"""The runs that commands speak of: that of a plan, with what its files call for, and recorded runs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from planner.cli.arguments import nearest
from planner.cli.exits import UsageMistake
from planner.errors import LogError
from planner.planfile.loader import load_plan
from planner.store.plan_run import PlanRun
from planner.store.recorded_run import run_of_log
from planner.store.run_log import plan_logs
from planner.text.display import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.engine import State
    from planner.store.recorded_run import RecordedRun
    from planner.store.run_log import Step


def known_todo(state: State, name: str, where: str) -> str:
    """Return the qualified id of a todo of a run; its last part is enough where only one todo has it."""
    if name in state.records:
        return name
    found = [each for each in state.records if each.endswith(f"/{name}")]
    if len(found) == 1:
        return found[0]
    raise UsageMistake(
        f"{where}{name}: there is no such todo; {nearest(name, sorted(state.records), 'the todos are')}"
    )


def words_of(run: PlanRun, plan: Path) -> str:
    """Return the words that name this run on a command line: its plan, and its log where one was named."""
    words = [str(plan)] if run.named_log is None else ["--log", str(run.named_log), str(plan)]
    return shlex.join(words)


class Readiness(NamedTuple):
    """The command to run before any action, by the state of the files."""

    command: str | None = None
    """What to run, where the outcomes say less than they could."""
    remarks: tuple[str, ...] = ()
    unaccepted: str | None = None
    """Why a run was not accepted in which no criterion failed."""


def readiness(run: PlanRun) -> Readiness:
    """Return what to run first, and why: the plan was not verified yet, or not as it is now."""
    found = run.found
    remarks: list[str] = []
    command: str | None = None
    if found.unfinished is not None:
        unfinished = found.unfinished
        said = {"running": "is still running", "killed": "was killed"}.get(
            unfinished.state, "was interrupted"
        )
        remarks.append(f"the newest run {said} after {counted(unfinished.judged, 'criterion')}")
        command = None if unfinished.state == "running" else f"{found.verify} --planverify-resume"
    elif found.document is None and not run.is_driven:
        remarks.append("the plan was not verified yet")
        command = found.verify
    elif found.plan_change is not None and run.log is not None and not run.state.reds:
        remarks.append("the plan has changed since it was verified")
        command = found.verify
    elif found.files.paths:
        old = f"; the verdicts of {listed(found.files.by_todo, 5)} are old" if found.files.by_todo else ""
        remarks.append(f"{listed(found.files.paths, 3)} changed since the run{old}")
        command = found.verify
    unaccepted = None if found.document is None else found.document.run.unexplained
    if unaccepted:
        remarks.append(f"the run was not accepted: {unaccepted}")
    return Readiness(command, (*remarks, *run.remarks), unaccepted)


# -- recorded runs -------------------------------------------------------------------------------------


def recorded_runs(plan: Path | None, logs: Sequence[Path]) -> Iterator[RecordedRun]:
    """Yield the runs of these logs, of the plan if one is named; without logs, those kept of the plan.

    The newest comes last. A plan that no driver carries out has a run, too: that of its verifications.
    Raises :class:`planner.cli.exits.UsageMistake` where nothing names a run that is there.
    """
    if plan is None and not logs:
        raise UsageMistake("name a plan, or the log of a run with --log")
    loaded = None if plan is None else load_plan(plan)
    there = [] if loaded is None else [log for log in plan_logs(loaded) if log.is_file()]
    kept = logs or [log for log in there if log.stat().st_size]  # nothing was told to an empty one yet
    for log in kept:
        run = run_of_log(log)
        if loaded is not None:
            run = run._replace(steps=_of_plan(run, loaded.plan.todo_list_id))
        yield run
    if plan is not None and not kept:
        opened = PlanRun.open(plan)
        if opened.found.document is None:
            raise UsageMistake(
                f"there is no run of {plan} yet; run first: {opened.found.verify}, or name a log with --log"
            )
        yield opened.recorded()


def _of_plan(run: RecordedRun, plan_id: str) -> Iterator[Step]:
    for step in run.steps:
        if step.after.plan_id != plan_id:
            raise LogError(
                f"{run.name}: this is a run of the plan '{step.after.plan_id}', not of '{plan_id}'; leave "
                "the plan out, or name another run"
            )
        yield step
