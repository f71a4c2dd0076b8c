"""Runs one worker under its limit: starts it, follows its journal, ends it when the limit is passed."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_planverify.checks.awake_clock import AwakeClock
from pytest_planverify.journal import JournalTail, is_signed
from pytest_planverify.observe.supervision import PHASE_NAMES, SIGNAL, prepare_board
from pytest_planverify.session.fork_server import Exited, ForkServerDied
from pytest_planverify.session.records import Death, RunningTest, TestRecord, WorkerRecord
from pytest_planverify.session.run_folder import make_way

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_planverify.journal import Record
    from pytest_planverify.observe.spec import WorkerSpec
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.session.cold import ColdWorker
    from pytest_planverify.session.fork_server import ForkedWorker

GRACE_SECONDS = 1.0
"""How long the soft limit inside the worker is given before the process is ended."""

OVERTIME = 0.5
"""After a test that was ended softly, the others have this part of the limit, and at least two seconds."""

OVERTIME_OF_TEST = 0.1
"""Each of these has this part of it, and at least a second."""

DUMP_SECONDS = 1.0
"""How long a process that was told to abort may write down its stacks."""

START_SECONDS = 60.0
"""How long a process may take to begin its session."""

_TICK = 0.05
_LAST_WORDS = 20_000


@dataclass
class Watcher:
    """Watches one worker."""

    worker: ForkedWorker | ColdWorker
    spec: WorkerSpec
    record: WorkerRecord
    progress: Progress
    watch: Callable[[], None]
    """Called again and again; what it raises ends the worker and is passed on."""
    pid: int = 0
    ended: str | None = None
    """The test that was told to end."""

    def __post_init__(self) -> None:
        self.spec = replace(self.spec, key=secrets.token_hex(16))
        self._tail = JournalTail(self.spec.journal)
        self._clock = AwakeClock()

    def run(self) -> None:
        """Run the worker into the record, which holds what was seen even where this raises.

        Raises :class:`ForkServerDied` if the worker could not be started, and what ``watch`` raises.
        """
        spec = self.spec
        self._tail.only = f'"session": "{spec.worker_id}"'.encode()
        make_way(Path(spec.journal))  # what ran before may have removed it, or put something else there
        self._tail.follow(create=True)
        self._tail.skip()
        prepare_board(spec.board)
        self.record.launched_at = time.time()
        try:
            self._watch_worker()
        finally:
            self.worker.close()
            self._tail.close()

    def _watch_worker(self) -> None:
        record = self.record
        self.pid = self.worker.start(self.spec, own_session=self.spec.log is not None)
        try:
            exited, running, timed_out = self._follow()
        except ForkServerDied:  # a test may end the process that forked it
            self._drain()
            record.death = self._death(Exited(None, None), None, timed_out=False)
            return
        except BaseException:  # whatever it is: a worker that nobody watches would never end
            record.cut_short = True
            self._end_tree()
            with contextlib.suppress(ForkServerDied):
                self.worker.poll(5)
            self._drain()
            raise
        self._drain()
        if record.restart is not None:
            return
        in_order = record.exit_status is not None and exited == Exited(record.exit_status & 0xFF, None)
        if not in_order or timed_out or exited.left_running:
            self._end_tree()
        if not in_order or timed_out or record.running:
            record.death = self._death(exited, running, timed_out=timed_out)

    def _follow(self) -> tuple[Exited, RunningTest | None, bool]:
        begun, record, limit = self._clock.seconds(), self.record, self.spec.limit_seconds
        while (exited := self.worker.poll(_TICK)) is None:
            self._drain()
            # The time that a server or an interpreter needs to get ready is nobody's.
            started = begun + START_SECONDS if record.started_at is None else record.started_at
            self.watch()
            if self._lost_process():
                self._end_tree()
                self._wait_for_end()
                return Exited(None, None), None, False
            if limit is None:
                continue
            self._end_test(started, limit)
            # A test that was ended softly leaves the others their chance.
            overtime = max(limit * OVERTIME, 2.0) if record.timed_out else 0.0
            if self._clock.seconds() > started + limit + overtime + GRACE_SECONDS:
                running = next(iter(record.running.values()), None) if len(record.running) == 1 else None
                dying = running.pid if running is not None and running.pid else record.pid or self.pid
                self._dump_stacks(dying)
                self._end_tree()
                return self._wait_for_end(), running, True
        return exited, None, False

    def _end_test(self, started: float, limit: float) -> None:
        """Let the test fail that runs when the time is over, and each later one that takes long, once."""
        record = self.record
        if not record.soft_limit or record.pid is None or SIGNAL is None or len(record.running) != 1:
            return
        (running,) = record.running.values()
        overtime = max(limit * OVERTIME_OF_TEST, 1.0)
        over = self._clock.seconds() > (running.at + overtime if record.timed_out else started + limit)
        # A signal cuts short what sleeps in C: a set-up or a teardown, which it cannot fail, has none.
        if over and not running.worker and running.nodeid != self.ended and self._phase() == "call":
            self.ended = running.nodeid
            with contextlib.suppress(OSError):
                os.kill(record.pid, SIGNAL)

    def _drain(self) -> None:
        check, record = self.spec.check, self.record
        for entry in self._tail.read():
            if entry.get("session") != self.spec.worker_id or not self._is_genuine(entry):
                continue
            was_collected = record.collected
            entry["at"] = self._clock.seconds()  # what the worker tests may stop the clock that it sees
            finished = record.feed(entry)
            if finished is not None:
                milliseconds = round(finished.duration_ms)
                self.progress.test_finished(check, finished.nodeid, finished.outcome, milliseconds)
            elif entry["record"] == "test_started":
                self.progress.test_started(check, entry["nodeid"])
            elif record.collected and not was_collected:
                self.progress.collected(check, len(record.nodeids))
        record.journal_cut |= self._tail.lost
        self._tail.lost = False

    def _is_genuine(self, entry: Record) -> bool:
        """Return whether the worker wrote the line, once; what it reached for its children tell, too."""
        if entry["record"] == "audit_event":
            return True
        if not is_signed(self._tail.line, self.spec.key):
            self.record.forged += 1
            return False
        # A line that was written twice, as by a copy of the process, is no forgery.
        return self.record.follows(entry)

    def _dump_stacks(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGABRT)
        deadline = time.monotonic() + DUMP_SECONDS
        while time.monotonic() < deadline and _is_alive(pid):
            time.sleep(0.02)

    def _wait_for_end(self) -> Exited:
        for _ in range(3):
            exited = self.worker.poll(5)
            if exited is not None:
                return exited
            self._end_tree()
        raise ForkServerDied(f"process {self.pid} cannot be ended")

    def _end_tree(self) -> None:
        """End the worker's processes, and what they left behind."""
        from pytest_planverify.checks.processes import end_descendants, end_process_tree

        with contextlib.suppress(OSError):
            os.kill(self.worker.pid, signal.SIGCONT)  # a test may have stopped who waits for the worker
        end_process_tree(self.pid, token=self.worker.token)
        end_descendants(self.worker.pid)

    def _lost_process(self) -> bool:
        """Return whether a process of xdist died before any test: each that takes its place would, too."""
        if not self.record.has_lost_process(_is_alive):
            return False
        self._drain()  # it may have said more before it died
        return self.record.has_lost_process(_is_alive)

    def _death(self, exited: Exited, running: RunningTest | None, *, timed_out: bool) -> Death:
        """Lay the death on the test that ran, or on the file that was being imported."""
        record, spec = self.record, self.spec
        if running is None and len(record.running) == 1:
            (running,) = record.running.values()
        file = None
        if running is None and not record.collected:
            file = next(iter(record.collecting.values()), None)
        folder = Path(spec.stacks).parent
        stacks = [_tail_of(path) for path in sorted(folder.glob(Path(spec.stacks).name + "*"))]
        death = Death(
            exited,
            timed_out,
            None if running is None else running.nodeid,
            file,
            "\n".join(filter(None, stacks)).replace(f'"{spec.root}/', '"'),
            _tail_of(Path(spec.log)) if spec.log else "",
            phase=None if running is None else self._phase(),
            raised=record.stopped_by,
        )
        if running is not None:
            outcome = "timeout" if timed_out else "crashed"
            milliseconds = (self._clock.seconds() - running.at) * 1000
            evidence = record.failures.pop(running.nodeid, [])
            record.results[running.nodeid] = TestRecord(
                running.nodeid, outcome, milliseconds, evidence=evidence
            )
            self.progress.test_finished(spec.check, running.nodeid, outcome, round(milliseconds))
        record.exit_status = None
        return death

    def _phase(self) -> str | None:
        try:
            with open(self.spec.board, "rb") as file:
                return PHASE_NAMES.get(file.read()[self.spec.slot])
        except (OSError, IndexError):
            return None


def _tail_of(path: Path) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - _LAST_WORDS, 0))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _is_alive(pid: int) -> bool:
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
