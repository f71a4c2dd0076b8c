"""Time limits of processes, termination of whole process trees, and bounded capture of output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest
from real_command import wait_until

from pytest_planverify.checks import processes
from pytest_planverify.checks.intermediate_process import end_orphans
from pytest_planverify.checks.processes import (
    HEAD_BYTES,
    TAIL_BYTES,
    TOKEN_VARIABLE,
    ProcessResult,
    end_process_tree,
    is_alive,
    run_process,
    signal_name,
)


def run(
    code: str, tmp_path: Path, timeout_seconds: float = 30, *arguments: str, **more: Any
) -> ProcessResult:
    script = tmp_path / "script.py"
    script.write_text(code)
    vector = [sys.executable, str(script), *arguments]
    return run_process(vector, cwd=tmp_path, env=os.environ, timeout_seconds=timeout_seconds, **more)


def test_output_and_exit_code_are_captured_and_input_is_empty(tmp_path: Path) -> None:
    code = """
import sys
print(repr(sys.stdin.read()), flush=True)
sys.stdout.buffer.write(b"a\\xffb")
print("err", file=sys.stderr)
sys.exit(3)
"""
    result = run(code, tmp_path)
    assert (result.exit_code, result.signal, result.timed_out) == (3, None, False)
    assert (result.stdout, result.stderr) == ("''\na\ufffdb", "err\n")
    assert 0 < result.duration_ms < 30_000


def test_lost_exit_status_is_no_success(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then discards it
    try:
        with pytest.raises(ChildProcessError):
            run("raise SystemExit(3)", tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_signal_sent_to_the_parent_of_a_command_does_not_reach_this_process(
    sent: str, tmp_path: Path
) -> None:
    kill = f"import os, signal, time\nos.kill(os.getppid(), signal.{sent})\ntime.sleep(0.3)\nprint('on')"
    result = run(kill, tmp_path)
    expected = (None, "SIGKILL", "") if sent == "SIGKILL" else (0, None, "on\n")
    assert (result.exit_code, result.signal, result.stdout) == expected
    assert signal_name(99) == "signal 99", "of an unknown signal"


def test_large_output_keeps_only_head_and_tail_of_both_streams(tmp_path: Path) -> None:
    code = """
import sys
sys.stdout.write("start")
for stream in (sys.stdout, sys.stderr) * 20:
    stream.write("x" * 500_000)
sys.stdout.write("end"); sys.stderr.write("fin")
"""
    result = run(code, tmp_path)
    assert result.exit_code == 0
    for text, begin, end in ((result.stdout, "start", "end"), (result.stderr, "x", "fin")):
        assert text.startswith(begin)
        assert text.endswith(end)
        assert "bytes omitted" in text
        assert len(text) < HEAD_BYTES + TAIL_BYTES + 100
    left_out = int(result.stdout.split("… ")[1].split(" bytes")[0])
    assert left_out == 20 * 500_000 + len("startend") - HEAD_BYTES - TAIL_BYTES


def test_suspended_time_does_not_count_towards_the_limit_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LONGEST_GAP", 0.1)
    awake = tmp_path / "awake"

    def sleep_once() -> None:
        if not awake.exists():
            time.sleep(1.5)
            awake.touch()

    code = "import pathlib, time\nwhile not pathlib.Path('awake').exists(): time.sleep(0.01)"

    result = run(code, tmp_path, 1, watch=sleep_once)

    assert (result.exit_code, result.timed_out) == (0, False)


def test_exit_code_after_the_limit_still_counts_as_a_timeout(tmp_path: Path) -> None:
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(60)"
    result = run(code, tmp_path, 0.5)
    assert result.timed_out
    assert result.exit_code is None


OFFSPRING = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
nap = [sys.executable, "-c", deaf]
daemon = os.fork()
if daemon == 0:
    os.setsid()
    if os.fork() == 0:
        told = f"import os; open('daemon', 'w').write(str(os.getpid())); {deaf}"
        os.execv(nap[0], [*nap[:2], told])
    os._exit(0)
os.waitpid(daemon, 0)
for kind in ("plain", "group", "session"):
    group = 0 if kind == "group" else None
    child = subprocess.Popen(nap, start_new_session=kind == "session", process_group=group)
    open(kind, "w").write(str(child.pid))
while not os.path.exists("daemon") or not open("daemon").read():
    time.sleep(0.01)
if os.environ.get("STAY"):
    time.sleep(60)
"""


