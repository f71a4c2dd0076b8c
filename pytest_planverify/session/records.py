"""State of one worker in the parent, folded from the worker's journal records, and its death if it died."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.model.verdicts import Isolation

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.evidence import ProcessEnd
    from pytest_planverify.journal import Record

RawEvidence = dict[str, Any]

FunctionKey = tuple[str, int, str]
"""Path, first line and qualified name of a function."""


class Execution(NamedTuple):
    """Execution of a function by a test."""

    depth: int
    """Least number of product functions on the path to it."""
    lines: int
    """A bit for each executed line, counted from the function's first line."""
    nones: dict[tuple[str, str], int]
    """Functions, by path and name, that used a ``None`` which it returned, with the last one's order."""


PROVING = ("passed", "xpassed")
"""Outcomes of tests that ran and passed."""
GREEN = (*PROVING, "skipped", "xfailed")
"""Outcomes that do not fail a criterion."""


@dataclass(slots=True)
class TestRecord:
    """A finished test, or one that ended its worker."""

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

    @property
    def weight(self) -> int:
        """Return the rank among results of one node id: a failure before a pass, a pass before a skip."""
        return 2 if self.is_red else self.outcome in PROVING


@dataclass(slots=True)
class RunningTest:
    """A test that has started and not finished."""

    nodeid: str
    at: float
    pid: int | None
    worker: str = ""


@dataclass(slots=True)
class Death:
    """The end of a worker before that of its session."""

    end: ProcessEnd
    nodeid: str | None
    """Node id of the running test, if any."""
    file: str | None
    """The test file being imported, if any."""
    output: str
    phase: str | None = None
    """Phase of the running test, if known."""
    raised: RawEvidence | None = None
    """The exception that ended the session, if there was one."""


