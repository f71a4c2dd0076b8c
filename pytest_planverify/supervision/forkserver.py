"""A process that forks sessions, taken from the parent before the parent imports anything of its own.

So a session starts with exactly the modules that pytest and the installed plugins have imported, and a
project that is itself a library which this plugin uses is tested in its own copy. The server runs one
session at a time and is the one that waits for it; the parent watches limits and sends the signals.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import mmap
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_planverify.observing import phases
from pytest_planverify.supervision.orphans import children_of, end_orphans
from pytest_planverify.supervision.warming import make_own, warm_up

if TYPE_CHECKING:
    from pytest_planverify.observing.spec import SessionSpec

_HEADER = struct.Struct("!I")
_PID = struct.Struct("!q")
_CLOSING_SECONDS = 2.0
"""How long an idle server may take to notice that it is no longer needed."""
_LEAVING_SECONDS = 0.2
"""How long what a session started may take to end after it by itself."""

_MEANT_FOR_SESSIONS = (signal.SIGTERM,)
"""Signals that a test may send to whoever started it; the server has other ways to be told to end."""


class ForkServerDied(Exception):
    """The server is gone; sessions can no longer be run."""


@dataclass(frozen=True, slots=True)
class Exited:
    """How a session's process ended: an exit code, or the number of a signal."""

    code: int | None
    signal: int | None
    left_running: bool = field(default=False, compare=False)
    """Processes that it started are still there."""


class ForkServer:
    """The parent's handle on the server. One session at a time."""

    token: str | None = None
    """Its sessions need no mark: whatever leaves them comes to the server."""

    def __init__(self, rewriting: Any = None) -> None:
        """``rewriting`` is pytest's import hook, through which a session would import its plugins."""
        self._rewriting = rewriting
        self._paths = list(sys.path)
        self._modules = frozenset(sys.modules)
        self._collecting = gc.get_threshold()
        self._board = mmap.mmap(-1, _PID.size)
        self._fork()

    @property
    def own_pids(self) -> frozenset[int]:
        """The processes that are no session's: the server, and who stands by."""
        (waiting,) = _PID.unpack(self._board[: _PID.size])
        return frozenset({self.pid, int(waiting)})

    def renew(self) -> None:
        """Put another server in the place of one that was killed.

        It is forked from the parent as that is by now, and forgets what the parent has imported for itself.
        """
        self.close()
        self._fork()

    def _fork(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self._requests)
                os.close(self._replies)
                self._forget()
                _serve(requests, replies, parent, self._rewriting, self._board)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(requests)
        os.close(replies)

    def _forget(self) -> None:
        sys.path[:] = self._paths
        gc.set_threshold(*self._collecting)
        ours = __name__.partition(".")[0]
        for name in sys.modules.keys() - self._modules:
            if name.partition(".")[0] not in {ours, *sys.stdlib_module_names}:
                del sys.modules[name]

    def start(self, spec: SessionSpec, *, own_session: bool) -> int:
        """Fork a session. Returns its process id. Raises :class:`ForkServerDied`."""
        phases.board.put(phases.NONE)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGCONT)  # a test may have stopped it
        try:
            _send(self._requests, (spec, own_session))
        except OSError as error:
            raise ForkServerDied(str(error)) from error
        return int(self._receive())

    def poll(self, seconds: float) -> Exited | None:
        """How the session ended, or ``None`` if it still runs after so many seconds."""
        ready, _, _ = select.select([self._replies], [], [], max(seconds, 0))
        return self._receive() if ready else None

    def close(self) -> None:
        """End the server and reap it, together with a session that an interrupt left without a watcher."""
        with contextlib.suppress(OSError):
            _send(self._requests, None)  # that it is over; an end without it is a parent that was killed
        with contextlib.suppress(OSError):
            os.close(self._requests)
        with contextlib.suppress(ChildProcessError):
            deadline = time.monotonic() + _CLOSING_SECONDS
            while not os.waitpid(self.pid, os.WNOHANG)[0]:
                if time.monotonic() > deadline:
                    from pytest_planverify.processes import end_process_tree

                    end_process_tree(self.pid)
                    os.waitpid(self.pid, 0)
                    break
                time.sleep(0.005)
        with contextlib.suppress(OSError):
            os.close(self._replies)

    def _receive(self) -> Any:
        try:
            return _receive(self._replies)
        except (EOFError, OSError) as error:
            raise ForkServerDied("the process that forks sessions is gone") from error


