"""Sandbox policy: interpretation of audit events, and what the plans grant.

:func:`readers` translates the arguments of an audit event into accesses (:class:`Reached`): connections,
started programs, and writes. :func:`grants_of` decides whether the policies of all plans grant an access.
The audit hook in :mod:`pytest_planverify.observe.audit` calls both inside a worker, while tests run. All
functions of ``os`` used here are therefore bound when the module is imported, before any test: replacements
by monkeypatches are neither called nor counted as accesses.
"""

from __future__ import annotations

import _socket
import os
import posixpath
import re
import shutil
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import fsdecode, fspath, get_exec_path, getcwd, lstat, readlink
from sys import _getframe as frame_of  # pyright: ignore[reportPrivateUsage]
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONNECT, PROCESS, WRITE = "connect", "process", "write"
RECORD, DENY = "record", "deny"

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Flags of ``os.open`` that open a file for writing."""

CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", ".planverify"}
)
"""Cache folders of tools; writing there is not restricted."""

C_FUNCTIONS = {
    **dict.fromkeys(("connect", "sendto", "sendmsg", "sendmmsg", "getaddrinfo", "gethostbyname"), CONNECT),
    **dict.fromkeys(("system", "popen", "execl", "execle", "execlp", "execv", "execve", "execvp"), PROCESS),
    **dict.fromkeys(("execvpe", "fexecve", "execveat", "posix_spawn", "posix_spawnp"), PROCESS),
}
"""C functions by kind of access. Called by ctypes they raise no audit event; only their lookup does."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_is_port = re.compile(r"[0-9]{1,5}").fullmatch
_MOST_LINKS = 40  # as many as Linux follows
# A connection to the unspecified address reaches this machine.
_LOCAL_NAMES = ("", "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "0.0.0.0", "0")
_MAPPED_LOOPBACK = bytes(10) + b"\xff\xff\x7f"
# Modules of multiprocessing that start processes without an audit event of their own.
_LAUNCHERS = frozenset(
    os.path.join(os.path.dirname(os.__file__), "multiprocessing", name)
    for name in ("popen_spawn_posix.py", "popen_forkserver.py")
)
_interpreter, _own_name, _look_up, _which = (
    sys.executable,
    _socket.gethostname,
    _socket.getaddrinfo,
    shutil.which,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Rules of one plan by kind of access: ``record`` (grant all), ``deny`` (none), or granted names."""

    root: str
    """Folder that relative paths in grants are below."""
    network: str | tuple[str, ...] = "record"
    processes: str | tuple[str, ...] = "record"
    writes: str | tuple[str, ...] = "record"


class Reached(NamedTuple):
    """One access that code attempted."""

    kind: str
    """``connect``, ``process`` or ``write``."""
    target: str
    """Text for people: ``host:port``, program, or resolved path."""
    name: str
    """Host, program or path that is compared with grants."""
    port: int | None = None
    is_lookup: bool = False
    """Whether a host name was only resolved, not connected to."""


if TYPE_CHECKING:
    Reader = Callable[[tuple[Any, ...]], Sequence[Reached]]


def readers(is_outside: Callable[[str], bool]) -> dict[str, Reader]:
    """Return by event name a function that translates the event's arguments into accesses.

    ``is_outside`` returns whether a resolved path lies outside of the folders that any test may write to;
    other writes are no accesses.
    """
    return {
        **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), _connected),
        **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), _looked_up),
        **dict.fromkeys(("socket.gethostbyaddr", "socket.getnameinfo"), _looked_up),
        **dict.fromkeys(("subprocess.Popen", "os.exec", "os.posix_spawn"), lambda a: _program(a[0], a[1])),
        "os.spawn": lambda a: _program(a[1], a[2]),
        "pty.spawn": lambda a: _program(None, a[0]),
        "os.system": lambda a: _program("/bin/sh", ("sh", "-c", a[0])),
        "ctypes.dlsym": _c_function,
        **_writes(is_outside),
    }


def _c_function(args: tuple[Any, ...]) -> Sequence[Reached]:
    """Interpret the lookup of a C function as access."""
    # The call itself raises no event.
    name: Any = args[1] if len(args) > 1 else None
    text: Any = name.decode("ascii", "replace") if isinstance(name, bytes) else name
    kind = C_FUNCTIONS.get(text) if isinstance(text, str) else None
    return () if kind is None else (Reached(kind, f"{text} of C, by ctypes", f"ctypes:{text}"),)


# -- connections -----------------------------------------------------------------------------------


def _connected(args: tuple[Any, ...]) -> Sequence[Reached]:
    address = args[1]
    if not isinstance(address, tuple) or len(address) < 2 or isinstance(address[0], int):  # pyright: ignore
        return ()  # AF_UNIX, or another family that stays on this machine
    return _host(address[0], address[1], lookup=False)  # pyright: ignore


def _looked_up(args: tuple[Any, ...]) -> Sequence[Reached]:
    """Interpret a name lookup; addresses and this machine's own name need no network."""
    host: Any = args[0]
    if isinstance(host, tuple):
        host = cast("tuple[Any, ...]", host)[0]
    found = _host(host, args[1] if len(args) > 1 else None, lookup=True)
    return () if not found or _is_address(found[0].name) or found[0].name == _own_name() else found


def _host(host: object, port: object, *, lookup: bool) -> Sequence[Reached]:
    """Return the access to a host; none for this machine and for values that are no host."""
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str) or is_loopback(host):
        return ()
    number = int(port) if isinstance(port, int) or (isinstance(port, str) and _is_port(port)) else None
    shown = f"[{host}]" if ":" in host else str(host)
    target = shown if port is None or port == 0 else f"{shown}:{port}"
    return (Reached(CONNECT, target, str(host).lower().rstrip("."), number, lookup),)


def _is_address(host: str) -> bool:
    return ":" in host or not host.strip("0123456789.")


def is_loopback(host: str) -> bool:
    """Return whether a name or address is this machine's own; connections to it are always granted."""
    name = host.lower().rstrip(".")
    if name in _LOCAL_NAMES or name.endswith(".localhost"):
        return True
    if ":" in name:
        try:
            packed = _socket.inet_pton(_socket.AF_INET6, name.partition("%")[0])
        except OSError:
            return False
        # ``::``, ``::1``, and IPv4 loopback addresses mapped to IPv6.
        return (packed[:15] == bytes(15) and packed[15] < 2) or packed[:13] == _MAPPED_LOOPBACK
    return name.startswith("127.") and _is_address(name)


# -- programs --------------------------------------------------------------------------------------


def _program(program: Any, argv: Any) -> Sequence[Reached]:
    """Return the start of a program; for ``sh -c`` people also see the first word of the command."""
    words: tuple[Any, ...] = (argv,) if isinstance(argv, (str, bytes, os.PathLike)) else tuple(argv)  # pyright: ignore
    name = fsdecode(program if program is not None else words[0])
    target = name
    if name.rpartition("/")[2] in _SHELLS and len(words) > 2 and fsdecode(words[1]) == "-c":
        command_words = fsdecode(words[2]).split()
        target = f"{name} -c {command_words[0][:60]}" if command_words else name
    return (Reached(PROCESS, target, name),)


# -- writes ----------------------------------------------------------------------------------------


def _writes(is_outside: Callable[[str], bool]) -> dict[str, Reader]:
    """Return the readers of all events that write to the file system."""

    def written(
        path: Any, folder: Any = -1, *, follow: bool = True, there: bool | None = None
    ) -> Sequence[Reached]:
        """Interpret a write to a path.

        ``folder`` and ``follow`` are those of :func:`resolve_path`. ``there`` is whether the path must
        exist for the call to have an effect: with ``True`` a missing path is no write (removal), with
        ``False`` an existing one is none (creation of a folder).
        """
        if isinstance(path, int) or path is None:
            return ()  # a descriptor, not a path
        found = resolve_path(fspath(path), folder, follow)
        if found is None or not is_outside(found) or (there is not None and _is_there(found) is not there):
            return ()
        return (Reached(WRITE, found, found),)

    def opened(args: tuple[Any, ...]) -> Sequence[Reached]:  # path, mode, flags
        if not args[2] & WRITING:
            return ()
        if isinstance(args[0], int):
            # The start methods spawn and forkserver of multiprocessing raise no event of subprocess, but
            # they open the pipe that carries the child's instructions.
            if frame_of(2).f_code.co_filename not in _LAUNCHERS:
                return ()
            return (Reached(PROCESS, f"{_interpreter}, by multiprocessing", _interpreter),)
        return written(args[0])

    def moved(args: tuple[Any, ...]) -> Sequence[Reached]:  # source, target, and the folder of each
        source = written(args[0], args[2], follow=False, there=True)
        return (*source, *written(args[1], args[3], follow=False))

    def database(args: tuple[Any, ...]) -> Sequence[Reached]:
        # SQLite opens its file in C, without an event of open().
        name = fsdecode(args[0])
        if name.startswith("file:"):
            if "mode=memory" in name or "mode=ro" in name:
                return ()
            name = name[5:].partition("?")[0]
            name = name[2:] if name.startswith("///") else name
        return written(name) if name and name != ":memory:" else ()

    return {
        "open": opened,
        "os.rename": moved,
        # The folder often exists already: os.makedirs(path, exist_ok=True)
        "os.mkdir": lambda a: written(a[0], a[-1], follow=False, there=False),
        **dict.fromkeys(
            ("os.remove", "os.rmdir"), lambda a: written(a[0], a[-1], follow=False, there=True)
        ),
        **dict.fromkeys(("os.link", "os.symlink"), lambda a: written(a[1], a[-1], follow=False)),
        **dict.fromkeys(("os.chmod", "os.chown", "os.utime"), lambda a: written(a[0], a[-1], there=True)),
        **dict.fromkeys(("os.truncate", "os.chflags"), lambda a: written(a[0], there=True)),
        **dict.fromkeys(("os.setxattr", "os.removexattr"), lambda a: written(a[0], there=True)),
        "sqlite3.connect": database,
    }


def _is_there(path: str) -> bool:
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def resolve_path(path: Any, folder: Any = -1, follow: bool = True) -> str | None:
    """Return the absolute path without symbolic links.

    ``folder`` is the directory descriptor that a relative path starts from; below 0 it is the working
    directory. ``follow`` also resolves a link in the last component. Returns ``None`` if the descriptor is
    not open.
    """
    name = fsdecode(path)
    name = "".join((name,))  # a plain str even for instances of subclasses
    if not name.startswith("/"):
        try:
            is_open = isinstance(folder, int) and folder >= 0
            name = f"{readlink(f'/proc/self/fd/{folder}') if is_open else getcwd()}/{name}"
        except OSError:
            return None
    rest = name.split("/")[::-1]
    done, links = "", 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        here = f"{done}/{part}"
        link = None
        if (rest or follow) and links < _MOST_LINKS:
            try:
                link = readlink(here)
            except (OSError, ValueError):
                link = None
        if link is None:
            done = here
            continue
        links += 1
        if link.startswith("/"):
            done = ""
        rest += link.split("/")[::-1]
    return done or "/"


def outside_of(folders: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate: whether a resolved path lies outside of ``folders``, devices and caches.

    Bytecode caches and data files of coverage.py count as caches.
    """
    exact = frozenset(folder.rstrip("/") for folder in folders)
    starts = (*(f"{folder}/" for folder in exact), "/dev/", "/proc/")
    starts += (sys.pycache_prefix + "/",) if sys.pycache_prefix else ()

    def is_outside(path: str) -> bool:
        if path.startswith(starts) or path in exact:
            return False
        parts = path.split("/")
        return not (CACHES.intersection(parts) or parts[-1].startswith(".coverage"))

    return is_outside


def temporary_folders() -> list[str]:
    """Return the folders for temporary files: those of the environment, and the usual ones."""
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    return [folder for folder in (*named, "/tmp", "/var/tmp", "/usr/tmp") if posixpath.isabs(folder)]


# -- what the plans grant ----------------------------------------------------------------------------


_POLICIES = {CONNECT: "network", PROCESS: "processes", WRITE: "writes"}
"""Fields of :class:`Sandbox` by kind of access."""


def grants_of(sandboxes: Sequence[Sandbox]) -> Callable[[Reached], bool]:
    """Return a predicate: whether every policy that restricts this kind of access grants it."""
    makers = {CONNECT: _hosts, PROCESS: _programs, WRITE: _folders}
    grants: dict[str, list[Callable[[Reached], bool]]] = {}
    for kind, field in _POLICIES.items():
        policies = dict.fromkeys((getattr(each, field), each.root) for each in sandboxes)
        restricting = [(policy, root) for policy, root in policies if policy != RECORD]
        grants[kind] = [
            makers[kind](() if policy == DENY else policy, root) for policy, root in restricting
        ]
    return lambda reached: all(grant(reached) for grant in grants[reached.kind])


def denies_anything(sandboxes: Sequence[Sandbox]) -> bool:
    """Return whether any policy restricts an access instead of only recording it."""
    return any(getattr(each, field) != RECORD for each in sandboxes for field in _POLICIES.values())


def _hosts(named: Sequence[str], root: str) -> Callable[[Reached], bool]:
    """Return a predicate: whether the named hosts, given as ``HOST[:PORT]`` or patterns, grant an access.

    The predicate may look up the granted names.
    """
    hosts = tuple(_host_and_port(text) for text in named)
    names = {pattern: port for pattern, port in hosts if not _is_pattern(pattern)}
    """Names whose addresses are granted: listed ones, and those whose lookup matched a pattern."""
    ports: dict[str, set[int | None]] = {}
    """Granted ports by address; ``None`` is any port."""

    def is_granted(reached: Reached) -> bool:
        for pattern, port in hosts:
            if fnmatchcase(reached.name, pattern) and (
                reached.port is None or port in (None, reached.port)
            ):
                if reached.is_lookup:
                    names.setdefault(reached.name, port)
                return True
        if reached.is_lookup or not hosts:
            return False
        # A connection is to an address, a grant usually to a name: the granted names are resolved.
        if reached.name not in ports:
            for name, port in tuple(names.items()):
                try:
                    found = _look_up(name, None)
                except (OSError, UnicodeError):  # unknown, or no name at all
                    continue
                for entry in found:
                    ports.setdefault(str(entry[4][0]), set()).add(port)
        return bool(ports.get(reached.name, set()) & {None, reached.port})

    return is_granted


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Split ``HOST:PORT``; a bare IPv6 address, which has colons, has no port."""
    text = text.strip().lower()
    name, separator, port = text.rpartition(":")
    if not separator or not _is_port(port) or (":" in name and not name.endswith("]")):
        name, port = text, None
    return name.strip("[]").rstrip("."), None if port is None else int(port)


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _programs(named: Sequence[str], root: str) -> Callable[[Reached], bool]:
    """Return a predicate: whether named programs, given as names, paths or patterns, grant an access."""
    names = frozenset(name for name in named if "/" not in name)
    paths = tuple(_absolute(name, root) for name in named if "/" in name)
    pythons = names & {"python", "python3"}

    def is_granted(reached: Reached) -> bool:
        name = reached.name
        if "/" not in name:
            return name in names
        if name == _interpreter and pythons:
            return True
        given = name if name.startswith("/") else f"{root}/{name}"
        if ".." in given.split("/"):  # by "..", a path below a granted folder leads out of it again
            given = resolve_path(given) or given
        if _matches(given, paths):
            return True
        base = name.rpartition("/")[2]
        # A path is granted by a name only if PATH leads to the same file: a program of that name inside the
        # project is another one.
        meant = _which(base) if base in names else None
        if meant is None or resolve_path(meant) == resolve_path(given):
            return meant is not None
        # ``os.execvp`` tries every folder of PATH, and starts nothing where the file is missing.
        folders = (each.rstrip("/") for each in get_exec_path())
        return name.rpartition("/")[0] in folders and not _is_there(name)

    return is_granted


def _folders(named: Sequence[str], root: str) -> Callable[[Reached], bool]:
    """Return a predicate: whether named paths or patterns, or folders above, grant a write."""
    paths = tuple(_absolute(text, root) for text in named)
    real = tuple(path if _is_pattern(path) else resolve_path(path) or path for path in paths)
    return lambda reached: _matches(reached.name, real)


def _matches(path: str, granted: Sequence[str]) -> bool:
    """Return whether a path is granted itself, matches a pattern, or is below a granted folder."""
    return any(path.startswith(f"{each.rstrip('/')}/") or fnmatchcase(path, each) for each in granted) or (
        path in granted
    )


def _absolute(text: str, root: str) -> str:
    path = os.path.expanduser(text)
    return os.path.normpath(path if path.startswith("/") else f"{root}/{path}")
