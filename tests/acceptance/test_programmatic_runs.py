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


START = """\
import json, os, pathlib, threading, time
import pytest

def run():
    status = int(pytest.main(["--planverify", "--planverify-confirm=0", "plan.yaml"]))
    outcomes = json.loads(pathlib.Path(".planverify/outcomes.json").read_text())["outcomes"]
    pathlib.Path(".planverify/outcomes.json").unlink()
    print("ended", status, *(outcome["state"] for outcome in outcomes))

"""
PROGRAMS = {
    "without_forks_and_again_with_them": """\
def refuse(): raise BlockingIOError(11, "Resource temporarily unavailable")
fork, os.fork = os.fork, refuse
run()
os.fork = fork
run()
""",
    "inside_a_thread_and_beside_one": """\
thread = threading.Thread(target=run)
thread.start()
thread.join()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
run()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_calls_pytest_twice_gets_the_same_verdicts(name: str, tmp_path: Path):
    example = an_example(tmp_path / "project")
    script = tmp_path / "elsewhere" / "run_it.py"
    script.parent.mkdir()
    script.write_text(START + PROGRAMS[name])

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=example.root,
        env=environment_of_a_reader(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.count("ended 1 done test_failed\n") == 2, done.stdout + done.stderr


def test_a_plan_is_verified_inside_another_pytest_run(pytester: pytest.Pytester):
    example = an_example(pytester.path)

    result = pytester.runpytest_inprocess("--planverify", "--planverify-confirm=0", "plan.yaml")

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
"""


RERUNS = """\
    seen = []
    def test_green(): pass
    def test_it():
        seen.append(1)
        assert len(seen) == 2
"""


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Verified:
    """Return a run of commands of another interpreter, with and without the pytest-json-report plugin."""
    example = Example(
        tmp_path_factory.mktemp("foreign"),
        {"test_it.py": TESTS, "test_bad.py": "import no_such\n", "test_reruns.py": RERUNS},
    )
    an_interpreter(example.root / ".venv")
    python = ".venv/bin/python -m pytest"
    with_json = f"{python} -p pytest_jsonreport.plugin"
    rows = [{"name": "rows", "operator": "==", "value": 3}]
    example.plan(
        todo("green_junit", f"{python} test_it.py::test_green", metrics=rows),
        todo("green_json", f"{with_json} test_it.py::test_green", metrics=rows),
        todo("red_junit", f"{python} test_it.py::test_red"),
        todo("red_json", f"{with_json} test_it.py::test_red"),
        todo("nothing", f"{python} test_it.py -k nothing_like_it"),
        todo("broken", f"{python} test_bad.py"),
        todo("missing", f"{python} test_missing.py"),
        todo("reruns", f"{with_json} -p pytest_rerunfailures --reruns 1 test_reruns.py"),
        todo("absent", ".absent/bin/python -m pytest test_it.py"),
        todo("here", "pytest test_it.py::test_red"),
    )
    return example.verify("--planverify-confirm=0")


def an_interpreter(folder: Path) -> None:
    """Create a virtual environment with the same packages as this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)
    (site,) = folder.glob("lib/python*/site-packages")
    ours = [entry for entry in sys.path if entry.endswith("-packages")]
    (site / "ours.pth").write_text("\n".join(ours) + "\n")


def test_another_interpreter_gives_the_verdicts_of_its_command(foreign: Verified):
    for name in ("green_junit", "green_json"):
        assert foreign.verdicts[name] == {"tests[0]": "passed", "metrics[0]": "passed"}, str(foreign)
    for name in ("red_junit", "red_json", "nothing", "broken", "missing"):
        assert foreign.verdicts[name] == "failed", f"{name}\n{foreign}"


def test_another_interpreter_is_spawned_and_recorded_as_such(foreign: Verified):
    for name, witness in (("green_junit", "junit_xml"), ("green_json", "json_report")):
        check = foreign.check(name)
        assert (check["isolation"], check["witness"]) == ("spawned", witness)
    assert foreign.check("here")["isolation"] != "spawned"


@pytest.mark.parametrize("name", ["red_junit", "red_json"])
def test_failures_of_another_interpreter_are_diagnosed_from_its_report(foreign: Verified, name: str):
    assert foreign.category(name) == "TEST_REGRESSION", str(foreign)
    assert foreign.tests(name) == {"test_it.py::test_red": "failed"}
    location = foreign.outcomes[name]["failure_evidence"]["location"]
    assert (location["path"], location["line"], location["function"]) == ("test_it.py", 5, "test_red")
    assert foreign.category("broken") == "IMPORT_ERROR", str(foreign)


def test_a_pass_on_a_rerun_by_another_interpreter_is_flaky(foreign: Verified):
    assert foreign.verdicts["reruns"] == "flaky", str(foreign)
    assert foreign.category("reruns") == "FLAKY_TEST"


def test_a_missing_interpreter_is_inconclusive(foreign: Verified):
    assert foreign.verdicts["absent"] == "inconclusive", str(foreign)
    assert ".absent/bin/python cannot be started" in foreign.output
