"""Locks exclude other processes, and end with their holder."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from planner.planfile import locks
from planner.planfile.locks import locked, locked_folder

HOLD = """
import sys
from pathlib import Path
from planner.planfile.locks import locked_folder
with locked_folder(Path(sys.argv[1]), 0):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_locked_for_one_process_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(TimeoutError), locked_folder(tmp_path, 0.05):
            pass
        holder.kill()
    with locked_folder(tmp_path, 30):
        assert list(tmp_path.iterdir()) == []


def test_windows_locks_a_byte_behind_the_file_and_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []

    def locking(handle: int, mode: str, size: int) -> None:
        calls.append((mode, os.lseek(handle, 0, os.SEEK_CUR)))
        if len(calls) < 3:
            raise PermissionError

    fake = SimpleNamespace(locking=locking, LK_NBLCK="lock", LK_UNLCK="unlock")
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        windows = runpy.run_path(locks.__file__)

    with windows["locked_folder"](tmp_path, 30):
        assert [mode for mode, _ in calls] == ["lock"] * 3
    assert calls[3] == ("unlock", calls[0][1])
    assert calls[0][1] > 1 << 30

    calls.clear()
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with pytest.raises(TimeoutError), windows["locked"](handle, 0):
        pass
    with locked(handle, 0):
        os.close(os.dup(handle))
    os.close(handle)
