"""Folding of journal records: no order of records raises, and no finished test is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from record_samples import FAILURE, Told

from pytest_planverify.session.records import WorkerRecord

NODEIDS = st.sampled_from(["a.py::1", "a.py::2", "b.py::3", "b.py::4[x]"])
FILES = st.sampled_from(["a.py", "b.py"])
WORKERS = st.sampled_from(["", "gw0", "gw1"])
OUTCOMES = st.sampled_from(["passed", "failed", "error", "skipped", "xfailed", "xpassed", "crashed"])
RED = {"failed", "error", "crashed"}


class Sessions(RuleBasedStateMachine):
    """Records in any order, from several processes."""

    def __init__(self) -> None:
        super().__init__()
        self.record = WorkerRecord()
        self.finished: dict[str, list[str]] = {}
        self.failures: set[str] = set()
        self.now = 0.0

    def tell(self, record: str, **facts: Any) -> None:
        self.now += 1
        self.record.feed({"record": record, "session": "s1", "at": self.now, **facts})

    @rule(record=st.text(max_size=5))
    def unknown_record(self, record: str) -> None:
        self.tell("?" + record, anything=[1])

    @rule(worker=WORKERS)
    def session_started(self, worker: str) -> None:
        self.tell("session_started", worker=worker, pid=1)

    @rule(worker=WORKERS, nodeid=FILES)
    def file_collecting(self, worker: str, nodeid: str) -> None:
        self.tell("file_collecting", worker=worker, nodeid=nodeid)

    @rule(nodeid=FILES)
    def collection_failure(self, nodeid: str) -> None:
        self.tell("collection_failure", nodeid=nodeid, path=f"/{nodeid}", evidence=FAILURE)

    @rule(worker=WORKERS, nodeids=st.lists(NODEIDS))
    def collected(self, worker: str, nodeids: list[str]) -> None:
        self.tell("collected", worker=worker, nodeids=nodeids, narrowed=[])

    @rule(nodeid=NODEIDS)
    def test_started(self, nodeid: str) -> None:
        self.tell("test_started", nodeid=nodeid)

    @rule(nodeid=NODEIDS, attempt=st.sampled_from([None, 1, 2]))
    def test_failure(self, nodeid: str, attempt: int | None) -> None:
        self.tell("test_failure", nodeid=nodeid, attempt=attempt, evidence=FAILURE)

    @rule(nodeid=NODEIDS, outcome=OUTCOMES)
    def test_finished(self, nodeid: str, outcome: str) -> None:
        self.tell("test_finished", nodeid=nodeid, outcome=outcome)
        self.finished.setdefault(nodeid, []).append(outcome)

    @rule(level=st.sampled_from([None, 0, 1]))
    def restart(self, level: int | None) -> None:
        self.tell("restart", level=level, reason="a conftest has pytest_configure")

    @rule(tag=st.sampled_from(["collected", "test_finished", "restart", "metric", "audit_event"]))
    def record_without_its_members(self, tag: str) -> None:
        self.tell(tag)

    @rule(worker=WORKERS, status=st.integers(0, 5))
    def session_over(self, worker: str, status: int) -> None:
        self.tell("session_finished", worker=worker, exit_status=status, stopped=None)
        if not worker:
            self.tell("session_ended", exit_status=status)

    @invariant()
    def nothing_finished_is_lost(self) -> None:
        assert self.record.results.keys() == self.finished.keys()
        for nodeid, outcomes in self.finished.items():
            kept = self.record.results[nodeid]
            assert kept.outcome in outcomes
            assert kept.is_red or not RED & set(outcomes)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_failure_is_recorded_before_its_test_ends_and_dropped_on_rerun():
    told = Told().tell("test_started", nodeid="a").tell("test_failure", nodeid="a", evidence=FAILURE)
    assert told.record.failures == {"a": [FAILURE]}
    assert list(told.record.running) == ["a"]

    again = Told().tell("test_started", nodeid="a")
    again.tell("test_failure", nodeid="a", attempt=1, evidence=FAILURE)
    record = again.tell("test_finished", nodeid="a", outcome="passed", reruns=1).record
    assert record.attempts == {"a": [FAILURE]}
    assert (record.results["a"].evidence, record.results["a"].reruns) == ([], 1)


@pytest.mark.parametrize("red", ["failed", "crashed", "timeout"])
def test_a_failure_counts_before_or_after_a_pass_under_the_same_id(red: str):
    assert Told().test("a", red).test("a", "passed").record.results["a"].outcome == red
    assert Told().test("a").test("a", red).record.results["a"].outcome == red


def test_xdist_process_that_dies_before_collection_is_detected():
    told = Told().tell("session_started", worker="gw0", pid=7).tell("session_started", worker="gw1", pid=8)
    told.tell("file_collecting", worker="gw0", nodeid="a.py")

    assert not told.record.has_lost_process(lambda pid: True)
    assert told.record.has_lost_process(lambda pid: pid != 7)
    assert told.record.has_lost_process(lambda pid: pid != 8)

    told.collected(worker="gw0")
    assert not told.record.has_lost_process(lambda pid: pid != 7)


def test_last_import_is_not_blamed_after_collection():
    told = Told().tell("file_collecting", nodeid="a.py")
    assert told.record.collecting == {"": "a.py"}

    told.tell("files_collected")
    assert told.record.collecting == {}


def test_numbered_record_counts_once_and_gaps_are_detected():
    record = WorkerRecord()

    assert [record.follows({"pen": "1.1", "number": number}) for number in (1, 2, 2, 1, 3)] == [
        True, True, False, False, True,
    ]  # fmt: skip
    assert not record.journal_lost
    assert record.follows({"pen": "1.2", "number": 2})
    assert record.journal_lost


def test_removal_of_old_folders_is_timed_while_it_goes_on_and_afterwards():
    record = WorkerRecord()
    for name, at in (("removal_started", 10.0), ("removal_ended", 13.0), ("removal_started", 20.0)):
        record.feed({"record": name, "session": "s1", "at": at})
    assert record.removal_seconds(24.0) == 7.0


def test_only_the_reporting_process_ends_the_session():
    told = Told().tell("session_finished", worker="gw0", stopped="worker says stop")
    assert told.record.stopped is None
    assert told.record.exit_status is None

    told.tell("stopped", reason="Exit: enough")
    record = told.ended(2)
    assert (record.stopped, record.exit_status) == ("Exit: enough", 2)


def test_other_records_are_kept_for_the_verdict():
    told = Told()
    told.tell("session_started", worker="", pid=7).tell("session_started", worker="gw0", pid=8)
    told.tell("not_found", arguments=["x.py::y"], nearest={"x.py::y": ["z"]})
    told.tell("file_skipped", nodeid="a.py", reason="no numpy").tell("metric", name="rows", value=3)
    told.tell("usage_error", message="bad").tell("startup_failure", evidence=FAILURE)
    told.tell("internal_error", text="INTERNALERROR").tell("imported", modules=["numpy"])
    told.tell("restart", level=None, reason="yaml is another module here").tell("test_finished")
    record = told.tell("module_handed_out", name="numpy").tell("test_started", nodeid="a", pid=12).record

    assert (record.pid, record.xdist_workers, record.lost_processes) == (7, {"gw0": 8}, {"gw0"})
    assert record.not_found == {"x.py::y": ["z"]}
    assert record.skipped_files == {"a.py": "no numpy"}
    assert record.metrics == [("rows", 3)]
    assert record.usage_errors == ["bad"]
    assert record.startup_failures == [FAILURE]
    assert record.internal_errors == [
        "INTERNALERROR",
        "a 'test_finished' record of the worker cannot be read",
    ]
    assert (record.modules, record.used_extensions) == (["numpy"], True)
    assert record.restart == (None, "yaml is another module here")
    assert (record.running["a"].pid, record.results) == (12, {})