class WorkerRecord:
    """Everything that was observed of one worker."""

    def __init__(self, inifile: str | None = None) -> None:
        self.inifile = inifile
        """pytest's configuration file, which may have been read by the server instead of the worker."""
        self.isolation = Isolation.WORKER
        self.pid: int | None = None
        self.started_at: float | None = None
        self.collected = False
        self.nodeids: list[str] = []
        """Node ids that the command selects, without those that the user excluded from this run."""
        self.narrowed: list[str] = []
        """Node ids selected by the command but excluded by the user."""
        self.results: dict[str, TestRecord] = {}
        self.attempts: dict[str, list[RawEvidence]] = {}
        self.failures: dict[str, list[RawEvidence]] = {}
        self.collection_failures: dict[str, RawEvidence] = {}
        """Evidence of files that could not be imported, by node id."""
        self.skipped_files: dict[str, str] = {}
        self.not_found: dict[str, list[str]] = {}
        """Arguments that match no test in their file, with similar names."""
        self.journal_cut = False
        """The journal was truncated or overwritten while the worker ran: tests that ran then did it."""
        self._has_gap = False
        """A numbered record was missing before a later one."""
        self.returning: list[str] = []
        """Tests that return a value, which pytest ignores."""
        self.metrics: list[tuple[str, Any]] = []
        self.audit: dict[tuple[Any, ...], Record] = {}
        """The distinct audit events of all its processes."""
        self.hidden: dict[str, Record] = {}
        """Test failures that were not reported as failures."""
        self.startup_failures: list[RawEvidence] = []
        self.usage_errors: list[str] = []
        self.internal_errors: list[str] = []
        self.stopped: str | None = None
        self.stopped_by: RawEvidence | None = None
        """The exception that stopped it, if there was one."""
        self.coverage: tuple[float, float] | None = None
        """The coverage and the limit of pytest-cov that it misses."""
        self.forged = 0
        """Number of journal lines with the worker's id but without its signature."""
        self.xdist_workers: dict[str, int] = {}
        """Process ids of pytest-xdist's workers, by name."""
        self._finished_workers: set[str] = set()
        self._collected_workers: set[str] = set()
        self.cut_short = False
        """The run was stopped and ended this worker, so its verdict is not final."""
        self.soft_limit = False
        """The worker handles the signal of the soft limit."""
        self.timed_out = False
        """The soft limit ended a test."""
        self.interrupted: set[str] = set()
        """Node ids of the tests that were sent the signal of the soft limit."""
        self.modules: list[str] = []
        """Installed modules imported by the end of collection."""
        self.files_read: Record | None = None
        """Project files that it read, as reported at its end."""
        self.executed: dict[str, dict[FunctionKey, Execution]] = {}
        """By test, its executed functions."""
        self._functions: dict[tuple[str, str], FunctionKey] = {}
        self.launched_at = 0.0
        """Time of the request, epoch seconds; it cannot have read files before."""
        self.used_extensions = False
        """It received preloaded extension modules from its server."""
        self.restart: tuple[int | None, str] | None = None
        """Request for a replacement: level (``None``: the same, without preloaded modules) and reason."""
        self.exit_status: int | None = None
        """Exit status of the session; ``None`` if the process died before."""
        self.death: Death | None = None
        self.running: dict[str, RunningTest] = {}
        self.collecting: dict[str, str] = {}
        self.last_at = 0.0
        self.old_folders: dict[tuple[Path, str], tuple[int, float]] = {}
        """By the place of temporary folders and the prefix of their names: how many to keep, and the
        time before which a lock is dead, in seconds since the epoch."""
        self.inventories: list[Record] = []
        """Hooks and patches that influence verdicts, as reported by each process at its end."""
        self._numbers: dict[str, int] = {}

    def feed(self, record: Record) -> TestRecord | None:
        """Apply one journal record; return the test that it completes, if any.

        A record without its required members is ignored; the facts that it should have carried stay
        missing.
        """
        try:
            self.last_at = float(record.get("at", self.last_at))
            return self._apply(record)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):  # JSON may hold Infinity
            self.internal_errors.append(f"a {record['record']!r} record of the worker cannot be read")
            return None

    def follows(self, record: Record) -> bool:
        """Return whether a numbered record is new. A gap before it marks the journal as cut."""
        pen, number = str(record.get("pen")), int(record.get("number", 0))
        last = self._numbers.get(pen, 0)
        if number <= last:
            return False
        self._numbers[pen] = number
        self._has_gap |= number > last + 1
        return True

    @property
    def journal_lost(self) -> bool:
        """Return whether records are missing, so that an absent fact proves nothing."""
        return self.journal_cut or self._has_gap

    def reruns_of(self, result: TestRecord) -> int:
        """Return how often another plugin reran a passing test after a failure."""
        hidden = self.hidden.get(result.nodeid)
        again = hidden["count"] if hidden is not None and hidden["runs"] > 1 else 0
        return result.reruns + again

    def is_overturned(self, result: TestRecord) -> bool:
        """Return whether a test's only execution failed, but was reported as passing."""
        hidden = self.hidden.get(result.nodeid)
        return hidden is not None and hidden["runs"] <= 1 and not result.is_red

    def has_lost_process(self, is_alive: Callable[[int], bool]) -> bool:
        """Return whether a pytest-xdist worker died before it had its tests."""
        return any(
            worker not in self._collected_workers and not is_alive(pid)
            for worker, pid in self.xdist_workers.items()
        )

    @property
    def lost_processes(self) -> frozenset[str]:
        """Names of pytest-xdist workers that did not finish their session."""
        return frozenset(self.xdist_workers.keys() - self._finished_workers)

    def _apply(self, record: Record) -> TestRecord | None:
        # Each process of pytest-xdist has a session of its own, and names itself in its records. The
        # session of the command is the one without a name.
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
                # The first one counts: each process of pytest-xdist imports the file and reports it.
                self.collection_failures.setdefault(record["nodeid"], record["evidence"])
            case "file_skipped":
                self.skipped_files[record["nodeid"]] = record.get("reason", "")
            case "not_found":
                nearest = record.get("nearest", {})
                self.not_found = {argument: nearest.get(argument, []) for argument in record["arguments"]}
            case "collected":
                self.collecting.pop(worker, None)
                self._collected_workers.add(worker)
                if not self.collected:  # all processes of pytest-xdist collect the same tests
                    self.nodeids, self.narrowed = list(record["nodeids"]), list(record["narrowed"])
                self.collected = True
            case "imported":
                self.modules = list(record["modules"])
            case "files_read":
                self.files_read = record
            case "old_folders":
                place = Path(record["root"]), str(record["prefix"])
                self.old_folders[place] = int(record["keep"]), float(record["dead"])
            case "executed":
                # A worker describes each function once, in the record of the first test that executes it.
                for number, (path, line, name) in record["functions"].items():
                    self._functions[worker, str(number)] = str(path), int(line), str(name)
                ran = self.executed.setdefault(str(record["nodeid"]), {})
                for number, depth, lines, users in record["ran"]:
                    key = self._functions[worker, str(number)]
                    known = ran.get(key, Execution(int(depth), 0, {}))
                    nones = {(str(path), str(name)): int(at) for at, path, name in users}
                    ran[key] = Execution(
                        min(int(depth), known.depth), int(lines, 16) | known.lines, known.nones | nones
                    )
            case "module_handed_out":
                self.used_extensions = True
            case "restart":
                self.restart = record["level"], str(record["reason"])
            case "hidden_failure":
                nodeid = str(record["nodeid"])
                self.hidden[nodeid] = {"count": int(record["count"]), "runs": int(record["runs"])}
                if isinstance(text := record.get("evidence"), str):
                    self.attempts.setdefault(nodeid, []).append(json.loads(text))
            case "value_returned":
                self.returning.append(str(record["nodeid"]))
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
                self.audit.setdefault(tuple(record[name] for name in _ONE_EVENT), record)
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
                self._finished_workers.add(worker)
            case "session_finished":
                self.stopped = record.get("stopped") or self.stopped
                self.coverage = record.get("coverage") or self.coverage
            case "session_ended":
                self.exit_status = record["exit_status"]
            case _:
                pass
        return None

    def _end_test(self, record: Record) -> TestRecord:
        """Return the result of a finished test, and keep it if no other with its node id weighs more."""
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
        if earlier is None or result.weight >= earlier.weight:
            self.results[nodeid] = result
        return result


_ONE_EVENT = ("event", "target", "nodeid", "path", "phase", "denied")
"""Members that identify an audit event."""
