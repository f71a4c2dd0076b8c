"""Processes that fork workers, taken from the parent before the parent imports anything of its own.

The parent forks one *base*. For each group of commands that start alike the base forks a *server*, which
prepares pytest as far as no project takes part (see :mod:`pytest_planverify.observe.worker`) and serves
one or several *lanes*: a lane runs one worker at a time, waits for it, and inherits what the worker leaves
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
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_planverify.observe.spec import Start, WorkerSpec

_HEADER = struct.Struct("!I")
_MOST_LANES = 64
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
_PRELOAD_FOR_PLUGINS = {"_hypothesis_pytestplugin": "hypothesis.internal.observability"}
"""Plugins that import the bulk of their library at the end of every session, and what they import."""


class ForkServerDied(Exception):
    """A lane or the base is gone."""


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

    def __init__(self, rewriting: Any = None) -> None:
        """``rewriting`` is pytest's import hook, through which a session would import its plugins."""
        sys.stdout.flush()
        sys.stderr.flush()
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self._socket = ours
        self.lane_pids: set[int] = set()
        """The processes that fork workers, and those that have forked them."""
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                ours.close()
                _serve_base(theirs, parent, rewriting)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        theirs.close()

    def lanes(self, start: Start, level: int, count: int) -> list[Lane]:
        """Let a server be made for a group. Return its lanes, which get ready meanwhile.

        Raises :class:`ForkServerDied`.
        """
        pairs = [socket.socketpair() for _ in range(min(count, _MOST_LANES))]
        try:
            _send(self._socket, (start, level), [theirs.fileno() for _, theirs in pairs])
        except OSError as error:
            raise ForkServerDied(str(error)) from error
        finally:
            for _, theirs in pairs:
                theirs.close()
        return [Lane(ours, self.lane_pids) for ours, _ in pairs]

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


class Lane:
    """The parent's handle on one process that forks workers one after the other."""

    token: str | None = None
    """Its workers need no mark: whatever leaves them comes to the lane."""

    def __init__(self, connection: socket.socket, pids: set[int]) -> None:
        """``pids`` takes the processes that stand behind the lane, once they are known."""
        self._socket = connection
        self._pids = pids
        self.pid = 0

    def is_ready(self, seconds: float | None = None) -> bool:
        """Wait until workers can be forked. Raises :class:`CannotFork` and :class:`ForkServerDied`."""
        if not self.pid:
            if seconds is not None and not select.select([self._socket], [], [], seconds)[0]:
                return False
            said = self._receive()
            if said[0] != "ready":
                self.close()
                raise CannotFork(*said[1:])
            self.pid = said[1]
            self._pids.update(said[1:])
        return True

    def start(self, spec: WorkerSpec, *, own_session: bool) -> int:
        """Fork a worker. Return its process id. Raises :class:`ForkServerDied` and :class:`CannotFork`."""
        self.is_ready()
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGCONT)  # a test may have stopped it
        try:
            _send(self._socket, (spec, own_session))
        except OSError as error:
            raise ForkServerDied(str(error)) from error
        return int(self._receive())

    def poll(self, seconds: float) -> Exited | None:
        """Return how the worker ended, or ``None`` if it still runs after so many seconds."""
        ready, _, _ = select.select([self._socket], [], [], max(seconds, 0))
        if not ready:
            return None
        exited: Exited = self._receive()
        return exited

    def close(self) -> None:
        """Let the process end."""
        self._socket.close()

    def _receive(self) -> Any:
        try:
            return _receive(self._socket)[0]
        except (EOFError, OSError) as error:
            raise ForkServerDied("the process that forks workers is gone") from error


# -- in the base --------------------------------------------------------------------------------------


def _serve_base(requests: socket.socket, parent: int, rewriting: Any) -> None:
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
    _warm_up(rewriting)
    gc.collect()
    gc.freeze()
    while True:
        _reap()
        try:
            request, descriptors = _receive(requests)
        except EOFError:  # seen before the kernel tells that the parent has died
            end_orphans(parent)
            return
        if request is None:
            _wait_for_servers()
            if children_of(os.getpid()):
                end_orphans(parent)
            return
        connections = [socket.socket(fileno=number) for number in descriptors]
        pid = os.fork()
        if pid == 0:
            requests.close()
            signal.signal(_PARENT_DIED, signal.SIG_DFL)
            start, level = request
            _serve_group(start, level, connections, group)
        for each in connections:
            each.close()


