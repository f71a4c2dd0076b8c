"""Runs one session in an interpreter that was started for it, with the file of its spec as argument.

It does what a forked session does; only what a running interpreter cannot change is different. The session
is a child of this process, which waits for it: a test may do what it likes to whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from pytest_planverify.relaying import leave_as


def main(path: str) -> None:
    """Run the session; never returns."""
    from pytest_planverify.observing.spec import SessionSpec
    from pytest_planverify.supervision.forkserver import _become_subreaper, _die_with, _run, _wait

    _die_with(os.getppid())
    spec = SessionSpec.from_json(Path(path).read_text(encoding="utf-8"))
    Path(path).unlink()  # what signs the records is not for the tests to read
    _become_subreaper()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    guard = os.getpid()
    session = os.fork()
    if session == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _die_with(guard)
        _run(spec, own_session=True)
    # Who asks this process for its stacks means those of the session.
    signal.signal(signal.SIGABRT, lambda number, frame: _pass_on(session, number))
    exited = _wait(session, own_session=True)
    leave_as(exited.code, exited.signal)


def _pass_on(session: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(session, number)


if __name__ == "__main__":
    main(sys.argv[1])
