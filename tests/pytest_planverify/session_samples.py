"""Sessions as the parent sees them: journal records, told one after the other."""

from __future__ import annotations

from typing import Any

from pytest_planverify.supervision.asked import Asked
from pytest_planverify.supervision.forkserver import Exited
from pytest_planverify.supervision.record_values import Death
from pytest_planverify.supervision.records import SessionRecord

KEY = "plan.yaml::todo::tests[0]"
FAILURE = {"kind": "test", "phase": "call", "headline": "AssertionError: assert 1 == 2"}


def asked(*selections: str, key: str = KEY, limit_seconds: float = 10) -> Asked:
    return Asked(key=key, check_id="tests[0]", limit_seconds=limit_seconds, selections=selections)


class Told:
    """Feeds a session record the way that a session's journal would."""

    def __init__(self) -> None:
        self.record = SessionRecord()
        self.now = 100.0

    def tell(self, record: str, **facts: Any) -> Told:
        self.now += 1
        self.record.feed({"record": record, "session": "s1", "at": self.now, **facts})
        return self

    def collected(self, *nodeids: str, key: str = KEY, narrowed: tuple[str, ...] = (), **more: Any) -> Told:
        selection = {"key": key, "nodeids": list(nodeids), "narrowed": list(narrowed), "problems": []}
        others: list[dict[str, Any]] = more.pop("others", [])
        return self.tell("collected", planned=list(nodeids), selections=[{**selection, **more}, *others])

    def test(self, nodeid: str, outcome: str = "passed", duration_ms: float = 5, **more: Any) -> Told:
        self.tell("test_started", nodeid=nodeid, worker=more.pop("worker", ""))
        for evidence in more.pop("evidence", [FAILURE] if outcome in ("failed", "error") else []):
            self.tell("test_failure", nodeid=nodeid, attempt=None, evidence=evidence)
        return self.tell("test_finished", nodeid=nodeid, outcome=outcome, duration_ms=duration_ms, **more)

    def ended(self, exit_status: int = 0) -> SessionRecord:
        self.tell("session_finished", exit_status=exit_status, stopped=None)
        self.tell("session_ended", exit_status=exit_status)
        return self.record

    def died(
        self,
        *,
        code: int | None = None,
        signal: int | None = 11,
        nodeid: str | None = None,
        file: str | None = None,
        timed_out: bool = False,
    ) -> SessionRecord:
        death = Death(
            "s1", Exited(code, None if code is not None else signal), timed_out, nodeid, file, "", ""
        )
        self.record.deaths.append(death)
        return self.record
