"""The parent's records in the journal of a run: written as it goes on, and read of runs that are over."""

from __future__ import annotations

import os
import platform
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from pydantic import ValidationError

from planner.catalog.pytest_arguments import split_options
from planner.model.journal import (
    CheckJudged,
    Collected,
    JournalRecord,
    JournalRunStarted,
    RunFinished,
    TestFinished,
)
from pytest_planverify.checks.result import CheckRun
from pytest_planverify.journal import VERSION, JournalWriter, read_journal
from pytest_planverify.session.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.base import ReadValue
    from planner.model.outcome import OutcomeDocument, PlanRef
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.journal import Record
    from pytest_planverify.options import Settings
    from pytest_planverify.session.tree_state import TreeWatch

WRITER = "parent"
"""Who writes these records, beside the sessions."""

TREE = "tree.json"
"""In the run's folder: what the files were like when it began."""


class RunJournal:
    """The parent's hand in the journal of one plan of the run.

    Each record opens the file again, for what runs may have removed it, or have put something else in its
    place; that is left alone.
    """

    def __init__(self, path: Path, plan_id: str, tree: TreeWatch | None = None) -> None:
        """``tree`` is written beside the journal before the first verdict, which says little without it."""
        self._path = path
        self._plan_id = plan_id
        self._tree = tree

    def open(
        self,
        run_id: str,
        reference: PlanRef,
        settings: Settings,
        todos: Iterable[Todo],
        *,
        boundary: Path | None = None,
        baseline: KeptBaseline | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        """Write the first record: which run, and of which plan. Raises ``OSError``."""
        journal = JournalWriter(self._path, WRITER)
        journal.write(
            "run_started",
            version=VERSION,
            run_id=run_id,
            plan=reference.path,
            digest=reference.digest,
            python=platform.python_version(),
            pytest=pytest.__version__,
            argv=sys.argv[1:],
            pid=os.getpid(),
            reference=_data(reference),
            todos=[todo.id for todo in todos],
            scope=settings.scope,
            keep_going=settings.keep_going,
            verifies=not settings.collect_only and not settings.recording,
            boundary=None if boundary is None else str(boundary),
            conditions=dict(conditions(settings, baseline)),
            remarks=list(remarks),
        )
        journal.close()

    def check_judged(self, todo_id: str, run: CheckRun, *, final: bool) -> None:
        """Write down a verdict that has just been reached."""
        if self._tree is not None:
            tree, self._tree = self._tree, None
            tree.keep(self._path.with_name(TREE))
        self.append(
            "check_judged",
            plan=self._plan_id,
            todo_id=todo_id,
            final=final,
            check=_data(run.check),
            evidence=[_data(each) for each in run.evidence],
            properties=run.properties,
            rests_on=None if run.rests_on is None else _data(run.rests_on),
        )

    def append(self, record: str, **facts: Any) -> None:
        """Append a record, unless something that is no plain file stands in the journal's place.

        A disk that is full costs the record, not the run.
        """
        with suppress(OSError):
            if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
                return
            journal = JournalWriter(self._path, WRITER)
            try:
                journal.write(record, **facts)
            finally:
                journal.close()

    def close(self, document: OutcomeDocument) -> None:
        """Write the last records: how each todo stands, and how the run ended.

        What was found of them is in the file of outcomes beside the journal, which is written before.
        """
        plan, run = self._plan_id, document.run
        for each in document.outcomes:
            if each.plan == plan:
                facts = {"todo_id": each.todo_id, "state": each.state, "blocked_by": each.blocked_by}
                self.append("todo_judged", plan=plan, **facts)
        end = {"run_id": run.run_id, "exit_status": run.exit_status, "interrupted": run.interrupted}
        self.append("run_finished", plan=plan, **end)


def conditions(settings: Settings, baseline: KeptBaseline | None) -> Mapping[str, str]:
    """Return the conditions of a verdict besides the plan and the files: equal ones give equal verdicts."""
    words: dict[str, Any] = {
        "isolate": settings.isolate,
        "every worker": [
            word
            for option in split_options(settings.worker_args)
            if option.name not in _SHOWING
            for word in option.words
        ],
        "confirmations": settings.confirmations,
    }
    followed = ("PYTHON", "PYTEST_")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(followed) and name not in _OF_ONE_PROCESS
    }
    return {
        "interpreter": f"{sys.implementation.name} {sys.version}",
        "pytest": pytest.__version__,
        "installed packages": _packages(),
        "options": dumps(words),
        "environment": dumps(environment, sort_keys=True),
        "baseline": "" if baseline is None else baseline_digest(baseline),
    }


_SHOWING = frozenset(
    {"-v", "-q", "--verbose", "--quiet", "--no-header", "--no-summary", "-l", "--showlocals", "-r", "--tb"}
    | {"--color", "--durations", "--show-capture", "--pdb", "--trace", "--full-trace"}
)
"""Options that only say what is shown, or that stop in a debugger."""


