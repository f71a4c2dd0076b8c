"""The results ledger: translation of pytest's reports into one record per finished test."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_planverify.journal import JournalWriter, Record, read_journal
from pytest_planverify.observe.recorder import alike_names, alike_paths
from pytest_planverify.observe.results import EVIDENCE, NodeIds, ResultLedger


def report(when: str, outcome: str = "passed", *, nodeid: str = "a.py::t", **more: Any) -> Any:
    return SimpleNamespace(
        nodeid=nodeid,
        when=when,
        outcome=outcome,
        duration=more.pop("duration", 0.25),
        longrepr=more.pop("longrepr", None),
        user_properties=more.pop("user_properties", []),
        **more,
    )


def told(folder: Path, *reports: Any, root: str = "/r") -> list[Record]:
    path = folder / "journal.jsonl"
    path.unlink(missing_ok=True)
    ledger = ResultLedger(JournalWriter(path, "s1"), NodeIds("/r", root))
    for each in reports:
        ledger.add(each)
    return read_journal(path)


def finished(folder: Path, *reports: Any) -> Record:
    (record,) = [record for record in told(folder, *reports) if record["record"] == "test_finished"]
    return record


OUTCOMES: dict[str, tuple[list[Any], str]] = {
    "passed": ([report("setup"), report("call"), report("teardown")], "passed"),
    "failed": ([report("setup"), report("call", "failed"), report("teardown")], "failed"),
    "error in setup": ([report("setup", "failed"), report("teardown")], "error"),
    "error in teardown": ([report("setup"), report("call"), report("teardown", "failed")], "error"),
    "both": ([report("setup"), report("call", "failed"), report("teardown", "failed")], "failed"),
    "skipped": (
        [report("setup", "skipped", longrepr=("f", 1, "Skipped: no")), report("teardown")],
        "skipped",
    ),
    "skipped inside": ([report("setup"), report("call", "skipped"), report("teardown")], "skipped"),
    "skipped, then a bad teardown": ([report("setup", "skipped"), report("teardown", "failed")], "error"),
    "xfailed": (
        [report("setup"), report("call", "skipped", wasxfail="bug"), report("teardown")],
        "xfailed",
    ),
    "xpassed": ([report("setup"), report("call", wasxfail="bug"), report("teardown")], "xpassed"),
    "xpassed, then a bad teardown": (
        [report("setup"), report("call", wasxfail=""), report("teardown", "failed")],
        "error",
    ),
    "skipped in teardown": ([report("setup"), report("call"), report("teardown", "skipped")], "skipped"),
    "failed, then skipped in teardown": (
        [report("setup"), report("call", "failed"), report("teardown", "skipped")],
        "failed",
    ),
    "a worker that crashed": ([report("setup"), report("???", "failed")], "crashed"),
    "a subtest that failed": (
        [report("setup"), report("call", "failed", context=1), report("call"), report("teardown")],
        "failed",
    ),
    "a subtest that passed": (
        [report("setup"), report("call", context=1), report("call"), report("teardown")],
        "passed",
    ),
    "a subtest that was skipped": (
        [report("setup"), report("call", "skipped", context=1), report("call"), report("teardown")],
        "passed",
    ),
    "run again until it passed": (
        [report("setup"), report("call", "rerun"), report("setup"), report("call"), report("teardown")],
        "passed",
    ),
    "run again in vain": (
        [
            report("setup"),
            report("call", "rerun"),
            report("setup"),
            report("call", "failed"),
            report("teardown"),
        ],
        "failed",
    ),
}


@pytest.mark.parametrize("what", OUTCOMES)
def test_phases_of_a_test_yield_one_outcome(what: str, tmp_path: Path):
    reports, outcome = OUTCOMES[what]

    assert finished(tmp_path, *reports)["outcome"] == outcome


def test_durations_are_summed_and_subtests_belong_to_their_test(tmp_path: Path):
    subtest = report("call", context=1, duration=9)

    assert (
        finished(tmp_path, report("setup"), subtest, report("call"), report("teardown"))["duration_ms"]
        == 750
    )


def test_failure_is_written_when_it_is_reported(tmp_path: Path):
    (written,) = told(tmp_path, report("call", "failed", **{EVIDENCE: json.dumps({"kind": "test"})}))

    assert (written["record"], written["evidence"]) == ("test_failure", {"kind": "test"})
    assert (written["when"], written["attempt"]) == ("call", None)


def test_report_without_evidence_has_a_minimal_record(tmp_path: Path):
    (crash, over) = told(
        tmp_path, report("???", "failed", longrepr="\nworker 'gw0' crashed\nmore", duration=None)
    )

    assert crash["evidence"]["headline"] == "worker 'gw0' crashed"
    assert crash["evidence"]["phase"] is None
    assert over["outcome"] == "crashed"


def test_rerun_attempt_is_recorded_with_its_number(tmp_path: Path):
    journal = told(
        tmp_path, report("call", "rerun"), report("call", "rerun"), report("call"), report("teardown")
    )

    assert [record.get("attempt") for record in journal] == [1, 2, None]
    assert journal[-1]["reruns"] == 2


def test_reasons_and_properties_are_recorded(tmp_path: Path):
    properties = [("rows", 3), ("odd", object()), ("t", (1, 2))]

    skip = finished(
        tmp_path, report("setup", "skipped", longrepr=("f", 1, "Skipped: no")), report("teardown")
    )
    xfail = finished(tmp_path, report("call", "skipped", wasxfail="reason: bug"), report("teardown"))
    xpass = finished(tmp_path, report("call", wasxfail="bug" * 900), report("teardown"))
    recorded = finished(tmp_path, report("call"), report("teardown", user_properties=properties))

    assert (skip["reason"], xfail["reason"], len(xpass["reason"])) == ("no", "reason: bug", 500)
    assert recorded["properties"][0] == ["rows", 3]
    assert recorded["properties"][1][1].startswith("<object object")


def test_node_ids_in_records_are_relative_to_the_root_of_the_plan(tmp_path: Path):
    journal = told(tmp_path, report("teardown", nodeid="sub/a.py::t"), root="/r/sub")

    assert [record["nodeid"] for record in journal] == ["a.py::t"]


@settings(deadline=None)
@given(
    reports=st.lists(
        st.tuples(
            st.sampled_from(["setup", "call", "teardown", "???"]),
            st.sampled_from(["passed", "failed", "skipped", "rerun"]),
            st.sampled_from(["a", 'b["x"]\u2028', "c\ud800"]),
        ),
        max_size=12,
    )
)
def test_every_reported_failure_is_recorded(reports: list[tuple[str, str, str]], tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger")

    journal = told(folder, *(report(when, outcome, nodeid=nodeid) for when, outcome, nodeid in reports))

    failures = [record for record in journal if record["record"] == "test_failure"]
    assert len(failures) == sum(outcome in ("failed", "rerun") for _, outcome, _ in reports)
    ends = [record for record in journal if record["record"] == "test_finished"]
    assert len(ends) <= sum(when in ("teardown", "???") for when, _, _ in reports)


def test_teardown_of_a_rerun_attempt_does_not_finish_the_test(tmp_path: Path):
    first = [report("setup"), report("call", "rerun"), report("teardown")]
    assert [record["record"] for record in told(tmp_path, *first)] == ["test_failure"]

    assert finished(tmp_path, *first, report("setup"), report("call"), report("teardown"))["reruns"] == 1


@pytest.mark.parametrize("before", [(), (report("setup"), report("call", "rerun"), report("teardown"))])
def test_overturned_failure_is_recorded_even_after_a_rerun(before: tuple[Any, ...], tmp_path: Path):
    turned = report("call", planverify_evidence='{"kind": "test"}')

    written = told(tmp_path, *before, report("setup"), turned, report("teardown"))

    (hidden,) = [each for each in written if each["record"] == "hidden_failure"]
    assert hidden["nodeid"] == "a.py::t"


@pytest.mark.parametrize(
    ("rootdir", "root", "nodeid", "seen"),
    [
        ("/r", "/r", "a.py::t", "a.py::t"),
        ("/r", "/r/sub", "sub/a.py::t", "a.py::t"),
        ("/r", "/r/sub", "other/a.py::t", "other/a.py::t"),
        ("/r", "/r/sub/deep", "sub/deep/a.py::t[sub/deep/]", "a.py::t[sub/deep/]"),
        ("/r/sub", "/r", "a.py::t", "sub/a.py::t"),
        ("/x", "/r", "a.py::t", "a.py::t"),
    ],
)
def test_node_ids_are_relative_to_the_root_of_the_plan(rootdir: str, root: str, nodeid: str, seen: str):
    assert NodeIds(rootdir, root).of(nodeid) == seen


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_similar_test_names_come_from_the_text_of_the_file(tmp_path: Path):
    text = "def test_total(): pass\nclass TestCart:\n    def test_add(self): pass\ndef helper(): pass\n"
    write(tmp_path, {"test_a.py": text, "test_broken.py": "def test_total(:\n"})

    assert alike_names("test_a.py::test_totla", tmp_path) == ["test_total"]
    assert alike_names("test_a.py::TestCart::test_ad", tmp_path) == ["TestCart::test_add"]
    assert alike_names("test_a.py::helper", tmp_path) == []
    assert alike_names("test_broken.py::test_totla", tmp_path) == []
    assert alike_names("test_gone.py::test_totla", tmp_path) == []


def test_similar_paths_come_from_the_nearest_existing_folder(tmp_path: Path):
    write(tmp_path, {"tests/test_one.py": "", "tests/test_two.py": ""})

    assert alike_paths(tmp_path / "tests/test_onee.py") == ["test_one.py"]
    assert alike_paths(tmp_path / "tests/sub/deep/test_one.py") == ["test_one.py"]
    assert alike_paths(tmp_path / "tests/zzz.txt") == []


def test_common_test_prefixes_do_not_make_names_similar(tmp_path: Path):
    write(tmp_path, {"tests/test_terminal.py": "", "tests/gift_wrap_test.py": ""})

    assert alike_paths(tmp_path / "tests/test_gift_wrap.py") == ["gift_wrap_test.py"]
    assert alike_paths(tmp_path / "tests/test_animals.py") == []
