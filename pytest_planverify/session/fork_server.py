"""The chain of processes that forks workers: base, servers and keepers, and the parent's handles on them.

The parent forks one *base*, before it imports the modules that only the parent needs. For each group of
commands with an equal :class:`~pytest_planverify.observe.spec.Start` the base forks a *server*, which
prepares pytest up to the last step in which no project code takes part (see
:mod:`pytest_planverify.observe.worker`). For each worker the server forks a *keeper*, which forks the
worker, waits for it, and inherits the processes that the worker leaves running.

A worker therefore starts with exactly the modules that pytest and the installed plugins have imported. A
project that is itself a library used by this plugin is tested in its own copy, not in the parent's.

Requests and answers are pickled messages over socket pairs (section "messages"). Each request carries one
end of a new connection, so that every server and every keeper talks to the parent on a socket of its own.
"""

from __future__ import annotations

import contextlib
import functools
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
from os import _exit as exit_process  # bound early: a test may replace it for good
from typing import TYPE_CHECKING, Any

from pytest_planverify.checks.intermediate_process import (
    PARENT_DIED,
    become_subreaper,
    clean_up_after,
    die_with,
    end_orphans,
)
from pytest_planverify.observe.spec import HARNESS_EXIT, CannotServe, Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_planverify.observe.spec import Start, WorkerSpec

_HEADER = struct.Struct("!I")
_ANSWER_SECONDS = 60.0
"""How long a server may take to get ready, and a keeper to start its worker, before it counts as dead."""
_CLOSE_SECONDS = 2.0
"""How long an idle base may take to exit after it was told to, before it is killed."""
_EXIT_SECONDS = 0.2
"""How long servers, and processes that a worker started, may take to exit by themselves."""
_PRELOAD = (
    "pytest_planverify.observe.worker",
    "pytest_planverify.observe.evidence",
    "email.feedparser",
    "email.parser",
    "pdb",
    "tomllib",
)
"""Modules that every session imports anyway; the base imports them once for all workers."""


class ForkServerDied(Exception):
    """The base, a server or a keeper died or cannot be reached."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The end of a worker's process: its exit code, or the number of the signal that killed it.

    Both are ``None`` if nobody could observe the end.
    """

    code: int | None
    signal: int | None
    left_running: bool = field(default=False, compare=False)
    """Whether processes that the worker started may still be running."""

    @classmethod
    def of(cls, status: int, *, left_running: bool) -> Exited:
        """Return the end for an exit status, which is negative for a signal, as in :mod:`subprocess`."""
        return cls(status if status >= 0 else None, -status if status < 0 else None, left_running)


class ForkServer:
    """The parent's handle on the base, which is forked when the handle is created."""

    def __init__(self) -> None:
        # Buffered output would be inherited by the base and its children, and could be written again there.
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None if the shell has closed the stream
            stream.flush()
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._socket = ours
        self.pids: set[int] = set()
        """Process ids of servers and keepers: processes of this plugin, not of the project under test."""
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            # Left only by os._exit(): an exception must not unwind the parent's stack in this process.
            try:
                ours.close()
                request = _serve_base(theirs, parent)
                if request is not None:  # this process is no longer the base but a server that it forked
                    _serve_group(*request)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                exit_process(code)
        theirs.close()

    def server(self, start: Start, level: Level) -> Server:
        """Request a server for a group. Return at once; the server prepares itself in the meantime.

        Raises :class:`ForkServerDied`.
        """
        return Server(_send_with_connection(self._socket, (start, level)), self.pids)

    def close(self) -> None:
        """Stop the base with all processes that it has started, and reap it."""
        with contextlib.suppress(OSError):
            # Without this message the base takes the closed socket for the death of the parent.
            send(self._socket, None)
        self._socket.close()
        with contextlib.suppress(ChildProcessError):  # reaped already, where SIGCHLD is ignored
            deadline = time.monotonic() + _CLOSE_SECONDS
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
        """Create a handle; the ids of the server and its keepers are added to ``pids`` once known."""
        self.pids = pids
        self._socket = connection
        self._is_ready = False
        self._lock = threading.Lock()

    def wait_until_ready(self) -> None:
        """Wait until the server can fork workers, for a minute at most.

        Raises :class:`CannotServe`, after which the server is closed, and :class:`ForkServerDied`.
        """
        with self._lock:
            if not self._is_ready:
                answer = _receive_answer(self._socket)
                if isinstance(answer, CannotServe):
                    self.close()
                    raise answer
                self._is_ready = True
                self.pids.add(answer)

    def fork(self, spec: WorkerSpec) -> Worker:
        """Fork a worker and return its handle. Raises :class:`ForkServerDied`."""
        with self._lock:  # the bytes of two requests must not mix
            connection = _send_with_connection(self._socket, spec)
        return Worker(connection, self.pids)

    def close(self) -> None:
        """Close the connection, which makes the server exit; workers that it has forked continue."""
        self._socket.close()

    # A pool drops its server while other threads may still use it; a socket by itself would warn.
    __del__ = close


