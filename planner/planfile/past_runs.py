"""The kept runs of a plan, as their journals below ``.planverify/runs`` tell of them.

The code under test can write there, so nothing in a journal is believed to be in order: what is torn,
foreign, no plain file, or says two things of one criterion says nothing.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from planner.model.journal import (
    CheckJudged,
    Collected,
    JournalRecord,
    JournalRunStarted,
    RunFinished,
    RunUnexplained,
    TestFinished,
    TodoJudged,
)
from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOURNAL = "journal.jsonl"
JOURNAL_VERSION = 1
"""Version of the record format; a journal of a later one is passed over."""

LARGEST_JOURNAL = 256 * 1024 * 1024
"""Bytes."""

PARENT = "parent"
"""The session of the supervising process, which alone judges."""

_HEAD = re.compile(rb'\{"record": "(\w+)", "session": "((?:[^"\\]|\\.)*)", "at": ([0-9.]+)[,}]')
_Record = TypeVar("_Record", bound=JournalRecord)


@dataclass(slots=True)
class PastRun:
    """One plan of one run, as its journal has it."""

    folder: Path
    started: JournalRunStarted
    checks: dict[tuple[str, str], CheckJudged] = field(default_factory=dict[tuple[str, str], CheckJudged])
    """The verdicts that were reached, by todo and check."""
    states: dict[str, TodoJudged] = field(default_factory=dict[str, TodoJudged])
    """By todo, at the end of the run."""
    finished: RunFinished | None = None
    unexplained: str | None = None
    wanted: dict[str, tuple[str, tuple[str, ...]]] = field(
        default_factory=dict[str, tuple[str, tuple[str, ...]]]
    )
    """By criterion, the last session that was to run its tests, and these."""
    ended: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """By session and test, how the tests that came to an end did so."""
    last_at: float = 0.0
    """When the last record was written, in seconds since 1970."""

    @property
    def run_id(self) -> str:
        """The id of the run, which may have had further plans."""
        return self.started.run_id

    @property
    def came_to_its_end(self) -> bool:
        """Nothing is missing: it was neither killed nor stopped."""
        return self.finished is not None and not self.finished.interrupted

    def is_alive(self) -> bool:
        """Return whether the process that supervises the run is alive, and not another of its number."""
        import psutil

        if self.finished is not None or self.started.pid in (None, 0, os.getpid()):
            return False
        try:
            process = psutil.Process(self.started.pid)
            return process.create_time() <= self.started.at and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, OverflowError, ValueError):
            return False

    def ended_of(self, todo_id: str, check_id: str) -> tuple[int, list[str]]:
        """Return how many tests a check has, and the outcomes of those that ended."""
        for key, (session, nodeids) in self.wanted.items():
            if key.endswith(f"::{todo_id}::{check_id}"):
                found = (self.ended.get((session, nodeid)) for nodeid in nodeids)
                return len(nodeids), [outcome for outcome in found if outcome is not None]
        return 0, []

    def take_in(self, judged: CheckJudged) -> None:
        """Keep a verdict. The parent judges each criterion once: a second that differs is not its own."""
        key = judged.todo_id, judged.check.id
        known = self.checks.get(key)
        if known is not None and known.check.verdict is not judged.check.verdict:
            judged = judged.model_copy(update={"final": False})
            if known.check.verdict.is_red:
                judged = judged.model_copy(update={"check": known.check, "evidence": known.evidence})
        self.checks[key] = judged


def past_runs(root: Path, plan_id: str, *kinds: str) -> Iterator[PastRun]:
    """Yield the runs that verified the plan and are kept below its root, the newest first. Never raises.

    Of records only these kinds are read, where any are named: of a large run all take seconds.
    """
    try:
        entries = [each for each in (root / HOME / "runs").iterdir() if each.is_dir()]
        # The names begin with the second in which the run began.
        entries.sort(key=lambda each: (each.name.partition("-")[0], each.stat().st_mtime_ns, each.name))
    except OSError:
        return
    for folder in reversed(entries):
        run = _read(folder, plan_id, frozenset(kinds))
        if run is not None:
            yield run


def moment_of(record: JournalRecord) -> str:
    """Return when a record was written, RFC 3339 in UTC."""
    moment = datetime.fromtimestamp(record.at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(folder: Path, plan_id: str, kinds: frozenset[str]) -> PastRun | None:
    """Read the journal in a run's folder; ``None`` where there is none of that plan that can be read."""
    run: PastRun | None = None
    with suppress(OSError), open_regular(folder / JOURNAL, follow=False) as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST_JOURNAL:
            return None
        for line in stream:
            head = _HEAD.match(line)
            if head is None or not line.endswith(b"\n"):
                continue
            kind, session = head[1].decode(), head[2].decode("utf-8", "replace")
            if run is None:
                first = _as(JournalRunStarted, line) if kind == "run_started" else None
                if first is None or first.version > JOURNAL_VERSION or not first.verifies:
                    return None
                if first.reference is None or first.reference.todo_list_id != plan_id:
                    return None
                run = PastRun(folder, first)
            with suppress(ValueError):
                run.last_at = max(run.last_at, float(head[3]))
            if not kinds or kind in kinds:
                _take_in(run, kind, session, line)
    return run


def _take_in(run: PastRun, kind: str, session: str, line: bytes) -> None:
    if session != PARENT:
        if kind == "test_finished" and (ended := _as(TestFinished, line)):
            run.ended[session, ended.nodeid] = ended.outcome.value
        elif kind == "collected" and (collected := _as(Collected, line)) and collected.check:
            run.wanted[collected.check] = session, collected.nodeids
    elif kind == "run_unexplained" and (unexplained := _as(RunUnexplained, line)):
        run.unexplained = unexplained.reason
    elif kind == "run_finished" and (finished := _as(RunFinished, line)):
        run.finished = finished
    elif kind == "check_judged" and (judged := _as(CheckJudged, line)):
        run.take_in(judged)
    elif kind == "todo_judged" and (state := _as(TodoJudged, line)):
        run.states[state.todo_id] = state


def _as(model: type[_Record], line: bytes) -> _Record | None:
    try:
        return model.model_validate_json(line)
    except (ValidationError, RecursionError):
        return None