def _wait_for_servers() -> None:
    """Reap the servers, which end when the parent lets go of their lanes, so that their time is counted."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.001)


def _warm_up(rewriting: Any) -> None:
    """Import what every session imports, and find out what each asks for; nothing of a project is loaded.

    ``rewriting`` is pytest's import hook, through which a session would import its plugins.
    """
    for name in _PRELOAD:
        importlib.import_module(name)
    if rewriting is not None:
        # A session warns of a plugin's module that was imported by any other loader than pytest's own.
        sys.meta_path.insert(0, rewriting)
        for plugin, name in _PRELOAD_FOR_PLUGINS.items():
            if plugin in sys.modules:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        sys.meta_path.remove(rewriting)
    if "pytest_metadata.plugin" in sys.modules:  # it asks at the start of every session, by another program
        platform.platform()
    from pytest_planverify.guards.tampering.judges import judges_at_start

    judges_at_start().compare("session")


# -- in a server of a group ---------------------------------------------------------------------------


def _serve_group(start: Start, level: int, connections: Sequence[socket.socket], group: int) -> None:
    """Prepare pytest and serve the lanes; never returns, neither in the server nor in its workers."""
    from pytest_planverify.observe.worker import CannotServe, Level, leave_interpreter, serve_group

    server = os.getpid()
    code = 70
    try:
        code = serve_group(start, Level(level), lambda: _serve_lanes(connections, group))
        leave_interpreter()
    except CannotServe as failure:
        for each in connections:
            with contextlib.suppress(OSError):
                _send(each, ("unfit", int(failure.level), str(failure), failure.module))
    except BaseException:
        traceback.print_exc()
        if os.getpid() == server:
            for each in connections:
                with contextlib.suppress(OSError):
                    _send(each, ("unfit", 0, traceback.format_exc(limit=-3), None))
    finally:
        os._exit(code & 0xFF)


def _serve_lanes(connections: Sequence[socket.socket], group: int) -> WorkerSpec:
    """Serve each connection in a process of its own. Return in workers only."""
    gc.collect()
    gc.freeze()
    mine, server = connections[0], os.getpid()
    if len(connections) > 1:
        for each in connections:
            if os.fork() == 0:
                mine = each
                break
        else:
            for each in connections:
                each.close()
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.waitpid(-1, 0)
            os._exit(0)
        for each in connections:
            if each is not mine:
                each.close()
    _become_subreaper()
    return _serve_lane(mine, group, server)


def _serve_lane(connection: socket.socket, group: int, server: int) -> WorkerSpec:
    """Fork a worker for each spec; one that stands by is forked while another works."""
    if not _tell(connection, ("ready", os.getpid(), server)):
        os._exit(0)
    waiting = _stand_by(connection, group)
    while isinstance(waiting, _Standby):
        _reap()
        try:
            request, _ = _receive(connection)
        except (EOFError, OSError):
            break
        for _ in range(_MOST_FORKS):  # one that stands by may end with what another worker has left
            if waiting.hand_over(request):
                break
            waiting = _stand_by(connection, group)
            if not isinstance(waiting, _Standby):
                return waiting
        pid = waiting.pid
        if not _tell(connection, pid):
            break
        waiting = _stand_by(connection, group)
        if isinstance(waiting, _Standby) and not _tell(
            connection, _wait(pid, own_session=request[1], beside=waiting.pid)
        ):
            break
    if isinstance(waiting, _Standby):
        waiting.dismiss()
        os._exit(0)
    return waiting


_MOST_FORKS = 10
"""So often a process is forked for one worker; one that is gone before it hears of it is no worker."""


class _Standby(NamedTuple):
    """A process that will be the next worker."""

    pid: int
    orders: int

    def hand_over(self, request: object) -> bool:
        """Tell it what to run. Return whether it was still there."""
        data = pickle.dumps(request)
        try:
            os.write(self.orders, _HEADER.pack(len(data)) + data)
        except BrokenPipeError:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            return False
        finally:
            os.close(self.orders)
        return True

    def dismiss(self) -> None:
        """End it: no worker is asked for any more."""
        os.close(self.orders)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _stand_by(connection: socket.socket, group: int) -> _Standby | WorkerSpec:
    """Fork a process that waits to be a worker. Return its handle; in itself, the spec it is given."""
    from pytest_planverify.guards.tampering.loose_equality import skip_frozen_classes

    lane = os.getpid()
    orders, ours = os.pipe()
    pid = os.fork()
    if pid:
        os.close(orders)
        return _Standby(pid, ours)
    try:
        connection.close()
        os.close(ours)
        for number in _MEANT_FOR_WORKERS:
            if number is not None:
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _die_with(lane)
        skip_frozen_classes()
        with os.fdopen(orders, "rb") as stream:
            (size,) = _HEADER.unpack(stream.read(_HEADER.size) or os._exit(0))
            spec, own_session = pickle.loads(stream.read(size))
    except BaseException:
        traceback.print_exc()
        os._exit(70)
    with contextlib.suppress(OSError):
        if own_session:
            os.setsid()
        else:
            os.setpgid(0, group)  # to which the terminal belongs
    return spec


def _wait(pid: int, *, own_session: bool, beside: int = 0) -> Exited:
    """Wait for a worker; ``beside`` stands by for the next one."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:  # and no orphan of the worker, which this process inherits
            break
    code = os.waitstatus_to_exitcode(status)
    left = _leaves_something(pid, own_session=own_session, beside=beside)
    return Exited(code, None, left) if code >= 0 else Exited(None, -code, left)


