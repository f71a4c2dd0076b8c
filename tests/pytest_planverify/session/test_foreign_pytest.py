"""pytest commands of another interpreter, judged by a report of pytest-json-report or by JUnit XML."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest
from text_bundles import write_files

from planner.model.evidence import Evidence, ExceptionFact
from planner.model.verdicts import EvidenceKind, Phase, Side, TestOutcome, Verdict, Witness
from pytest_planverify.checks.result import JudgedCommand, Judgement
from pytest_planverify.session.foreign_pytest import read_report, run_foreign, without_reports

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
@pytest.fixture
def late():
    yield
    raise ValueError("late")
def test_fails_twice(late): assert 0
def test_skips_late(late): pytest.skip("no")

class TestOuter:
    class TestInner:
        def test_passes(self): pass
    @pytest.mark.parametrize("text", ["a.b", "c::d"])
    def test_parameter(self, text): assert text
"""
ENDLESS = (
    '{"summary": {}, "tests": [{"nodeid": "a", "outcome": "passed", '
    '"call": {"outcome": "passed", "duration": 1e999}}]}'
)
FAILURES = """
import pytest
import wallet

def test_unlike_an_error(): wallet.pay(wallet.NotFound)
def test_exception(): wallet.pay(Exception)
def test_without_a_message(): raise wallet.NotFound
def test_chained():
    try:
        {}["key"]
    except KeyError as error:
        raise wallet.NotFound("gone") from error
def test_printed_traceback(): assert "ok" in "Traceback:\\nZeroDivisionError: division"
def test_group(): raise ExceptionGroup("two", [ValueError(1), KeyError(2)])
def test_hidden(): pytest.fail("it broke", pytrace=False)
"""
BROKEN = {"spec_import.py": "import no_such_thing\n", "spec_syntax.py": "def test_a(:\n"}


def pytest_run(
    folder: Path, text: str, *args: str, witness: Witness = Witness.JSON_REPORT, seconds: float = 30
) -> Judgement:
    """Return the judgement of the tests, after checking by what it was reached."""
    (folder / "test_x.py").write_text(text)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    launcher = PYTEST if witness is not Witness.JSON_REPORT else (*PYTEST, "-p", "pytest_jsonreport.plugin")
    command = dataclasses.replace(COMMAND, limit_seconds=seconds)
    words = (*QUIET, *args, "test_x.py")
    judgement = run_foreign(command, launcher, words, root=folder, env=env, folder=folder)
    assert judgement.witness is witness
    return judgement


