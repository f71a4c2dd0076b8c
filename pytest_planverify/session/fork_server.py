"""Processes that fork workers, taken from the parent before the parent imports anything of its own.

The parent forks one *base*. For each group of commands that start alike the base forks a *server*, which
prepares pytest as far as no project takes part (see :mod:`pytest_planverify.observe.worker`). For each
worker the server forks a *keeper*, which forks the worker, waits for it, and inherits what it leaves
running. So a worker starts with exactly the modules that pytest and the installed plugins have imported,
and a project that is itself a library which this plugin uses is tested in its own copy.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import platform
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.observe.spec import Start, WorkerSpec

_HEADER = struct.Struct("!I")
_CLOSING_SECONDS = 2.0
"""How long an idle base may take to notice that it is no longer needed."""
_LEAVING_SECONDS = 0.2
"""How long what a worker started may take to end after it by itself."""
_MEANT_FOR_WORKERS = (getattr(signal, "SIGTERM", None),)
"""Signals that a test may send to whoever started it; servers have other ways to be told to end."""

_PRELOAD = (
    "pytest_planverify.observe.worker",
    "pytest_planverify.observe.evidence",
    "email.feedparser",
    "email.parser",
    "pdb",
    "tomllib",
)
"""Modules that every session imports anyhow."""


class ForkServerDied(Exception):
    """A server, a keeper or the base is gone."""


class CannotFork(Exception):
    """A server cannot go as far as it was asked to."""

    def __init__(self, level: int, reason: str, module: str | None) -> None:
        super().__init__(reason)
        self.level = level
        self.module = module
        """A third-party module that must not be imported ahead."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The end of a worker's process: an exit code, or the number of a signal."""

    code: int | None
    signal: int | None
    left_running: bool = field(default=False, compare=False)
    """Processes that it started are still there."""


class ForkServer:
    """The parent's handle on the base."""

    def __init__(self) -> None:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # none where the shell has closed it
            stream.flush()
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._socket = ours
        self.pids: set[int] = set()
        """The servers, and the keepers of workers: processes of ours that are not the project's."""
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                ours.close()
                request = _serve_base(theirs, parent)
                if request is not None:
                    _serve_group(*request)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        theirs.close()

    def server(self, start: Start, level: int) -> Server:
        """Let a server be made for a group; it gets ready meanwhile. Raises :class:`ForkServerDied`."""
        return Server(_hand_over(self._socket, (start, level)), self.pids)

    def close(self) -> None:
        """End the base and reap it, together with all that it has started."""
        with contextlib.suppress(OSError):
            _send(self._socket, None)  # that it is over; an end without it is a parent that was killed
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            deadline = time.monotonic() + _CLOSING_SECONDS
            while not os.waitpid(self.pid, os.WNOHANG)[0]:
                if time.monotonic() > deadline:
                    from pytest_planverify.checks.processes import end_process_tree

                    end_process_tree(self.pid)
                    os.waitpid(self.pid, 0)
                    break
                time.sleep(0.002)


class Server:
    """The parent's handle on a process that forks the workers of one group."""

    def __init__(self, connection: socket.socket, pids: set[int]) -> None:
        """``pids`` takes the processes of ours, once they are known."""
        self.pids = pids
        self._socket = connection
        self._is_ready = False
        self._lock = threading.Lock()

    def is_ready(self, seconds: float | None = None) -> bool:
        """Wait until workers can be forked. Raises :class:`CannotFork` and :class:`ForkServerDied`."""
        with self._lock:
            if not self._is_ready:
                if seconds is not None and not select.select([self._socket], [], [], seconds)[0]:
                    return False
                said = _answer(self._socket)
                if said[0] != "ready":
                    self.close()
                    raise CannotFork(*said[1:])
                self._is_ready = True
                self.pids.add(said[1])
        return True

    def fork(self, spec: WorkerSpec, *, own_session: bool) -> socket.socket:
        """Let a worker be forked. Return the connection with its keeper."""
        with self._lock:
            return _hand_over(self._socket, (spec, own_session))

    def close(self) -> None:
        """Let the process end; workers that it has forked go on."""
        self._socket.close()


class ForkedWorker:
    """The parent's handle on one forked worker, and on the keeper that has forked it."""

    token: str | None = None
    """It needs no mark: whatever leaves it comes to its keeper."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket: socket.socket | None = None
        self.pid = 0
        """The keeper's: the process below which all is found that the worker started."""

    def start(self, spec: WorkerSpec, *, own_session: bool) -> int:
        """Fork it. Return its process id. Raises :class:`ForkServerDied`."""
        connection = self._socket = self._server.fork(spec, own_session=own_session)
        self.pid, worker = _answer(connection)
        self._server.pids.add(self.pid)
        return int(worker)

    def poll(self, seconds: float) -> Exited | None:
        """Return how it ended, or ``None`` if it still runs. Raises :class:`ForkServerDied`."""
        assert self._socket is not None
        if not select.select([self._socket], [], [], max(seconds, 0))[0]:
            return None
        exited: Exited = _answer(self._socket)
        return exited

    def close(self) -> None:
        """Let the keeper end, which has had to wait until nothing is left of its worker."""
        if self._socket is not None:
            self._socket.close()
        self._server.pids.discard(self.pid)


