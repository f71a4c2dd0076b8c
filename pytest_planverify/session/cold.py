"""Cold workers: each in a new interpreter, as if its command were started from a shell.

:func:`start_cold` starts this module as a program, which is the keeper: the session runs in a child
of it, so that tests may even kill their parent. On platforms without fork the child is another interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from dataclasses import replace
from os import _exit as exit_process  # bound early: a test may replace it for good
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pytest_planverify import module_code, python_command
from pytest_planverify.checks.intermediate_process import TOKEN_VARIABLE, can_fork, clean_up_after
from pytest_planverify.observe.spec import HARNESS_EXIT
from pytest_planverify.session.fork_server import (
    Exited,
    ForkServerDied,
    Worker,
    keep_worker,
    receive,
    send,
)

if TYPE_CHECKING:
    from pytest_planverify.observe.spec import WorkerSpec

_INNER = "--inner"
"""Option: run the session in this process, which has a keeper already."""


def start_cold(spec: WorkerSpec) -> Worker:
    """Start a worker in a new interpreter. Raises :class:`ForkServerDied` if that fails."""
    # What this run's start has added to ``sys.path`` is not there; an equal entry is the installation's.
    spec = replace(spec, start=replace(spec.start, script_paths=()))
    owns_terminal = spec.log is None
    stream = None if owns_terminal else subprocess.DEVNULL
    try:
        process, connection = _start_interpreter(
            spec,
            cwd=spec.root,
            env={**os.environ, **dict(spec.start.env)},
            stdin=stream,
            stdout=stream,
            stderr=stream,
            start_new_session=not owns_terminal,
        )
    except OSError as error:
        raise ForkServerDied(str(error)) from error
    # A thread, as the keeper ends some time after it was closed, and has to be reaped.
    threading.Thread(target=process.wait, daemon=True).start()
    return Worker(connection, set())


def _start_interpreter(
    spec: WorkerSpec, *flags: str, **options: Any
) -> tuple[subprocess.Popen[Any], socket.socket]:
    """Start this module as a program and send it the spec. Return its process and the connection to it.

    The spec goes through the connection, which tests cannot read: it holds the key that signs the records.
    """
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    if os.name == "posix":
        options["pass_fds"] = (number,)
    else:  # on Windows a process inherits all handles that are inheritable, or none
        theirs.set_inheritable(True)
        options["close_fds"] = False
    program = [*python_command(module_code("pytest_planverify.session.cold")), *flags, str(number)]
    try:
        with theirs:
            process = cast("subprocess.Popen[bytes]", subprocess.Popen(program, **options))
        send(ours, spec)
    except OSError:
        ours.close()
        raise
    return process, ours


# -- in the started process -------------------------------------------------------------------------------


def main(*arguments: str) -> NoReturn:
    """Keep a worker and become it: run the session in a child, or with ``--inner`` in this process."""
    *flags, number = arguments
    connection = socket.socket(fileno=int(number))
    connection.set_inheritable(False)
    spec: WorkerSpec = receive(connection)
    if _INNER in flags:
        connection.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        # A test may signal its parent, and Ctrl-C reaches both; the keeper has to outlive the session.
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        if not can_fork():
            _keep_interpreter(connection, spec)
        clean_up_after(os.getppid())  # else a killed parent would leave the session running
        keep_worker(connection, os.getpgrp(), own_session=spec.log is not None)
    code = HARNESS_EXIT
    try:
        gc.disable()  # the imports leave hardly any garbage
        from pytest_planverify.observe.worker import leave_interpreter, run_worker

        gc.freeze()  # as in a server, so that the collections of pytest do not visit its own objects
        gc.enable()
        code = run_worker(spec)
        leave_interpreter()
    except BaseException:
        traceback.print_exc()
    finally:
        exit_process(code & 0xFF)


def _keep_interpreter(connection: socket.socket, spec: WorkerSpec) -> NoReturn:
    """Run the session in another interpreter, report its end, and end it when the parent dies."""
    # Without a subreaper only a token shows what has left the process tree. This process must not have it,
    # as all that have it are ended.
    token = f"{os.getppid()}-{os.urandom(16).hex()}"
    process, inner = _start_interpreter(spec, _INNER, env={**os.environ, TOKEN_VARIABLE: token})
    inner.close()
    send(connection, (os.getpid(), process.pid, token))

    def report() -> None:
        status = process.wait()
        with contextlib.suppress(OSError):
            send(connection, Exited.of(status, left_running=True))

    threading.Thread(target=report, daemon=True).start()
    with contextlib.suppress(OSError):
        connection.recv(1)  # until the parent closes its end, or dies
    if process.poll() is None:
        from pytest_planverify.checks.processes import end_process_tree

        end_process_tree(process.pid, token=token, grace_seconds=0)
    exit_process(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
