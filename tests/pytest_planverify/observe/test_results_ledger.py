"""Reports of a worker: one record per finished test, reports as JSON, its instructions and soft limit."""

from __future__ import annotations

import enum
import json
import signal
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from module_project import write_files

from pytest_planverify.guards.sandbox_policy import Sandbox
from pytest_planverify.journal import JournalWriter, Record, read_journal
from pytest_planverify.observe.recorder import alike_names, alike_paths, unmet_coverage
from pytest_planverify.observe.relay import Relay, dump_line
from pytest_planverify.observe.results import EVIDENCE, NodeIds, ResultLedger
from pytest_planverify.observe.spec import Narrowing, Start, WorkerSpec
from pytest_planverify.observe.supervision import SIGNAL, SoftLimits


def report(when: str, outcome: str = "passed", *, nodeid: str = "sub/a.py::t", **more: Any) -> Any:
    return SimpleNamespace(
        nodeid=nodeid,
        when=when,
        outcome=outcome,
        duration=more.pop("duration", 0.25),
        longrepr=more.pop("longrepr", None),
        user_properties=more.pop("user_properties", []),
        **more,
    )


def recorded(folder: Path, *reports: Any) -> list[Record]:
    """Return the records that the ledger writes for the reports, for a plan whose root is ``sub``."""
    path = folder / "journal.jsonl"
    path.unlink(missing_ok=True)
    ledger = ResultLedger(JournalWriter(path, "s1"), NodeIds("/r", "/r/sub"))
    for each in reports:
        ledger.add(each)
    return read_journal(path)


def finished(folder: Path, *reports: Any) -> Record:
    (record,) = [each for each in recorded(folder, *reports) if each["record"] == "test_finished"]
    return record


def reports_of(text: str) -> list[Any]:
    """Return the reports of the phases in a text, such as ``setup call:failed``."""
    return [report(*phase.split(":")) for phase in text.split()]


CALLED = reports_of("call teardown")
XFAIL = {"wasxfail": "bug"}
OUTCOMES: dict[str, tuple[list[Any], str]] = {
    "passed": (reports_of("setup call teardown"), "passed"),
    "failed": (reports_of("setup call:failed teardown"), "failed"),
    "error in setup": (reports_of("setup:failed teardown"), "error"),
    "error in teardown": (reports_of("setup call teardown:failed"), "error"),
    "both": (reports_of("setup call:failed teardown:failed"), "failed"),
    "skipped": (reports_of("setup:skipped teardown"), "skipped"),
    "skipped, then a bad teardown": (reports_of("setup:skipped teardown:failed"), "error"),
    "xfailed": ([report("call", "skipped", **XFAIL), report("teardown")], "xfailed"),
    "xpassed": ([report("call", **XFAIL), report("teardown")], "xpassed"),
    "xpassed, then a bad teardown": ([report("call", wasxfail=""), report("teardown", "failed")], "error"),
    "skipped in teardown": (reports_of("setup call teardown:skipped"), "skipped"),
    "failed, then skipped in teardown": (reports_of("setup call:failed teardown:skipped"), "failed"),
    "a worker that crashed": (reports_of("setup ???:failed"), "crashed"),
    "a subtest that failed": ([report("call", "failed", context=1), *CALLED], "failed"),
    "a subtest that was skipped": ([report("call", "skipped", context=1), *CALLED], "passed"),
    "run again until it passed": (reports_of("setup call:rerun setup call teardown"), "passed"),
}


@pytest.mark.parametrize(("reports", "outcome"), OUTCOMES.values(), ids=OUTCOMES)
def test_phases_of_a_test_yield_one_outcome(reports: list[Any], outcome: str, tmp_path: Path):
    assert finished(tmp_path, *reports)["outcome"] == outcome


def test_durations_are_summed_unless_negative_and_subtests_belong_to_their_test(tmp_path: Path):
    subtest, set_back = report("call", context=1, duration=9), report("teardown", duration=-9.0)
    record = finished(tmp_path, report("setup"), subtest, report("call"), set_back)
    assert (record["nodeid"], record["duration_ms"]) == ("a.py::t", 500)


