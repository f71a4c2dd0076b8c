"""A run killed at any moment loses no verdict, leaves no process, and is resumed to the correct result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from example_project import Example, processes_of, todo
from killing import Killing
from real_command import FULL, wait_until

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere processes may outlive a run that was killed"
)


def test_a_run_killed_at_any_moment_is_resumed_to_the_correct_result(tmp_path: Path):
    killing = Killing(tmp_path, seed=2)

    for options in ((), ("--planverify-isolate",)) if FULL else ((),):
        killing.round(4 if FULL else 2, *options)

    assert killing.verdicts_found, "no kill came after a verdict"


START_MANY = """\
    import pathlib, subprocess
    def test_it():
        subprocess.Popen(["sleep", "61"])
        subprocess.Popen(["setsid", "sleep", "62"])
        pathlib.Path("started").touch()
        subprocess.run(["sleep", "63"])
    if __name__ == "__main__":
        test_it()
"""


@pytest.mark.parametrize(
    ("command", "options", "kill"),
    [
        ("pytest test_many.py", (), os.kill),
        ("pytest test_many.py", (), os.killpg),
        ("pytest test_many.py", ("--planverify-isolate",), os.kill),
        ("python test_many.py", (), os.kill),
    ],
    ids=["forked worker", "whole group", "cold worker", "command"],
)
def test_processes_of_a_killed_run_end(
    command: str, options: tuple[str, ...], kill: Callable[[int, int], None], tmp_path: Path
):
    example = Example(tmp_path, {"test_many.py": START_MANY})
    example.plan(todo("many", command))
    mark = uuid.uuid4().hex
    process = example.start(*options, mark=mark, stdout=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "started").exists())

    kill(process.pid, signal.SIGKILL)
    process.wait()

    wait_until(lambda: not processes_of(mark), seconds=30)  # on their own, they end after 61 s or more


def test_resume_without_an_earlier_run_runs_everything_and_notes_why(tmp_path: Path):
    example = Example(tmp_path, {"test_it.py": "def test_it(): pass\n"})
    example.plan(todo("it", "pytest test_it.py"))

    run = example.verify("--planverify-resume")

    assert run.exit_code == 0, str(run)
    assert run.document is not None
    assert run.document["run"]["notes"] == [
        "nothing was resumed, and everything ran: there is no earlier run of the plan"
    ]
    assert run.check("it")["taken_from"] is None