def _serve(requests: int, replies: int, parent: int, rewriting: Any, board: mmap.mmap) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _MEANT_FOR_SESSIONS:
        signal.signal(number, signal.SIG_IGN)
    group = os.getpgrp()
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a signal that kills the parent's whole group must leave somebody to clear up
    _clear_up_after(parent)
    _become_subreaper()
    warm_up(rewriting)
    gc.collect()
    gc.freeze()
    place = _Place(requests, replies, os.getpid(), group, board)
    waiting: _Waiting | None = _stand_by(place)
    while True:
        try:
            request = _receive(requests)
        except EOFError:  # seen before the kernel tells that the parent has died
            end_orphans(parent)
            return
        if request is None:
            if waiting is not None:
                waiting.dismiss()
            return
        for _ in range(_MOST_FORKS):  # one that stood by may have ended with what another session left
            if waiting is not None and waiting.hand_over(request):
                break
            waiting = _stand_by(place)
        else:
            return  # whatever ends them all would end the next one, too: the parent hears that it is over
        board[: _PID.size] = _PID.pack(0)  # by this process only: the other one may be late
        spec, own_session = request
        pid = waiting.pid
        _send(replies, pid)
        # A command that is run by itself is seldom the only one.
        waiting = _stand_by(place) if spec.verbatim else None
        beside = 0 if waiting is None else waiting.pid
        _send(replies, _wait(pid, own_session=own_session, beside=beside))


_MOST_FORKS = 10
"""So often a process is forked for one session; one that is gone before it hears of it is no session."""


class _Place(NamedTuple):
    """Where the server stands."""

    requests: int
    replies: int
    pid: int
    group: int
    """The process group of the parent."""
    board: mmap.mmap
    """Tells the parent who stands by."""


class _Waiting(NamedTuple):
    """A process that will be the next session's."""

    pid: int
    orders: int

    def hand_over(self, request: object) -> bool:
        """Tell it what to run. Returns whether it was still there."""
        try:
            _send(self.orders, request)
        except BrokenPipeError:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            return False
        finally:
            os.close(self.orders)
        return True

    def dismiss(self) -> None:
        """No session comes any more."""
        os.close(self.orders)
        with contextlib.suppress(OSError):
            if not os.waitpid(self.pid, os.WNOHANG)[0]:  # else its number may be another's by now
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)


def _stand_by(place: _Place) -> _Waiting:
    """Fork the next session's process before it is asked for, while others have the time."""
    waiting, orders = os.pipe()
    pid = os.fork()
    if pid:
        os.close(waiting)
        place.board[: _PID.size] = _PID.pack(pid)
        return _Waiting(pid, orders)
    try:
        for descriptor in (place.requests, place.replies, orders):
            os.close(descriptor)
        for number in (_PARENT_DIED, *_MEANT_FOR_SESSIONS):
            signal.signal(number, signal.SIG_DFL)
        _die_with(place.pid)
        make_own()
        spec, own_session = _receive(waiting)
        os.close(waiting)
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(70)
    if not own_session:
        with contextlib.suppress(OSError):
            os.setpgid(0, place.group)  # to which the terminal belongs
    _run(spec, own_session)
    os._exit(70)


def _run(spec: SessionSpec, own_session: bool) -> None:
    """The session's process; never returns."""
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if own_session:
            os.setsid()
        from pytest_planverify.observing.session import run_session

        code = run_session(spec)
        _leave()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


def _leave() -> None:
    """Do what an interpreter does when its program is over: wait for threads, call what was registered."""
    for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(Exception):
            step()


def _wait(pid: int, *, own_session: bool, beside: int = 0) -> Exited:
    """Wait for a session; ``beside`` stands by for the next one."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:  # and no orphan of the session, which this process inherits
            break
    code = os.waitstatus_to_exitcode(status)
    left = _leaves_something(pid, own_session=own_session, beside=beside)
    return Exited(code, None, left) if code >= 0 else Exited(None, -code, left)


def _leaves_something(pid: int, *, own_session: bool, beside: int) -> bool:
    """Whether what the session started still runs when it has had a moment to end; the dead are reaped."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not children_of(os.getpid()) - {beside} and (not own_session or not _has_group(pid)):
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)


def _has_group(pid: int) -> bool:
    """Where orphans are not inherited, those that stayed in the session's process group are found by it."""
    try:
        os.killpg(pid, 0)
    except OSError:
        return False
    return True


def _become_subreaper() -> None:
    """On Linux, processes that leave a session's tree come to this one and can still be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _clear_up_after(parent: int) -> None:
    """On Linux, when the parent is killed, end everything that its run has started, then this process."""
    server = os.getpid()

    def clear_up(number: int, frame: object) -> None:
        if os.getpid() == server and os.getppid() != parent:  # and not sent by somebody else
            end_orphans(parent)
            os._exit(1)

    signal.signal(_PARENT_DIED, clear_up)
    _prctl(_PR_SET_PDEATHSIG, _PARENT_DIED)
    if os.getppid() != parent:
        os._exit(1)


_PARENT_DIED = signal.SIGUSR1
"""Sent to this process by the kernel."""


def _die_with(parent: int) -> None:
    """On Linux, end when the parent is killed: nothing goes on that nobody watches."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _send(descriptor: int, value: object) -> None:
    data = pickle.dumps(value)
    view = memoryview(_HEADER.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def _receive(descriptor: int) -> Any:
    (size,) = _HEADER.unpack(_read_exactly(descriptor, _HEADER.size))
    return pickle.loads(_read_exactly(descriptor, size))


def _read_exactly(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        data = os.read(descriptor, min(size, 1 << 20))
        if not data:
            raise EOFError
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
