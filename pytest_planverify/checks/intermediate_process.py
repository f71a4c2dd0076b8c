"""Intermediate process between this one and a program that it starts, to shield this one from the program.

A started program may kill, stop or signal its parent. It then hits the intermediate process, which waits
for the program and ends in the same way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from functools import cache
from typing import Any, NoReturn

TOKEN_VARIABLE = "PLANVERIFY_PROCESS_TOKEN"
"""Environment variable that marks all started processes, to find those that left the session."""
_UNKNOWN = 70
"""Exit status if neither an exit status nor a signal can be passed on."""
_IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def can_fork() -> bool:
    """Return whether forking is safe: not on Windows, nor on macOS with its system libraries.

    The environment variable ``PLANVERIFY_NO_FORK`` disables forking.
    """
    return hasattr(os, "fork") and sys.platform != "darwin" and "PLANVERIFY_NO_FORK" not in os.environ


def stand_between(parent: int) -> None:
    """Fork, return in the child, and wait for the child here; never return in this process.

    To be called right before another program is executed. Session and process group remain those of this
    process. If the ``parent`` of this process is killed, the program ends, on Linux.
    """
    child = os.fork()
    if child == 0:
        return
    os.closerange(0, 1 << 16)  # readers must see the streams end with the program
    # Whoever ends the program signals its whole session; this process must survive to pass on the status.
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    clean_up_after(parent)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with contextlib.suppress(ImportError, ValueError, OSError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has dumped core already
        with contextlib.suppress(OSError, ValueError):  # SIGKILL and SIGSTOP cannot be reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else _UNKNOWN)


# -- Linux --------------------------------------------------------------------------------------------


def become_subreaper() -> None:
    """On Linux, inherit the orphaned descendants of this process, so that they can still be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def clean_up_after(parent: int) -> None:
    """On Linux, when the parent is killed, kill all processes that it has started."""
    own = os.getpid()

    def clean_up(number: int, frame: object) -> None:
        # The signal may also come from another process; getppid() changes only when the parent has died.
        if os.getpid() == own and os.getppid() != parent:
            end_orphans(parent)

    signal.signal(PARENT_DIED, clean_up)
    _prctl(_PR_SET_PDEATHSIG, PARENT_DIED)
    if os.getppid() != parent:  # it died before the signal was set up, so none will be sent
        end_orphans(parent)


PARENT_DIED = getattr(signal, "SIGUSR1", signal.SIGINT)
"""The signal that the kernel sends when the parent dies."""


def end_orphans(parent: int) -> NoReturn:
    """Become a program that kills all descendants of this process and of the dead parent's commands."""
    # A program of its own, as workers inherit every module of the base, which must not import psutil. It
    # keeps process id and children. Nor does an exit handler run, such as coverage.py's, which may wait for
    # a lock whose holder a signal has interrupted.
    signal.signal(PARENT_DIED, signal.SIG_IGN)  # it would end the program if it arrived after this call
    module = "pytest_planverify.checks.processes"
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, str(parent)])


def die_with(parent: int) -> None:
    """On Linux, die when the parent process (a worker's keeper) dies: no process runs unwatched."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the signal was set up
        os._exit(1)


_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@cache
def load_libc() -> Any:
    """Return the C library on Linux, else ``None``.

    Loaded before a fork, no lock of another thread can block it in the new process.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    with contextlib.suppress(OSError):
        return ctypes.CDLL(None, use_errno=True)
    return None


def _prctl(option: int, value: int) -> None:
    """Call ``prctl(2)`` on Linux; do nothing on other platforms, or where it cannot be called."""
    if (libc := load_libc()) is not None:
        with contextlib.suppress(AttributeError):
            libc.prctl(option, value, 0, 0, 0)
