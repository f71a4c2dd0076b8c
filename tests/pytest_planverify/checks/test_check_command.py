"""Commands other than pytest, executed and judged by their exit status and output."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from planner.catalog import parse_command
from planner.model.verdicts import EvidenceKind, TestOutcome, Verdict, Witness
from pytest_planverify.checks import command as module
from pytest_planverify.checks.command import find_program, run_command
from pytest_planverify.checks.foreign_pytest import read_json_report, read_junit, run_foreign
from pytest_planverify.checks.result import JudgedCommand, Judgement


def run(cmd: str, root: Path, timeout_seconds: float = 60, **options: object) -> Judgement:
    return run_command(parse_command(cmd), root, timeout_seconds, check_id="verify", **options)  # type: ignore[arg-type]


def needs(program: str) -> pytest.MarkDecorator:
    found = find_program(program, Path(), os.environ.get("PATH"))
    return pytest.mark.skipif(found is None, reason=f"{program} is not installed")


def test_successful_command_passes(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text("import os\nprint(os.environ['A'], os.getcwd())\n")
    result = run("A=1 python ok.py", tmp_path)
    assert (result.verdict, result.exit_code, result.evidence) == (Verdict.PASSED, 0, ())


def test_failure_has_a_location_relative_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text("def f():\n    raise ValueError('x')\nf()\n")
    result = run("python boom.py", tmp_path)
    assert (result.verdict, result.exit_code, result.reason) == (Verdict.FAILED, 1, "it exited with 1")
    (evidence,) = result.evidence
    assert evidence.headline == "boom.py:2: ValueError: x"
    assert evidence.check_id == "verify"
    assert evidence.command is not None
    assert (evidence.command.tool, evidence.command.purpose) == ("python", "test")
    assert evidence.command.findings[0].path == "boom.py"
    assert "Traceback" in evidence.command.output_tail


def test_syntax_error_is_parsed_from_py_compile(tmp_path: Path) -> None:
    (tmp_path / "syn.py").write_text("def g(:\n")
    (evidence,) = run("python -m py_compile syn.py", tmp_path).evidence
    assert evidence.command is not None
    finding = evidence.command.findings[0]
    assert (finding.path, finding.line, finding.code) == ("syn.py", 1, "SyntaxError")
    assert evidence.command.purpose == "validate"


def test_compiling_a_missing_folder_is_vacuous(tmp_path: Path) -> None:
    result = run("python -m compileall -q missing", tmp_path)
    assert (result.verdict, result.exit_code) == (Verdict.FAILED, 0)
    assert result.evidence[0].vacuous == "nothing_collected"
    assert "proves nothing" in (result.reason or "")


def test_failed_unittest_is_named_and_skipped_tests_are_vacuous(tmp_path: Path) -> None:
    case = "import unittest\nclass T(unittest.TestCase):\n"
    (tmp_path / "test_u.py").write_text(f"{case}    def test_a(self): self.assertEqual(1, 2)\n")
    (tmp_path / "test_s.py").write_text(f"{case}    @unittest.skip('x')\n    def test(self): pass\n")
    (evidence,) = run("python -m unittest test_u", tmp_path).evidence
    assert evidence.headline == "test_u.py:3: AssertionError: test_a: 1 != 2"
    result = run("python -m unittest test_s", tmp_path)
    assert result.verdict is Verdict.FAILED
    if result.exit_code == 0:
        assert result.evidence[0].vacuous == "all_skipped"


@needs("ruff")
def test_real_ruff_output_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    (evidence,) = run("ruff check --no-cache --isolated a.py", tmp_path).evidence
    assert evidence.command is not None
    assert [(f.path, f.line, f.code) for f in evidence.command.findings] == [("a.py", 1, "F401")]
    (tmp_path / "empty").mkdir()
    assert run("ruff check --no-cache --isolated empty", tmp_path).verdict is Verdict.FAILED


@needs("mypy")
def test_real_mypy_output_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x: int = 'a'\n")
    (evidence,) = run("mypy --no-incremental a.py", tmp_path).evidence
    assert evidence.command is not None
    assert [(f.path, f.line, f.code) for f in evidence.command.findings] == [("a.py", 1, "assignment")]


@needs("make")
def test_real_make_output_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text('fail:\n\t@python3 -c "raise SystemExit(3)"\n')
    (evidence,) = run("make fail", tmp_path).evidence
    assert evidence.headline == "Makefile:2: fail: Error 3"


@needs("node")
def test_real_node_output_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("const x = {\n")
    (evidence,) = run("node a.js", tmp_path).evidence
    assert evidence.headline.startswith("a.js:2: SyntaxError")


def test_command_over_its_time_limit_fails(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
    result = run("python slow.py", tmp_path, 0.5)
    (evidence,) = result.evidence
    assert (result.verdict, result.reason) == (Verdict.FAILED, "it was stopped after its limit of 0.5 s")
    assert (evidence.timed_out, evidence.limit_seconds) == (True, 0.5)
    assert evidence.process is not None
    assert evidence.process.timed_out


def test_command_killed_by_a_signal_fails(tmp_path: Path) -> None:
    (tmp_path / "die.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    result = run("python die.py", tmp_path)
    assert (result.verdict, result.reason, result.exit_code) == (
        Verdict.FAILED,
        "it was killed by SIGKILL",
        None,
    )
    assert result.evidence[0].process is not None
    assert result.evidence[0].process.signal == "SIGKILL"


@pytest.mark.parametrize("cmd", ["./gradlew test", "lib/mypy src"])
def test_missing_program_is_inconclusive(cmd: str, tmp_path: Path) -> None:
    result = run(cmd, tmp_path)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason == f"{cmd.split()[0]} is not installed"
    assert result.evidence[0].command is not None
    assert not result.evidence[0].command.found


def test_program_that_cannot_be_started_is_inconclusive(tmp_path: Path) -> None:
    broken = tmp_path / "gradlew"
    broken.write_text("\x7fELF no program")
    broken.chmod(0o755)
    result = run("./gradlew test", tmp_path)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "cannot be started" in (result.reason or "")


def test_missing_root_is_inconclusive(tmp_path: Path) -> None:
    assert run("python -m compileall -q .", tmp_path / "gone").verdict is Verdict.INCONCLUSIVE


def test_tool_with_a_missing_module_is_inconclusive(tmp_path: Path) -> None:
    isolated = tmp_path / "python"
    isolated.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    isolated.chmod(0o755)
    result = run("./python -m mypy src", tmp_path)
    assert (result.verdict, result.reason) == (
        Verdict.INCONCLUSIVE,
        "the module mypy is not installed",
    )
    assert run("./python -m mypkg.check", tmp_path).verdict is Verdict.FAILED


def test_python_is_the_running_interpreter_and_its_tools_come_first(tmp_path: Path) -> None:
    assert find_program("python", tmp_path) == find_program("python3", tmp_path) == sys.executable
    assert find_program("sh", tmp_path, os.defpath) == shutil.which("sh", path=os.defpath)
    assert find_program("nonexistent-program", tmp_path, "") is None
    beside = Path(sys.executable).parent / "pytest"
    if beside.exists():
        assert find_program("pytest", tmp_path, "") == str(beside)


def test_output_in_evidence_is_sanitised_and_limited(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('\\x1b[31mred\\u202e' + 'x' * 100_000); raise SystemExit(1)")
    (evidence,) = run("python loud.py", tmp_path).evidence
    assert evidence.stdout_tail.startswith("redx")
    assert len(evidence.stdout_tail) < module.OUTPUT_CHARACTERS + 100
    assert evidence.model_dump_json()


def test_environment_of_a_command_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "ok.py").write_text(
        "import os\nassert 'HOME' not in os.environ and os.environ['B'] == '2'\n"
    )
    assert run("B=2 python ok.py", tmp_path, env={"B": "1"}).verdict is Verdict.PASSED


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


def pytest_run(folder: Path, text: str, *args: str, without: str = "", seconds: float = 30):
    (folder / "test_x.py").write_text(text)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    launcher = PYTEST if without else (*PYTEST, "-p", "pytest_jsonreport.plugin")
    command = JudgedCommand(check_id="tests[0]", limit_seconds=seconds, selections=("test_x.py",))
    return run_foreign(command, launcher, (*QUIET, *args, "test_x.py"), root=folder, env=env, folder=folder)


@pytest.mark.parametrize(
    ("without", "family"), [("", "xunit2"), ("json-report", "xunit1"), ("json-report", "xunit2")]
)
def test_every_outcome_is_read_with_its_node_id_from_json_or_junit(
    without: str, family: str, tmp_path: Path
):
    (tmp_path / "pytest.ini").write_text(f"[pytest]\njunit_family = {family}\n")

    judgement, witness = pytest_run(tmp_path, TESTS, without=without)

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


def test_successful_session_without_a_passed_test_is_vacuous(tmp_path: Path):
    text = "import pytest\n@pytest.mark.xfail\ndef test_1(): assert 0\n"

    judgement, _ = pytest_run(tmp_path, text, without="json-report")

    assert judgement.verdict is Verdict.FAILED
    assert [evidence.vacuous for evidence in judgement.evidence] == ["only_xfailed"]


def test_import_error_is_a_failed_collection(tmp_path: Path):
    judgement, _ = pytest_run(tmp_path, "import no_such_thing\n", without="json-report")

    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence[0].kind is EvidenceKind.COLLECTION
    assert judgement.evidence[0].nodeid == "test_x.py"


def test_refused_command_is_judged_by_its_exit_status(tmp_path: Path):
    judgement, witness = pytest_run(tmp_path, "def test_1(): pass\n", "--no-such-option")

    assert witness is Witness.EXIT_CODE
    assert judgement.verdict is Verdict.FAILED
    assert "exit status 4" in (judgement.reason or "")


def test_killed_process_is_reported_with_its_signal(tmp_path: Path):
    judgement, witness = pytest_run(
        tmp_path, "import os, signal\ndef test_1(): os.kill(os.getpid(), signal.SIGSEGV)\n"
    )

    assert witness is Witness.EXIT_CODE
    assert "SIGSEGV" in (judgement.reason or "")


def test_endless_process_is_ended_at_its_limit(tmp_path: Path):
    judgement, _ = pytest_run(tmp_path, "import time\ndef test_1(): time.sleep(60)\n", seconds=1.5)

    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence[-1].timed_out


def test_unexplained_exit_status_fails(tmp_path: Path):
    (tmp_path / "conftest.py").write_text("def pytest_sessionfinish(session): session.exitstatus = 1\n")

    judgement, _ = pytest_run(tmp_path, "def test_1(): pass\n")

    assert judgement.verdict is Verdict.FAILED
    assert [test.outcome for test in judgement.tests] == [TestOutcome.PASSED]


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"tests": [{}]}', "<testsuites>"])
def test_invalid_json_report_is_refused(content: str, tmp_path: Path):
    (tmp_path / "r").write_text(content)

    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        read_json_report(tmp_path / "r", COMMAND)


@pytest.mark.parametrize("content", ["", "<html/>", "{}", "<testsuites>"])
def test_invalid_junit_xml_is_refused(content: str, tmp_path: Path):
    (tmp_path / "r").write_text(content)

    with pytest.raises((ValueError, SyntaxError)):
        read_junit(tmp_path / "r", COMMAND)


def test_crash_location_becomes_the_frame_of_the_exception(tmp_path: Path):
    crash = {"path": "/r/a.py", "lineno": 7, "message": "pkg.errors.Broken: it broke"}
    test = {"nodeid": "a.py::t", "outcome": "failed", "call": {"outcome": "failed", "crash": crash}}
    (tmp_path / "r").write_text(json.dumps({"summary": {}, "tests": [test]}))

    (evidence,) = read_json_report(tmp_path / "r", COMMAND).evidence

    (fact,) = evidence.exceptions
    assert (fact.type, fact.qualified, fact.message) == ("Broken", "pkg.errors.Broken", "it broke")
    assert (fact.frames[0].path, fact.frames[0].line) == ("/r/a.py", 7)
