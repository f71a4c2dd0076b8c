"""Ctrl-C and SIGTERM end a run in order: the results are written, and no process is left."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from example_project import Example, Verified, todo
from real_command import PLAIN_TERMINAL, Finished, outer_environment, wait_until

FILES = {
    "test_quick.py": "def test_it(): pass\n",
    "test_slow.py": """\
        import pathlib, subprocess, time
        def test_it():
            pathlib.Path("started").write_text("")
            subprocess.run(["sleep", "600"])
    """,
    "test_deaf.py": """\
        import pathlib, signal, time
        def test_it():
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, signal.SIG_IGN)
            pathlib.Path("started").write_text("")
            time.sleep(600)
    """,
    "slow.py": "import pathlib, time\npathlib.Path('started').write_text('')\ntime.sleep(600)\n",
}

WAITS = """\
import pathlib, time
def test_first():
    pathlib.Path("started").touch()
    while not pathlib.Path("closed").exists(): time.sleep(0.01)
def test_second(): pass
"""


def started(
    example: Example, mark: str, *options: str, under: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Start the plan in a new process session; return once the waiting test or command has started."""
    process = example.start(*options, mark=mark, under=under)
    wait_until(lambda: (example.root / "started").exists() or process.poll() is not None)
    assert process.poll() is None
    return process


def ended(example: Example, mark: str, process: subprocess.Popen[str]) -> Verified:
    """Wait for the end of a started run, and return its result."""
    output, _ = process.communicate(timeout=300)
    return example.verified(Finished(exit_code=process.returncode, output=output), mark)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("pytest test_slow.py", ()),
        ("python slow.py", ()),
        ("pytest test_slow.py", ("-p", "xdist", "-n2")),
        ("pytest test_slow.py", ("--planverify-isolate",)),
        ("pytest test_deaf.py", ()),
    ],
    ids=["once", "in a command", "with workers", "isolated", "twice"],
)
def test_an_interrupted_run_writes_its_outcomes_and_leaves_no_process(
    command: str, options: tuple[str, ...], tmp_path: Path
):
    """After Ctrl-C; a run that ends after SIGTERM is in test_one_program.py."""
    example = Example(tmp_path, FILES)
    example.plan(todo("quick", "pytest test_quick.py"), todo("slow", command, after=("quick",)))
    mark = uuid.uuid4().hex
    process = started(example, mark, *options)

    process.send_signal(signal.SIGINT)
    if "deaf" in command:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)

    run = ended(example, mark, process)
    assert run.exit_code == 2, str(run)
    assert "Traceback" not in run.output, str(run)
    assert run.document is not None, str(run)
    assert run.document["run"]["interrupted"] is True
    assert run.document["run"]["exit_status"] == 2
    assert run.verdicts == {"quick": "passed", "slow": "not_run"}, str(run)
    assert run.states["slow"] == "pending"
    assert run.left_running == ()


@pytest.mark.parametrize("options", [(), ("--planverify-isolate",)], ids=["forked", "isolated"])
def test_a_run_under_nohup_survives_its_terminal(options: tuple[str, ...], tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": WAITS})
    example.plan(
        todo("first", "pytest test_it.py::test_first"), todo("second", "pytest test_it.py::test_second")
    )
    mark = uuid.uuid4().hex
    process = started(example, mark, *options, under=("nohup",))

    os.killpg(process.pid, signal.SIGHUP)
    (tmp_path / "closed").touch()

    run = ended(example, mark, process)
    assert run.exit_code == 0, str(run)
    assert run.verdicts == {"first": "passed", "second": "passed"}
    assert run.left_running == ()


def test_an_interrupt_during_plugin_import_prints_one_line(tmp_path: Path):
    files = {
        "slow_plugin.py": "import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(600)\n",
        "pytest.ini": "[pytest]\npythonpath = .\naddopts = -p slow_plugin\n",
        "test_it.py": "def test_it(): pass\n",
    }
    example = Example(tmp_path, files)
    example.plan(todo("it", "pytest test_it.py"), path="plan.yaml")
    process = subprocess.Popen(
        [Path(sys.executable).with_name("planverify"), "verify", "plan.yaml"],
        cwd=tmp_path,
        env=outer_environment() | PLAIN_TERMINAL | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: (tmp_path / "started").exists() or process.poll() is not None)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == 2, output
    assert output == "planverify: interrupted before anything was verified\n"


SLOW_REMOVAL = """\
import pathlib, shutil, time
remove = shutil.rmtree
def rmtree(path, *args, **options):
    if "garbage" in str(path):
        pathlib.Path("started").touch()
        time.sleep(600)
    remove(path, *args, **options)
shutil.rmtree = rmtree
"""


def test_an_interrupt_while_old_temporary_folders_are_removed_changes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in range(3):  # of four, with that of the run, pytest keeps three
        (tmp_path / f"temporary/pytest-of-{getpass.getuser()}/pytest-{number}").mkdir(parents=True)
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path / "temporary"))
    files = {"test_it.py": "def test_it(tmp_path): pass\n", "site/sitecustomize.py": SLOW_REMOVAL}
    example = Example(tmp_path / "project", files)
    monkeypatch.setenv("PYTHONPATH", str(example.root / "site"), prepend=os.pathsep)
    example.plan(todo("it", "pytest test_it.py"))
    mark = uuid.uuid4().hex
    process = started(example, mark)

    process.send_signal(signal.SIGINT)

    run = ended(example, mark, process)
    assert (run.exit_code, run.verdicts) == (0, {"it": "passed"}), str(run)
    assert "Traceback" not in run.output
    assert run.left_running == ()
