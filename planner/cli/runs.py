"""Helpers of the commands that work on runs: todo names, readiness of a plan's run, and recorded runs."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from planner.cli.arguments import nearest, plan_or_usual
from planner.cli.exits import UsageMistake
from planner.engine.intake import time_of
from planner.model.verdicts import TodoLife
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.loader import load_plan
from planner.store.plan_run import PlanRun
from planner.store.run_log import plan_logs, run_of_log
from planner.text.display import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.engine import State
    from planner.store.run_log import RecordedRun


def known_todo(state: State, name: str) -> str:
    """Return the qualified id of a todo of a run; its last part is enough where it is unique.

    Raises ``UsageMistake`` with similar names if there is no such todo.
    """
    if name in state.records:
        return name
    found = [each for each in state.records if each.endswith(f"/{name}")]
    if len(found) == 1:
        return found[0]
    near = nearest(name, sorted(state.records), "its todos are")
    raise UsageMistake(f"there is no todo '{name}' in the plan; {near}")


def words_of(run: PlanRun, plan: Path) -> str:
    """Return the arguments that name this run, quoted for a shell: ``--log`` if one was given, the plan."""
    words = [str(plan)] if run.named_log is None else ["--log", str(run.named_log), str(plan)]
    return shlex.join(words)


class Readiness(NamedTuple):
    """State of the outcomes beside the files, and the command that makes them up to date."""

    command: str | None = None
    """The command to run first; ``None`` where the outcomes are up to date, or a run is under way."""
    remarks: tuple[str, ...] = ()
    """The reasons for the command, and further remarks on the run."""
    unaccepted: str | None = None
    """Why a run in which no criterion failed was not accepted."""


def readiness(run: PlanRun) -> Readiness:
    """Return the command to run before any action, and why: there are no outcomes, or outdated ones."""
    found = run.found
    remarks: list[str] = []
    command: str | None = None
    if found.unfinished is not None:
        state = found.unfinished.state
        end = "is still running" if state == "running" else f"was {state}"
        remarks.append(f"the newest run {end} after {counted(len(found.unfinished.checks), 'criterion')}")
        command = None if state == "running" else f"{found.verify} --planverify-resume"
    elif found.document is None and not run.is_driven:
        remarks.append("the plan was not verified yet")
        command = found.verify
    elif found.plan_change is not None and run.log is not None and not run.state.reds:
        remarks.append("the plan has changed since it was verified")
        command = found.verify
    elif found.changed_todos:
        remarks.append(f"added or changed in the plan since the run: {listed(found.changed_todos, 5)}")
        command = found.verify
    elif answered := _answered_since(run):
        remarks.append(f"answered since the run: {listed(answered, 5)}")
        command = f"{found.verify}::{','.join(answered)}"
    elif found.files.paths:
        old = (
            f"; the verdicts of {listed(found.files.by_todo, 5)} are out of date"
            if found.files.by_todo
            else ""
        )
        remarks.append(f"{listed(found.files.paths, 3)} changed since the run{old}")
        command = found.verify
    unaccepted = None if found.document is None else found.document.run.unexplained
    if unaccepted:
        remarks.append(f"the run was not accepted: {unaccepted}")
    return Readiness(command, (*remarks, *run.remarks), unaccepted)


def _answered_since(run: PlanRun) -> list[str]:
    """Return the todos with an answer that is newer than the outcomes and not awaited by the engine."""
    document = run.found.document
    if document is None or run.is_driven:
        return []
    # Answers are kept to the second: one of the second in which the run started does not count as newer.
    # Without a start time, none does.
    started = time_of(document.run.started_at, datetime.max.replace(tzinfo=UTC)).replace(microsecond=0)
    records, found = run.state.records, list[str]()
    for each in run.answers():
        record = records.get(each.todo_id)
        if (
            each.plan == run.state.plan_id
            and record is not None
            and not (record.life is TodoLife.TESTING and record.question is None)
            and time_of(each.at or "", started) > started
        ):
            found.append(each.todo_id)
    return list(dict.fromkeys(found))


# -- recorded runs -------------------------------------------------------------------------------------


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
