"""Where the log of a run is that no option names: ``.planverify/logs/{run or plan}.jsonl``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planner.errors import LogError
from planner.planfile.plan_folder import HOME, file_name, make_home

if TYPE_CHECKING:
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan

FOLDER = f"{HOME}/logs"
_TAIL_BYTES = 4 * 1024 * 1024
_ENDS = ("finish", "halt")


def usual_log(loaded: LoadedPlan, run_id: str | None = None) -> Path:
    """The newest log of the runs of the plan, whether or not one is there.

    The first is called after the run or the plan, the later ones have a number, ``shop.2.jsonl``.
    """
    return usual_logs(loaded, run_id)[-1]


def log_to_go_on(loaded: LoadedPlan, run_id: str | None = None) -> Path:
    """The log to which a run is to write: the newest, or the one after it where that run is over.

    A run that is named goes on in its own log, whatever has become of it.
    """
    logs = usual_logs(loaded, run_id)
    if run_id is not None or not _is_over(logs[-1]):
        return logs[-1]
    return _later(logs[0], len(logs) + 1)


def usual_logs(loaded: LoadedPlan, run_id: str | None = None) -> list[Path]:
    """The first log, and those after it that are there."""
    logs = [loaded.root / FOLDER / f"{file_name(run_id or loaded.plan.todo_list_id)}.jsonl"]
    while (later := _later(logs[0], len(logs) + 1)).is_file():
        logs.append(later)
    return logs


def _later(first: Path, number: int) -> Path:
    return first.with_name(f"{first.stem}.{number}.jsonl")


def _is_over(log: Path) -> bool:
    """Whether the last action of a log is the end of its run. What cannot be read is not over."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
            last: Any = json.loads(file.read().splitlines()[-1])
        return last["actions"][-1]["action"] in _ENDS
    except (OSError, ValueError, LookupError, TypeError):
        return False


def make_room(log: Path) -> None:
    """Make the folder of such a log, out of version control. Raises :class:`planner.errors.LogError`."""
    folder = log.parent
    try:
        make_home(folder.parent.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LogError(
            f"{folder}: the folder for the log cannot be made ({error.strerror}); make its place writable, "
            "or name a file with --log"
        ) from None
