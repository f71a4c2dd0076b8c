"""Entry point of a cold worker: ``python -m pytest_planverify.session.cold_worker SPECFILE``.

The session runs in a child of the started process, which waits for it and reports its end on standard
output; so tests may even kill their parent. On platforms without fork the child is another interpreter.
"""

from __future__ import annotations

import contextlib
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
"""Option: run the session in this process, as the child."""
TERMINAL = "--terminal"
"""Option: the session owns the terminal; report its end by ending with the same status or signal."""


def main(arguments: list[str]) -> NoReturn:
    """Run the session of the spec file in a child and report its end, or be that child."""
    *flags, path = arguments
    if INNER in flags:
        _run(path)
    tells = TERMINAL not in flags
    # A test may signal its parent, and Ctrl-C reaches both; this process has to outlive the session.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    exited = (_guard_fork if can_fork() else _guard_process)(path, tells=tells)
    if not tells:
        leave_as(exited.code, exited.signal)
    text = json.dumps({"code": exited.code, "signal": exited.signal, "left_running": exited.left_running})
    os.write(1, text.encode() + b"\n")
    os._exit(0)


def _guard_fork(path: str, *, tells: bool) -> Exited:
    """Run the session in a forked child and return how that ended, as a keeper does for forked workers."""
    _die_with(os.getppid())
    _become_subreaper()
    guard = os.getpid()
    session = os.fork()
    if session == 0:
        _die_with(guard)
        if tells:
            os.setsid()
            os.write(1, f"{os.getpid()}\n".encode())
        _run(path)
    return _wait(session, own_session=tells)


def _guard_process(path: str, *, tells: bool) -> Exited:
    """Run the session in another interpreter and return how that ended."""
    command = [sys.executable, "-P", "-m", "pytest_planverify.session.cold_worker", INNER, path]
    stream = subprocess.DEVNULL if tells else None
    process = subprocess.Popen(command, stdin=stream, stdout=stream)
    if tells:
        threading.Thread(target=_end_with_parent, args=(process.pid,), daemon=True).start()
        os.write(1, f"{process.pid}\n".encode())
    code = process.wait()
    return Exited(code, None, True) if code >= 0 else Exited(None, -code, True)


def _end_with_parent(pid: int) -> None:
    """Kill the session when standard input closes: the parent holds the other end until it dies."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    from pytest_planverify.checks.processes import TOKEN_VARIABLE, end_process_tree

    end_process_tree(pid, token=os.environ.get(TOKEN_VARIABLE), grace_seconds=0)
    os._exit(1)


def _run(path: str) -> NoReturn:
    """Run the session of the spec file in this process and exit with its status."""
    code = 70
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler)
    try:
        from pytest_planverify.observe.spec import WorkerSpec
        from pytest_planverify.observe.worker import leave_interpreter, run_worker

        with open(path, encoding="utf-8") as file:
            spec = WorkerSpec.from_json(file.read())
        os.unlink(path)  # tests must not read the key that signs the records
        code = run_worker(spec)
        leave_interpreter()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1:])
