"""Running of argument vectors under a time limit, and termination of whole process trees."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import psutil

from pytest_planverify.checks.intermediate_process import stand_between

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


LONGEST_GAP = 1.0
"""Maximum time, in seconds, that counts between two readings. A clock is read many times a second; a
longer gap means that the machine, container or VM was suspended, and the watched process with it.
"""


class AwakeClock:
    """Monotonic seconds since its creation, without times of suspension."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._looked = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds counted so far; must be called many times a second."""
        looked = time.monotonic()
        self._seconds += min(looked - self._looked, LONGEST_GAP)
        self._looked = looked
        return self._seconds


HEAD_BYTES = 64 * 1024
TAIL_BYTES = 256 * 1024
"""Bytes kept of the beginning, and of the end, of each output stream."""

GRACE_SECONDS = 1.0
"""Seconds between SIGTERM and SIGKILL."""

STREAM_SECONDS = 2.0
"""Seconds to wait for the end of the output, which an escaped process may hold open for ever."""

WATCH_SECONDS = 0.1
"""Interval, in seconds, of calls to ``watch``."""

TOKEN_VARIABLE = "PLANVERIFY_PROCESS_TOKEN"
"""Environment variable that marks all started processes, to find those that left the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """End and output of a process."""

    exit_code: int | None
    """``None`` if a signal ended it."""
    signal: str | None = None
    """Name of the signal, for example ``SIGSEGV``."""
    timed_out: bool = False
    duration_ms: int
    stdout: str
    stderr: str


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float,
    watch: Callable[[], None] | None = None,
    on_output: Callable[[str], None] | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> ProcessResult:
    """Run an argument vector in a new session, without standard input, and wait for its end.

    ``watch`` is called regularly meanwhile; an exception from it ends the process and propagates.
    ``on_output`` receives the output as it arrives, in reader threads. ``grace_seconds`` is the time
    from SIGTERM to SIGKILL. Everything that the process started has ended when this returns, in any
    case. Raises ``OSError`` or ``ValueError`` if the program cannot be started.
    """
    token = f"{os.getpid()}-{uuid.uuid4().hex}"  # contains our process id, for cleanup after a kill
    started = time.monotonic()
    # No "with": it would close pipes that a thread still reads if an escaped process holds them. A
    # restarted read would then take bytes from whatever reuses the descriptor.
    process = subprocess.Popen(
        list(argv),
        cwd=cwd,
        env={**env, TOKEN_VARIABLE: token},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
        preexec_fn=stand_between if hasattr(os, "fork") else None,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    streams = (_Stream(process.stdout, on_output), _Stream(process.stderr, on_output))
    try:
        ended = _wait_for_end(process, timeout_seconds, watch)
        duration_ms = round((time.monotonic() - started) * 1000)
    finally:
        end_process_tree(process.pid, token=token, grace_seconds=grace_seconds)
        process.wait()
        give_up = time.monotonic() + STREAM_SECONDS
        texts = [stream.finish(give_up) for stream in streams]
    code = process.returncode
    return ProcessResult(
        exit_code=code if code >= 0 and ended else None,
        signal=signal_name(-code) if code < 0 else None,
        timed_out=not ended,
        duration_ms=duration_ms,
        stdout=texts[0],
        stderr=texts[1],
    )


def end_process_tree(pid: int, *, token: str | None = None, grace_seconds: float = GRACE_SECONDS) -> None:
    """End a process with its descendants, group and session: SIGTERM, then SIGKILL.

    With the ``token`` of :func:`run_process`, processes that left the session end, too. The process
    itself is not reaped, so its parent can read the exit status. Without the process this does nothing.
    """
    members = _members(pid, token)
    if not members:
        return
    for member in members:
        _send(member, signal.SIGTERM)
    give_up = time.monotonic() + grace_seconds
    while members and time.monotonic() < give_up:
        members = [member for member in members if _is_alive(member)]
        if members:
            time.sleep(0.01)
    give_up = time.monotonic() + 10 * max(grace_seconds, GRACE_SECONDS)
    while time.monotonic() < give_up:
        # Searched again each time, as a process may start others while it is being ended.
        members = _members(pid, token)
        if not members:
            return
        for member in members:
            _send(member, signal.SIGKILL)
        time.sleep(0.01)


def end_processes_of(pid: int) -> None:
    """Kill all that :func:`run_process` started in a process that was itself killed, by sessions."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(TOKEN_VARIABLE, "").startswith(f"{pid}-"):
                # The leader of a command's session is our intermediate process, which has no token.
                leader = os.getsid(process.pid)
                end_process_tree(process.pid, grace_seconds=0)
                if leader != os.getsid(0):
                    end_process_tree(leader, grace_seconds=0)


