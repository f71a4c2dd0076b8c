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

FunctionKey = tuple[str, int, str]
"""Path, first line and qualified name of a function."""

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
        """Return whether it failed, or something failed while it ran."""
        return self.outcome not in GREEN or bool(self.evidence)


@dataclass(slots=True)
class RunningTest:
    """A test that has started and is not over."""

    nodeid: str
    at: float
    pid: int | None
    worker: str = ""


@dataclass(slots=True)
class Death:
    """A worker that ended, or was ended, before its session did."""

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


class WorkerRecord:
    """All that was seen of one worker."""

    def __init__(self, inifile: str | None = None) -> None:
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
        self.collection_failures: dict[str, RawEvidence] = {}
        """By node id, the files that could not be imported."""
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
        self.executed: dict[str, dict[FunctionKey, tuple[int, int]]] = {}
        """By test, the functions that it executed, each with its depth and, as bits, its lines."""
        self._functions: dict[tuple[str, str], FunctionKey] = {}
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
            return self._take(record)
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

    def has_lost_process(self, is_alive: Callable[[int], bool]) -> bool:
        """Return whether a process of xdist died before it had its tests."""
        return any(
            worker not in self._ready and not is_alive(pid) for worker, pid in self.xdist_workers.items()
        )

    @property
    def lost_processes(self) -> frozenset[str]:
        """The processes of xdist that did not come to the end of their session."""
        return frozenset(self.xdist_workers.keys() - self._over)

    def _take(self, record: Record) -> TestRecord | None:
        worker = str(record.get("worker") or "")
        match record["record"]:
            case "session_started" if worker:
                self.xdist_workers[worker] = int(record["pid"])
            case "session_started":
                self.pid, self.started_at = int(record["pid"]), self.last_at
                self.soft_limit = bool(record.get("soft_limit"))
            case "file_collecting":
                self.collecting[worker] = record["nodeid"]
            case "files_collected":
                self.collecting.pop(worker, None)
            case "collection_failure":
                self.collection_failures.setdefault(record["nodeid"], record["evidence"])
            case "file_skipped":
                self.skipped_files[record["nodeid"]] = record.get("reason", "")
            case "not_found":
                nearest = record.get("nearest", {})
                self.not_found = {argument: nearest.get(argument, []) for argument in record["arguments"]}
            case "collected":
                self.collecting.pop(worker, None)
                self._ready.add(worker)
                if not self.collected:
                    self.nodeids, self.narrowed = list(record["nodeids"]), list(record["narrowed"])
                self.collected = True
            case "imported":
                self.modules = list(record["modules"])
            case "files_read":
                self.files_read = record
            case "executed":
                for number, (path, line, name) in record["functions"].items():
                    self._functions[worker, str(number)] = str(path), int(line), str(name)
                ran = self.executed.setdefault(str(record["nodeid"]), {})
                for number, depth, lines in record["ran"]:
                    key = self._functions[worker, str(number)]
                    known = ran.get(key, (int(depth), 0))
                    ran[key] = min(int(depth), known[0]), int(lines, 16) | known[1]
            case "module_handed_out":
                self.used_extensions = True
            case "restart":
                self.restart = record["level"], str(record["reason"])
            case "hidden_failure":
                nodeid = str(record["nodeid"])
                self.hidden[nodeid] = {"count": int(record["count"]), "runs": int(record["runs"])}
                if isinstance(text := record.get("evidence"), str):
                    self.attempts.setdefault(nodeid, []).append(json.loads(text))
            case "test_started":
                nodeid = record["nodeid"]
                self.running[nodeid] = RunningTest(nodeid, self.last_at, record.get("pid"), worker)
            case "test_failure":
                kept = self.attempts if record.get("attempt") else self.failures
                kept.setdefault(record["nodeid"], []).append(record["evidence"])
                self.timed_out |= bool(record["evidence"].get("timed_out"))
            case "test_finished":
                return self._end_test(record)
            case "metric":
                self.metrics.append((record["name"], record["value"]))
            case "audit_event":
                key = tuple(record[name] for name in _ONE_EVENT)
                if (before := self.audit.get(key)) is not None:  # nothing that was said of it is taken back
                    record = {**record, "count": max(int(before["count"]), int(record["count"]))}
                self.audit[key] = record
            case "usage_error":
                self.usage_errors.append(record["message"])
            case "startup_failure":
                self.startup_failures.append(record["evidence"])
            case "internal_error":
                self.internal_errors.append(record["text"])
            case "stopped":
                self.stopped = record.get("reason") or self.stopped
                self.stopped_by = record.get("evidence") or self.stopped_by
            case "session_inventory":
                self.inventories.append(record)
            case "session_finished" if worker:
                self._over.add(worker)
            case "session_finished":
                self.stopped = record.get("stopped") or self.stopped
            case "session_ended":
                self.exit_status = record["exit_status"]
            case _:
                pass
        return None

    def _end_test(self, record: Record) -> TestRecord:
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


_ONE_EVENT = ("pid", "event", "target", "nodeid", "path", "phase", "denied")
"""What equal events have in common."""
