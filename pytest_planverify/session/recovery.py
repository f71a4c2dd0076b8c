"""Recovery of outcomes from the journal of a killed run.

Judged criteria keep their verdicts; all others count as not run. A run that finished has written its
outcomes itself.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest._io import TerminalWriter

from planner.errors import PlannerError
from planner.model.outcome import OutcomeDocument, RunInfo
from planner.planfile.discovery import plan_boundary
from planner.planfile.latest_outcomes import PastRun, past_runs
from planner.planfile.plan_folder import LATEST, PlanFolder
from planner.planfile.tree import load_tree
from pytest_planverify.baseline import load_baseline
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.session.check_runs import PlanResult
from pytest_planverify.session.exit_status import ExitStatus
from pytest_planverify.session.outcomes import Assembled, Assembler, root_causes, summary_of, write_reports
from pytest_planverify.session.run_folder import RunFolder, baseline_digest, keep_outcomes
from pytest_planverify.session.schedule import run_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline

KILLED = "not reached: the run was killed before"


class RecoveryError(PlannerError):
    """There is nothing to recover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The outcomes of a killed run."""

    document: OutcomeDocument
    flat: FlatPlan
    run: PastRun
    results: Sequence[Assembled]


def recover(plan: Path) -> Recovered:
    """Return the outcomes of the plan's last run, which was killed.

    Raises :class:`planner.errors.PlannerError` if the plan cannot be loaded or has changed since, and if
    there is no run or it has finished.
    """
    boundary = plan_boundary(plan)
    loaded = load_tree(plan, boundary=boundary).loaded
    plan_id = loaded.plan.todo_list_id
    run = next(past_runs(loaded.root, plan_id), None)
    if run is None:
        where = RunFolder(loaded.root, "").path
        raise RecoveryError(f"{plan}: there is no run of '{plan_id}' in {where}; verify the plan first")
    if run.finished is not None:
        raise RecoveryError(
            f"{run.run_id}: the run finished and has written its outcomes itself; nothing was changed"
        )
    # With the boundary of that run, which may have been started in another folder.
    flat = load_tree(plan, boundary=Path(run.started.boundary or boundary)).load_all().flat()
    _require_same_plan(run, flat, plan)
    baseline = _baseline_of_run(run, flat)
    results = _assembled(run, flat, baseline)
    outcomes = tuple(each.outcome for each in results)
    document = OutcomeDocument(
        plans=() if run.started.reference is None else (run.started.reference,),
        run=_run_info(run, baseline),
        summary=summary_of(outcomes, compared=() if baseline is None else (plan_id,)),
        outcomes=outcomes,
        causes=root_causes(results),
    )
    return Recovered(document=document, flat=flat, run=run, results=results)


def recover_command(plan: Path) -> int:
    """Recover, write and show the outcomes of a killed run; return the exit status. Errors are printed."""
    from pytest_planverify.reports.terminal import render_summary

    try:
        found = recover(plan)
        document, loaded, folder = found.document, found.flat.loaded, found.run.folder
        place = PlanFolder(loaded.root, loaded.plan.todo_list_id).outcomes
        keep_outcomes(document, place)
        keep_outcomes(document, RunFolder(loaded.root, folder.name).outcomes)
        runs = (each.name for each in folder.parent.iterdir() if each.is_dir())
        if max(runs).partition(".")[0] == found.run.run_id:  # no other plan was verified since
            keep_outcomes(document, loaded.root / LATEST)
        write_reports(found.results, found.run.run_id, document.causes)
        render_summary(TerminalWriter(), document, plans=[loaded], outcomes_path=os.path.relpath(place))
        return document.run.exit_status
    except PlannerError as error:
        print(error, file=sys.stderr)
        return ExitStatus.USAGE_ERROR


def _require_same_plan(run: PastRun, flat: FlatPlan, path: Path) -> None:
    then = run.started.reference
    digests = {} if then is None else {each.todo_id: each.digest for each in then.sub_plans}
    # A run of chosen todos may have loaded only some of the sub-plans.
    now = {parent: file.digest for parent, file in flat.files.items() if parent in digests}
    if then is None or then.digest != flat.loaded.digest or now != digests:
        raise RecoveryError(
            f"{path}: the plan or a sub-plan has changed since run {run.run_id}, whose verdicts are of "
            "other criteria; restore the plan, or verify it again"
        )


def _baseline_of_run(run: PastRun, flat: FlatPlan) -> KeptBaseline | None:
    """Return the baseline that the run used, if it is still kept unchanged; none of a revision is kept."""
    digest = run.started.conditions.get("baseline")
    if not digest:
        return None
    with suppress(PlannerError):
        kept = load_baseline(flat.loaded.root, flat.loaded.plan.todo_list_id)
        if kept is not None and baseline_digest(kept) == digest:
            return kept
    return None


def _assembled(run: PastRun, flat: FlatPlan, baseline: KeptBaseline | None) -> list[Assembled]:
    chosen = set(run.started.todos)
    todos = [todo for todo in flat.loaded.plan.items if todo.id in chosen]
    result = PlanResult(flat, todos, {todo.id: {} for todo in todos})
    for todo in todos:
        for criterion in flat.loaded.criteria[todo.id]:
            judged = run.checks.get((todo.id, criterion.id))
            # The journal may have been written to by tests: a verdict on something else is none.
            if judged is not None and judged.check.kind is criterion.kind:
                result.checks[todo.id][criterion.id] = judged
    result.note_failed(run_order(todos, flat.children))
    for todo, missing in result.fill_in(KILLED, keep_going=run.started.keep_going):
        result.checks[todo.id][missing.check.id] = missing
    shown = "" if run.started.reference is None else run.started.reference.path
    # The changes at the time of the kill are unknown.
    return Assembler(
        result=result, shown_path=shown, changes=None, diagnose=diagnose, baseline=baseline
    ).assemble()


def _run_info(run: PastRun, baseline: KeptBaseline | None) -> RunInfo:
    end = "is still running" if run.is_alive() else "was killed"
    notes = [f"recovered from the journal of a run that {end}: criteria without a verdict did not run"]
    if baseline is None and run.started.conditions.get("baseline"):
        notes.append("the baseline of the run is no longer kept: comparisons with it are missing")
    if run.unexplained is not None:
        notes.append(f"not accepted: {run.unexplained}")
    return RunInfo(
        run_id=run.run_id,
        started_at=_time(run.started.at),
        finished_at=_time(run.last_at),
        duration_ms=max(round((run.last_at - run.started.at) * 1000), 0),
        exit_status=ExitStatus.INTERRUPTED,
        scope=run.started.scope,
        python=run.started.python or "unknown",
        pytest=run.started.pytest or "unknown",
        hygiene="unchecked: the run was killed before",
        interrupted=True,
        unexplained=run.unexplained,
        notes=tuple(notes),
    )


def _time(seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):  # a forged record may claim any time
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
