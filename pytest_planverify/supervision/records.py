"""What the parent knows of a session: the fold of the session's journal records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_planverify.supervision.record_values import (
    CollectionFailure,
    Death,
    Leak,
    RawEvidence,
    Running,
    TestRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_planverify.journal import Record


class SessionRecord:
    """All that was seen of one fold or one command, across every process that it took."""

    def __init__(self) -> None:
        self.collected = False
        self.planned: list[str] = []
        self.selections: dict[str, dict[str, Any]] = {}
        self.results: dict[str, TestRecord] = {}
        self.attempts: dict[str, list[RawEvidence]] = {}
        self.failures: dict[str, list[RawEvidence]] = {}
        self.collection_failures: dict[str, CollectionFailure] = {}
        self.skipped_files: dict[str, str] = {}
        self.not_found: dict[str, list[str]] = {}
        """Arguments that name no test of their file, and the tests there that look like it."""
        self.leaks: list[Leak] = []
        self.journal_cut = False
        """The journal was cut or written over while the session ran, which only what ran then can do."""
        self._skipped_some = False
        self.late_failures: list[TestRecord] = []
        """Tests that failed when they were torn down: perhaps the end of what others share with them."""
        self.conflicts: frozenset[str] = frozenset()
        self.metrics: list[Record] = []
        self.audit: dict[tuple[Any, ...], Record] = {}
        """What was reached for outside the session; the last word of each process on each event."""
        self.hidden: dict[str, Record] = {}
        """Failures of tests that were not reported as such."""
        self.fixtures_used: dict[str, set[str]] = {}
        self.startup_failures: list[RawEvidence] = []
        self.usage_errors: list[str] = []
        self.internal_errors: list[str] = []
        self.stopped: str | None = None
        self.process = 0
        """How many processes the session has taken by now."""
        self.stopped_by: RawEvidence | None = None
        """The exception that stopped it, where it was one."""
        self.undecided: set[str] = set()
        """Tests that ran beside another one when their session died: which was the cause is not known."""
        self.looked_for_tests = False
        """Conftests and plugins had been loaded by then."""
        self.forged = 0
        """Lines of the journal that say they are the session's, and were not written by it."""
        self.workers: dict[str, int] = {}
        """The process of each xdist worker."""
        self._over: set[str] = set()
        self.cut_short = False
        """The run itself was stopped and ended the session, so that no verdict of it is final."""
        self.exit_status: int | None = None
        """What the last session itself returned; ``None`` if its process did not live to say so."""
        self.deaths: list[Death] = []
        self.running: dict[str, Running] = {}
        self.collecting: dict[str, str] = {}
        self.started_at: float | None = None
        self.last_at = 0.0
        self.summary_span: tuple[int, int] | None = None
        self.inventories: list[Record] = []
        """Who had a say in the verdicts, as each process told at its end."""
        self._numbers: dict[str, int] = {}
        self._ready: set[str] = set()
        self._finished = 0
        self._summary_from = 0
        self._wanted_by: dict[str, tuple[str, ...]] | None = None

    def begin(self) -> None:
        """Forget what only concerns the process before: another one takes up the rest."""
        self.running.clear()
        self.collecting.clear()
        self.workers.clear()
        self._over.clear()
        self._ready.clear()
        self.process += 1
        self.stopped_by = None
        self.started_at = None
        self.exit_status = None
        self.stopped = None
        self.summary_span = None

    def feed(self, record: Record) -> TestRecord | None:
        """Take in one journal record. Returns the test that it ends, if it ends one.

        A record without the members that its tag promises says nothing: what it would have told is missing.
        """
        try:
            self.last_at = float(record.get("at", self.last_at))
            handler = _HANDLERS.get(record["record"])
            return handler(self, record) if handler is not None else None
        except (KeyError, TypeError, ValueError, AttributeError):
            self.internal_errors.append(f"a {record['record']!r} record of the session cannot be read")
            return None

    def follows(self, record: Record) -> bool:
        """Whether a numbered record is new; where one is missing before it, the journal was cut."""
        pen, number = str(record.get("pen")), int(record.get("number", 0))
        last = self._numbers.get(pen, 0)
        if number <= last:
            return False
        self._numbers[pen] = number
        self._skipped_some |= number > last + 1
        return True

    @property
    def journal_lost(self) -> bool:
        """Records of the session are missing, so what it did not tell is no failure."""
        return self.journal_cut or self._skipped_some

    def wanted_by(self, nodeid: str) -> tuple[str, ...]:
        """The keys of the criteria that select the test."""
        if self._wanted_by is None:
            found: dict[str, list[str]] = {}
            for key, selection in self.selections.items():
                for each in selection["nodeids"]:
                    found.setdefault(each, []).append(key)
            self._wanted_by = {each: tuple(keys) for each, keys in found.items()}
        return self._wanted_by.get(nodeid, ())

    @property
    def unfinished(self) -> list[str]:
        """Planned tests without a result, in the order of the plan."""
        return [nodeid for nodeid in self.planned if nodeid not in self.results]

    @property
    def finished_files(self) -> set[str]:
        """Files of which every planned test has a result, or will have none."""
        left = {file_of(each) for each in self.unfinished if each not in self.undecided}
        return {file_of(each) for each in self.planned} - left

    def reruns_of(self, result: TestRecord) -> int:
        """How often a test that is green was red before another plugin ran it again."""
        hidden = self.hidden.get(result.nodeid)
        again = hidden["count"] if hidden is not None and hidden["runs"] > 1 else 0
        return result.reruns + again

    def is_overturned(self, result: TestRecord) -> bool:
        """Whether the one time that its body was run it failed, and it was reported as green."""
        hidden = self.hidden.get(result.nodeid)
        return hidden is not None and hidden["runs"] <= 1 and not result.is_red

    def beside(self, key: str) -> list[str] | None:
        """The tests that ran in one process with a criterion's; ``None`` where that is all of them."""
        if self.process < 2 or key not in self.selections:
            return None
        own = dict.fromkeys(self.selections[key]["nodeids"])
        processes = {self.results[nodeid].process for nodeid in own if nodeid in self.results}
        return [
            nodeid
            for nodeid in self.planned
            if nodeid in own or (nodeid in self.results and self.results[nodeid].process in processes)
        ]

    @property
    def test_files(self) -> frozenset[str]:
        """Every file that holds tests, or that was to be looked at for some."""
        found = {nodeid.partition("::")[0] for nodeid in self.planned}
        found.update(self.collection_failures, self.skipped_files, self.collecting.values())
        found.update(death.file for death in self.deaths if death.file is not None)
        return frozenset(found)

    def dead_before_tests(self, alive: Callable[[int], bool]) -> str | None:
        """The file that a worker was importing when it died; empty where it was none's."""
        for worker, pid in self.workers.items():
            if worker not in self._ready and not alive(pid):
                return self.collecting.get(worker, "")
        return None

    @property
    def dead_workers(self) -> frozenset[str]:
        """The workers of the last process that did not come to the end of their session."""
        return frozenset(self.workers.keys() - self._over)

    def came_to_its_end(self, results: Iterable[TestRecord]) -> bool:
        """Whether the processes that ran these tests went on to the end of their session."""
        dead, last = self.dead_workers, None if self.exit_status is None else self.process
        return all(result.process == last and result.worker not in dead for result in results)

    @property
    def stopped_at_import(self) -> str | None:
        """The file whose import a session did not get past that ended by itself."""
        if self.collected or self.usage_errors:
            return None
        return next(iter(self.collecting.values()), None)

    # -- one method a record ---------------------------------------------------------------------

    def _session_started(self, record: Record) -> None:
        if worker := record.get("worker"):
            self.workers[worker] = int(record["pid"])
        else:
            self.started_at = self.last_at

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
            self.planned = list(record["planned"])
        self.collected = True
        for entry in record["selections"]:
            known = self.selections.setdefault(entry["key"], entry)
            if known["nodeids"] != entry["nodeids"]:
                # A process that takes up the rest does not look again at files that are done with.
                known["nodeids"] = list(dict.fromkeys([*known["nodeids"], *entry["nodeids"]]))
        self._wanted_by = None

    def _hidden_failure(self, record: Record) -> None:
        self.hidden[str(record["nodeid"])] = {"count": int(record["count"]), "runs": int(record["runs"])}
        text = record.get("evidence")
        if isinstance(text, str):
            self.attempts.setdefault(record["nodeid"], []).append(json.loads(text))

    def _fixture_conflict(self, record: Record) -> None:
        self.conflicts |= frozenset(record["keys"])

    def _test_started(self, record: Record) -> None:
        nodeid, worker = record["nodeid"], str(record.get("worker", ""))
        self.running[nodeid] = Running(nodeid, self.last_at, record.get("pid"), worker)

    def _test_failure(self, record: Record) -> None:
        kept = self.attempts if record.get("attempt") else self.failures
        kept.setdefault(record["nodeid"], []).append(record["evidence"])

    def _test_finished(self, record: Record) -> TestRecord:
        nodeid = record["nodeid"]
        running = self.running.pop(nodeid, None)
        self._finished += 1
        result = TestRecord(
            nodeid,
            record["outcome"],
            float(record.get("duration_ms", 0)),
            record.get("reason"),
            int(record.get("reruns", 0)),
            [(name, value) for name, value in record.get("properties", ())],
            self.failures.pop(nodeid, []),
            self._finished,
            self.process,
            "" if running is None else running.worker,
        )
        if any(raw.get("phase") == "teardown" for raw in result.evidence):
            self.late_failures.append(result)
        self.results[nodeid] = _worse(self.results.get(nodeid), result)
        return result

    def _leak(self, record: Record) -> None:
        position = 0 if record.get("from_start") else self._finished
        self.leaks.append(Leak(frozenset(record["keys"]), tuple(record["changed"]), position))

    def _metric(self, record: Record) -> None:
        self.metrics.append(record)

    def _fixtures_used(self, record: Record) -> None:
        self.fixtures_used[record["nodeid"]] = set(record["names"])

    def _audit_event(self, record: Record) -> None:
        key = tuple(record[name] for name in _ONE_EVENT)
        before = self.audit.get(key)
        if before is not None:  # nothing that was said of it is taken back
            count = max(int(before["count"]), int(record["count"]))
            record = {**record, "count": count, "keys": [*before["keys"], *record["keys"]]}
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

    def _summary_begins(self, record: Record) -> None:
        self._summary_from = record["offset"]

    def _summary_ends(self, record: Record) -> None:
        self.summary_span = (self._summary_from, record["offset"])

    def _session_ended(self, record: Record) -> None:
        self.exit_status = record["exit_status"]


_ONE_EVENT = ("pid", "event", "target", "nodeid", "path", "phase", "denied")
"""What equal events have in common."""


def file_of(nodeid: str) -> str:
    """The file of a test."""
    return nodeid.partition("[")[0].partition("::")[0]


def _worse(earlier: TestRecord | None, later: TestRecord) -> TestRecord:
    """Of two results under one node id, the one that counts: a pass never covers a failure."""
    return earlier if earlier is not None and earlier.is_red and not later.is_red else later


_HANDLERS: dict[str, Callable[[SessionRecord, Record], TestRecord | None]] = {
    name: getattr(SessionRecord, f"_{name}")
    for name in (
        "session_started", "collection_started", "file_collecting", "files_collected",
        "collection_failure", "file_skipped",
        "not_found", "stopped",
        "collected", "fixture_conflict", "test_started", "test_failure", "test_finished", "leak",
        "metric", "fixtures_used", "usage_error", "hidden_failure", "startup_failure", "internal_error",
        "session_finished", "summary_begins", "summary_ends", "session_ended", "audit_event",
        "session_inventory",
    )
}  # fmt: skip
