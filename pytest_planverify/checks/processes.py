"""Running of argument vectors under a time limit, and termination of whole process trees.

A command may leave processes behind, in sessions of their own or after its own end. They are found by three
signs: descent, session or group, and a token in the environment, which children inherit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING

import psutil

from pytest_planverify.checks.intermediate_process import TOKEN_VARIABLE, load_libc, stand_between

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
        self._last_reading = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds counted so far; must be called many times a second."""
        now = time.monotonic()
        self._seconds += min(now - self._last_reading, LONGEST_GAP)
        self._last_reading = now
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """End and output of a process."""

    exit_code: int | None
    """``None`` if a signal ended it, or if it exceeded its limit."""
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
    grace_seconds: float = GRACE_SECONDS,
) -> ProcessResult:
    """Run an argument vector in a new session, without standard input, and wait for its end.

    ``watch`` is called regularly meanwhile; an exception from it ends the process and propagates.
    ``grace_seconds`` is the time from SIGTERM to SIGKILL. Everything that the process started has ended
    when this returns: after a normal exit, after an exceeded limit, and after an interruption. Raises
    ``OSError`` or ``ValueError`` if the program cannot be started, or its exit status was lost.
    """
    token = f"{os.getpid()}-{uuid.uuid4().hex}"  # our process id for end_processes_of()
    load_libc()
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
        start_new_session=True,  # so that its members are found and ended together
        bufsize=0,  # output is passed on as it arrives
        preexec_fn=partial(stand_between, os.getpid()) if hasattr(os, "fork") else None,
    )
    streams: list[_Stream] = []
    try:  # at once: an interrupt from here on ends the process
        streams += [_Stream(source) for source in (process.stdout, process.stderr) if source is not None]
        ended = _wait_for_end(process, timeout_seconds, watch)
        duration_ms = round((time.monotonic() - started) * 1000)
    finally:
        end_process_tree(process.pid, token=token, grace_seconds=grace_seconds)
        process.wait()
        deadline = time.monotonic() + STREAM_SECONDS
        texts = [stream.finish(deadline) for stream in streams]
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
    itself is not reaped, so its parent can read the exit status. Does nothing if no such process is alive.
    """
    members = _members(pid, token)
    if not members:
        return
    for member in members:
        with contextlib.suppress(psutil.Error, OSError):  # it may have ended
            member.terminate()
    deadline = time.monotonic() + grace_seconds
    while members and time.monotonic() < deadline:
        members = [member for member in members if _is_alive(member)]
        if members:
            time.sleep(0.01)
    _kill(lambda: _members(pid, token), 10 * max(grace_seconds, GRACE_SECONDS))


def end_processes_of(pid: int) -> None:
    """Kill everything that :func:`run_process` started in the process ``pid``, which was killed itself.

    Whole sessions are killed, so that processes without the token are included.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(TOKEN_VARIABLE, "").startswith(f"{pid}-"):
                # The leader of a command's session is our intermediate process, which has no token.
                leader = os.getsid(process.pid) if hasattr(os, "getsid") else None
                end_process_tree(process.pid, grace_seconds=0)
                if leader is not None and leader != os.getsid(0):
                    end_process_tree(leader, grace_seconds=0)


def end_descendants(pid: int) -> None:
    """Kill all descendants of a process, but not the process itself; give up after 5 seconds."""
    _kill(lambda: [each for each in _tree_of(pid)[1:] if _is_alive(each)], 5)


def _kill(find: Callable[[], list[psutil.Process]], seconds: float) -> None:
    """Kill the processes that ``find`` returns until it returns none, at most for some seconds."""
    # Not for ever: a process in an uninterruptible system call does not die.
    deadline = time.monotonic() + seconds
    # Searched again each time, as a process may start others while it is being ended.
    while time.monotonic() < deadline and (members := find()):
        for member in members:
            with contextlib.suppress(psutil.Error, OSError):
                member.kill()
        time.sleep(0.01)


