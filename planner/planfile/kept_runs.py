"""Kept runs of a plan: was the newest cut short, which files have changed since, what was blocked how long?

The journals stand below ``.planverify/runs``. The code under test can write there, so nothing in them is
believed to be in order: a journal that is torn, foreign or no plain file is passed over.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from planner.model.verdicts import TodoState
from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import GONE, digest_of, is_code, open_regular, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

RUNS = f"{HOME}/runs"
JOURNAL = "journal.jsonl"
TREE = "tree.json"
"""Beside the journal: digests of the files when the run began, under git of those that no commit holds."""

LARGEST_JOURNAL = 256 * 1024 * 1024
MOST_FILES = 20_000
"""Of a project with more files nobody is told which have changed: looking would take too long."""

_CLOCK_TICK = 0.01
"""Seconds by which the time of a file's change may lie before the moment at which it was changed."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRun:
    """The newest run of a plan, which has not come to its end."""

    run_id: str
    started_at: str
    """RFC 3339, UTC."""
    state: Literal["running", "killed", "interrupted"]
    judged: int
    """How many criteria had their verdict by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """Files that are not as they were when a run judged; paths are relative to the plan's root."""

    paths: tuple[str, ...] = ()
    by_todo: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Of each todo whose verdict is old for that, those of the files that it rests on."""


def unfinished_run(root: Path, plan_id: str) -> UnfinishedRun | None:
    """Return the newest run of the plan, unless it came to its end. Never raises."""
    for folder in _folders(root):
        records = _parent_records(folder / JOURNAL, ("run_started", "run_finished", "check_judged"))
        started = next(records, None)
        if started is None or not _verifies(started, plan_id):
            continue
        judged: set[tuple[str, str]] = set()
        for record in records:
            if record["record"] == "run_finished" and record.get("plan") in (None, plan_id):
                if not record.get("interrupted"):
                    return None
                return _unfinished(started, "interrupted", judged)
            if record["record"] == "check_judged":
                judged.add(_key(record))
        return _unfinished(started, "running" if _is_alive(started) else "killed", judged)
    return None


def blocked_since(root: Path, plan_id: str) -> dict[str, str]:
    """Return since which run each todo of the plan has been blocked without interruption. Never raises.

    Only runs count that came to their end; one that left a todo out interrupts nothing.
    """
    since: dict[str, str] = {}
    free: set[str] = set()
    for folder in _folders(root):
        states: dict[str, tuple[str, str]] = {}
        has_ended = False
        for record in _parent_records(folder / JOURNAL, ("todo_judged", "run_finished")):
            todo_id, state, at = record.get("todo_id"), record.get("state"), _time(record.get("at"))
            if record.get("plan") != plan_id:
                continue
            has_ended = has_ended or record["record"] == "run_finished"
            if isinstance(todo_id, str) and isinstance(state, str) and at is not None:
                states[todo_id] = state, at
        for todo_id, (state, at) in states.items() if has_ended else ():
            if state == TodoState.BLOCKED and todo_id not in free:
                since[todo_id] = at
            elif state != TodoState.PENDING:
                free.add(todo_id)
    return since


def changed_files(root: Path, plan_id: str, run_id: str, apart: Sequence[Path] = ()) -> ChangedFiles | None:
    """Return which files have changed since the run; what lies ``apart``, as the plan's files, is left out.

    A file counts that a verdict was seen to rest on, and further ones where they are code or a verdict's
    basis is unknown. ``None`` where nobody knows: the run is not kept, or there are too many files.
    """
    folder = next((each for each in _folders(root) if each.name.partition(".")[0] == run_id), None)
    if folder is None:
        return None
    wanted = ("run_started", "check_judged", "run_finished")
    began = ended = 0.0
    judged: dict[tuple[str, str], _Verdict] = {}
    for record in _parent_records(folder / JOURNAL, wanted):
        at = record.get("at")
        if isinstance(at, (int, float)):
            began, ended = began or at, max(ended, at)
        if record["record"] == "run_started" and not _verifies(record, plan_id):
            return None
        if record["record"] == "check_judged" and (verdict := _verdict(record)) is not None:
            judged[_key(record)] = verdict  # of one that was confirmed, the last counts
    if not began:
        return None
    verdicts = judged.values()
    tree, is_whole = _tree(folder / TREE)
    names = list(islice(walk(root), MOST_FILES + 1))
    if len(names) > MOST_FILES:
        return None
    left_out = {os.path.relpath(each, root) for each in apart}
    look = _Look(root, began, ended)
    read = {name: digest for verdict in verdicts for name, digest in verdict.rests_on.items()}
    rest_on_all = any(verdict.rests_on_all for verdict in verdicts)
    titles = {verdict.title for verdict in verdicts}

    def counts(name: str) -> bool:
        return rest_on_all or is_code(name) or name in titles

    changed = {name for name, digest in read.items() if look.differs(name, digest)}
    others = (name for name in names if name not in read and counts(name))
    changed.update(name for name in others if look.is_newer(name, tree.get(name)))
    if is_whole:
        there = set(names)
        gone = (name for name in tree.keys() - there if name not in read and look.is_gone(name))
        changed.update(filter(counts, gone))
    changed -= left_out
    by_todo: dict[str, set[str]] = {}
    for verdict in verdicts:
        old = changed if verdict.rests_on_all else changed & verdict.rests_on.keys()
        old = old | (changed & {verdict.title})
        if not verdict.passed:
            # What it lacked may be in a file that nothing had read, as in one that was not there.
            old = old | (changed - read.keys())
        if old:
            by_todo.setdefault(verdict.todo_id, set()).update(old)
    return ChangedFiles(
        paths=tuple(sorted(changed)),
        by_todo={todo_id: tuple(sorted(names)) for todo_id, names in by_todo.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    todo_id: str
    passed: bool
    title: str | None
    """Of an artifact its path."""
    rests_on: Mapping[str, str]
    rests_on_all: bool


class _Look:
    """Looks at files of now, each once."""

    def __init__(self, root: Path, began: float, ended: float) -> None:
        self._root, self._began, self._ended = root, began, ended

    def differs(self, name: str, digest: str) -> bool:
        """Tell of a file with a digest of the time of its verdict whether it has other contents now."""
        path = self._root / name
        try:
            # Nobody can set this time, so a file that was not written since needs not be read.
            if path.stat().st_ctime < self._began - _CLOCK_TICK:
                return digest == GONE
        except OSError:
            pass
        return digest_of(path, follow=True) != digest

    def is_newer(self, name: str, digest: str | None) -> bool:
        """Tell whether a file was written after the run, and differs from what it had held at first."""
        path = self._root / name
        try:
            facts = path.lstat()
        except OSError:
            return False
        if digest is None:
            return facts.st_mtime > self._ended
        return facts.st_ctime > self._ended and digest_of(path) != digest

    def is_gone(self, name: str) -> bool:
        """Tell whether a file was removed after the run: its folder has changed since, or is gone, too."""
        path = self._root / name
        if os.path.lexists(path):
            return False
        try:
            return path.parent.stat().st_mtime > self._ended
        except OSError:
            return True


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders of the runs of any plan of the root, the newest first."""
    try:
        with os.scandir(root / RUNS) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            # A name begins with the second in which the run began.
            times = {name: (root / RUNS / name).stat().st_mtime_ns for name in names}
    except OSError:
        return
    for name in sorted(names, key=lambda each: (each.partition("-")[0], times[each]), reverse=True):
        yield root / RUNS / name


