"""Intermediate process between this one and a program that it starts, to shield this one from the program.

A started program may kill, stop or signal its parent. It then hits the intermediate process, which waits
for the program and ends in the same way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import NoReturn

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


def stand_between() -> None:
    """Fork, return in the child, and wait for the child here; never return in this process.

    To be called right before another program is executed. Session and process group remain those of this
    process.
    """
    child = os.fork()
    if child == 0:
        return
    os.closerange(0, 1 << 16)  # readers must see the streams end with the program
    # Whoever ends the program signals its whole session; this process must survive to pass on the status.
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    leave_as(code if code >= 0 else None, -code if code < 0 else None)


def leave_as(code: int | None, number: int | None) -> NoReturn:
    """End this process with the exit status ``code``, or by the signal ``number``."""
    if number is not None:
        with contextlib.suppress(ImportError, ValueError, OSError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has dumped core already
        with contextlib.suppress(OSError, ValueError):  # SIGKILL and SIGSTOP cannot be reset
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(_UNKNOWN if code is None else code)
