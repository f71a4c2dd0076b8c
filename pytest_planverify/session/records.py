"""One worker as the parent knows it: the fold of the worker's journal records, and its death if it died."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_planverify.journal import Record
    from pytest_planverify.session.fork_server import Exited

RawEvidence = dict[str, Any]

PROVING = ("passed", "xpassed")
"""Outcomes of tests that ran and held."""
GREEN = (*PROVING, "skipped", "xfailed")
"""Outcomes that nobody has to answer for."""


@dataclass(slots=True)
class TestRecord:
    """One test that is over, or that ended its worker."""

    __test__ = False

    nodeid: str
    outcome: str
    duration_ms: float = 0.0
    reason: str | None = None
    reruns: int = 0
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    evidence: list[RawEvidence] = field(default_factory=list[RawEvidence])

    @property
    def is_red(self) -> bool:
        """Whether it failed, or something failed while it ran."""
        return self.outcome not in GREEN or bool(self.evidence)


@dataclass(slots=True)
class RunningTest:
    """A test that has started and is not over."""

    nodeid: str
    at: float
    pid: int | None
    worker: str = ""


@dataclass(slots=True)
class CollectionFailure:
    """A file that could not be imported."""

    nodeid: str
    path: str
    evidence: RawEvidence


@dataclass(slots=True)
class Death:
    """A worker that ended, or was ended, before its session did."""

    worker_id: str
    exited: Exited
    timed_out: bool
    nodeid: str | None
    """The test that ran, if one did."""
    file: str | None
    """The test file that was being imported, if one was."""
    stack: str
    output: str
    phase: str | None = None
    """The phase of the test that ran, where the process could tell."""
    raised: RawEvidence | None = None
    """The exception that ended the session, where it was one."""

    @property
    def is_unseen(self) -> bool:
        """Whether the lane that would have seen it is gone as well."""
        return self.exited.code is None and self.exited.signal is None and not self.timed_out


class WorkerRecord:
    """All that was seen of one worker."""

    def __init__(self, worker_id: str = "", inifile: str | None = None) -> None:
        self.worker_id = worker_id
        self.inifile = inifile
        """The configuration file of pytest, which its server may have read."""
        self.pid: int | None = None
        self.started_at: float | None = None
        self.collected = False
        self.nodeids: list[str] = []
        """The tests that the command selects, but for those that the user of the run leaves out."""
        self.narrowed: list[str] = []
        """Selected by the command, left out by the user of the run."""
        self.results: dict[str, TestRecord] = {}
        self.attempts: dict[str, list[RawEvidence]] = {}
        self.failures: dict[str, list[RawEvidence]] = {}
        self.collection_failures: dict[str, CollectionFailure] = {}
        self.skipped_files: dict[str, str] = {}
        self.not_found: dict[str, list[str]] = {}
        """Arguments that name no test of their file, and the tests there that look like it."""
        self.journal_cut = False
        """The journal was cut or written over while the worker ran, which only what ran then can do."""
        self._skipped_some = False
        self.metrics: list[tuple[str, Any]] = []
        self.audit: dict[tuple[Any, ...], Record] = {}
        """What was reached for outside the worker; the last word of each process on each event."""
        self.hidden: dict[str, Record] = {}
        """Failures of tests that were not reported as such."""
        self.startup_failures: list[RawEvidence] = []
        self.usage_errors: list[str] = []
        self.internal_errors: list[str] = []
        self.stopped: str | None = None
        self.stopped_by: RawEvidence | None = None
        """The exception that stopped it, where it was one."""
        self.looked_for_tests = False
        """Conftests and plugins had been loaded by then."""
        self.forged = 0
        """Lines of the journal that say they are the worker's, and were not written by it."""
        self.xdist_workers: dict[str, int] = {}
        """The processes of pytest-xdist, where the command itself asks for some."""
        self._over: set[str] = set()
        self._ready: set[str] = set()
        self.cut_short = False
        """The run itself was stopped and ended the worker, so that no verdict of it is final."""
        self.soft_limit = False
        """It listens to the signal that ends one test."""
        self.timed_out = False
        """A test was ended by the soft limit."""
        self.modules: list[str] = []
        """Installed modules that it had imported when it had its tests."""
        self.files_read: Record | None = None
        """What it had read of the project, as it told at its end."""
        self.launched_at = 0.0
        """When it was asked for, in seconds since 1970; it cannot have read anything before."""
        self.used_extensions = False
        """It was given extension modules that its server had imported."""
        self.restart: tuple[int | None, str] | None = None
        """It asks to be replaced: the level to start at, ``None`` for the same without modules, and why."""
        self.exit_status: int | None = None
        """The status that the session returned; ``None`` if its process did not live to say so."""
        self.death: Death | None = None
        self.running: dict[str, RunningTest] = {}
        self.collecting: dict[str, str] = {}
        self.last_at = 0.0
        self.inventories: list[Record] = []
        """Who had a say in the verdicts, as each process told at its end."""
        self._numbers: dict[str, int] = {}

    def feed(self, record: Record) -> TestRecord | None:
        """Take in one journal record. Return the test that it ends, if it ends one.

        A record without the members that its tag promises says nothing: what it would have told is missing.
        """
        try:
            self.last_at = float(record.get("at", self.last_at))
            handler = _HANDLERS.get(record["record"])
            return handler(self, record) if handler is not None else None
        except (KeyError, TypeError, ValueError, AttributeError):
            self.internal_errors.append(f"a {record['record']!r} record of the worker cannot be read")
            return None

    def follows(self, record: Record) -> bool:
        """Return whether a numbered record is new; where one is missing before it, the journal was cut."""
        pen, number = str(record.get("pen")), int(record.get("number", 0))
        last = self._numbers.get(pen, 0)
        if number <= last:
            return False
        self._numbers[pen] = number
        self._skipped_some |= number > last + 1
        return True

    @property
    def journal_lost(self) -> bool:
        """Records of the worker are missing, so what it did not tell is no failure."""
        return self.journal_cut or self._skipped_some

    def reruns_of(self, result: TestRecord) -> int:
        """Return how often a test that is green was red before another plugin ran it again."""
        hidden = self.hidden.get(result.nodeid)
        again = hidden["count"] if hidden is not None and hidden["runs"] > 1 else 0
        return result.reruns + again

    def is_overturned(self, result: TestRecord) -> bool:
        """Return whether the one time that its body was run it failed, and it was reported as green."""
        hidden = self.hidden.get(result.nodeid)
        return hidden is not None and hidden["runs"] <= 1 and not result.is_red

    def dead_before_tests(self, alive: Callable[[int], bool]) -> str | None:
        """Return the file that a process of xdist was importing when it died; empty where it was none's."""
        for worker, pid in self.xdist_workers.items():
            if worker not in self._ready and not alive(pid):
                return self.collecting.get(worker, "")
        return None

    @property
    def lost_processes(self) -> frozenset[str]:
        """The processes of xdist that did not come to the end of their session."""
        return frozenset(self.xdist_workers.keys() - self._over)

    @property
    def stopped_at_import(self) -> str | None:
        """The file whose import a session did not get past that ended by itself."""
        if self.collected or self.usage_errors:
            return None
        return next(iter(self.collecting.values()), None)

    # -- one method a record ---------------------------------------------------------------------

    def _session_started(self, record: Record) -> None:
        if worker := record.get("worker"):
            self.xdist_workers[worker] = int(record["pid"])
        else:
            self.pid, self.started_at = int(record["pid"]), self.last_at
            self.soft_limit = bool(record.get("soft_limit"))

    def _collection_started(self, record: Record) -> None:
        self.looked_for_tests = True

    def _file_collecting(self, record: Record) -> None:
        self.collecting[record.get("worker", "")] = record["nodeid"]

    def _files_collected(self, record: Record) -> None:
        self.collecting.pop(record.get("worker", ""), None)

    def _collection_failure(self, record: Record) -> None:
        failure = CollectionFailure(record["nodeid"], record["path"], record["evidence"])
        self.collection_failures.setdefault(failure.nodeid, failure)

    def _file_skipped(self, record: Record) -> None:
        self.skipped_files[record["nodeid"]] = record.get("reason", "")

    def _not_found(self, record: Record) -> None:
        nearest = record.get("nearest", {})
        self.not_found = {argument: nearest.get(argument, []) for argument in record["arguments"]}

    def _collected(self, record: Record) -> None:
        self.collecting.pop(record.get("worker", ""), None)
        self._ready.add(record.get("worker", ""))
        if not self.collected:
            self.nodeids, self.narrowed = list(record["nodeids"]), list(record["narrowed"])
        self.collected = True

    def _imported(self, record: Record) -> None:
        self.modules = list(record["modules"])

    def _files_read(self, record: Record) -> None:
        self.files_read = record

    def _module_handed_out(self, record: Record) -> None:
        self.used_extensions = True

    def _restart(self, record: Record) -> None:
        self.restart = record["level"], str(record["reason"])

    def _hidden_failure(self, record: Record) -> None:
        self.hidden[str(record["nodeid"])] = {"count": int(record["count"]), "runs": int(record["runs"])}
        text = record.get("evidence")
        if isinstance(text, str):
            self.attempts.setdefault(record["nodeid"], []).append(json.loads(text))

    def _test_started(self, record: Record) -> None:
        nodeid, worker = record["nodeid"], str(record.get("worker", ""))
        self.running[nodeid] = RunningTest(nodeid, self.last_at, record.get("pid"), worker)

    def _test_failure(self, record: Record) -> None:
        kept = self.attempts if record.get("attempt") else self.failures
        kept.setdefault(record["nodeid"], []).append(record["evidence"])
        self.timed_out |= bool(record["evidence"].get("timed_out"))

    def _test_finished(self, record: Record) -> TestRecord:
        nodeid = record["nodeid"]
        self.running.pop(nodeid, None)
        result = TestRecord(
            nodeid,
            record["outcome"],
            float(record.get("duration_ms", 0)),
            record.get("reason"),
            int(record.get("reruns", 0)),
            [(name, value) for name, value in record.get("properties", ())],
            self.failures.pop(nodeid, []),
        )
        earlier = self.results.get(nodeid)
        if earlier is None or not earlier.is_red or result.is_red:  # a pass never covers a failure
            self.results[nodeid] = result
        return result

    def _metric(self, record: Record) -> None:
        self.metrics.append((record["name"], record["value"]))

    def _audit_event(self, record: Record) -> None:
        key = tuple(record[name] for name in _ONE_EVENT)
        before = self.audit.get(key)
        if before is not None:  # nothing that was said of it is taken back
            count = max(int(before["count"]), int(record["count"]))
            record = {**record, "count": count}
        self.audit[key] = record

    def _usage_error(self, record: Record) -> None:
        self.usage_errors.append(record["message"])

    def _startup_failure(self, record: Record) -> None:
        self.startup_failures.append(record["evidence"])

    def _internal_error(self, record: Record) -> None:
        self.internal_errors.append(record["text"])

    def _stopped(self, record: Record) -> None:
        self.stopped = record.get("reason") or self.stopped
        self.stopped_by = record.get("evidence") or self.stopped_by

    def _session_inventory(self, record: Record) -> None:
        self.inventories.append(record)

    def _session_finished(self, record: Record) -> None:
        if worker := record.get("worker"):
            self._over.add(worker)
        else:
            self.stopped = record.get("stopped") or self.stopped

    def _session_ended(self, record: Record) -> None:
        self.exit_status = record["exit_status"]


_ONE_EVENT = ("pid", "event", "target", "nodeid", "path", "phase", "denied")
"""What equal events have in common."""


_HANDLERS: dict[str, Callable[[WorkerRecord, Record], TestRecord | None]] = {
    name: getattr(WorkerRecord, f"_{name}")
    for name in (
        "session_started", "collection_started", "file_collecting", "files_collected", "collection_failure",
        "file_skipped", "not_found", "stopped", "collected", "imported", "module_handed_out", "restart",
        "test_started", "test_failure", "test_finished", "metric", "usage_error", "hidden_failure",
        "startup_failure", "internal_error", "session_finished", "session_ended", "audit_event",
        "session_inventory", "files_read",
    )
}  # fmt: skip