@pytest.mark.parametrize("stay", [False, True], ids=["after an exit", "after the limit"])
def test_all_child_processes_are_ended_even_if_they_ignore_sigterm(
    tmp_path: Path, stay: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stay:
        monkeypatch.setenv("STAY", "1")
    result = run(OFFSPRING, tmp_path, 1.5 if stay else 30, grace_seconds=0.3)
    assert (result.timed_out, result.exit_code) == ((True, None) if stay else (False, 0))
    assert result.signal == ("SIGKILL" if stay else None)
    assert result.duration_ms < 10_000
    for kind in ("plain", "group", "session", "daemon"):
        assert not is_alive(int((tmp_path / kind).read_text())), kind


ESCAPED = """\
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        late = "import sys, time; time.sleep(0.5); print(1, flush=True); open(sys.argv[1], 'w').write('x')"
        os.execve(sys.executable, [sys.executable, "-c", late, sys.argv[1]], {})
    os._exit(0)
os.wait()
time.sleep(0.2)
print("done", flush=True)
"""


def test_stream_held_by_an_escaped_process_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STREAM_SECONDS", 0.2)
    written = tmp_path / "written"
    result = run(ESCAPED, tmp_path, 30, str(written))
    assert (result.exit_code, result.stdout[:5]) == (0, "done\n")  # on a slow machine, "1" follows
    wait_until(written.exists, seconds=20)  # a closed pipe would end the process when it writes


def test_interrupt_ends_the_process_tree_and_propagates(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt() -> None:
        wait_until(lambda: pid_file.exists() and pid_file.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)", tmp_path)
    assert not is_alive(int(pid_file.read_text()))


def test_ending_a_process_leaves_the_exit_status_to_its_parent_and_ends_no_ancestor() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        end_process_tree(child.pid)
        assert child.wait() == -signal.SIGTERM
    parent = psutil.Process(os.getppid())
    for pid in (child.pid, os.getpid(), parent.pid):
        end_process_tree(pid)
    assert parent.is_running()


def test_platform_without_waitid_is_supported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(processes.os, "waitid", raising=False)
    assert run("raise SystemExit(4)", tmp_path).exit_code == 4
    assert run("import time; time.sleep(60)", tmp_path, 0.1).timed_out


PARENT = 4_194_305 + os.getpid()
"""A process id above the maximum of Linux, different in each worker of this test suite."""

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")


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
    wait_until(lambda: len(left_of(mark)) == count, seconds=20)


@linux_only
def test_commands_of_a_dead_parent_end_with_their_descendants():
    mine, others = uuid.uuid4().hex, uuid.uuid4().hex
    # The first command removes the token of its run from the environment of its child processes.
    script = f"env -u {TOKEN_VARIABLE} sleep 60 & env -u {TOKEN_VARIABLE} setsid sleep 60 & exec sleep 60"
    command = start(mine, "sh", "-c", script, token=f"{PARENT}-1")
    other = start(others, "sleep", "60", token=f"{PARENT}1-1")
    try:
        wait_for(mine, 3)

        if (pid := os.fork()) == 0:
            end_orphans(PARENT)

        assert os.waitpid(pid, 0)[1] == 0
        wait_for(mine, 0)  # the kernel lists a killed process until it has ended
        assert left_of(others) == [other.pid]
    finally:
        for process in (command, other):
            process.kill()
            process.wait()


@linux_only
def test_command_ends_when_the_process_that_runs_it_is_killed(tmp_path: Path):
    mark = uuid.uuid4().hex
    if (pid := os.fork()) == 0:
        env = {"MARK": mark, "PATH": os.environ["PATH"]}
        script = "trap '' TERM HUP INT; setsid sleep 60 & sleep 60"
        run_process(["sh", "-c", script], cwd=tmp_path, env=env, timeout_seconds=60)
        os._exit(0)
    try:
        wait_for(mark, 3)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    wait_for(mark, 0)