def _parent_records(path: Path, kinds: Sequence[str]) -> Iterator[Record]:
    """Yield those of the supervising process's records that are of these kinds, in their order."""
    heads = tuple(f'{{"record": "{kind}", "session": "parent", '.encode() for kind in kinds)
    try:
        with open_regular(path, follow=False) as stream:
            if os.fstat(stream.fileno()).st_size > LARGEST_JOURNAL:
                return
            for line in stream:
                if line.startswith(heads) and line.endswith(b"\n"):
                    try:
                        record: Any = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    yield cast("Record", record)
    except OSError:
        return


def _verifies(started: Record, plan_id: str) -> bool:
    reference = started.get("reference")
    of = cast("Record", reference).get("todo_list_id") if isinstance(reference, dict) else None
    return started["record"] == "run_started" and of == plan_id and started.get("verifies") is not False


def _key(judged: Record) -> tuple[str, str]:
    check = judged.get("check")
    check_id = cast("Record", check).get("id") if isinstance(check, dict) else None
    return str(judged.get("todo_id")), str(check_id)


def _verdict(judged: Record) -> _Verdict | None:
    check = judged.get("check")
    todo_id = judged.get("todo_id")
    if not isinstance(check, dict) or not isinstance(todo_id, str):
        return None
    facts = cast("Record", check)
    basis = judged.get("rests_on")
    files = cast("Record", basis).get("files") if isinstance(basis, dict) else None
    digests = cast("Record", files) if isinstance(files, dict) else {}
    title = facts.get("title")
    return _Verdict(
        todo_id=todo_id,
        passed=facts.get("verdict") == "passed",
        title=title if isinstance(title, str) else None,
        rests_on={name: digest for name, digest in digests.items() if isinstance(digest, str)},
        rests_on_all=not isinstance(basis, dict) and facts.get("kind") in ("test", "command"),
    )


def _tree(path: Path) -> tuple[Mapping[str, str], bool]:
    """Return the digests of the files when the run began, and whether they are those of all files."""
    try:
        data: Any = json.loads(path.read_bytes())
        files = cast("dict[str, str]", data["files"])
        return dict(files), not data["heads"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return {}, False


def _unfinished(
    started: Record, state: Literal["running", "killed", "interrupted"], judged: set[tuple[str, str]]
) -> UnfinishedRun:
    return UnfinishedRun(
        run_id=str(started.get("run_id")),
        started_at=_time(started.get("at")) or "1970-01-01T00:00:00.000Z",
        state=state,
        judged=len(judged),
    )


def _time(seconds: object) -> str | None:
    """Return a moment of a journal, RFC 3339 in UTC; ``None`` for what is none."""
    try:
        if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
            moment = datetime.fromtimestamp(seconds, UTC)
            return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        pass
    return None


def _is_alive(started: Record) -> bool:
    """Tell whether the process that supervises the run is alive, and is not another of its number."""
    import psutil

    pid, at = started.get("pid"), started.get("at")
    if not isinstance(pid, int) or pid <= 0 or not isinstance(at, (int, float)):
        return False
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= at
    except psutil.Error:
        return False
