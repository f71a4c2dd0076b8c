"""Runs that a program starts, and runs of tests with another interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from documented_commands import environment_of_a_reader
from example_project import Example, Verified, todo


def an_example(folder: Path) -> Example:
    example = Example(folder, {"test_it.py": "def test_green(): pass\ndef test_red(): assert 0\n"})
    example.plan(todo("green", "pytest test_it.py::test_green"), todo("red", "pytest test_it.py::test_red"))
    return example


PROGRAMS = {
    "twice": "for _ in range(2): status = int(pytest.main(['--planverify', 'plan.yaml']))\n"
    "print('status', status)",
    "threads": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    "print('status', int(pytest.main(['--planverify', 'plan.yaml'])))",
    "inside_a_thread": "import threading\n"
    "def work(): print('status', int(pytest.main(['--planverify', 'plan.yaml'])))\n"
    "thread = threading.Thread(target=work); thread.start(); thread.join()",
    "without_forks": "import os\n"
    "def refuse(): raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
    "os.fork = refuse\n"
    "print('status', int(pytest.main(['--planverify', 'plan.yaml'])))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_calls_pytest_gets_the_same_verdicts(name: str, tmp_path: Path):
    example = an_example(tmp_path / "project")
    script = tmp_path / "elsewhere" / "run_it.py"
    script.parent.mkdir()
    script.write_text(f"import pytest\n{PROGRAMS[name]}\n")

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=example.root,
        env=environment_of_a_reader(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert "status 1" in done.stdout, done.stdout + done.stderr
    document = json.loads(example.outcome_file.read_text())
    assert [outcome["state"] for outcome in document["outcomes"]] == ["done", "test_failed"]


@pytest.mark.parametrize("how", ["runpytest_inprocess", "runpytest_subprocess"])
def test_a_plan_is_verified_inside_another_pytest_run(how: str, pytester: pytest.Pytester):
    example = an_example(pytester.path)

    result = getattr(pytester, how)("--planverify", "plan.yaml")

    assert result.ret == 1
    document = json.loads(example.outcome_file.read_text())
    assert [outcome["state"] for outcome in document["outcomes"]] == ["done", "test_failed"]


def test_a_pytest_run_without_the_option_is_unchanged(pytester: pytest.Pytester):
    example = an_example(pytester.path)

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1, failed=1)
    assert not (example.root / ".planverify").exists()


TESTS = """\
    import sys, pytest
    def test_green(record_property):
        record_property("rows", 3)
        assert ".venv" in sys.prefix
    def test_red(): assert 1 == 2
    @pytest.mark.skip(reason="not today")
    def test_skipped(): pass
"""


RERUNS = """\
    seen = []
    def test_green(): pass
    def test_it():
        seen.append(1)
        assert len(seen) == 2
"""


@pytest.fixture(scope="module", params=["json_report", "junit_xml"])
def foreign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verified:
    example = Example(
        tmp_path_factory.mktemp("foreign"),
        {"test_it.py": TESTS, "test_bad.py": "import no_such\n", "test_reruns.py": RERUNS},
    )
    an_interpreter(example.root / ".venv")
    python = ".venv/bin/python -m pytest"
    if request.param == "json_report":
        python += " -p pytest_jsonreport.plugin"
    example.plan(
        todo(
            "green",
            f"{python} test_it.py::test_green",
            metrics=[{"name": "rows", "operator": "==", "value": 3}],
        ),
        todo("red", f"{python} test_it.py::test_red"),
        todo("skipped", f"{python} test_it.py::test_skipped"),
        todo("nothing", f"{python} test_it.py -k nothing_like_it"),
        todo("broken", f"{python} test_bad.py"),
        todo("missing", f"{python} test_missing.py"),
        todo("reruns", f"{python} -p pytest_rerunfailures --reruns 1 test_reruns.py"),
        todo("here", "pytest test_it.py::test_red"),
    )
    run = example.verify()
    assert run.check("green")["witness"] == request.param, str(run)
    return run


def an_interpreter(folder: Path) -> None:
    """Create a virtual environment with the same packages as this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)
    (site,) = folder.glob("lib/python*/site-packages")
    ours = [entry for entry in sys.path if entry.endswith("-packages")]
    (site / "ours.pth").write_text("\n".join(ours) + "\n")


def test_another_interpreter_gives_the_verdicts_of_its_command(foreign: Verified):
    assert foreign.verdicts["green"] == {"tests[0]": "passed", "metrics[0]": "passed"}, str(foreign)
    for name in ("red", "skipped", "nothing", "broken", "missing"):
        assert foreign.verdicts[name] == "failed", f"{name}\n{foreign}"


def test_another_interpreter_is_spawned_and_recorded_as_such(foreign: Verified):
    assert foreign.check("green")["isolation"] == "spawned"
    assert foreign.check("here")["isolation"] != "spawned"


def test_failures_of_another_interpreter_are_diagnosed_from_its_report(foreign: Verified):
    assert foreign.category("red") == "TEST_REGRESSION", str(foreign)
    assert foreign.tests("red") == {"test_it.py::test_red": "failed"}
    location = foreign.outcomes["red"]["failure_evidence"]["location"]
    assert (location["path"], location["line"], location["function"]) == ("test_it.py", 5, "test_red")
    assert foreign.category("broken") == "IMPORT_ERROR", str(foreign)


def test_a_pass_on_a_rerun_by_another_interpreter_is_flaky(foreign: Verified):
    if foreign.check("green")["witness"] != "json_report":
        pytest.skip("JUnit XML does not tell of reruns")

    assert foreign.verdicts["reruns"] == "flaky", str(foreign)
    assert foreign.category("reruns") == "FLAKY_TEST"


def test_a_missing_interpreter_is_inconclusive(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    example.plan(todo("green", ".venv/bin/python -m pytest test_it.py"))

    run = example.verify()

    assert run.verdicts["green"] == "inconclusive", str(run)
    assert run.exit_code == 10
    assert ".venv/bin/python cannot be started" in run.output
