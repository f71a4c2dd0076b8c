"""Running processes, locks between them that end with their holder, and flags for :func:`os.open`."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_PAUSE_SECONDS = 0.01
_LOCK_FILE = ".lock"


def is_running(pid: int, latest: float) -> bool:
    """Return whether a process runs that was created at the time ``latest`` (epoch seconds) or before.

    A process with the same id that was created later is another one, and a zombie does not run.
    """
    import psutil  # here, as most commands ask for no process

    try:
        process = psutil.Process(pid)
        return process.create_time() <= latest and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OverflowError, TypeError, ValueError):
        return False


def open_flags(*names: str) -> int:
    """Return the sum of flags by their names; one that the system lacks counts as 0.

    ``O_CLOEXEC`` is included, and ``O_BINARY``, without which Windows translates line ends.
    """
    return sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", *names))


if sys.platform == "win32":
    import msvcrt

    # Other processes cannot read a locked byte, so one far behind the end of the file is locked.
    _FAR = 1 << 40

    def _try_lock(handle: int) -> bool:
        os.lseek(handle, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(handle: int) -> None:
        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

    def _open_folder(folder: Path) -> int:
        return os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | open_flags(), 0o600)

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

    def _open_folder(folder: Path) -> int:
        # The directory itself is locked, so no lock file remains.
        return os.open(folder, os.O_RDONLY | open_flags("O_DIRECTORY"))


@contextmanager
def locked(handle: int, seconds: float) -> Generator[None]:
    """Context in which no other process has locked the file behind the descriptor.

    Raises :class:`TimeoutError` if another one has it for all these seconds, and :class:`OSError` on a file
    system without locks. The system releases the lock when its holder is killed.
    """
    deadline = time.monotonic() + seconds
    while not _try_lock(handle):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        _unlock(handle)


@contextmanager
def locked_folder(folder: Path, seconds: float) -> Generator[None]:
    """Context in which no other process has locked the folder; raises the errors of :func:`locked`."""
    handle = _open_folder(folder)
    try:
        with locked(handle, seconds):
            yield
    finally:
        os.close(handle)
