"""Command ``planverify undo``: restores the files from before the last run.

The current files are stored as a snapshot first, so that an undo can itself be undone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from planner.cli.exits import UsageMistake
from planner.errors import PlanFileError, PlannerError
from planner.planfile.loader import load_plan
from planner.planfile.locks import is_running
from planner.planfile.plan_folder import HOME, PlanFolder
from planner.planfile.project_files import read_regular
from planner.store.run_log import make_log_folder, next_log, plan_logs
from planner.text.display import counted, listed
from pytest_planverify.harness.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan
    from pytest_planverify.harness.snapshots import FileChanges

# Labels of the snapshots before and after a run, and after its undo.
BEFORE_RUN = "before-run"
AFTER_RUN = "after-run"
UNDONE = "undone"
BASELINE = "baseline"
"""Label of the content of the baseline that a run has recorded."""
DRIVER = "driver.json"
"""File in the folder of all runs that names the process of the current one, its start time and its run."""
_SNAPSHOT = re.compile(r"[0-9a-f]{7,64}")
_DIGITS = 12
"""Number of digits of a snapshot's id that are shown."""
_MOST_NAMED = 5


def refuse_while_running(harness: Path) -> None:
    """Raise ``UsageMistake`` if another process works on a run of the project; ``harness`` has its runs."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        pid, started, run = json.loads(read_regular(harness / DRIVER))
        if pid != os.getpid() and is_running(pid, started):
            raise UsageMistake(f"process {pid} works on the run {run}; wait for it, or end it")


class EarlierRun(NamedTuple):
    """A run of a plan that was not undone."""

    name: str
    snapshots: Snapshots
    before: str
    after: str | None
    """Final snapshot; ``None`` for a killed run, for which the current files count."""
    at: float
    """Modification time of its latest log, in epoch seconds."""


def undo_run(plan: Path, *, force: bool) -> list[str] | None:
    """Undo the work of the last run that changed files; return the messages to show.

    Returns ``None`` if there is no run to undo, if an edit by ``planverify next --in-place`` is newer, or
    if the plan is unreadable. Only files that the run changed are restored. Raises
    :class:`planner.errors.PlannerError` if one of them was edited since, unless ``force`` is set, and
    ``UsageMistake`` while a run is going on. The current files are stored as a snapshot in any case.
    """
    try:
        loaded = load_plan(plan)
    except PlanFileError:
        return None
    refuse_while_running(loaded.root / HOME / "harness")
    previous = PlanFolder(loaded.root, loaded.plan.todo_list_id).previous
    edited_at = previous.stat().st_mtime if previous.exists() else 0.0
    idle = None
    for run in _runs(loaded):
        if edited_at > run.at:
            return None
        snapshots = run.snapshots
        now = _keep_current(snapshots, run.before)
        changes = snapshots.compare(run.before, run.after or now)
        if changes.changed:
            break
        idle = idle or run.name  # it may still wait to be resumed
    else:
        is_nothing = idle is not None and not edited_at
        return [f"the run {idle} changed no file: there is nothing to undo"] if is_nothing else None
    # Files that the run changed, and that somebody has changed again since.
    edited = sorted({*changes.changed} & {*snapshots.compare(run.after or now, now).changed})
    if edited and not force:
        raise PlannerError(
            f"{listed(edited, _MOST_NAMED)}: edited since the run; --force undoes that, too, and keeps "
            "a copy"
        )
    snapshots.restore_files(run.before, changes)
    snapshots.take(UNDONE)
    if (newest := plan_logs(loaded)[-1]).exists() and newest.stat().st_size:
        log = next_log(loaded)  # a new empty log, so that the undone run cannot be resumed
        make_log_folder(log)
        log.touch(mode=0o600)
    return [f"undid the run {run.name}: {_summary(changes)}", _restore_hint(plan, now)]


def restore_snapshot(plan: Path, snapshot: str) -> list[str]:
    """Restore all files of a snapshot, given by digits of its id; return the messages to show.

    The current files are stored as a snapshot first. Raises :class:`planner.errors.PlannerError` if there
    is no such snapshot.
    """
    root = load_plan(plan).root
    refuse_while_running(root / HOME / "harness")
    snapshots = Snapshots(root, UNDONE)
    found = snapshots.resolve(snapshot) if _SNAPSHOT.fullmatch(snapshot) else None
    if found is None:
        raise PlannerError(f"--to {snapshot}: unknown snapshot; write the digits that undo printed")
    now = _keep_current(snapshots, found)
    changes = snapshots.compare(now, found)
    snapshots.restore(found)
    return [f"restored {snapshot[:_DIGITS]}: {_summary(changes)}", _restore_hint(plan, now)]


def _keep_current(snapshots: Snapshots, since: str) -> str:
    """Store the current files that were not ignored in ``since``; return the snapshot's id."""
    snapshots.unlock()  # the run may have been killed while git was at work
    return snapshots.take("before-undo", since=since)


def _summary(changes: FileChanges) -> str:
    """Return the number and the first names of changed files, for a message."""
    if not changes.changed:
        return "no file"
    return f"{counted(len(changes.changed), 'file')}, {listed(changes.changed, _MOST_NAMED)}"


def restore_command(plan: str, snapshot: str) -> str:
    """Return the command that restores all files of a snapshot."""
    return shlex.join(["planverify", "undo", plan, "--to", snapshot[:_DIGITS]])


def _restore_hint(plan: Path, snapshot: str) -> str:
    """Return the message on how to restore the files that were replaced."""
    return f"the previous files are kept; to restore them: {restore_command(str(plan), snapshot)}"


def _runs(loaded: LoadedPlan) -> Iterator[EarlierRun]:
    """Yield the runs that were not undone, newest first."""
    # Further rounds of a run have logs and snapshots of their own: the run begins at the oldest of them,
    # the first that has a snapshot before the run, and ends with the newest.
    after: str | None = None
    at = 0.0
    for log in reversed(plan_logs(loaded)):
        if not (loaded.root / HOME / "harness" / log.stem).is_dir() or not log.exists():
            continue
        snapshots = Snapshots(loaded.root, log.stem)
        after, at = after or snapshots.find(AFTER_RUN), max(at, log.stat().st_mtime)
        before = snapshots.find(BEFORE_RUN)
        is_undone = snapshots.find(UNDONE) is not None
        if before is not None and not is_undone:
            yield EarlierRun(log.stem, snapshots, before, after, at)
        if before is not None or is_undone:
            after, at = None, 0.0
