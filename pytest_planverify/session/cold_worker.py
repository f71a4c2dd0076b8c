"""A worker in an interpreter of its own, which is told the file of its spec by a line on standard input.

The session is a child of the process that was started, which waits for it and tells on standard output how
it ended: so a test may do what it likes to whoever started it. Where nothing can be forked, the child is
another interpreter.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import NoReturn

from pytest_planverify.checks.intermediate_process import can_fork, leave_as
from pytest_planverify.session.fork_server import Exited, _become_subreaper, _die_with, _wait

INNER = "--inner"
"""Be the child."""
TERMINAL = "--terminal"
"""The session keeps the terminal: tell how it ended by ending in the same way."""


def main(arguments: list[str]) -> NoReturn:
    """Run the session in a child and tell how it ended, or be that child."""
    tells = not arguments
    if arguments[:1] == [INNER]:
        _run(arguments[1])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    exited = (_guard_fork if can_fork() else _guard_process)(arguments[-1] if arguments else None)
    if not tells:
        leave_as(exited.code, exited.signal)
    text = json.dumps({"code": exited.code, "signal": exited.signal, "left_running": exited.left_running})
    os.write(1, text.encode() + b"\n")
    os._exit(0)


def _guard_fork(path: str | None) -> Exited:
    tells = path is None
    _die_with(os.getppid())
    _become_subreaper()
    guard = os.getpid()
    session = os.fork()
    if session == 0:
        if tells:
            os.setsid()
        _die_with(guard)
        importlib.import_module("pytest_planverify.observe.worker")  # while it stands by

        if path is None:
            path = _told()
            os.write(1, f"{os.getpid()}\n".encode())
        _run(path)
    return _wait(session, own_session=tells)


def _guard_process(path: str | None) -> Exited:
    tells = path is None
    path = _told() if path is None else path
    command = [sys.executable, "-P", "-m", "pytest_planverify.session.cold_worker", INNER, path]
    stream = subprocess.DEVNULL if tells else None
    process = subprocess.Popen(command, stdin=stream, stdout=stream)
    if tells:
        threading.Thread(target=_end_with_parent, args=(process.pid,), daemon=True).start()
        os.write(1, f"{process.pid}\n".encode())
    code = process.wait()
    return Exited(code, None, True) if code >= 0 else Exited(None, -code, True)


def _told() -> str:
    """Read the name of the spec's file; leave where nobody wants a worker any more."""
    line = b""
    while not line.endswith(b"\n"):
        letter = os.read(0, 1)
        if not letter:
            os._exit(0)
        line += letter
    return os.fsdecode(line[:-1])


def _end_with_parent(pid: int) -> None:
    """The parent holds the other end of standard input, and lets go of it only when it has died."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    from pytest_planverify.checks.processes import TOKEN_VARIABLE, end_process_tree

    end_process_tree(pid, token=os.environ.get(TOKEN_VARIABLE), grace_seconds=0)
    os._exit(1)


def _run(path: str) -> NoReturn:
    code = 70
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler)
    try:
        from pytest_planverify.observe.spec import WorkerSpec
        from pytest_planverify.observe.worker import leave_interpreter, run_worker

        with open(path, encoding="utf-8") as file:
            spec = WorkerSpec.from_json(file.read())
        os.unlink(path)  # what signs the records is not for the tests to read
        code = run_worker(spec)
        leave_interpreter()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1:])