def baseline_digest(baseline: KeptBaseline) -> str:
    """Two baselines with the same one say the same."""
    from hashlib import sha256

    return sha256(dumps(_data(baseline.document)).encode()).hexdigest()


_OF_ONE_PROCESS = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_XDIST_TESTRUNUID", "PYTEST_XDIST_WORKER"})


def _packages() -> str:
    """A digest of the names and versions of what is installed."""
    from hashlib import sha256

    names: set[str] = set()
    for entry in sys.path:
        with suppress(OSError):
            names |= {
                name for name in os.listdir(entry or ".") if name.endswith((".dist-info", ".egg-info"))
            }
    return sha256("\n".join(sorted(names)).encode("utf-8", "surrogateescape")).hexdigest()


def _data(value: ReadValue) -> Any:
    return value.model_dump(mode="json")


_Record = TypeVar("_Record", bound=JournalRecord)


@dataclass(slots=True)
class PastRun:
    """One plan of one run, as its journal has it."""

    folder: Path
    started: JournalRunStarted
    checks: dict[tuple[str, str], CheckRun] = field(default_factory=dict[tuple[str, str], CheckRun])
    """The verdicts that were reached, by todo and check."""
    final: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Those of them that nothing is left to be found out about."""
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

        if self.finished is not None or self.started.pid is None or self.started.pid == os.getpid():
            return False
        try:
            process = psutil.Process(self.started.pid)
            return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= self.started.at
        except psutil.Error:
            return False

    def ended_of(self, todo_id: str, check_id: str) -> tuple[int, list[str]]:
        """Return how many tests a check has, and the outcomes of those that ended."""
        for key, (session, nodeids) in self.wanted.items():
            if key.endswith(f"::{todo_id}::{check_id}"):
                found = (self.ended.get((session, nodeid)) for nodeid in nodeids)
                return len(nodeids), [outcome for outcome in found if outcome is not None]
        return 0, []

    def is_of(self, plan_id: str) -> bool:
        """Return whether the run verified the plan, as far as its version has written that down."""
        return self.started.reference is not None and self.started.reference.todo_list_id == plan_id

    def take_in(self, judged: CheckJudged) -> None:
        """Keep a verdict. The parent judges each criterion once: a second that differs is not its own."""
        key = judged.todo_id, judged.check.id
        known = self.checks.get(key)
        run = CheckRun(
            check=judged.check,
            evidence=judged.evidence,
            properties=list(judged.properties),
            rests_on=judged.rests_on,
        )
        is_other = known is not None and known.check.verdict is not run.check.verdict
        if judged.final and not is_other:
            self.final.add(key)
        else:
            self.final.discard(key)
        if known is None or not (is_other and known.check.verdict.is_red):
            self.checks[key] = run


def past_runs(root: Path, plan_id: str) -> Iterator[PastRun]:
    """The runs that verified the plan and are kept below its root, the newest first.

    The code under test can write where journals are kept, so nothing in them is believed to be in order:
    what is torn, foreign, or says two things of one criterion says nothing.
    """
    try:
        folders = [each for each in RunFolder(root, "").path.iterdir() if each.is_dir()]
        # The names begin with the second in which the run began.
        folders.sort(key=lambda each: (each.name.partition("-")[0], each.stat().st_mtime_ns), reverse=True)
    except OSError:
        return
    for folder in folders:
        run = _past_run(folder)
        if run is not None and run.started.verifies and run.is_of(plan_id):
            yield run


def _past_run(folder: Path) -> PastRun | None:
    """Read the journal in a run's folder; ``None`` where there is none that can be read."""
    path = folder / RunFolder(folder, "").journal.name
    try:
        # A pipe or a link in its place is no journal, and opening a pipe would wait for ever.
        records = read_journal(path) if stat.S_ISREG(path.lstat().st_mode) else ()
    except OSError:
        return None
    first = _as(JournalRunStarted, records[0]) if records else None
    if first is None or first.version > VERSION:
        return None
    run = PastRun(folder, first)
    for record in records:
        session = str(record.get("session"))
        kind = record["record"]
        if session == WRITER:
            if kind == "run_unexplained":
                run.unexplained = str(record.get("reason"))
            elif kind == "run_finished":
                run.finished = _as(RunFinished, record)
            elif kind == "check_judged" and (judged := _as(CheckJudged, record)):
                run.take_in(judged)
        elif kind == "test_finished" and (ended := _as(TestFinished, record)):
            run.ended[session, ended.nodeid] = ended.outcome.value
        elif kind == "collected" and (collected := _as(Collected, record)) and collected.check:
            run.wanted[collected.check] = session, collected.nodeids
        if isinstance(at := record.get("at"), (int, float)):
            run.last_at = max(run.last_at, at)
    return run


def _as(model: type[_Record], record: Record) -> _Record | None:
    try:
        return model.model_validate(record)
    except (ValidationError, RecursionError):
        return None
