"""Commands of another interpreter: read from files that real pytest has written."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict, Witness
from pytest_planverify.checks.foreign_pytest import read_json_report, read_junit, run_foreign
from pytest_planverify.checks.result import JudgedCommand

COMMAND = JudgedCommand(check_id="tests[0]", limit_seconds=30, selections=("test_x.py",))
PYTEST = (sys.executable, "-m", "pytest")
QUIET = ("-p", "no:cacheprovider", "-q")
TESTS = """
import pytest

def test_passes(record_property): record_property("rows", 3)
def test_fails(): assert 1 == 2
@pytest.mark.skip(reason="not here")
def test_skips(): pass
@pytest.mark.xfail
def test_xfails(): assert False
@pytest.fixture
def broken(): raise ValueError("no")
def test_errors(broken): pass

class TestOuter:
    class TestInner:
        def test_passes(self): pass
    @pytest.mark.parametrize("text", ["a.b", "c::d"])
    def test_parameter(self, text): assert text
"""


def run(folder: Path, text: str, *args: str, without: str = "", seconds: float = 30):
    (folder / "test_x.py").write_text(text)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    launcher = PYTEST if without else (*PYTEST, "-p", "pytest_jsonreport.plugin")
    command = JudgedCommand(check_id="tests[0]", limit_seconds=seconds, selections=("test_x.py",))
    return run_foreign(command, launcher, (*QUIET, *args, "test_x.py"), root=folder, env=env, folder=folder)


@pytest.mark.parametrize(
    ("without", "family"), [("", "xunit2"), ("json-report", "xunit1"), ("json-report", "xunit2")]
)
def test_every_outcome_is_read_with_its_node_id_from_either_file(without: str, family: str, tmp_path: Path):
    (tmp_path / "pytest.ini").write_text(f"[pytest]\njunit_family = {family}\n")

    judgement, witness = run(tmp_path, TESTS, without=without)

    assert witness is (Witness.JUNIT_XML if without else Witness.JSON_REPORT)
    assert judgement.verdict is Verdict.FAILED
    assert {test.nodeid: test.outcome for test in judgement.tests} == {
        "test_x.py::test_passes": TestOutcome.PASSED,
        "test_x.py::test_fails": TestOutcome.FAILED,
        "test_x.py::test_skips": TestOutcome.SKIPPED,
        "test_x.py::test_xfails": TestOutcome.XFAILED,
        "test_x.py::test_errors": TestOutcome.ERROR,
        "test_x.py::TestOuter::TestInner::test_passes": TestOutcome.PASSED,
        "test_x.py::TestOuter::test_parameter[a.b]": TestOutcome.PASSED,
        "test_x.py::TestOuter::test_parameter[c::d]": TestOutcome.PASSED,
    }
    assert [evidence.nodeid for evidence in judgement.evidence] == [
        "test_x.py::test_fails",
        "test_x.py::test_errors",
    ]
    assert judgement.evidence[0].exceptions[0].type == "AssertionError"
    assert dict(judgement.properties)["rows"] == 3
    assert judgement.reason


def test_a_green_exit_without_a_test_that_passed_proves_nothing(tmp_path: Path):
    text = "import pytest\n@pytest.mark.xfail\ndef test_1(): assert 0\n"

    judgement, _ = run(tmp_path, text, without="json-report")

    assert judgement.verdict is Verdict.FAILED
    assert [evidence.vacuous for evidence in judgement.evidence] == ["only_xfailed"]


def test_a_file_that_cannot_be_imported_is_a_failed_collection(tmp_path: Path):
    judgement, _ = run(tmp_path, "import no_such_thing\n", without="json-report")

    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence[0].kind is EvidenceKind.COLLECTION
    assert judgement.evidence[0].nodeid == "test_x.py"


def test_a_command_that_is_refused_is_judged_by_its_exit_status(tmp_path: Path):
    judgement, witness = run(tmp_path, "def test_1(): pass\n", "--no-such-option")

    assert witness is Witness.EXIT_CODE
    assert judgement.verdict is Verdict.FAILED
    assert "exit status 4" in (judgement.reason or "")


def test_a_process_that_dies_is_told_with_how(tmp_path: Path):
    judgement, witness = run(
        tmp_path, "import os, signal\ndef test_1(): os.kill(os.getpid(), signal.SIGSEGV)\n"
    )

    assert witness is Witness.EXIT_CODE
    assert "SIGSEGV" in (judgement.reason or "")


def test_a_process_that_does_not_end_is_ended(tmp_path: Path):
    judgement, _ = run(tmp_path, "import time\ndef test_1(): time.sleep(60)\n", seconds=1.5)

    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence[-1].timed_out


def test_a_status_that_no_test_explains_is_red(tmp_path: Path):
    (tmp_path / "conftest.py").write_text("def pytest_sessionfinish(session): session.exitstatus = 1\n")

    judgement, _ = run(tmp_path, "def test_1(): pass\n")

    assert judgement.verdict is Verdict.FAILED
    assert [test.outcome for test in judgement.tests] == [TestOutcome.PASSED]


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"tests": [{}]}', "<testsuites>"])
def test_a_file_that_is_no_json_report_is_refused(content: str, tmp_path: Path):
    (tmp_path / "r").write_text(content)

    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        read_json_report(tmp_path / "r", COMMAND)


@pytest.mark.parametrize("content", ["", "<html/>", "{}", "<testsuites>"])
def test_a_file_that_is_no_junit_xml_is_refused(content: str, tmp_path: Path):
    (tmp_path / "r").write_text(content)

    with pytest.raises((ValueError, SyntaxError)):
        read_junit(tmp_path / "r", COMMAND)


def test_a_crash_at_a_place_is_told_with_the_place(tmp_path: Path):
    crash = {"path": "/r/a.py", "lineno": 7, "message": "pkg.errors.Broken: it broke"}
    test = {"nodeid": "a.py::t", "outcome": "failed", "call": {"outcome": "failed", "crash": crash}}
    (tmp_path / "r").write_text(json.dumps({"summary": {}, "tests": [test]}))

    (evidence,) = read_json_report(tmp_path / "r", COMMAND).evidence

    (fact,) = evidence.exceptions
    assert (fact.type, fact.qualified, fact.message) == ("Broken", "pkg.errors.Broken", "it broke")
    assert (fact.frames[0].path, fact.frames[0].line) == ("/r/a.py", 7)