def _leaves_something(pid: int, *, own_session: bool, beside: int) -> bool:
    """Return whether what the worker started still runs when it has had a moment to end; reap the dead."""
    deadline = time.monotonic() + _LEAVING_SECONDS
    while True:
        _reap()
        if not children_of(os.getpid()) - {beside} and (not own_session or not _has_group(pid)):
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(0.005)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _has_group(pid: int) -> bool:
    """Where orphans are not inherited, those that stayed in the worker's process group are found by it."""
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
    """On Linux, end when the lane is killed: nothing goes on that nobody watches."""
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


def _send(connection: socket.socket, value: object, descriptors: Sequence[int] = ()) -> None:
    data = pickle.dumps(value)
    if descriptors:
        socket.send_fds(connection, [_HEADER.pack(len(data))], list(descriptors))
        connection.sendall(data)
    else:
        connection.sendall(_HEADER.pack(len(data)) + data)


def _receive(connection: socket.socket) -> tuple[Any, list[int]]:
    header, descriptors, _, _ = socket.recv_fds(connection, _HEADER.size, _MOST_LANES)
    while len(header) < _HEADER.size:
        more = connection.recv(_HEADER.size - len(header))
        if not more:
            raise EOFError
        header += more
    (size,) = _HEADER.unpack(header)
    parts: list[bytes] = []
    while size:
        data = connection.recv(min(size, 1 << 20))
        if not data:
            raise EOFError
        parts.append(data)
        size -= len(data)
    return pickle.loads(b"".join(parts)), descriptors


# -- orphans: what a run had started, when the parent was killed and can do nothing any more ----------


def end_orphans(parent: int) -> None:
    """Kill all descendants of this process, and what is left of the commands that the dead parent ran."""
    # Not before: what the base imports is seen by the workers.
    from pytest_planverify.checks.processes import end_descendants, end_processes_of

    for _ in range(3):  # a process that is just being started is seen late
        end_descendants(os.getpid())
        end_processes_of(parent)
        time.sleep(0.02)


def children_of(pid: int) -> set[int]:
    """Return the processes that a process waits for, those among them not that are dead."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return set(map(int, file.read().split()))
    except OSError:  # no /proc, or a kernel without that list
        return set()