def test_failure_is_written_when_it_is_reported_also_without_evidence(tmp_path: Path):
    (written,) = recorded(tmp_path, report("call", "failed", **{EVIDENCE: json.dumps({"kind": "test"})}))
    crash = report("???", "failed", longrepr="\nworker 'gw0' crashed\nmore", duration=None)
    failure, end = recorded(tmp_path, crash)
    assert (written["record"], written["evidence"]) == ("test_failure", {"kind": "test"})
    assert (written["nodeid"], written["when"], written["attempt"]) == ("a.py::t", "call", None)
    assert (failure["evidence"]["headline"], failure["evidence"]["phase"]) == ("worker 'gw0' crashed", None)
    assert end["outcome"] == "crashed"


def test_reasons_and_properties_are_recorded(tmp_path: Path):
    properties = [("rows", 3), ("odd", object()), ("t", (1, 2)), "stray", ("a",)]

    skip = finished(
        tmp_path, report("setup", "skipped", longrepr=("f", 1, "Skipped: no")), report("teardown")
    )
    xfail = finished(tmp_path, report("call", "skipped", wasxfail="reason: bug"), report("teardown"))
    xpass = finished(tmp_path, report("call", wasxfail="bug" * 900), report("teardown"))
    rows, odd, _ = finished(tmp_path, report("teardown", user_properties=properties))["properties"]
    traceback = report("call", "skipped", wasxfail="", longrepr=">   assert 0\nE   assert 0")

    assert (skip["reason"], xfail["reason"], len(xpass["reason"])) == ("no", "reason: bug", 500)
    assert "reason" not in finished(tmp_path, traceback, report("teardown"))
    assert rows == ["rows", 3]
    assert odd[1].startswith("<object object")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Decimal("7.5"), 7.5),
        (Fraction(15, 2), 7.5),
        (numpy.int64(7), 7),
        (numpy.float32(7.5), 7.5),
        (numpy.bool_(True), "True"),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_a_number_of_any_type_is_recorded_as_a_number(value: Any, kept: Any, tmp_path: Path):
    done = finished(tmp_path, report("teardown", user_properties=[("rows", value)]))
    assert done["properties"] == [["rows", kept]]


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
    journal = recorded(folder, *(report(when, outcome, nodeid=nodeid) for when, outcome, nodeid in reports))
    failures = [record for record in journal if record["record"] == "test_failure"]
    assert len(failures) == sum(outcome in ("failed", "rerun") for _, outcome, _ in reports)
    ends = [record for record in journal if record["record"] == "test_finished"]
    assert len(ends) <= sum(when in ("teardown", "???") for when, _, _ in reports)


FIRST_RUN = "setup call:rerun teardown"


def test_teardown_of_a_rerun_attempt_does_not_finish_the_test(tmp_path: Path):
    journal = recorded(tmp_path, *reports_of(f"{FIRST_RUN} {FIRST_RUN} setup call teardown"))
    assert [record.get("attempt") for record in journal] == [1, 2, None]
    assert journal[-1]["reruns"] == 2


@pytest.mark.parametrize("before", ["", FIRST_RUN])
def test_overturned_failure_is_recorded_even_after_a_rerun(before: str, tmp_path: Path):
    turned = report("call", planverify_evidence='{"kind": "test"}')
    written = recorded(tmp_path, *reports_of(f"{before} setup"), turned, report("teardown"))
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


def test_similar_test_names_come_from_the_collected_file_or_class():
    nodeids = ["a.py::test_total[1]", "a.py::test_total[2]", "a.py::TestCart", "a.py::zzz", "a.py"]
    assert alike_names("/r/a.py::test_totla", nodeids) == ["test_total"]
    assert alike_names("/r/a.py::TestCart::test_ad", ["a.py::TestCart::test_add"]) == ["TestCart::test_add"]
    assert alike_names("/r/a.py::test_totla", []) == []


@pytest.mark.parametrize(
    ("path", "alike"),
    [
        ("tests/test_onee.py", ["test_one.py"]),
        ("tests/sub/deep/test_one.py", ["test_one.py"]),
        (f"tests/{'deep' * 100}/test_one.py", ["test_one.py"]),
        ("tests/test_gift_wrap.py", ["gift_wrap_test.py"]),
        ("tests/tets_one.py", ["test_one.py"]),
        ("tests/test_minimal.py", []),
        ("tests/zzz.txt", []),
    ],
)
def test_similar_paths_come_from_the_nearest_existing_folder(path: str, alike: list[str], tmp_path: Path):
    """A prefix ``test_`` in common does not make names similar."""
    names = ("test_one.py", "test_two.py", "test_terminal.py", "gift_wrap_test.py")
    write_files(tmp_path, {f"tests/{name}": "" for name in names})
    assert alike_paths(tmp_path / path) == alike


