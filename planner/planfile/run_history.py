"""What the kept runs say of the time before: since when each todo has been blocked.

The journals stand below ``.planverify/runs``. The code under test can write there, so nothing in them is
believed to be in order: a file that is torn, foreign, endless or no file at all is passed over.
"""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from planner.model.verdicts import TodoState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUNS = ".planverify/runs"
JOURNAL = "journal.jsonl"
MAX_RUNS = 50
"""So many of the newest runs are looked at."""

TAIL_BYTES = 256 * 1024
MAX_TAIL_BYTES = 64 * 1024 * 1024
"""How much of a journal's end is read: at first, and at most where the todos do not fit in that."""

_LAST_RECORDS = ("todo_judged", "run_finished")
"""With these a run ends; what comes before them need not be read."""

_SAYS_NOTHING = TodoState.PENDING
"""A todo that was left out of a run is neither blocked nor free by it."""


def blocked_since(root: Path, plan_id: str) -> dict[str, str]:
    """Since which run each todo of the plan has been blocked without interruption, RFC 3339 in UTC.

    ``root`` is the plan's. A run that did not verify a todo interrupts nothing. Never raises.
    """
    since: dict[str, str] = {}
    free: set[str] = set()
    for states in _runs(root, plan_id):
        for todo_id, (state, at) in states.items():
            if todo_id in free or state == _SAYS_NOTHING:
                continue
            if state == TodoState.BLOCKED:
                since[todo_id] = at
            else:
                free.add(todo_id)
    return since


def _runs(root: Path, plan_id: str) -> Iterator[dict[str, tuple[str, str]]]:
    """Of each run of the plan that came to its end, the newest first: the state of each todo, and when."""
    try:
        names = sorted(os.listdir(root / RUNS), reverse=True)  # the names begin with the time
    except OSError:
        return
    for name in names[:MAX_RUNS]:
        states = _last_states(root / RUNS / name / JOURNAL, plan_id)
        if states:
            yield states


def _last_states(path: Path, plan_id: str) -> dict[str, tuple[str, str]]:
    """What the run says at its end; nothing where it has none, or is another plan's."""
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return {}
    try:
        size = os.fstat(handle).st_size if stat.S_ISREG(os.fstat(handle).st_mode) else 0
        length = TAIL_BYTES
        while True:
            tail = os.pread(handle, min(length, size), max(size - length, 0))
            records = _records(tail, whole=length >= size)
            complete = length >= size or (records and records[0]["record"] not in _LAST_RECORDS)
            if complete or length >= MAX_TAIL_BYTES:
                return _states(records, plan_id)
            length *= 8
    except OSError:
        return {}
    finally:
        os.close(handle)


def _records(tail: bytes, *, whole: bool) -> list[dict[str, Any]]:
    """The parent's complete records; where the tail is not the whole file, its first line is cut."""
    lines = tail.split(b"\n")[0 if whole else 1 : -1]
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and isinstance(cast("dict[str, Any]", record).get("record"), str):
            found.append(cast("dict[str, Any]", record))
    return found


def _states(records: list[dict[str, Any]], plan_id: str) -> dict[str, tuple[str, str]]:
    mine = [
        record for record in records if record.get("session") == "parent" and record.get("plan") == plan_id
    ]
    if not any(record["record"] == "run_finished" for record in mine):
        return {}
    found: dict[str, tuple[str, str]] = {}
    for record in mine:
        todo_id, state = record.get("todo_id"), record.get("state")
        at = _time(record.get("at"))
        if record["record"] != "todo_judged" or at is None:
            continue
        if isinstance(todo_id, str) and isinstance(state, str):
            found[todo_id] = (state, at)
    return found


def _time(seconds: object) -> str | None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
