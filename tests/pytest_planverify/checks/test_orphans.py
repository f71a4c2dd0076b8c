"""What a run had started ends when nobody supervises it any more, and nothing else does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from forked import in_fork

from pytest_planverify.checks.processes import TOKEN_VARIABLE
from pytest_planverify.session.fork_server import end_orphans

PARENT = 4_194_305 + os.getpid()
"""No process has a number as large as this, and no other worker of the suite ends what bears it."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")


def left_of(mark: str) -> list[int]:
    found: list[int] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("MARK") == mark:
                found.append(process.pid)
    return found


def start(mark: str, *words: str, token: str | None = None) -> subprocess.Popen[bytes]:
    env = {"MARK": mark, "PATH": os.environ["PATH"]} | ({TOKEN_VARIABLE: token} if token else {})
    return subprocess.Popen(words, env=env, start_new_session=True)


def wait_for(mark: str, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(left_of(mark)) != count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(left_of(mark)) == count


def test_everything_below_this_process_ends_and_this_process_does_not():
    mark = uuid.uuid4().hex

    def end() -> int:
        start(mark, "sh", "-c", "setsid sleep 60 & sleep 60")
        wait_for(mark, 3)
        end_orphans(PARENT)
        return os.getpid()

    assert in_fork(end) != os.getpid()
    assert left_of(mark) == []


def test_commands_of_the_dead_parent_end_with_all_that_they_started():
    mine, others = uuid.uuid4().hex, uuid.uuid4().hex
    # The first drops the mark of its run from the environment of what it starts.
    script = f"env -u {TOKEN_VARIABLE} sleep 60 & env -u {TOKEN_VARIABLE} setsid sleep 60 & exec sleep 60"
    command = start(mine, "sh", "-c", script, token=f"{PARENT}-1")
    other = start(others, "sleep", "60", token=f"{PARENT}1-1")
    try:
        wait_for(mine, 3)

        in_fork(lambda: end_orphans(PARENT))

        wait_for(mine, 0)  # a process that was killed is listed until the kernel has ended it
        assert left_of(others) == [other.pid]
    finally:
        for process in (command, other):
            process.kill()
            process.wait()


def test_the_parent_marks_its_commands_with_its_number(tmp_path: Path):
    from pytest_planverify.checks.processes import run_process

    script = f"import os; print(os.environ['{TOKEN_VARIABLE}'])"
    done = run_process(
        [sys.executable, "-c", script], cwd=tmp_path, env=dict(os.environ), timeout_seconds=60
    )

    assert done.stdout.startswith(f"{os.getpid()}-")
