"""Runs a session under its limits: starts it, follows its journal, ends it when a limit is passed.

A process that dies, or has to be ended, costs the test that ran or the file that was being imported;
another process takes up what it had not finished.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pytest_planverify.journal import JournalTail, is_signed
from pytest_planverify.observing import phases
from pytest_planverify.supervision.forkserver import Exited, ForkServerDied
from pytest_planverify.supervision.last_words import last_words
from pytest_planverify.supervision.record_values import Death, Running, TestRecord
from pytest_planverify.supervision.run_folder import make_way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_planverify.journal import Record
    from pytest_planverify.observing.spec import SessionSpec
    from pytest_planverify.supervision.forkserver import ForkServer
    from pytest_planverify.supervision.records import SessionRecord
    from pytest_planverify.supervision.spawning import Spawner

GRACE_SECONDS = 1.0
"""How long the soft limit inside the session is given before the process is ended."""

MOST_RENEWALS = 20
"""So often in a row is the process that forks sessions replaced when it can start none."""

DUMP_SECONDS = 1.0
"""How long a process that was told to abort may write down its stacks."""

_TICK = 0.05


class Listener(Protocol):
    """Is told what happens while a session runs."""

    def tick(self) -> None:
        """Time has passed."""

    def collected(self, count: int) -> None:
        """So many tests will run."""

    def test_finished(self, nodeid: str, outcome: str, duration_ms: int) -> None:
        """A test is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds after which a session, or what it does now, is ended; ``None`` is no limit."""

    session: float | None = None
    """The whole session: a command that runs alone has its criterion's limit."""
    step: float | None = None
    """What is neither a test nor the import of a file that a criterion names: the session's own end."""
    by_key: Mapping[str, float] = field(default_factory=dict[str, float])
    """Each criterion's limit; a test has the largest of those that want it."""
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The files and folders that each criterion names, relative to the plan's root."""
    leaving: float | None = None
    """How long a process may go on after its session's own end, where its greens are then seen alone."""

    def of_test(self, nodeid: str, record: SessionRecord) -> float | None:
        """The limit of one test."""
        return max(
            (self.by_key[key] for key in record.wanted_by(nodeid) if key in self.by_key),
            default=self.step,
        )

    def of_file(self, file: str) -> float | None:
        """The limit of a test file's import: the largest of the criteria that name it or a folder of it."""
        return max(
            (
                self.by_key[key]
                for key, paths in self.paths.items()
                if any(path in (".", file) or file.startswith(f"{path}/") for path in paths)
            ),
            default=self.step,
        )


