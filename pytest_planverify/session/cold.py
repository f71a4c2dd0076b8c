"""Cold workers: each in a new interpreter, as if its command were started from a shell.

:class:`ColdWorker` starts this module as a program. The session runs in a child of that process, which
waits for it and reports its end on standard output; so tests may even kill their parent. On platforms
without fork the child is another interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, NoReturn

from pytest_planverify.checks.intermediate_process import TOKEN_VARIABLE, can_fork, leave_as
from pytest_planverify.observe.spec import HARNESS_EXIT, WorkerSpec
from pytest_planverify.session.fork_server import (
    Exited,
    ForkServerDied,
    become_subreaper,
    die_with,
    wait_for_worker,
)

if TYPE_CHECKING:
    from pathlib import Path
    from queue import Queue

_PROGRAM = (sys.executable, "-P", "-m", "pytest_planverify.session.cold")
_INNER = "--inner"
"""Option: run the session in this process, as the child."""
_TERMINAL = "--terminal"
"""Option: the session owns the terminal; report its end by ending with the same status or signal."""


class ColdWorker:
    """The parent's handle on one cold worker; same interface as :class:`~.fork_server.ForkedWorker`."""

    def __init__(self, folder: Path) -> None:
        """``folder`` receives the file with the worker's spec."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        # Imported here, as the started process imports this module: a project may have a queue.py.
        from queue import Queue

        self._lines: Queue[bytes] = Queue()
        """Lines that the interpreter prints: the session's process id, then how it ended."""
        self.token = f"{os.getpid()}-{os.urandom(16).hex()}"
        """Token in the environment of all started processes, to find those that left the process tree."""

    @property
    def pid(self) -> int:
        """Process id of the ancestor of all processes that the worker started."""
        return 0 if self._process is None else self._process.pid

    def start(self, spec: WorkerSpec, *, own_session: bool) -> int:
        """Start the worker; return its process id. Raises :class:`ForkServerDied` if that fails."""
        path = self._folder / f"{spec.worker_id}.spec.json"
        # Private to the user from the beginning: it holds the key that signs the worker's records.
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(spec.to_json())
        stream, flags = (None, [_TERMINAL]) if spec.log is None else (subprocess.PIPE, [])
        try:
            process = self._process = subprocess.Popen(
                [*_PROGRAM, *flags, str(path)],
                cwd=spec.root,
                env={**os.environ, **dict(spec.start.env), TOKEN_VARIABLE: self.token},
                stdin=stream,  # closed by the kernel when the parent dies
                stdout=stream,
                stderr=None if stream is None else subprocess.DEVNULL,
                start_new_session=own_session,
            )
        except OSError as error:
            raise ForkServerDied(str(error)) from error
        if process.stdout is None:
            return process.pid
        # A thread, as poll() needs a time limit, and pipes cannot be waited for with one on every platform.
        threading.Thread(target=_read_lines, args=(process.stdout, self._lines), daemon=True).start()
        first = self._lines.get()
        if first.strip().isdigit():
            return int(first)
        raise ForkServerDied(f"{sys.executable} did not start a worker")

    def poll(self, seconds: float) -> Exited | None:
        """Return how the worker ended, or ``None`` if it still runs after ``seconds``."""
        assert self._process is not None
        if self._process.stdout is None:  # the worker owns the terminal and reports by its exit status
            try:
                return Exited.of(self._process.wait(max(seconds, 0)), left_running=True)
            except subprocess.TimeoutExpired:
                return None
        from queue import Empty

        try:
            line = self._lines.get(timeout=max(seconds, 0))
        except Empty:
            return None
        self._process.wait()
        if not line.strip():
            return Exited(None, None, True)
        return Exited(**json.loads(line))

    def close(self) -> None:
        """Release the ended process and its pipes."""
        for stream in () if self._process is None else (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _read_lines(stream: IO[bytes], lines: Queue[bytes]) -> None:
    """Put the interpreter's two lines into the queue, an empty one for each that never comes."""
    with contextlib.suppress(OSError, ValueError):
        lines.put(stream.readline())
        lines.put(stream.readline())
        return
    lines.put(b"")


# -- in the started process -------------------------------------------------------------------------------


def main(arguments: list[str]) -> NoReturn:
    """Run the session of the spec file in a child and report its end, or be that child."""
    *flags, path = arguments
    if _INNER in flags:
        _run(path)
    tells = _TERMINAL not in flags
    # A test may signal its parent, and Ctrl-C reaches both; this process has to outlive the session.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    exited = (_guard_fork if can_fork() else _guard_process)(path, tells=tells)
    if not tells:
        leave_as(exited.code, exited.signal)
    os.write(1, json.dumps(asdict(exited)).encode() + b"\n")
    os._exit(0)


def _guard_fork(path: str, *, tells: bool) -> Exited:
    """Run the session in a forked child and return how that ended, as a keeper does for forked workers."""
    die_with(os.getppid())  # else a killed parent would leave the session running
    become_subreaper()
    guard = os.getpid()
    session = os.fork()
    if session == 0:
        die_with(guard)
        if tells:
            os.setsid()
            os.write(1, f"{os.getpid()}\n".encode())
        _run(path)
    return wait_for_worker(session, own_session=tells)


def _guard_process(path: str, *, tells: bool) -> Exited:
    """Run the session in another interpreter and return how that ended."""
    stream = subprocess.DEVNULL if tells else None
    # Standard output reports to the parent, and standard input shows its death: neither is the session's.
    process = subprocess.Popen([*_PROGRAM, _INNER, path], stdin=stream, stdout=stream)
    if tells:
        threading.Thread(target=_end_with_parent, args=(process.pid,), daemon=True).start()
        os.write(1, f"{process.pid}\n".encode())
    return Exited.of(process.wait(), left_running=True)


def _end_with_parent(pid: int) -> None:
    """Kill the session when standard input closes: the parent holds the other end until it dies."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    from pytest_planverify.checks.processes import end_process_tree

    end_process_tree(pid, token=os.environ.get(TOKEN_VARIABLE), grace_seconds=0)
    os._exit(1)


def _run(path: str) -> NoReturn:
    """Run the session of the spec file in this process and exit with its status."""
    code = HARNESS_EXIT
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler)
    try:
        from pytest_planverify.observe.worker import leave_interpreter, run_worker

        with open(path, encoding="utf-8") as file:
            spec = WorkerSpec.from_json(file.read())
        os.unlink(path)  # tests must not read the key that signs the records
        code = run_worker(spec)
        leave_interpreter()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1:])