class Worker:
    """The parent's handle on one worker, forked or cold, and on the keeper that waits for it."""

    def __init__(self, connection: socket.socket, pids: set[int]) -> None:
        """Wait until the keeper at the other end of ``connection`` has started the worker.

        The keeper's id stays in ``pids`` until :meth:`close`. Raises :class:`ForkServerDied`.
        """
        self._socket = connection
        self._pids = pids
        self.keeper: int
        """Process id of the keeper: all processes that the worker started are its descendants."""
        self.pid: int
        self.token: str | None
        """Token in the environment of all its processes, to find those that left the process tree.

        ``None`` if the keeper inherits these.
        """
        self.keeper, self.pid, self.token = _receive_answer(connection)
        pids.add(self.keeper)

    def poll(self, seconds: float) -> Exited | None:
        """Return how the worker ended, or ``None`` if it still runs after ``seconds``.

        Raises :class:`ForkServerDied`.
        """
        if not select.select([self._socket], [], [], max(seconds, 0))[0]:
            return None
        exited: Exited = _receive_answer(self._socket)
        return exited

    def close(self) -> None:
        """Let the keeper exit; to be called when no process of the worker is left."""
        self._socket.close()
        self._pids.discard(self.keeper)


def _send_with_connection(connection: socket.socket, request: object) -> socket.socket:
    """Send a request with one end of a new connection. Return the other end.

    Raises :class:`ForkServerDied`.
    """
    ours, theirs = socket.socketpair()
    ours.settimeout(_ANSWER_SECONDS)
    try:
        send(connection, request, theirs.fileno())
    except OSError as error:
        ours.close()
        raise ForkServerDied(str(error)) from error
    finally:
        theirs.close()
    return ours


def _receive_answer(connection: socket.socket) -> Any:
    """Receive one message. Raises :class:`ForkServerDied` if the other side is gone or does not answer."""
    try:
        return receive(connection)
    except (EOFError, OSError) as error:
        connection.close()
        raise ForkServerDied("the process that starts workers is gone or does not answer") from error


# -- in the base --------------------------------------------------------------------------------------