def _hand_over(connection: socket.socket, request: object) -> socket.socket:
    """Send a request with one end of a new connection. Return the other end."""
    ours, theirs = socket.socketpair()
    try:
        _send(connection, request, theirs.fileno())
    except OSError as error:
        ours.close()
        raise ForkServerDied(str(error)) from error
    finally:
        theirs.close()
    return ours


def _answer(connection: socket.socket) -> Any:
    try:
        return _receive(connection)[0]
    except (EOFError, OSError) as error:
        raise ForkServerDied("the process that forks workers is gone") from error


# -- in the base --------------------------------------------------------------------------------------


def _serve_base(requests: socket.socket, parent: int) -> tuple[Start, int, socket.socket, int] | None:
    """Fork a server for each request. Return in servers with what they are to serve, at the end without."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _MEANT_FOR_WORKERS:
        if number is not None:
            signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    group = os.getpgrp()
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a signal that kills the parent's whole group must leave somebody to clear up
    _clear_up_after(parent)
    _become_subreaper()
    _warm_up()
    gc.collect()
    gc.freeze()
    while True:
        _reap()
        try:
            request, connection = _receive(requests)
        except EOFError:  # seen before the kernel tells that the parent has died
            end_orphans(parent)
            return None
        if request is None:
            _wait_for_servers()
            if children_of(os.getpid()):
                end_orphans(parent)
            return None
        assert connection is not None
        if os.fork() == 0:
            requests.close()
            signal.signal(_PARENT_DIED, signal.SIG_DFL)
            return (*request, connection, group)
        connection.close()


def _wait_for_servers() -> None:
    """Reap the servers, which end when their connections are closed, so that their time is counted."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.001)


def _warm_up() -> None:
    """Import what every session imports, and ask what each asks for; nothing of a project is loaded."""
    for name in _PRELOAD:
        importlib.import_module(name)
    if "pytest_metadata.plugin" in sys.modules:  # it asks at the start of every session, by another program
        platform.platform()
    from pytest_planverify.guards.tamper_observer import judges_at_start

    judges_at_start().compare("session")


# -- in a server of a group ---------------------------------------------------------------------------


def _serve_group(start: Start, level: int, connection: socket.socket, group: int) -> None:
    """Prepare pytest and fork workers; never returns, neither in the server nor in its workers."""
    import pytest

    from pytest_planverify.observe.worker import CannotServe, Level, leave_interpreter, session_of_group

    server = os.getpid()
    code = 70
    try:
        with session_of_group(start, Level(level), lambda: _fork_workers(connection, group)) as session:
            session.status = int(pytest.main(session.args, plugins=[session.steps]))
        code = session.status
        leave_interpreter()
    except CannotServe as failure:
        _tell(connection, ("unfit", int(failure.level), str(failure), failure.module))
    except BaseException:
        if os.getpid() == server:  # whatever it is, workers can be started in another way
            _tell(connection, ("unfit", 0, traceback.format_exc(limit=-3), None))
        else:
            traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


def _fork_workers(requests: socket.socket, group: int) -> WorkerSpec:
    """Fork a keeper for each request, which forks the worker. Return in workers only."""
    gc.collect()
    gc.freeze()
    _tell(requests, ("ready", os.getpid()))
    while True:
        _reap()
        try:
            (spec, own_session), connection = _receive(requests)
        except (EOFError, OSError):
            os._exit(0)
        assert connection is not None
        if os.fork() == 0:
            requests.close()
            _keep_worker(connection, group, own_session=own_session)
            return spec
        connection.close()


def _keep_worker(connection: socket.socket, group: int, *, own_session: bool) -> None:
    """Fork one worker, wait for it, and inherit what it leaves running. Return in the worker only.

    The keeper stays until the parent has ended what is left: nobody else would know whose it is.
    """
    _become_subreaper()
    keeper = os.getpid()
    worker = os.fork()
    if worker:
        if _tell(connection, (keeper, worker)) and _tell(
            connection, _wait(worker, own_session=own_session)
        ):
            with contextlib.suppress(OSError):
                connection.recv(1)
        os._exit(0)
    connection.close()
    for number in _MEANT_FOR_WORKERS:
        if number is not None:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _die_with(keeper)
    with contextlib.suppress(OSError):
        if own_session:
            os.setsid()
        else:
            os.setpgid(0, group)  # to which the terminal belongs


