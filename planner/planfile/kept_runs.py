"""Kept runs of a plan: was the newest cut short, which files have changed since, what was blocked how long?

The journals stand below ``.planverify/runs``. The code under test can write there, so nothing in them is
believed to be in order: a journal that is torn, foreign or no plain file is passed over.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from planner.model.base import ReadValue
from planner.model.verdicts import TodoState
from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import digest_of, is_code, open_regular, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

RUNS = f"{HOME}/runs"
JOURNAL = "journal.jsonl"
LARGEST_JOURNAL = 256 * 1024 * 1024
MOST_FILES = 20_000
"""Of a project with more files nobody is told which have changed: looking would take too long."""

_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


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


class _Reference(ReadValue):
    todo_list_id: str


class _Check(ReadValue):
    id: str
    kind: str
    verdict: str
    title: str | None = None
    """Of an artifact its path."""


class _Basis(ReadValue):
    files: dict[str, str] = Field(default_factory=dict)


class _Record(ReadValue):
    """What is read here of the records of a journal, whatever their kind."""

    model_config = ConfigDict(strict=True)

    record: str
    at: Annotated[float, Field(ge=0, le=_LATEST)]
    plan: str | None = None
    todo_id: str = ""
    run_id: str = ""
    pid: int = 0
    reference: _Reference | None = None
    verifies: bool = True
    interrupted: Any = None
    state: str = ""
    check: _Check | None = None
    rests_on: _Basis | None = None

    @property
    def moment(self) -> str:
        """Return when it was written, RFC 3339 in UTC."""
        moment = datetime.fromtimestamp(self.at, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def rests_on_all(self) -> bool:
        """Return whether nobody knows which files the verdict rests on."""
        return self.rests_on is None and self.check is not None and self.check.kind in ("test", "command")

    def begins(self, plan_id: str) -> bool:
        """Return whether it begins a verification of the plan."""
        of = None if self.reference is None else self.reference.todo_list_id
        return self.record == "run_started" and of == plan_id and self.verifies


def unfinished_run(root: Path, plan_id: str) -> UnfinishedRun | None:
    """Return the newest run of the plan, unless it came to its end. Never raises."""
    for folder in _folders(root):
        records = list(_parent_records(folder / JOURNAL, "run_started", "run_finished", "check_judged"))
        if not records or not records[0].begins(plan_id):
            continue
        ends = (each for each in records if each.record == "run_finished")
        end = next((each for each in ends if each.plan in (None, plan_id)), None)
        if end is not None and not end.interrupted:
            return None
        started = records[0]
        return UnfinishedRun(
            run_id=started.run_id,
            started_at=started.moment,
            state="interrupted" if end is not None else "running" if _is_alive(started) else "killed",
            judged=len({(each.todo_id, each.check.id) for each in records if each.check is not None}),
        )
    return None


def blocked_since(root: Path, plan_id: str) -> dict[str, str]:
    """Return since which run each todo of the plan has been blocked without interruption. Never raises.

    Only runs count that came to their end; one that left a todo out interrupts nothing.
    """
    since: dict[str, str] = {}
    free: set[str] = set()
    for folder in _folders(root):
        records = _parent_records(folder / JOURNAL, "todo_judged", "run_finished")
        mine = [each for each in records if each.plan == plan_id]
        if not any(each.record == "run_finished" for each in mine):
            continue
        for each in mine:
            if each.state == TodoState.BLOCKED and each.todo_id not in free:
                since[each.todo_id] = each.moment
            elif each.state not in ("", TodoState.PENDING):
                free.add(each.todo_id)
    return since


def changed_files(root: Path, plan_id: str, run_id: str, apart: Sequence[Path] = ()) -> ChangedFiles | None:
    """Return which files have changed since the run; what lies ``apart``, as the plan's files, is left out.

    A file counts that a verdict was seen to rest on, and further ones where they are code or a verdict's
    basis is unknown. ``None`` where nobody knows: the run is not kept, or there are too many files.
    """
    folder = next((each for each in _folders(root) if each.name.partition(".")[0] == run_id), None)
    if folder is None:
        return None
    records = list(_parent_records(folder / JOURNAL, "run_started", "check_judged", "run_finished"))
    names = set(islice(walk(root), MOST_FILES + 1))
    if not records or not records[0].begins(plan_id) or len(names) > MOST_FILES:
        return None
    ended = max(each.at for each in records)
    # Of a check that was confirmed, the last verdict counts.
    last = {(each.todo_id, each.check.id): (each, each.check) for each in records if each.check is not None}
    verdicts = list(last.values())
    known = {
        name: digest
        for each, _ in verdicts
        if each.rests_on
        for name, digest in each.rests_on.files.items()
    }
    changed = {name for name, digest in known.items() if digest_of(root / name, follow=True) != digest}
    titles = {check.title for _, check in verdicts}
    counts_all = any(each.rests_on_all for each, _ in verdicts)
    for name in names - known.keys():
        if (counts_all or is_code(name) or name in titles) and _modified(root / name) > ended:
            changed.add(name)
    changed -= {os.path.relpath(each, root) for each in apart}
    by_todo: dict[str, set[str]] = {}
    for each, check in verdicts:
        old = changed & ({check.title} | (each.rests_on.files.keys() if each.rests_on else set[str]()))
        if each.rests_on_all:
            old = changed
        elif check.verdict != "passed":
            # What it lacked may be in a file that nothing had read, as in one that was not there.
            old |= changed - known.keys()
        if old:
            by_todo.setdefault(each.todo_id, set()).update(old)
    return ChangedFiles(
        paths=tuple(sorted(changed)),
        by_todo={todo_id: tuple(sorted(names)) for todo_id, names in by_todo.items()},
    )


def _modified(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


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


def _parent_records(path: Path, *kinds: str) -> Iterator[_Record]:
    """Yield those of the supervising process's records that are of these kinds, in their order."""
    heads = tuple(f'{{"record": "{kind}", "session": "parent", '.encode() for kind in kinds)
    try:
        with open_regular(path, follow=False) as stream:
            if os.fstat(stream.fileno()).st_size > LARGEST_JOURNAL:
                return
            for line in stream:
                if line.startswith(heads) and line.endswith(b"\n"):
                    try:
                        yield _Record.model_validate_json(line)
                    except ValidationError:
                        continue
    except OSError:
        return


def _is_alive(started: _Record) -> bool:
    """Return whether the process that supervises the run is alive, and is not another of its number."""
    import psutil

    try:
        process = psutil.Process(started.pid or None)
        is_same = started.pid > 0 and process.create_time() <= started.at
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OverflowError, ValueError):
        return False
