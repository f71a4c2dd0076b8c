"""A plan is verified from a program, too: pytest.main(), with threads, and inside another pytest run."""

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


PROGRAMS = {
    "script": "print('status', int(pytest.main(['--planverify', 'plan.yaml'])))",
    "twice": "for _ in range(2): status = int(pytest.main(['--planverify', 'plan.yaml']))\n"
    "print('status', status)",
    "threads": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    "print('status', int(pytest.main(['--planverify', 'plan.yaml'])))",
    "inside_a_thread": "import threading\n"
    "def work(): print('status', int(pytest.main(['--planverify', 'plan.yaml'])))\n"
    "thread = threading.Thread(target=work); thread.start(); thread.join()",
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


def test_without_the_option_an_ordinary_run_is_as_it_was(pytester: pytest.Pytester):
    example = an_example(pytester.path)

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1, failed=1)
    assert not (example.root / ".planverify").exists()