class SessionRunner:
    """Runs sessions of one run, one after the other."""

    def __init__(
        self,
        server: ForkServer | Spawner,
        journal: Path,
        listener: Listener,
        meanwhile: Callable[[], None] | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """``meanwhile`` is called once, when the first session has been started.

        ``watch`` is called again and again; what it raises ends the session.
        """
        self._watch = watch
        self._server = server
        self._journal = journal
        self._tail = JournalTail(journal)
        self._listener = listener
        self._meanwhile: Callable[[], None] | None = meanwhile
        self._key = secrets.token_hex(16)
        self._renewed = 0

    def run(
        self,
        spec: SessionSpec,
        limits: Limits,
        record: SessionRecord,
        *,
        resume: bool,
        interactive: bool = False,
    ) -> None:
        """Run the session into the record; with ``resume``, go on in another process after a death.

        Raises :class:`ForkServerDied` if no session can be forked any more, and ``KeyboardInterrupt``;
        the record then holds what was seen until then.
        """
        attempt = 0
        killed_for_nothing = 0
        skipped_files: set[str] = set()
        while True:
            attempt += 1
            current = replace(
                spec,
                session_id=spec.session_id if attempt == 1 else f"{spec.session_id}.{attempt}",
                stacks=f"{spec.stacks}.{attempt}",
                key=self._key,
                skip=(*record.results, *record.undecided),
                skip_files=(*skipped_files, *record.finished_files),
            )
            record.begin()
            try:
                death = self._run_once(current, limits, record, interactive=interactive)
            except ForkServerDied:
                self._renew_server()
                death = self._bury(current, record, Exited(None, None), None, False)
                if not death.cost_something and resume and not killed_for_nothing:
                    killed_for_nothing += 1  # perhaps by what another session had left
                    record.deaths.pop()
                    continue
            if death is None or not resume or not death.cost_something:
                return
            if death.file is not None:
                skipped_files.add(death.file)

    def _start(self, spec: SessionSpec, *, own_session: bool) -> int:
        while True:
            try:
                pid = self._server.start(spec, own_session=own_session)
            except ForkServerDied:  # killed since the session before it: this one has not begun
                self._renew_server()
            else:
                self._renewed = 0
                return pid

    def _renew_server(self) -> None:
        """A test may end the process that forked it; the others are run by another one."""
        self._renewed += 1
        if self._renewed > MOST_RENEWALS:
            raise ForkServerDied("no session can be forked")
        self._server.renew()

    def _run_once(
        self, spec: SessionSpec, limits: Limits, record: SessionRecord, *, interactive: bool
    ) -> Death | None:
        make_way(self._journal)  # what ran before may have removed it, or put something else there
        self._tail.follow(create=True)
        self._tail.skip()
        pid = self._start(spec, own_session=not interactive)
        started = time.time()  # what the server needed to get ready is nobody's time
        timed_out: Running | None = None
        ended_by_limit = False
        lost: str | None = None
        try:
            if self._meanwhile is not None:
                self._meanwhile()
                self._meanwhile = None
            while (exited := self._server.poll(_TICK)) is None:
                self._drain(spec, record)
                self._listener.tick()
                self._watch()
                lost = self._lost_worker(spec, record)
                if lost is not None:
                    self._end_tree(pid)
                    exited = self._wait_for_end(pid)
                    break
                overdue = None if interactive else _overdue(record, limits, started)
                if overdue is not None:
                    timed_out, ended_by_limit = overdue.running, True
                    self._end(pid, overdue.running)
                    exited = self._wait_for_end(pid)
                    break
        except BaseException:  # whatever it is: a session that nobody watches would never end
            self._end_tree(pid)
            with contextlib.suppress(ForkServerDied):
                self._server.poll(5)
            self._drain(spec, record)
            raise
        self._drain(spec, record)
        if lost is not None:
            return self._note(spec, record, Exited(None, None), file=lost or None)
        in_order = record.exit_status is not None and exited == Exited(record.exit_status & 0xFF, None)
        if not in_order or ended_by_limit or exited.left_running:
            self._end_tree(pid)
        if in_order and not ended_by_limit:
            return self._stray(spec, record, exited)
        if ended_by_limit and record.exit_status is not None and limits.leaving is not None:
            stray = self._stray(spec, record, Exited(record.exit_status & 0xFF, None))
            if stray is not None:  # what stopped the session did not keep it from leaving
                return stray
        return self._bury(spec, record, exited, timed_out, ended_by_limit)

    def _drain(self, spec: SessionSpec, record: SessionRecord) -> None:
        self._read_on(spec, record)
        record.journal_cut |= self._tail.lost
        self._tail.lost = False

    def _read_on(self, spec: SessionSpec, record: SessionRecord) -> None:
        for entry in self._tail.read():
            if entry.get("session") != spec.session_id or not self._is_genuine(entry, record):
                continue
            was_collected = record.collected
            entry["at"] = time.time()  # the clock that the session sees may be stopped by what it tests
            finished = record.feed(entry)
            if finished is not None:
                self._listener.test_finished(finished.nodeid, finished.outcome, round(finished.duration_ms))
            elif record.collected and not was_collected:
                self._listener.collected(len(record.planned))

    def _is_genuine(self, entry: Record, record: SessionRecord) -> bool:
        """Whether the session wrote the line, once; what it reached for its children tell, too."""
        if entry["record"] == "audit_event":
            return True
        if not is_signed(self._tail.line, self._key):
            record.forged += 1
            return False
        # A line that was written twice, as by a copy of the process, is no forgery.
        return record.follows(entry)

    def _end(self, pid: int, running: Running | None) -> None:
        """Ask for the stacks, then end the whole tree."""
        target = running.pid if running is not None and running.pid else pid
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(target, signal.SIGABRT)
        deadline = time.monotonic() + DUMP_SECONDS
        while time.monotonic() < deadline and _alive(target):
            time.sleep(0.02)
        self._end_tree(pid)

    def _wait_for_end(self, pid: int) -> Exited:
        for _ in range(3):
            exited = self._server.poll(5)
            if exited is not None:
                return exited
            self._end_tree(pid)
        raise ForkServerDied(f"process {pid} cannot be ended")

    def _end_tree(self, pid: int) -> None:
        """End the session's processes, and what they left behind for the server to inherit."""
        # Imported late: the forked sessions must not inherit psutil, which may be what a project tests.
        from pytest_planverify.processes import end_descendants, end_process_tree

        with contextlib.suppress(OSError):
            os.kill(self._server.pid, signal.SIGCONT)  # a test may have stopped who waits for the session
        end_process_tree(pid, token=self._server.token)
        end_descendants(self._server.pid)

    def _lost_worker(self, spec: SessionSpec, record: SessionRecord) -> str | None:
        """Where an xdist worker died before any test: every worker that takes its place would, too."""
        if record.dead_before_tests(_alive) is None:
            return None
        self._drain(spec, record)  # it may have said more before it died
        return record.dead_before_tests(_alive)

    def _stray(self, spec: SessionSpec, record: SessionRecord, exited: Exited) -> Death | None:
        """A session that ended in order, and left a test or an import without an end."""
        if record.running:
            return self._blame_running(spec, record, exited, timed_out=False)
        if not spec.verbatim and record.stopped_at_import is not None:
            return self._note(spec, record, exited, file=record.stopped_at_import)
        return None

    def _bury(
        self,
        spec: SessionSpec,
        record: SessionRecord,
        exited: Exited,
        timed_out: Running | None,
        ended_by_limit: bool,
    ) -> Death:
        if timed_out is not None:
            return self._mark(spec, record, exited, timed_out, timed_out=ended_by_limit)
        if record.running:
            return self._blame_running(spec, record, exited, timed_out=ended_by_limit)
        file = next(iter(record.collecting.values()), None) if not record.collected else None
        return self._note(spec, record, exited, file=file, timed_out=ended_by_limit)

    def _blame_running(
        self, spec: SessionSpec, record: SessionRecord, exited: Exited, *, timed_out: bool
    ) -> Death:
        """The test that ran has ended the session; of several it cannot be told which."""
        if len(record.running) == 1:
            (running,) = record.running.values()
            return self._mark(spec, record, exited, running, timed_out=timed_out)
        record.undecided |= record.running.keys()
        return self._note(spec, record, exited, timed_out=timed_out, suspects=tuple(record.running))

    def _note(
        self,
        spec: SessionSpec,
        record: SessionRecord,
        exited: Exited,
        *,
        file: str | None = None,
        timed_out: bool = False,
        suspects: tuple[str, ...] = (),
    ) -> Death:
        death = Death(spec.session_id, exited, timed_out, None, file, *last_words(spec), suspects=suspects)
        record.deaths.append(death)
        record.exit_status = None
        return death

    def _mark(
        self, spec: SessionSpec, record: SessionRecord, exited: Exited, running: Running, *, timed_out: bool
    ) -> Death:
        death = Death(
            spec.session_id,
            exited,
            timed_out,
            running.nodeid,
            None,
            *last_words(spec),
            phase=phases.board.read(),
            raised=record.stopped_by,
        )
        record.deaths.append(death)
        outcome = "timeout" if timed_out else "crashed"
        seconds = max(time.time() - running.at, 0)
        record.results[running.nodeid] = TestRecord(
            running.nodeid,
            outcome,
            seconds * 1000,
            evidence=record.failures.pop(running.nodeid, []),
            process=record.process,
        )
        self._listener.test_finished(running.nodeid, outcome, round(seconds * 1000))
        record.exit_status = None
        return death


@dataclass(frozen=True, slots=True)
class _Overdue:
    running: Running | None


def _overdue(record: SessionRecord, limits: Limits, started: float) -> _Overdue | None:
    """What has passed its limit by now: a test, or the session outside any test."""
    now = time.time()
    if limits.session is not None and now > started + limits.session + GRACE_SECONDS:
        return _Overdue(next(iter(record.running.values()), None))
    if limits.leaving is not None and record.exit_status is not None:
        return _Overdue(None) if now > record.last_at + limits.leaving else None
    for running in record.running.values():
        limit = limits.of_test(running.nodeid, record)
        if limit is not None and now > running.at + limit + GRACE_SECONDS:
            return _Overdue(running)
    if not record.running:
        file = next(iter(record.collecting.values()), None)
        limit = limits.step if file is None else limits.of_file(file)
        if limit is not None and now > max(record.last_at, started) + limit + GRACE_SECONDS:
            return _Overdue(None)
    return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return True