@pytest.fixture(
    scope="module",
    params=[
        (Witness.JSON_REPORT, "--tb=no --json-report --json-report-file own.json"),
        (Witness.JUNIT_XML, "--tb=line"),
    ],
    ids=["json", "junit"],
)
def judgement(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    """Return the judgement of the tests by either report, whatever tracebacks and reports they ask for."""
    witness, options = request.param
    folder = tmp_path_factory.mktemp("project")
    wallet = "class NotFound(LookupError): pass\ndef pay(kind): raise kind('msg')\n"
    ini = "[pytest]\npython_files = spec_*.py\npythonpath = .\naddopts = --continue-on-collection-errors\n"
    write_files(folder, {"wallet.py": wallet, "pytest.ini": ini, "spec_x.py": FAILURES, **BROKEN})
    return pytest_run(folder, TESTS, *options.split(), "spec_x.py", *BROKEN, witness=witness)


def test_every_outcome_is_read_with_its_node_id_from_json_or_junit(judgement: Judgement):
    assert judgement.verdict is Verdict.FAILED
    assert {test.nodeid: test.outcome for test in judgement.tests if "spec_x" not in test.nodeid} == {
        "test_x.py::test_passes": TestOutcome.PASSED,
        "test_x.py::test_fails": TestOutcome.FAILED,
        "test_x.py::test_skips": TestOutcome.SKIPPED,
        "test_x.py::test_xfails": TestOutcome.XFAILED,
        "test_x.py::test_errors": TestOutcome.ERROR,
        "test_x.py::test_fails_twice": TestOutcome.ERROR,
        "test_x.py::test_skips_late": TestOutcome.ERROR,
        "test_x.py::TestOuter::TestInner::test_passes": TestOutcome.PASSED,
        "test_x.py::TestOuter::test_parameter[a.b]": TestOutcome.PASSED,
        "test_x.py::TestOuter::test_parameter[c::d]": TestOutcome.PASSED,
    }
    assert dict(judgement.properties)["rows"] == 3


def test_all_failures_of_tests_and_of_collection_are_read(judgement: Judgement):
    found = {each: list[Evidence]() for each in ("test_x.py::test_fails_twice", *BROKEN)}
    for each in judgement.evidence:
        found.get(str(each.nodeid), []).append(each)
    twice, (not_imported,), (not_compiled,) = found.values()
    assert [evidence.phase for evidence in twice] == [Phase.CALL, Phase.TEARDOWN]
    assert not_imported.kind is not_compiled.kind is EvidenceKind.COLLECTION
    assert "No module named 'no_such_thing'" in not_imported.headline
    assert not_compiled.headline.endswith("SyntaxError: invalid syntax")


def test_type_and_frames_of_any_exception_are_read_from_either_report(judgement: Judgement):
    found: dict[str, ExceptionFact] = {}
    for each in judgement.evidence:
        if each.kind is EvidenceKind.COLLECTION:
            continue
        found.setdefault(str(each.nodeid).partition("::test_")[2], each.exceptions[0])

    frames = {
        name: [(Path(each.path).name, each.line, each.side) for each in error.frames][-2:]
        for name, error in found.items()
    }
    assert {name: error.type for name, error in found.items()} == {
        "fails": "AssertionError",
        "errors": "ValueError",
        "fails_twice": "AssertionError",
        "unlike_an_error": "NotFound",
        "exception": "Exception",
        "without_a_message": "NotFound",
        "chained": "NotFound",
        "printed_traceback": "AssertionError",
        "skips_late": "ValueError",
        "group": "ExceptionGroup",
        "hidden": "Failed",
    }
    headlines = {each.nodeid: each.headline for each in judgement.evidence}
    assert headlines["spec_x.py::test_chained"] == "wallet.NotFound: gone"
    assert headlines["spec_x.py::test_group"] == "ExceptionGroup: two (2 sub-exceptions)"
    assert headlines["spec_x.py::test_hidden"] == "Failed: it broke"
    messages = [found[name].message for name in ("fails", "errors", "exception", "chained")]
    assert messages == ["assert 1 == 2", "no", "msg", "gone"]
    assert frames["fails"][-1] == ("test_x.py", 5, Side.TEST)
    assert frames["exception"] == [("spec_x.py", 6, Side.TEST), ("wallet.py", 2, Side.PRODUCT)]
    assert frames["unlike_an_error"] == [("spec_x.py", 5, Side.TEST), ("wallet.py", 2, Side.PRODUCT)]
    assert frames["printed_traceback"][-1] == ("spec_x.py", 13, Side.TEST)
    places = [[line for _, line, _ in frames[name]] for name in ("group", "hidden")]  # of the crash
    assert places == ([[14], [15]] if judgement.witness is Witness.JSON_REPORT else [[], []])


def test_a_repeated_run_writes_no_report_in_place_of_that_of_the_first():
    words = "-x --junitxml=own.xml --html own.html --json-report --maxfail 2 test_x.py"
    assert without_reports(words.split()) == ["-x", "--maxfail", "2", "test_x.py"]


def test_successful_session_without_a_passed_test_is_vacuous(tmp_path: Path):
    judgement = pytest_run(tmp_path, "import pytest\n@pytest.mark.xfail\ndef test_1(): assert 0\n")
    assert judgement.verdict is Verdict.FAILED
    assert [evidence.vacuous for evidence in judgement.evidence] == ["only_xfailed"]


def test_refused_option_is_the_headline_of_a_session_without_a_report(tmp_path: Path):
    refused = pytest_run(tmp_path, "def test_1(): pass\n", "--no-such-option", witness=Witness.EXIT_CODE)
    assert refused.verdict is Verdict.FAILED
    assert "unrecognized arguments" in refused.evidence[0].headline


def test_endless_process_is_ended_at_its_limit(tmp_path: Path):
    sleeps = "import time\ndef test_1(): time.sleep(60)\n"
    judgement = pytest_run(tmp_path, sleeps, witness=Witness.EXIT_CODE, seconds=0.5)
    assert judgement.verdict is Verdict.FAILED
    assert judgement.evidence[-1].timed_out


@pytest.mark.parametrize(
    ("body", "witness", "end"),
    [
        ("os.kill(os.getpid(), 11)", Witness.EXIT_CODE, (None, "SIGSEGV")),
        ("os._exit(127)", Witness.EXIT_CODE, (127, None)),
        ("atexit.register(os._exit, 7)", Witness.JSON_REPORT, (7, None)),
    ],
    ids=["signal", "status of a shell without the program", "after the tests"],
)
def test_end_that_is_none_of_pytest_is_the_death_of_the_process(
    body: str, witness: Witness, end: tuple[int | None, str | None], tmp_path: Path
):
    judgement = pytest_run(tmp_path, f"import atexit, os\ndef test_1(): {body}\n", witness=witness)
    process = judgement.evidence[0].process
    assert (process.exit_code, process.signal) == end
    assert (judgement.verdict, process.complete) == (Verdict.FAILED, False)


def test_interpreter_that_a_shim_does_not_find_is_not_at_fault_in_the_product(tmp_path: Path):
    shim = tmp_path / "python3.9"
    shim.write_text("#!/bin/sh\nprintf 'pyenv: python3.9: \\033[1mcommand not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    judgement = run_foreign(
        COMMAND, (str(shim), "-m", "pytest"), ("test_x.py",), root=tmp_path, env=os.environ, folder=tmp_path
    )
    command = judgement.evidence[0].command
    assert (judgement.verdict, command.found) == (Verdict.INCONCLUSIVE, False)
    assert (judgement.reason or "").endswith("cannot be started: pyenv: python3.9: command not found")


def test_unexplained_exit_status_fails(tmp_path: Path):
    (tmp_path / "conftest.py").write_text("def pytest_sessionfinish(session): session.exitstatus = 1\n")
    judgement = pytest_run(tmp_path, "def test_1(): pass\n")
    assert judgement.verdict is Verdict.FAILED
    assert [test.outcome for test in judgement.tests] == [TestOutcome.PASSED]


@pytest.mark.parametrize("witness", [Witness.JSON_REPORT, Witness.JUNIT_XML])
@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "null", '{"tests": [{}]}', "<testsuites>", "<html/>", ENDLESS]
)
def test_invalid_report_is_refused(content: str, witness: Witness, tmp_path: Path):
    (tmp_path / "r").write_text(content)
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError, SyntaxError, OverflowError)):
        read_report(tmp_path / "r", witness)


def test_report_replaced_by_a_pipe_or_a_folder_is_no_witness(tmp_path: Path):
    """The first attempt, whose option is refused, leaves a folder in the place; the second one a pipe."""
    (tmp_path / "conftest.py").write_text(
        "import atexit, os\n"
        "def replace(path):\n    if not os.path.exists(path): return os.mkdir(path)\n"
        "    os.unlink(path)\n    os.mkfifo(path)\n"
        f"atexit.register(replace, {str(tmp_path / 'foreign.xml')!r})\n"
    )

    assert pytest_run(tmp_path, "def test_1(): pass\n", witness=Witness.EXIT_CODE).verdict is Verdict.FAILED
    with pytest.raises(OSError, match="directory"):
        read_report(tmp_path, Witness.JUNIT_XML)
