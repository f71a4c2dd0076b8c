"""A process that stands between this one and what it runs: what is done to a parent is done to that one.

Who is started may end, stop or signal whoever started it. The process between waits, and leaves as the
other did.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import NoReturn

_UNKNOWN = 70
"""Exit status where nothing else can be told."""
_DEAF_TO = (signal.SIGINT, signal.SIGTERM)


def can_fork() -> bool:
    """Return whether this platform forks safely: not Windows, nor macOS with its libraries."""
    return hasattr(os, "fork") and sys.platform != "darwin" and "PLANVERIFY_NO_FORK" not in os.environ


def stand_between() -> None:
    """Called in a process that is about to become another: go on in a child of it, and wait for that here.

    The session and the process group stay those of this process.
    """
    child = os.fork()
    if child == 0:
        return
    os.closerange(0, 1 << 16)  # the streams of a program end with the program
    for number in _DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    while True:
        with contextlib.suppress(InterruptedError):
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            leave_as(code if code >= 0 else None, -code if code < 0 else None)


def leave_as(code: int | None, number: int | None) -> NoReturn:
    """Leave with an exit status, or by a signal."""
    if number is not None:
        with contextlib.suppress(ImportError, ValueError, OSError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core is enough
        with contextlib.suppress(OSError, ValueError):  # what these do nobody can change, and need not
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(_UNKNOWN if code is None else code)
