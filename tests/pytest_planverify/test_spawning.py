"""Sessions in interpreters of their own: whatever a test does to whoever started it, the run goes on."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from pytest_planverify.observing.spec import SessionSpec, Wanted
from pytest_planverify.processes import TOKEN_VARIABLE
from pytest_planverify.supervision.forkserver import Exited, ForkServerDied
from pytest_planverify.supervision.records import SessionRecord
from pytest_planverify.supervision.spawning import Spawner
from pytest_planverify.supervision.watching import Limits, SessionRunner

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere a session may outlive what started it"
)

SOURCE = """\
import os, subprocess, sys, time
def test_seed(): assert os.environ["PYTHONHASHSEED"] == "7"
def test_kills(): os.kill(os.getppid(), 9); time.sleep(5)
def test_terminates(): os.kill(os.getppid(), 15); os.kill(os.getppid(), 2)
def test_group(): os.killpg(0, 9)
def test_segfault(): os.kill(os.getpid(), 11)
def test_leaves(): os._exit(0)
def test_hangs():
    subprocess.Popen(["setsid", "sleep", "600"])
    time.sleep(600)
"""


class Quiet:
    def tick(self) -> None: ...
    def collected(self, count: int) -> None: ...
    def test_finished(self, nodeid: str, outcome: str, duration_ms: int) -> None: ...


def spec_of(test: str, root: Path) -> SessionSpec:
    (root / "test_x.py").write_text(SOURCE)
    selection = f"test_x.py::{test}"
    return SessionSpec(
        session_id="s1",
        root=str(root),
        args=("-p", "no:cacheprovider", selection),
        wanted=(Wanted(key="k", selections=(selection,)),),
        journal=str(root / "journal.jsonl"),
        log=str(root / "s1.log"),
        stacks=str(root / "s1.stacks"),
        soft_limits=False,
    )


@pytest.mark.parametrize(
    ("test", "outcome", "end"),
    [
        ("seed", "passed", None),
        ("terminates", "passed", None),
        ("kills", "crashed", Exited(None, signal.SIGKILL)),
        ("group", "crashed", Exited(None, signal.SIGKILL)),
        ("segfault", "crashed", Exited(None, signal.SIGSEGV)),
        ("leaves", "crashed", Exited(0, None)),
        ("hangs", "timeout", Exited(None, signal.SIGABRT)),
    ],
)
def test_a_session_in_its_own_interpreter_ends_as_its_test_does(
    test: str, outcome: str, end: Exited | None, tmp_path: Path
):
    spawner = Spawner(tmp_path, 7)
    runner = SessionRunner(spawner, tmp_path / "journal.jsonl", Quiet())
    record = SessionRecord()

    runner.run(spec_of(f"test_{test}", tmp_path), Limits(session=2 if end else 60), record, resume=False)

    assert [result.outcome for result in record.results.values()] == [outcome]
    assert [death.exited for death in record.deaths] == ([] if end is None else [end])
    if outcome == "timeout":
        assert "test_hangs" in record.deaths[0].stack
    assert left_of(spawner.token) == []


def test_an_interpreter_that_cannot_be_started_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    spawner = Spawner(tmp_path, 7)
    assert spawner.pid == 0

    with pytest.raises(ForkServerDied, match="no interpreter can be started"):
        SessionRunner(spawner, tmp_path / "journal.jsonl", Quiet()).run(
            spec_of("test_seed", tmp_path), Limits(session=1), SessionRecord(), resume=False
        )


def left_of(token: str) -> list[int]:
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            environment = process.environ() if process.pid != os.getpid() else {}
            if environment.get(TOKEN_VARIABLE) == token and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
