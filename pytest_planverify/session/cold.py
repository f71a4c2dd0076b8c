"""Starts workers cold: each in an interpreter of its own, as its command would be started from a shell."""

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


class ColdWorker:
    """The parent's handle on one worker; stands where a :class:`~.fork_server.ForkedWorker` stands."""

    def __init__(self, folder: Path) -> None:
        """The spec of the worker is written into the folder."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._said: queue.Queue[bytes] = queue.Queue()
        """Lines from the interpreter: the process id of the session, and how that ended."""
        self.token: str | None = f"{os.getpid()}-{uuid.uuid4().hex}"
        """Stands in the environment of what is started, and finds again what left its tree."""

    @property
    def pid(self) -> int:
        """The process below which all is found that the worker started."""
        return 0 if self._process is None else self._process.pid

    def start(self, spec: WorkerSpec, *, own_session: bool) -> int:
        """Start the worker. Return its process id. Raises :class:`ForkServerDied` if it cannot be."""
        path = self._folder / f"{spec.worker_id}.spec.json"
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(spec.to_json())
        if spec.log is None:
            self._process = self._interpreter(spec, TERMINAL, str(path), own_session=own_session)
            return self._process.pid
        process = self._process = self._interpreter(spec, own_session=own_session)
        self._said = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, self._said), daemon=True).start()
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(f"{path}\n".encode())
            process.stdin.flush()
        first = self._said.get()
        if first.strip().isdigit():
            return int(first)
        raise ForkServerDied(f"{sys.executable} did not start a worker")

    def _interpreter(self, spec: WorkerSpec, *arguments: str, own_session: bool) -> subprocess.Popen[bytes]:
        """Start an interpreter; without arguments it reads the name of the spec's file from a pipe."""
        stream = None if arguments else subprocess.PIPE
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "pytest_planverify.session.cold_worker", *arguments],
                cwd=spec.root,
                env={**os.environ, **dict(spec.start.env), TOKEN_VARIABLE: self.token or ""},
                stdin=stream,
                stdout=stream,
                stderr=None if arguments else subprocess.DEVNULL,
                start_new_session=own_session,
            )
        except OSError as error:
            raise ForkServerDied(str(error)) from error

    def poll(self, seconds: float) -> Exited | None:
        """Return how the worker ended, or ``None`` if it still runs after so many seconds."""
        assert self._process is not None
        if self._process.stdout is None:
            try:
                code = self._process.wait(max(seconds, 0))
            except subprocess.TimeoutExpired:
                return None
            return Exited(code, None, True) if code >= 0 else Exited(None, -code, True)
        try:
            said = self._said.get(timeout=max(seconds, 0))
        except queue.Empty:
            return None
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if not said.strip():
            return Exited(None, None, True)
        return Exited(**json.loads(said))

    def close(self) -> None:
        """Do nothing: the process has told its end, and nothing waits for it."""


def _read(stream: IO[bytes], said: queue.Queue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        said.put(stream.readline())
        said.put(stream.readline())
        return
    said.put(b"")
