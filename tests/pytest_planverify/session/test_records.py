"""Records in the journal: of workers in any order, and of the parent from the start to the end of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hypothesis
import outcome_samples as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st
from module_project import write_files
from past_run_samples import Killed, settings
from record_samples import FAILURE, Session

from planner.model.evidence import Evidence
from planner.model.journal import CheckJudged, CheckRun, JournalRunStarted
from planner.model.outcome import PlanRef
from planner.model.verdicts import EvidenceKind, Verdict
from pytest_planverify.journal import read_journal
from pytest_planverify.session.records import WorkerRecord
from pytest_planverify.session.run_folder import KEPT_RUNS, RunFolder, RunJournal, new_run_id

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


@hypothesis.settings(max_examples=100)
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


# -- the journal of a run ----------------------------------------------------------------------------


def test_journal_starts_and_ends_with_the_run(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    reference = PlanRef(todo_list_id=samples.PLAN, path="plan.yaml", digest="sha256:0")
    journal = RunJournal(path, samples.PLAN)
    journal.open("r1", reference, settings())
    journal.close(samples.document(exit_status=1).run)

    first, last = read_journal(path)
    assert JournalRunStarted.model_validate(first).reference == reference
    assert (first["record"], first["run_id"], first["plan"]) == ("run_started", "r1", "plan.yaml")
    assert (last["record"], last["plan"]) == ("run_finished", samples.PLAN)
    assert (last["exit_status"], last["interrupted"]) == (1, False)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "broken link"])
def test_folders_pipes_and_links_in_place_of_the_journal_are_kept(kind: str, tmp_path: Path):
    path, target = tmp_path / "journal.jsonl", tmp_path / "precious"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    if kind == "link":
        target.touch()

    RunJournal(path, samples.PLAN).close(samples.document().run)

    assert target.exists() is (kind == "link")
    assert kind != "link" or target.read_text() == ""


def test_verdict_is_recorded_completely_after_the_tree_state(tmp_path: Path):
    killed = Killed(tmp_path).judged("b", verdict="failed")
    (judged,) = (each for each in read_journal(killed.folder.journal) if each["record"] == "check_judged")
    verdict = CheckJudged.model_validate(judged)
    assert (judged["plan"], verdict.todo_id, verdict.check.verdict) == ("killed", "b", Verdict.FAILED)
    assert verdict.final
    assert verdict.evidence[0].headline == "assert 1 == 2"
    assert verdict.properties == (("rows", 3),)
    assert (killed.folder.path / "tree.json").exists()


def test_invalid_unicode_does_not_lose_the_verdict(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    odd = Evidence(kind=EvidenceKind.TEST, stdout_tail="half a pair \ud83e", headline="é \x00 \n \u2028")
    run = CheckRun(check=samples.check("tests[0]"), evidence=(odd,), properties=(("set", {1}),))
    RunJournal(path, "p").check_judged("a", run, final=True)
    (judged,) = read_journal(path)
    assert CheckJudged.model_validate(judged).evidence == (odd,)
    assert path.read_bytes().count(b"\n") == 1


def test_failed_write_loses_the_record_but_not_the_run(tmp_path: Path):
    RunJournal(tmp_path / "no" / "journal.jsonl", "p").append("run_unexplained", reason="x")
    assert not (tmp_path / "no").exists()


def test_run_folders_are_unique_and_recent_ones_are_kept(tmp_path: Path):
    assert len({new_run_id() for _ in range(50)}) == 50
    assert KEPT_RUNS == 20
    for number in range(KEPT_RUNS + 5):
        RunFolder(tmp_path, f"r{number:02}").create()
        os.utime(tmp_path / f".planverify/runs/r{number:02}", (number + 1, number + 1))
    (tmp_path / ".planverify/runs/note.txt").touch()

    last = RunFolder(tmp_path, "last")
    last.create()
    with pytest.raises(FileExistsError):
        last.create()

    kept = sorted(path.name for path in last.path.parent.iterdir())
    assert kept == ["last", "note.txt", *(f"r{number:02}" for number in range(6, KEPT_RUNS + 5))]


def test_old_temporary_files_of_killed_runs_are_removed(tmp_path: Path):
    home = tmp_path / ".planverify"
    old, new = (".outcomes.json.x1.tmp", "plans/p/.outcomes.json.x1.tmp"), ".outcomes.json.x2.tmp"
    write_files(home, dict.fromkeys((*old, new, "kept.tmp"), ""))
    for name in (*old, "kept.tmp"):
        os.utime(home / name, (1, 1))
    RunFolder(tmp_path, "r1").create()
    assert [(home / name).exists() for name in (*old, new, "kept.tmp")] == [False, False, True, True]
