"""Runs that a program starts, and runs of tests with another interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from documented_commands import environment_of_a_reader
from example_project import Example, todo


def an_example(folder: Path) -> Example:
    example = Example(folder, {"test_it.py": "def test_green(): pass\ndef test_red(): assert 0\n"})
    example.plan(todo("green", "pytest test_it.py::test_green"), todo("red", "pytest test_it.py::test_red"))
    return example


PROGRAM = """\
import json, os, pathlib, threading, time
import pytest

def run():
    status = int(pytest.main(["--planverify", "--planverify-confirm=0", "plan.yaml"]))
    outcomes = json.loads(pathlib.Path(".planverify/outcomes.json").read_text())["outcomes"]
    pathlib.Path(".planverify/outcomes.json").unlink()
    print("ended", status, *(outcome["state"] for outcome in outcomes))

# Without forks and again with them, in a thread and beside one.
def refuse(): raise BlockingIOError(11, "Resource temporarily unavailable")
fork, os.fork = os.fork, refuse
run()
os.fork = fork
run()
thread = threading.Thread(target=run)
thread.start()
thread.join()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
run()
"""


def test_a_program_that_calls_pytest_repeatedly_gets_the_same_verdicts(tmp_path: Path):
    example = an_example(tmp_path / "project")
    script = tmp_path / "elsewhere" / "run_it.py"
    script.parent.mkdir()
    script.write_text(PROGRAM)

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=example.root,
        env=environment_of_a_reader(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.count("ended 1 done test_failed\n") == 4, done.stdout + done.stderr


OWNER = """
import atexit, json, logging, multiprocessing, os, pathlib, runpy, sys, tempfile, time
import pytest

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
sys.path.insert(0, folder.name)
pathlib.Path("product.py").write_text("def price(): return 7")
import product
pathlib.Path("product.py").write_text("def price(): return 12")
pathlib.Path("test_price.py").write_text(
    "import logging, product\\n"
    "def test_price(caplog):\\n"
    "    logging.debug('of no interest')\\n"
    "    assert product.price() == 12 and not caplog.records\\n"
)
pathlib.Path("plan.yaml").write_text(sys.argv[1])
logging.basicConfig(level=logging.DEBUG)
atexit.register(lambda: print("exit of", os.getpid(), flush=True))
helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True)
helper.start()
sys.argv[1:] = ["--planverify", "plan.yaml"]
try:
    status = CALL
except SystemExit as end:
    status = end.code
print("ended", int(status), helper.is_alive(), pathlib.Path("plan.yaml").exists())
outcomes = json.loads(pathlib.Path(".planverify/outcomes.json").read_text())["outcomes"]
print("isolation", {check["isolation"] for each in outcomes for check in each["checks"]})
"""


@pytest.mark.parametrize("call", ["pytest.main()", "runpy.run_module('pytest', run_name='__main__')"])
def test_workers_have_nothing_of_a_program_that_calls_pytest(call: str, tmp_path: Path):
    items = [
        {"id": name, "title": name, "verify": "pytest test_price.py", "dependencies": needs}
        for name, needs in (("a", []), ("b", ["a"]))
    ]
    plan = json.dumps({"todo_list_id": "p", "workflow_name": "p", "items": items})
    script = tmp_path / "owner.py"
    script.write_text(OWNER.replace("CALL", call))

    done = subprocess.run(
        [sys.executable, str(script), plan],
        cwd=tmp_path,
        env=environment_of_a_reader(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "ended 0 True True\nisolation {'cold'}\n" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("exit of") == 1


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


def an_interpreter(folder: Path) -> None:
    """Create a virtual environment with the same packages as this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=300)
    (site,) = folder.glob("lib/python*/site-packages")
    ours = [entry for entry in sys.path if entry.endswith("-packages")]
    (site / "ours.pth").write_text("\n".join(ours) + "\n")


def test_another_interpreter_gives_the_verdicts_of_its_command_from_its_report(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": TESTS, "test_reruns.py": RERUNS})
    an_interpreter(tmp_path / ".venv")
    python = ".venv/bin/python -m pytest"
    with_json = f"{python} -p pytest_jsonreport.plugin"
    rows = [{"name": "rows", "operator": "==", "value": 3}]
    example.plan(
        todo("green", f"{python} test_it.py::test_green", metrics=rows),
        todo("junit", f"{python} test_it.py", metrics=rows),
        todo("json", f"{with_json} test_it.py", metrics=rows),
        todo("reruns", f"{with_json} -p pytest_rerunfailures --reruns 1 test_reruns.py"),
        todo("absent", ".absent/bin/python -m pytest test_it.py"),
    )

    run = example.verify("--planverify-confirm=0")

    assert run.verdicts == {
        "green": {"tests[0]": "passed", "metrics[0]": "passed"},
        "junit": {"tests[0]": "failed", "metrics[0]": "passed"},
        "json": {"tests[0]": "failed", "metrics[0]": "passed"},
        "reruns": "flaky",
        "absent": "inconclusive",
    }, str(run)
    for kind, witness in (("junit", "junit_xml"), ("json", "json_report")):
        check = run.check(kind)
        assert (check["isolation"], check["witness"]) == ("spawned", witness)
        assert run.category(kind) == "TEST_REGRESSION"
        assert run.tests(kind) == {"test_it.py::test_green": "passed", "test_it.py::test_red": "failed"}
        location = run.outcomes[kind]["failure_evidence"]["location"]
        assert (location["path"], location["line"], location["function"]) == ("test_it.py", 5, "test_red")
    assert run.category("reruns") == "FLAKY_TEST"
    assert ".absent/bin/python cannot be started" in run.output