@pytest.mark.parametrize(
    ("options", "total", "unmet"),
    [
        ({"cov_precision": 0}, 79.6, None),
        ({"cov_precision": 1}, 79.5, (79.5, 80)),
        ({"cov_precision": None}, 79.4, (79.4, 80)),
        ({}, 79.999, (79.99, 80)),
        ({}, 80, None),
        ({}, None, None),
        ({"cov_precision": 0, "cov_fail_under": 150}, 79.4, None),
    ],
)
def test_coverage_misses_its_limit_as_pytest_cov_rounds_it(
    options: dict[str, Any], total: float | None, unmet: tuple[float, float] | None
):
    plugin = SimpleNamespace(cov_total=total, options=SimpleNamespace(**{"cov_fail_under": 80, **options}))
    config = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin={"_cov": plugin}.get))
    assert unmet_coverage(cast("pytest.Config", config)) == unmet


class Level(enum.IntEnum):
    HIGH = 3


class Unprintable:
    def __str__(self) -> str:
        pytest.fail("no text")


def circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (Level.HIGH, 3),
        ("\udcff", "\udcff"),
        ({1}, "{1}"),
        pytest.param(10**5000, "a int that cannot be shown", id="longer than Python writes in decimal"),
        (Unprintable(), "a Unprintable that cannot be shown"),
        (circle(), "a list that cannot be shown"),
        ({("a", 1): 2}, "a dict that cannot be shown"),
    ],
)
def test_values_without_a_json_form_are_replaced_by_text(value: object, expected: object) -> None:
    data: dict[str, Any] = {"nodeid": "a.py::test_a", "metadata": value}
    data["user_properties"] = [("odd", value), ("plain", [1, None])]
    line = dump_line({"kind": "report", "data": data})
    assert line.endswith(b"\n")
    read = json.loads(line)["data"]
    assert (read["nodeid"], read["metadata"]) == ("a.py::test_a", expected)
    assert read["user_properties"] == [["odd", expected], ["plain", [1, None]]]


def test_report_that_pytest_cannot_serialize_is_relayed_with_its_text(tmp_path: Path):
    odd = SimpleNamespace(toterminal=lambda _: None, reprtraceback=None, reprcrash=None)
    report = pytest.TestReport(
        "a.py::test_a", ("a.py", 1, "test_a"), {}, "failed", cast("Any", odd), "call"
    )
    hook = SimpleNamespace(pytest_report_to_serializable=lambda config, report: report._to_json())
    config = SimpleNamespace(hook=hook, rootpath=tmp_path)

    Relay(cast("pytest.Config", config), tmp_path / "relay").pytest_runtest_logreport(report)

    *_, line = (tmp_path / "relay").read_text().splitlines()
    data = json.loads(line)["data"]
    assert (data["nodeid"], data["outcome"], data["longrepr"]) == ("a.py::test_a", "failed", "")


def test_soft_limit_applies_only_to_the_test_body(monkeypatch: pytest.MonkeyPatch):
    limits_reached: list[float] = []
    plugin = SimpleNamespace(timeout_sigalrm=lambda item, settings: limits_reached.append(settings.timeout))
    monkeypatch.setitem(sys.modules, "pytest_timeout", cast("ModuleType", plugin))
    before, limits = signal.getsignal(SIGNAL), SoftLimits()
    try:
        assert limits.listen(7.5)
        signal.raise_signal(SIGNAL)
        body = limits.pytest_runtest_call(cast("pytest.Item", object()))
        next(body)
        signal.raise_signal(SIGNAL)
        with pytest.raises(StopIteration):
            body.send(None)
        signal.raise_signal(SIGNAL)
    finally:
        signal.signal(SIGNAL, before)

    assert limits_reached == [7.5]


def test_worker_spec_round_trips_through_json():
    start = Start(root="/r", options=("-q", "é"), env=(("A", "1"),))
    paths = {"journal": "/j", "log": None, "stacks": "/s", "board": "/b"}
    narrowing, sandbox = (
        Narrowing(keyword="x", deselect=("a.py::t",)),
        Sandbox(root="/r", network=("host",)),
    )
    more = {**paths, "narrowing": narrowing, "sandbox": (sandbox,)}
    spec = WorkerSpec(worker_id="w1", check="plan::t::tests[0]", start=start, args=("é", "a.py"), **more)
    assert WorkerSpec.from_json(spec.to_json()) == spec