def _tree_of(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; empty if it has ended."""
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def signal_name(number: int) -> str:
    """Return the name of a signal, for example ``SIGSEGV`` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _wait_for_end(
    process: subprocess.Popen[bytes], timeout_seconds: float, watch: Callable[[], None] | None
) -> bool:
    """Return whether the process ended within the limit. Exceptions of ``watch`` propagate.

    Raises ``ChildProcessError`` if its exit status is lost: SIGCHLD is ignored, or another has reaped it.
    """
    ended = threading.Event()

    def wait() -> None:
        with contextlib.suppress(ChildProcessError):
            # Not reaped where the platform permits: until then no other process, which must not be
            # killed, can get its id.
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
    if hasattr(os, "waitid"):  # Popen takes a status that was lost for 0
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return True


def _members(pid: int, token: str | None) -> list[psutil.Process]:
    """Return all living processes of the tree, but never this process or one of its ancestors."""
    spared = {os.getpid()}
    with contextlib.suppress(psutil.Error):
        spared.update(parent.pid for parent in psutil.Process().parents())
    if pid in spared:
        return []
    # Descent misses orphans, which init has adopted; session, group and token find these.
    found = {process.pid: process for process in _tree_of(pid)}
    for process in psutil.process_iter():
        if process.pid not in found and _belongs(process, pid, token):
            found[process.pid] = process
    return [process for process in found.values() if process.pid not in spared and _is_alive(process)]


def _belongs(process: psutil.Process, pid: int, token: str | None) -> bool:
    """Return whether a process is of the session or group ``pid``, or has the token in its environment."""
    with contextlib.suppress(psutil.Error, OSError):
        if hasattr(os, "getsid") and pid in (os.getsid(process.pid), os.getpgid(process.pid)):
            return True
        if token is not None:
            return process.environ().get(TOKEN_VARIABLE) == token
    return False


def is_alive(pid: int) -> bool:
    """Return whether a process runs, as opposed to being a zombie."""
    try:
        return _is_alive(psutil.Process(pid))
    except psutil.Error:
        return False


def start_time(pid: int) -> float | None:
    """Return the start time of a process, or ``None`` if it has ended."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).create_time()
    return None


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not, nor does another process with the same id."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class _Stream:
    """Reads a stream in a thread, keeping its beginning and end.

    The thread closes the stream itself, so that nobody closes it during a read.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._kept = bytearray()
        self._cut = 0  # bytes left out behind the head
        self._is_finished = False
        self._thread = threading.Thread(target=self._read, name="planverify-read", daemon=True)
        self._thread.start()

    def finish(self, deadline: float) -> str:
        """Return the output up to its end, or what has arrived by ``deadline`` (monotonic seconds).

        The thread then stops reading at the next chunk.
        """
        self._thread.join(timeout=max(0.0, deadline - time.monotonic()))
        self._is_finished = True
        kept = bytes(self._kept)  # a copy, as the thread may still be reading
        head, rest = kept[:HEAD_BYTES], kept[HEAD_BYTES:]
        cut = self._cut + max(0, len(rest) - TAIL_BYTES)
        middle = f"\n… {cut} bytes omitted …\n" if cut else ""
        first, last = (part.decode("utf-8", "replace") for part in (head, rest[-TAIL_BYTES:]))
        return f"{first}{middle}{last}"

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._source:
            # A raw read returns what has arrived; it does not wait for the whole size.
            while (chunk := self._source.read(65_536)) and not self._is_finished:
                self._kept += chunk
                # Only at twice the size, as each deletion moves the whole tail.
                if (surplus := len(self._kept) - HEAD_BYTES - TAIL_BYTES) > TAIL_BYTES:
                    del self._kept[HEAD_BYTES : HEAD_BYTES + surplus]
                    self._cut += surplus


def _end_orphans(parent: int) -> None:
    """Kill the descendants of this process and the commands of the dead process ``parent``."""
    # Repeatedly, as the system lists a process that is being started with a delay.
    for _ in range(3):
        end_descendants(os.getpid())
        end_processes_of(parent)
        time.sleep(0.02)


if __name__ == "__main__":  # the fork server becomes this program when its parent has died
    _end_orphans(int(sys.argv[1]))
