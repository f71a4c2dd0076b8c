"""Reads the journals of runs that are over: what each had judged, and whether it came to its end.

The code under test can write where journals are kept, so nothing in them is believed to be in order: what
is torn, foreign, or says two things of one criterion says nothing.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from planner.model.journal import (
    CheckJudged,
    Collected,
    JournalRecord,
    RunFinished,
    RunStarted,
    TestFinished,
    TodoFound,
)
from pytest_planverify.journal import VERSION, read_journal
from pytest_planverify.session.check_runs import CheckRun
from pytest_planverify.session.run_folder import RunFolder
from pytest_planverify.session.run_records import WRITER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.model.outcome import Outcome
    from pytest_planverify.journal import Record

_Record = TypeVar("_Record", bound=JournalRecord)


@dataclass(slots=True)
class PastRun:
    """One plan of one run, as its journal has it."""

    folder: Path
    started: RunStarted
    checks: dict[tuple[str, str], CheckJudged] = field(default_factory=dict[tuple[str, str], CheckJudged])
    """The verdicts that were reached, by todo and check."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, "Outcome"])
    """By todo, where the run came to telling them."""
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
        """Whether the process that supervises it is still there, and no other has its number by now."""
        import psutil

        if self.finished is not None or self.started.pid is None or self.started.pid == os.getpid():
            return False
        try:
            process = psutil.Process(self.started.pid)
            return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= self.started.at
        except psutil.Error:
            return False

    def ended_of(self, todo_id: str, check_id: str) -> tuple[int, list[str]]:
        """How many tests a check has, and how those ended that did, whether or not that is its verdict."""
        for key, (session, nodeids) in self.wanted.items():
            if key.endswith(f"::{todo_id}::{check_id}"):
                found = (self.ended.get((session, nodeid)) for nodeid in nodeids)
                return len(nodeids), [outcome for outcome in found if outcome is not None]
        return 0, []

    def runs(self) -> dict[tuple[str, str], CheckRun]:
        """Each verdict with its evidence, as the run itself held it."""
        return {key: self.run_of(each) for key, each in self.checks.items()}

    def run_of(self, judged: CheckJudged) -> CheckRun:
        """Return a verdict with its evidence."""
        return CheckRun(
            check=judged.check,
            evidence=judged.evidence,
            properties=list(judged.properties),
            rests_on=judged.rests_on,
        )


def past_runs(root: Path, plan_id: str) -> Iterator[PastRun]:
    """The runs that verified the plan and are kept below its root, the newest first."""
    runs = RunFolder(root, "").path
    try:
        folders = sorted((each for each in runs.iterdir() if each.is_dir()), key=_age, reverse=True)
    except OSError:
        return
    for folder in folders:
        run = read_run(folder, plan_id)
        if run is not None and run.started.verifies:
            yield run


def plan_of(run: PastRun) -> str | None:
    """The id of the plan; ``None`` where an older version has not written it down."""
    return None if run.started.reference is None else run.started.reference.todo_list_id


def read_run(folder: Path, plan_id: str | None = None) -> PastRun | None:
    """What the journal in a run's folder says; ``None`` where there is none, none that can be read, or one
    of another plan.
    """
    records = _records(folder / RunFolder(folder, "").journal.name)
    first = _as(RunStarted, records[0]) if records else None
    if first is None or first.version > VERSION:
        return None
    run = PastRun(folder, first)
    if plan_id is not None and plan_of(run) != plan_id:
        return None
    for record in records:
        session = str(record.get("session"))
        if session == WRITER:
            _take_in(run, record)
        else:  # a session that died went on in another process, as s1.2
            _take_in_session(run, record, session.partition(".")[0])
        at = record.get("at")
        if isinstance(at, (int, float)):
            run.last_at = max(run.last_at, at)
    return run


def _age(folder: Path) -> tuple[str, int]:
    """The names begin with the second in which the run began."""
    return folder.name.partition("-")[0], folder.stat().st_mtime_ns


def _records(path: Path) -> Sequence[Record]:
    try:
        # A pipe or a link in its place is no journal, and opening a pipe would wait for ever.
        return read_journal(path) if stat.S_ISREG(path.lstat().st_mode) else ()
    except OSError:
        return ()


def _take_in(run: PastRun, record: Record) -> None:
    kind = record["record"]
    if kind == "check_judged":
        judged = _as(CheckJudged, record)
        if judged is not None:
            _take_in_check(run, judged)
    elif kind == "todo_found":
        found = _as(TodoFound, record)
        if found is not None:
            run.outcomes[found.todo_id] = found.outcome
    elif kind == "run_unexplained":
        run.unexplained = str(record.get("reason"))
    elif kind == "run_finished":
        run.finished = _as(RunFinished, record)


def _take_in_session(run: PastRun, record: Record, session: str) -> None:
    if record["record"] == "test_finished":
        ended = _as(TestFinished, record)
        if ended is not None:
            run.ended[session, ended.nodeid] = ended.outcome.value
    elif record["record"] == "collected":
        collected = _as(Collected, record)
        if collected is not None and collected.check:
            run.wanted[collected.check] = session, collected.nodeids


def _take_in_check(run: PastRun, judged: CheckJudged) -> None:
    """The parent judges each criterion once: a second verdict that differs is not its own."""
    key = judged.todo_id, judged.check.id
    known = run.checks.get(key)
    if known is not None and known.check.verdict is not judged.check.verdict:
        judged = judged.model_copy(update={"final": False})
        if known.check.verdict.is_red:
            judged = judged.model_copy(update={"check": known.check, "evidence": known.evidence})
    run.checks[key] = judged


def _as(model: type[_Record], record: Record) -> _Record | None:
    try:
        return model.model_validate(record)
    except (ValidationError, RecursionError):
        return None
