"""The fold of journal records: no order of them raises, and no finished test is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from session_samples import FAILURE, KEY, Told

from pytest_planverify.supervision.records import SessionRecord

NODEIDS = st.sampled_from(["a.py::1", "a.py::2", "b.py::3", "b.py::4[x]"])
FILES = st.sampled_from(["a.py", "b.py"])
WORKERS = st.sampled_from(["", "gw0", "gw1"])
OTHER = {"key": "other", "nodeids": ["o.py::1"], "narrowed": [], "problems": []}
OUTCOMES = st.sampled_from(["passed", "failed", "error", "skipped", "xfailed", "xpassed", "crashed"])
RED = {"failed", "error", "crashed"}


class Sessions(RuleBasedStateMachine):
    """Any records in any order, over as many processes as there may be."""

    def __init__(self) -> None:
        super().__init__()
        self.record = SessionRecord()
        self.finished: dict[str, list[str]] = {}
        self.failures: set[str] = set()
        self.now = 0.0

    def tell(self, record: str, **facts: Any) -> None:
        self.now += 1
        self.record.feed({"record": record, "session": "s1", "at": self.now, **facts})

    @rule()
    def another_process(self) -> None:
        self.record.begin()

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
        selection = {"key": KEY, "nodeids": nodeids, "narrowed": [], "problems": []}
        self.tell("collected", worker=worker, planned=nodeids, selections=[selection])

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

    @rule(nodeid=NODEIDS)
    def leak(self, nodeid: str) -> None:
        self.tell("leak", keys=[KEY], changed=["sys.path"])

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

    @invariant()
    def what_is_unfinished_has_no_result(self) -> None:
        assert not set(self.record.unfinished) & set(self.record.results)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_failing_phase_is_kept_for_a_test_that_never_ends():
    record = (
        Told().tell("test_started", nodeid="a").tell("test_failure", nodeid="a", evidence=FAILURE).record
    )

    assert record.failures == {"a": [FAILURE]}
    assert list(record.running) == ["a"]


def test_an_attempt_that_is_run_again_is_no_failure_of_the_test():
    told = (
        Told()
        .tell("test_started", nodeid="a")
        .tell("test_failure", nodeid="a", attempt=1, evidence=FAILURE)
    )
    record = told.tell("test_finished", nodeid="a", outcome="passed", reruns=1).record

    assert record.attempts == {"a": [FAILURE]}
    assert record.results["a"].evidence == []
    assert record.results["a"].reruns == 1


@pytest.mark.parametrize("first", ["failed", "crashed", "timeout"])
def test_a_pass_never_covers_a_failure_under_the_same_id(first: str):
    record = Told().test("a", first).test("a", "passed").record

    assert record.results["a"].outcome == first


def test_a_failure_replaces_a_pass_under_the_same_id():
    assert Told().test("a").test("a", "failed").record.results["a"].outcome == "failed"


def test_the_plan_of_the_first_process_stays_when_another_takes_up_the_rest():
    told = Told().collected("a", "b")
    told.record.begin()
    told.tell("collected", planned=["b"], selections=told.record.selections.values())

    assert told.record.planned == ["a", "b"]
    assert told.record.unfinished == ["a", "b"]


def test_a_worker_that_dies_before_it_has_collected_is_missed_with_its_file():
    told = Told().tell("session_started", worker="gw0", pid=7).tell("session_started", worker="gw1", pid=8)
    told.tell("file_collecting", worker="gw0", nodeid="a.py")

    assert told.record.dead_before_tests(lambda pid: True) is None
    assert told.record.dead_before_tests(lambda pid: pid != 7) == "a.py"
    assert told.record.dead_before_tests(lambda pid: pid != 8) == ""

    told.tell("collected", worker="gw0", planned=[], selections=[])
    assert told.record.dead_before_tests(lambda pid: pid != 7) is None


def test_the_last_import_is_not_blamed_for_what_comes_after_it():
    told = Told().tell("file_collecting", nodeid="a.py")
    assert told.record.stopped_at_import == "a.py"

    told.tell("files_collected")
    assert told.record.stopped_at_import is None


def test_only_what_ran_in_the_same_process_was_beside_a_test():
    told = Told()
    told.record.begin()
    told.collected("a.py::1", "b.py::2", "c.py::3", others=[{**OTHER, "nodeids": ["c.py::3"]}])
    told.test("a.py::1")
    assert told.record.beside("other") is None

    told.record.undecided.add("b.py::2")
    told.record.begin()
    told.tell("collected", planned=["c.py::3"], selections=[{**OTHER, "nodeids": ["c.py::3"]}])
    told.test("c.py::3")

    assert told.record.beside("other") == ["c.py::3"]
    assert told.record.beside(KEY) == ["a.py::1", "b.py::2", "c.py::3"]
    assert told.record.beside("nobody") is None
    assert told.record.finished_files == {"a.py", "b.py", "c.py"}


def test_a_numbered_record_counts_once_and_a_gap_before_it_is_missed():
    record = SessionRecord()

    assert [record.follows({"pen": "1.1", "number": number}) for number in (1, 2, 2, 1, 3)] == [
        True, True, False, False, True,
    ]  # fmt: skip
    assert not record.journal_lost
    assert record.follows({"pen": "1.2", "number": 2})
    assert record.journal_lost


def test_who_wants_a_test_is_asked_anew_when_the_selection_changes():
    told = Told().collected("a")
    assert told.record.wanted_by("a") == (KEY,)
    assert told.record.wanted_by("b") == ()

    told.collected("b")
    assert told.record.wanted_by("b") == (KEY,)


def test_only_the_process_that_reports_ends_the_session():
    told = Told().tell("session_finished", worker="gw0", stopped="worker says stop")
    assert told.record.stopped is None
    assert told.record.exit_status is None

    told.tell("stopped", reason="Exit: enough")
    record = told.ended(2)
    assert (record.stopped, record.exit_status) == ("Exit: enough", 2)


def test_a_new_process_forgets_how_the_one_before_ended():
    told = Told()
    told.ended(1)
    told.tell("test_started", nodeid="a").tell("file_collecting", nodeid="a.py")

    told.record.begin()

    assert told.record.exit_status is None
    assert not told.record.running
    assert not told.record.collecting


def test_every_other_record_is_kept_where_the_verdict_looks_for_it():
    told = Told()
    told.tell("session_started", worker="", pid=7).tell(
        "not_found", arguments=["x.py::y"], nearest={"x.py::y": ["z"]}
    )
    told.tell("file_skipped", nodeid="a.py", reason="no numpy").tell("fixture_conflict", keys=["k"])
    told.tell("metric", name="rows", value=3, via=None, nodeid="a").tell("usage_error", message="bad")
    told.tell("fixtures_used", nodeid="a", names=["db"]).tell("startup_failure", evidence=FAILURE)
    told.tell("internal_error", text="INTERNALERROR").tell("summary_begins", offset=3)
    record = told.tell("summary_ends", offset=9).tell("test_started", nodeid="a", pid=12).record

    assert record.started_at == 101
    assert record.not_found == {"x.py::y": ["z"]}
    assert record.skipped_files == {"a.py": "no numpy"}
    assert record.conflicts == {"k"}
    assert [metric["name"] for metric in record.metrics] == ["rows"]
    assert record.fixtures_used == {"a": {"db"}}
    assert record.usage_errors == ["bad"]
    assert record.startup_failures == [FAILURE]
    assert record.internal_errors == ["INTERNALERROR"]
    assert record.summary_span == (3, 9)
    assert record.running["a"].pid == 12


def test_a_failure_of_the_teardown_is_remembered_as_late():
    record = Told().test("a", "error", evidence=[{**FAILURE, "phase": "teardown"}]).test("b").record

    assert [late.nodeid for late in record.late_failures] == ["a"]
    assert record.results["b"].position == 2