def _serve_base(requests: socket.socket, parent: int) -> tuple[Start, Level, socket.socket, int] | None:
    """Run the base: fork a server for each request.

    Return in each forked server the arguments of :func:`_serve_group`; return ``None`` in the base when it
    is no longer needed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends workers in order
    # A test may send it to its parent or process group; servers are stopped by closing their connection.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # If SIGCHLD was inherited as ignored, the kernel would discard the exit statuses of children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    group = os.getpgrp()
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a signal to the parent's whole group must not kill the base, which cleans up
    clean_up_after(parent)
    become_subreaper()
    _warm_up()
    # Frozen objects are not visited by collections in children, which would copy their memory pages.
    gc.collect()
    gc.freeze()
    while True:
        _reap()  # servers that have ended since the last request
        try:
            request, connection = _receive_request(requests)
        except EOFError:  # the parent died, and its socket was closed before the kernel's signal arrived
            end_orphans(parent)
        if request is None:  # the parent calls ForkServer.close()
            # Servers exit when their connections are closed. The processor time of a child counts as its
            # parent's only when the child has been reaped.
            deadline = time.monotonic() + _EXIT_SECONDS
            while has_children := _reap():
                if time.monotonic() > deadline:
                    break
                time.sleep(0.001)
            if has_children:
                end_orphans(parent)
            return None
        assert connection is not None
        if os.fork() == 0:
            requests.close()
            signal.signal(PARENT_DIED, signal.SIG_DFL)  # only the base cleans up after the parent
            return (*request, connection, group)
        connection.close()


def _warm_up() -> None:
    """Import modules and fill caches that every session needs; nothing of a project is loaded."""
    for name in _PRELOAD:
        importlib.import_module(name)
    if "pytest_metadata.plugin" in sys.modules:
        platform.platform()  # cached; the plugin calls it in every session, and it may run another program
    from pytest_planverify.guards.tamper_observer import judges_at_start

    judges_at_start().compare()


# -- in a server of a group ---------------------------------------------------------------------------


def _serve_group(start: Start, level: Level, connection: socket.socket, group: int) -> None:
    """Prepare pytest up to ``level`` and fork workers; returns neither in the server nor in its workers.

    ``group`` is the parent's process group. A worker leaves ``_fork_workers`` with its spec and runs the
    rest of ``pytest.main`` from there.
    """
    import pytest

    from pytest_planverify.observe.worker import leave_interpreter, session_of_group

    server = os.getpid()
    code = HARNESS_EXIT
    try:
        with session_of_group(start, level, lambda: _fork_workers(connection, group)) as session:
            session.status = int(pytest.main(session.args, plugins=[session]))
        code = session.status
        leave_interpreter()
    except CannotServe as failure:
        _notify_parent(connection, failure)
    except BaseException:
        if os.getpid() == server:  # for any error: the parent then starts workers at another level, or cold
            _notify_parent(connection, CannotServe(Level.IMPORTED, traceback.format_exc(limit=-3)))
        else:
            traceback.print_exc()
    finally:
        exit_process(code & 0xFF)


def _fork_workers(requests: socket.socket, group: int) -> WorkerSpec:
    """Fork a keeper for each request, which forks the worker. Return in workers only, with their specs."""
    gc.collect()  # as in the base: now for the objects of the prepared session
    gc.freeze()
    _notify_parent(requests, os.getpid())
    while True:
        _reap()
        try:
            spec, connection = _receive_request(requests)
        except (EOFError, OSError):
            exit_process(0)
        assert connection is not None
        if os.fork() == 0:
            requests.close()
            keep_worker(connection, group, own_session=spec.log is not None)
            _reveal_frozen_objects_on_demand()
            return spec
        connection.close()


def _reveal_frozen_objects_on_demand() -> None:
    """Replace the functions by which code in the worker looks for objects: they find the server's, too.

    To unfreeze these at once would cost each worker the time of a collection of all of them.
    """
    # The replacements stay, as a test may count objects twice, or have replaced one of them itself.
    frozen = [True]

    def revealing(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> list[Any]:
            if frozen:
                frozen.clear()
                gc.unfreeze()
            return [found for found in function(*args, **kwargs) if found is not args]

        return call

    gc.get_objects, gc.get_referrers = revealing(gc.get_objects), revealing(gc.get_referrers)


def keep_worker(connection: socket.socket, group: int, *, own_session: bool) -> None:
    """Fork one worker, wait for it, and inherit what it leaves running. Return in the worker only.

    With ``own_session`` the worker leads a session of its own; else it joins the parent's process group
    ``group``, which owns the terminal.
    """
    become_subreaper()
    keeper = os.getpid()
    worker = os.fork()
    if worker:
        if _notify_parent(connection, (keeper, worker, None)) and _notify_parent(
            connection, _wait_for_worker(worker, own_session=own_session)
        ):
            # Until the parent calls Worker.close(): what the worker leaves running can be attributed to it
            # only as long as it descends from the keeper.
            with contextlib.suppress(OSError):
                connection.recv(1)
        exit_process(0)
    connection.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(PARENT_DIED, signal.SIG_DFL)  # only the base, or a cold worker's keeper, handles it
    die_with(keeper)
    with contextlib.suppress(OSError):
        if own_session:  # a test that signals its own group hits neither the keeper nor the parent
            os.setsid()
        else:
            os.setpgid(0, group)


def _wait_for_worker(pid: int, *, own_session: bool) -> Exited:
    """Wait for a worker to end. Return how it ended."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:  # else it is an orphan of the worker, which this subreaper has inherited
            break
    # Helpers that end when the worker has, such as the resource tracker of multiprocessing, get time to.
    left_running = _has_left_processes(pid, own_session=own_session)
    return Exited.of(os.waitstatus_to_exitcode(status), left_running=left_running)


def _has_left_processes(pid: int, *, own_session: bool) -> bool:
    """Return whether processes of the worker still run after a short grace time; reap dead ones."""
    deadline = time.monotonic() + _EXIT_SECONDS
    while _reap() or (own_session and _has_group(pid)):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.005)
    return False


def _reap() -> bool:
    """Reap every child that has ended, without waiting. Return whether others are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _has_group(pid: int) -> bool:
    """Return whether the worker's process group has members: finds orphans without a subreaper."""
    try:
        os.killpg(pid, 0)
    except OSError:
        return False
    return True


# -- messages -----------------------------------------------------------------------------------------


def _notify_parent(connection: socket.socket, value: object) -> bool:
    """Send the parent a message. Return ``False`` if it no longer listens, as after an interrupt."""
    try:
        send(connection, value)
    except OSError:
        return False
    return True


def send(connection: socket.socket, value: object, descriptor: int | None = None) -> None:
    """Send a length header, together with a file descriptor if there is one, and the pickled value."""
    data = pickle.dumps(value)
    header = _HEADER.pack(len(data))
    if descriptor is None:
        connection.sendall(header)
    else:
        socket.send_fds(connection, [header], [descriptor])
    connection.sendall(data)


def receive(connection: socket.socket, header: bytes = b"") -> Any:
    """Return the value of the next message, of whose header a part was read. Raises ``EOFError``."""
    header += _read(connection, _HEADER.size - len(header))
    (size,) = _HEADER.unpack(header)
    return pickle.loads(_read(connection, size))


def _receive_request(connection: socket.socket) -> tuple[Any, socket.socket | None]:
    """Return the next request and the connection that came with it. Raises ``EOFError`` at the end."""
    # The descriptor travels with the first byte of the header, never with the value.
    header, descriptors, _, _ = socket.recv_fds(connection, _HEADER.size, 1)
    value = receive(connection, header)
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
