"""Cold workers: each in a new interpreter, as if its command were started from a shell."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import uuid
from typing import IO, TYPE_CHECKING

from pytest_planverify.checks.processes import TOKEN_VARIABLE
from pytest_planverify.session.cold_worker import TERMINAL
from pytest_planverify.session.fork_server import Exited, ForkServerDied

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_planverify.observe.spec import WorkerSpec


_PROGRAM = "pytest_planverify.session.cold_worker"


class ColdWorker:
    """The parent's handle on one cold worker; same interface as :class:`~.fork_server.ForkedWorker`."""

    def __init__(self, folder: Path) -> None:
        """``folder`` receives the file with the worker's spec."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()
        """Lines that the interpreter prints: the session's process id, then how it ended."""
        self.token: str | None = f"{os.getpid()}-{uuid.uuid4().hex}"
        """Token in the environment of all started processes, to find those that left the process tree."""

    @property
    def pid(self) -> int:
        """Process id of the ancestor of all processes that the worker started."""
        return 0 if self._process is None else self._process.pid

    def start(self, spec: WorkerSpec, *, own_session: bool) -> int:
        """Start the worker; return its process id. Raises :class:`ForkServerDied` if that fails."""
        path = self._folder / f"{spec.worker_id}.spec.json"
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(spec.to_json())
        stream, flags = (None, [TERMINAL]) if spec.log is None else (subprocess.PIPE, [])
        try:
            process = self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, *flags, str(path)],
                cwd=spec.root,
                env={**os.environ, **dict(spec.start.env), TOKEN_VARIABLE: self.token or ""},
                stdin=stream,  # closed by the kernel when the parent dies
                stdout=stream,
                stderr=None if stream is None else subprocess.DEVNULL,
                start_new_session=own_session,
            )
        except OSError as error:
            raise ForkServerDied(str(error)) from error
        if process.stdout is None:
            return process.pid
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
                code = self._process.wait(max(seconds, 0))
            except subprocess.TimeoutExpired:
                return None
            return Exited(code, None, True) if code >= 0 else Exited(None, -code, True)
        try:
            line = self._lines.get(timeout=max(seconds, 0))
        except queue.Empty:
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


def _read_lines(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    """Put the interpreter's two lines into the queue, an empty one for each that never comes."""
    with contextlib.suppress(OSError, ValueError):
        lines.put(stream.readline())
        lines.put(stream.readline())
        return
    lines.put(b"")
