"""Folding of journal records: no order of records raises, and no finished test is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from record_samples import FAILURE, Session

from pytest_planverify.session.records import WorkerRecord

NODEIDS = st.sampled_from(["a.py::1", "a.py::2", "b.py::3", "b.py::4[x]"])
FILES = st.sampled_from(["a.py", "b.py"])
WORKERS = st.sampled_from(["", "gw0", "gw1"])
RED = {"failed", "error", "crashed", "timeout"}
OUTCOMES = st.sampled_from(["passed", "skipped", "xfailed", "xpassed", *sorted(RED)])
ATTEMPTS = st.sampled_from([None, 1, 2])
STATUSES = st.integers(0, 5)


def records(name: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw records of one kind with these members."""
    return st.fixed_dictionaries({"record": st.just(name), **members})


EVIDENCE, NOTHING = st.just(FAILURE), st.just([])
ANY_RECORD = st.one_of(
    st.text(max_size=5).map(lambda text: {"record": f"?{text}", "anything": [1]}),
    records("session_started", worker=WORKERS, pid=st.just(1)),
    records("file_collecting", worker=WORKERS, nodeid=FILES),
    records("collection_failure", nodeid=FILES, evidence=EVIDENCE),
    records("collected", worker=WORKERS, nodeids=st.lists(NODEIDS), narrowed=NOTHING),
    records("test_started", nodeid=NODEIDS),
    records("test_failure", nodeid=NODEIDS, attempt=ATTEMPTS, evidence=EVIDENCE),
    records("test_finished", nodeid=NODEIDS, outcome=OUTCOMES),
    records("restart", level=st.sampled_from([None, 0, 1]), reason=st.text(max_size=5)),
    records("session_finished", worker=WORKERS, exit_status=STATUSES, stopped=st.none()),
    records("session_ended", exit_status=STATUSES),
    # Without their members:
    st.sampled_from(["collected", "test_finished", "restart", "metric", "audit_event"]).flatmap(records),
)


@settings(max_examples=100)
@given(st.lists(ANY_RECORD, max_size=30))
def test_no_order_of_records_loses_a_finished_test_or_its_failure(fed: list[dict[str, Any]]):
    record = WorkerRecord()
    finished: dict[str, list[str]] = {}
    for at, each in enumerate(fed):
        record.feed({"session": "s1", "at": float(at), **each})
        if each["record"] == "test_finished" and "nodeid" in each:
            finished.setdefault(each["nodeid"], []).append(each["outcome"])

    assert record.results.keys() == finished.keys()
    for nodeid, outcomes in finished.items():
        assert record.results[nodeid].outcome in outcomes
        assert record.results[nodeid].is_red or not RED & set(outcomes)


def test_failure_is_recorded_before_its_test_ends_and_dropped_on_rerun():
    session = Session().feed("test_started", nodeid="a").feed("test_failure", nodeid="a", evidence=FAILURE)
    assert session.record.failures == {"a": [FAILURE]}
    assert list(session.record.running) == ["a"]

    again = Session().feed("test_started", nodeid="a")
    again.feed("test_failure", nodeid="a", attempt=1, evidence=FAILURE)
    record = again.feed("test_finished", nodeid="a", outcome="passed", reruns=1).record
    assert record.attempts == {"a": [FAILURE]}
    assert (record.results["a"].evidence, record.results["a"].reruns) == ([], 1)
    again.feed("test_finished", nodeid="a", outcome="skipped")
    assert record.results["a"].outcome == "passed", "another test with its node id was skipped"


def test_last_import_is_blamed_and_a_process_of_xdist_missed_only_until_it_has_collected():
    session = Session().feed("file_collecting", nodeid="a.py")
    assert session.record.collecting == {"": "a.py"}
    assert session.feed("files_collected").record.collecting == {}

    for number in (0, 1):
        session.feed("session_started", worker=f"gw{number}", pid=7 + number)
    session.feed("file_collecting", worker="gw0", nodeid="a.py")

    assert not session.record.has_lost_process(lambda pid: True)
    assert session.record.has_lost_process(lambda pid: pid != 7)
    assert session.record.has_lost_process(lambda pid: pid != 8)

    session.collected(worker="gw0")
    assert not session.record.has_lost_process(lambda pid: pid != 7)


def test_numbered_record_counts_once_and_gaps_and_invalid_numbers_are_detected():
    record = Session().feed("session_started", worker="", pid=float("inf")).record
    assert record.internal_errors == ["a 'session_started' record of the worker cannot be read"]

    assert [record.follows({"pen": "1.1", "number": number}) for number in (1, 2, 2, 1, 3)] == [
        True, True, False, False, True,
    ]  # fmt: skip
    assert not record.journal_lost
    assert record.follows({"pen": "1.2", "number": 2})
    assert record.journal_lost


def test_only_the_reporting_process_ends_the_session():
    session = Session().feed("session_started", worker="gw0", pid=8)
    assert session.record.lost_processes == {"gw0"}
    session.feed("session_finished", worker="gw0", stopped="worker says stop")
    assert not session.record.lost_processes
    assert session.record.stopped is None
    assert session.record.exit_status is None

    session.feed("stopped", reason="Exit: enough")
    record = session.ended(2)
    assert (record.stopped, record.exit_status) == ("Exit: enough", 2)