def end_descendants(pid: int, *, seconds: float = 5.0) -> None:
    """Kill all descendants of a process, but not the process itself."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        try:
            members = [each for each in psutil.Process(pid).children(recursive=True) if _is_alive(each)]
        except psutil.Error:
            return
        if not members:
            return
        for member in members:
            _send(member, signal.SIGKILL)
        time.sleep(0.01)


def signal_name(number: int) -> str:
    """Return the name of a signal, for example ``SIGSEGV`` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _wait_for_end(
    process: subprocess.Popen[bytes], timeout_seconds: float, watch: Callable[[], None] | None
) -> bool:
    """Return whether the process ended within the limit; where possible it is not reaped yet.

    Until it is reaped, its id cannot be reused by a process that must not be killed.
    """
    ended = threading.Event()

    def wait() -> None:
        with contextlib.suppress(ChildProcessError):
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            else:
                process.wait()
        ended.set()

    threading.Thread(target=wait, name="planverify-wait", daemon=True).start()
    clock = AwakeClock()
    while not ended.wait(max(min(WATCH_SECONDS, timeout_seconds - clock.seconds()), 0)):
        if clock.seconds() >= timeout_seconds:
            return False
        if watch is not None:
            watch()
    return True


def _members(pid: int, token: str | None) -> list[psutil.Process]:
    """Return all living processes of the tree, without this process and its ancestors."""
    spared = {os.getpid()}
    with contextlib.suppress(psutil.Error):
        spared.update(parent.pid for parent in psutil.Process().parents())
    if pid in spared:
        return []
    found: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        found = {process.pid: process for process in (root, *root.children(recursive=True))}
    for process in psutil.process_iter():
        if process.pid not in found and _belongs(process, pid, token):
            found[process.pid] = process
    return [process for process in found.values() if process.pid not in spared and _is_alive(process)]


def _belongs(process: psutil.Process, pid: int, token: str | None) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        if pid in (os.getsid(process.pid), os.getpgid(process.pid)):
            return True
        if token is not None:
            return process.environ().get(TOKEN_VARIABLE) == token
    return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error, OSError):
        process.send_signal(number)


class _Stream:
    """Reads a stream in a thread, keeping its beginning and end.

    The thread closes the stream itself, so that nobody closes it during a read.
    """

    def __init__(self, source: IO[bytes], on_output: Callable[[str], None] | None = None) -> None:
        self._source = source
        self._on_output = on_output
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._cut = 0
        self._is_finished = False
        self._thread = threading.Thread(target=self._read, name="planverify-read", daemon=True)
        self._thread.start()

    def finish(self, give_up: float) -> str:
        """Return the output up to its end, or what has arrived at the time ``give_up`` (monotonic)."""
        self._thread.join(timeout=max(0.0, give_up - time.monotonic()))
        self._is_finished = True
        tail = b"".join(tuple(self._tail))
        surplus = max(0, len(tail) - TAIL_BYTES)
        cut = self._cut + surplus
        middle = f"\n… {cut} bytes left out …\n" if cut else ""
        return f"{_decode(bytes(self._head))}{middle}{_decode(tail[surplus:])}"

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._source:
            while (chunk := self._source.read(65_536)) and not self._is_finished:
                self._keep(chunk)
                if self._on_output is not None:
                    self._on_output(_decode(chunk))

    def _keep(self, chunk: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += chunk[:room]
        rest = chunk[room:] if room else chunk
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            oldest = self._tail.popleft()
            self._tail_size -= len(oldest)
            self._cut += len(oldest)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