def _wait(pid: int, *, own_session: bool) -> Exited:
    """Wait for a worker."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:  # and no orphan of the worker, which this process inherits
            break
    code = os.waitstatus_to_exitcode(status)
    left = _leaves_something(pid, own_session=own_session)
    return Exited(code, None, left) if code >= 0 else Exited(None, -code, left)


def _leaves_something(pid: int, *, own_session: bool) -> bool:
    """Return whether what the worker started still runs when it has had a moment to end; reap the dead."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    while True:
        _reap()
        if not children_of(os.getpid()) and (not own_session or not _has_group(pid)):
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(0.005)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _has_group(pid: int) -> bool:
    """Find orphans by the worker's process group where they are not inherited."""
    try:
        os.killpg(pid, 0)
    except OSError:
        return False
    return True


# -- Linux --------------------------------------------------------------------------------------------


def _become_subreaper() -> None:
    """On Linux, processes that leave a worker's tree come to this one and can still be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _clear_up_after(parent: int) -> None:
    """On Linux, when the parent is killed, end everything that its run has started, then this process."""
    base = os.getpid()

    def clear_up(number: int, frame: object) -> None:
        if os.getpid() == base and os.getppid() != parent:  # and not sent by somebody else
            end_orphans(parent)
            # What is done at an exit, as by coverage.py, may wait for a lock that this signal interrupted.
            os.kill(base, signal.SIGKILL)

    signal.signal(_PARENT_DIED, clear_up)
    _prctl(_PR_SET_PDEATHSIG, _PARENT_DIED)
    if os.getppid() != parent:
        os._exit(1)


_PARENT_DIED = getattr(signal, "SIGUSR1", signal.SIGINT)
"""Sent to the base by the kernel."""


def _die_with(parent: int) -> None:
    """On Linux, end when the keeper is killed: nothing goes on that nobody watches."""
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


# -- messages -----------------------------------------------------------------------------------------


def _tell(connection: socket.socket, value: object) -> bool:
    """Send the parent a message. Return whether it still listens: an interrupted run does not."""
    try:
        _send(connection, value)
    except OSError:
        return False
    return True


def _send(connection: socket.socket, value: object, descriptor: int | None = None) -> None:
    data = pickle.dumps(value)
    descriptors = [] if descriptor is None else [descriptor]
    socket.send_fds(connection, [_HEADER.pack(len(data))], descriptors)
    connection.sendall(data)


def _receive(connection: socket.socket) -> tuple[Any, socket.socket | None]:
    """Return a message, and the connection that came with it."""
    header, descriptors, _, _ = socket.recv_fds(connection, _HEADER.size, 1)
    header += _read(connection, _HEADER.size - len(header))
    (size,) = _HEADER.unpack(header)
    value = pickle.loads(_read(connection, size))
    return value, socket.socket(fileno=descriptors[0]) if descriptors else None


def _read(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        data = connection.recv(min(size, 1 << 20))
        if not data:
            raise EOFError
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


# -- orphans: what a run had started, when the parent was killed and can do nothing any more ----------
# The base ends it, and imports nothing for it: what it imports is seen by the workers.

_ORPHAN_SECONDS = 5.0
_TOKEN = b"PLANVERIFY_PROCESS_TOKEN="
"""Stands, with the number of the parent behind it, in the environment of every command that it runs."""


def end_orphans(parent: int) -> None:
    """Kill all descendants of this process, and what is left of the commands that the dead parent ran."""
    deadline = time.monotonic() + _ORPHAN_SECONDS
    quiet = 0
    while time.monotonic() < deadline and quiet < 3:  # a process that is just being started is seen late
        living = dict(_living())
        found = _below({os.getpid()}, living) | _of_commands(parent, living)
        quiet = 0 if found else quiet + 1
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def children_of(pid: int) -> set[int]:
    """Return the living processes that a process waits for; none where there is no ``/proc``."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:  # a kernel without that list
        return {each for each, (parent, _) in _living() if parent == pid}


def _living() -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield every process that is no zombie, with its parent and its session."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
            except (OSError, ValueError):  # gone by now
                continue
            if state not in b"ZX":
                yield int(name), (int(parent), int(session))


def _below(roots: set[int], living: dict[int, tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    pending = set(roots)
    while pending:
        pending = {pid for pid, (parent, _) in living.items() if parent in pending} - found - roots
        found |= pending
    return found


def _of_commands(parent: int, living: dict[int, tuple[int, int]]) -> set[int]:
    marked = {pid for pid in living if _is_marked(pid, parent)}
    # The leader of a command's session is the process that waits for it, which bears no mark.
    leaders = marked | {living[pid][0] for pid in marked}
    sessions = {living[pid][1] for pid in marked if living[pid][1] in leaders}
    together = {pid for pid, (_, session) in living.items() if session in sessions}
    return (marked | together | _below(marked | together, living)) - {os.getpid()}


def _is_marked(pid: int, parent: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(each.startswith(b"%s%d-" % (_TOKEN, parent)) for each in file.read().split(b"\0"))
    except OSError:
        return False
