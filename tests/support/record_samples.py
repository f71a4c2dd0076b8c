"""Records of workers as the parent reads them from the journal, one by one."""

from __future__ import annotations

from typing import Any

from planner.model.evidence import ProcessEnd
from pytest_planverify.checks.result import JudgedCommand
from pytest_planverify.session.records import Death, WorkerRecord

FAILURE = {"kind": "test", "phase": "call", "headline": "AssertionError: assert 1 == 2"}


def command(*selections: str, limit_seconds: float = 10, **more: Any) -> JudgedCommand:
    return JudgedCommand(check_id="tests[0]", limit_seconds=limit_seconds, selections=selections, **more)


class Session:
    """Feeds a worker's record as its journal would."""

    def __init__(self) -> None:
        self.record = WorkerRecord()
        self.now = 100.0

    def feed(self, record: str, **facts: Any) -> Session:
        self.now += 1
        self.record.feed({"record": record, "session": "w1", "at": self.now, **facts})
        return self

    def collected(self, *nodeids: str, narrowed: tuple[str, ...] = (), worker: str = "") -> Session:
        return self.feed("collected", nodeids=list(nodeids), narrowed=list(narrowed), worker=worker)

    def test(self, nodeid: str, outcome: str = "passed", duration_ms: float = 5, **more: Any) -> Session:
        self.feed("test_started", nodeid=nodeid, worker=more.pop("worker", ""))
        for evidence in more.pop("evidence", [FAILURE] if outcome in ("failed", "error") else []):
            self.feed("test_failure", nodeid=nodeid, attempt=None, evidence=evidence)
        return self.feed("test_finished", nodeid=nodeid, outcome=outcome, duration_ms=duration_ms, **more)

    def ended(self, exit_status: int = 0) -> WorkerRecord:
        self.feed("session_finished", exit_status=exit_status, stopped=None)
        self.feed("session_ended", exit_status=exit_status)
        return self.record

    def died(
        self,
        *,
        code: int | None = None,
        signal: str | None = "SIGSEGV",
        nodeid: str | None = None,
        file: str | None = None,
        timed_out: bool = False,
        output: str = "",
    ) -> WorkerRecord:
        end = ProcessEnd(exit_code=code, signal=None if code is not None else signal, timed_out=timed_out)
        self.record.death = Death(end, nodeid, file, output)
        return self.record
