"""From an audit event of the interpreter to what was reached for: a host, a program, a path elsewhere.

Every function that is called here was bound when the session began: what a test replaces for itself, such
as ``os.readlink``, is neither asked nor counted as called.
"""

from __future__ import annotations

import os
import posixpath
import stat
import sys
from os import lstat as _lstat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONNECT, PROCESS, WRITE = "connect", "process", "write"

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""The flags of ``os.open`` one of which a file has that is opened to be written."""

CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", ".planverify"}
)
"""Folders of tools; what is written there is nobody's work."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_MOST_LINKS = 40


class Reached(NamedTuple):
    """One thing that was reached for."""

    kind: str
    """``connect``, ``process`` or ``write``."""
    target: str
    """``host:port``, the program, or the path without links, as a person is told it."""
    name: str
    """The host, the program, or the path: what a grant is compared with."""
    port: int | None = None
    is_lookup: bool = False
    """Only the address of the host was asked for."""
    before: tuple[int, ...] | None = None
    """What the file was like, where only the time after tells whether it was the one that was written."""


Reader = "Callable[[tuple[Any, ...]], Sequence[Reached]]"


def readers(is_outside: Callable[[str], bool]) -> dict[str, Callable[[tuple[Any, ...]], Sequence[Reached]]]:
    """By the name of the event, what tells from its arguments what was reached for.

    ``is_outside`` says of a path without links whether it lies outside what anybody may write.
    """
    return {**_connections(), **_processes(), **_writes(is_outside), "ctypes.dlsym": _symbol}


C_FUNCTIONS = {
    **dict.fromkeys(("connect", "sendto", "sendmsg", "sendmmsg", "getaddrinfo", "gethostbyname"), CONNECT),
    **dict.fromkeys(("system", "popen", "execl", "execle", "execlp", "execv", "execve", "execvp"), PROCESS),
    **dict.fromkeys(("execvpe", "fexecve", "execveat", "posix_spawn", "posix_spawnp"), PROCESS),
}
"""Functions of the C library that are looked up in order to be called past the interpreter."""


def _symbol(args: tuple[Any, ...]) -> Sequence[Reached]:
    """Where a function of C is called to, nobody sees: that it is asked for has to do."""
    name: Any = args[1] if len(args) > 1 else None
    text: Any = name.decode("ascii", "replace") if isinstance(name, bytes) else name
    kind = C_FUNCTIONS.get(text) if isinstance(text, str) else None
    return () if kind is None else (Reached(kind, f"{text} of C, by ctypes", f"ctypes:{text}"),)


# -- connections -----------------------------------------------------------------------------------


def _connections() -> dict[str, Callable[[tuple[Any, ...]], Sequence[Reached]]]:
    import _socket

    own_name, is_numeric = _socket.gethostname, is_address

    def connect(args: tuple[Any, ...]) -> Sequence[Reached]:
        address = args[1]
        if not isinstance(address, tuple) or len(address) < 2 or isinstance(address[0], int):  # pyright: ignore
            return ()  # a path of AF_UNIX, or a family that leaves no machine
        return _host(address[0], address[1], lookup=False)  # pyright: ignore

    def look_up(args: tuple[Any, ...]) -> Sequence[Reached]:
        host: Any = args[0]
        if isinstance(host, tuple):
            host = cast("tuple[Any, ...]", host)[0]
        port = args[1] if len(args) > 1 else None
        found = _host(host, port, lookup=True)
        return () if not found or is_numeric(found[0].name) or found[0].name == own_name() else found

    return {
        "socket.connect": connect,
        "socket.sendto": connect,
        "socket.sendmsg": connect,
        "socket.getaddrinfo": look_up,
        "socket.gethostbyname": look_up,
        "socket.gethostbyaddr": look_up,
        "socket.getnameinfo": look_up,
    }


def _host(host: object, port: object, *, lookup: bool) -> Sequence[Reached]:
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str) or is_loopback(host):
        return ()
    number = int(port) if isinstance(port, int) or (isinstance(port, str) and port.isdigit()) else None
    shown = f"[{host}]" if ":" in host else str(host)
    target = shown if port is None or port == 0 else f"{shown}:{port}"
    return (Reached(CONNECT, target, str(host).lower().rstrip("."), number, lookup),)


def is_address(host: str) -> bool:
    """Whether it is the number of a machine, whose name need not be looked up."""
    return ":" in host or not host.strip("0123456789.")


def is_loopback(host: str) -> bool:
    """Whether the name or number is this machine's own, which no policy denies."""
    import _socket

    name = host.lower().rstrip(".")
    if name in ("", "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "0.0.0.0", "0"):
        return True
    if name.endswith(".localhost"):
        return True
    if ":" in name:
        try:
            packed = _socket.inet_pton(_socket.AF_INET6, name.partition("%")[0])
        except OSError:
            return False
        return (packed[:15] == bytes(15) and packed[15] < 2) or packed[:13] == _MAPPED_LOOPBACK
    return name.startswith("127.") and is_address(name)


_MAPPED_LOOPBACK = bytes(10) + b"\xff\xff\x7f"


# -- programs --------------------------------------------------------------------------------------


def _processes() -> dict[str, Callable[[tuple[Any, ...]], Sequence[Reached]]]:
    def popen(args: tuple[Any, ...]) -> Sequence[Reached]:
        return _program(args[0], args[1])

    def path_first(args: tuple[Any, ...]) -> Sequence[Reached]:
        return _program(args[0], args[1])

    def mode_first(args: tuple[Any, ...]) -> Sequence[Reached]:
        return _program(args[1], args[2])

    def vector(args: tuple[Any, ...]) -> Sequence[Reached]:
        return _program(None, args[0])

    def shell(args: tuple[Any, ...]) -> Sequence[Reached]:
        return _program("/bin/sh", ("sh", "-c", args[0]))

    return {
        "subprocess.Popen": popen,
        "os.exec": path_first,
        "os.posix_spawn": path_first,
        "os.spawn": mode_first,
        "pty.spawn": vector,
        "os.system": shell,
    }


def _program(program: Any, argv: Any) -> Sequence[Reached]:
    words: tuple[Any, ...] = (argv,) if isinstance(argv, (str, bytes, os.PathLike)) else tuple(argv)  # pyright: ignore
    name = os.fsdecode(program if program is not None else words[0])
    target = name
    if name.rpartition("/")[2] in _SHELLS and len(words) > 2 and os.fsdecode(words[1]) == "-c":
        said = os.fsdecode(words[2]).split()
        target = f"{name} -c {said[0][:60]}" if said else name
    return (Reached(PROCESS, target, name),)


# -- writes ----------------------------------------------------------------------------------------


def _writes(is_outside: Callable[[str], bool]) -> dict[str, Callable[[tuple[Any, ...]], Sequence[Reached]]]:
    from os import fspath, lstat

    full_path, started_process, in_held_folders = path_resolver(), _multiprocessing(), _held(is_outside)

    def exists(path: str) -> bool:
        try:
            lstat(path)
        except (OSError, ValueError):
            return False
        return True

    def written(
        path: Any, folder: Any = -1, *, follow: bool = True, there: bool | None = None
    ) -> Sequence[Reached]:
        """``there`` says that only what is there, or is not, can be changed by it."""
        if isinstance(path, int) or path is None:
            return ()  # a file that is open already
        found = full_path(fspath(path), folder, follow)
        if found is None or not is_outside(found) or (there is not None and exists(found) is not there):
            return ()
        return (Reached(WRITE, found, found),)

    def opened(args: tuple[Any, ...]) -> Sequence[Reached]:  # path, mode, flags
        if not args[2] & WRITING:
            return ()
        if isinstance(args[0], int):
            return started_process()
        found = written(args[0])
        return (*found, *in_held_folders(args[0])) if args[1] is None and not found else found

    def entry(args: tuple[Any, ...]) -> Sequence[Reached]:  # path, dir_fd
        return written(args[0], args[-1], follow=False, there=True)

    def made(args: tuple[Any, ...]) -> Sequence[Reached]:  # path, mode, dir_fd
        return written(args[0], args[-1], follow=False, there=False)

    def changed(args: tuple[Any, ...]) -> Sequence[Reached]:  # path, …, dir_fd
        return written(args[0], args[-1], there=True)

    def first(args: tuple[Any, ...]) -> Sequence[Reached]:
        return written(args[0], there=True)

    def moved(args: tuple[Any, ...]) -> Sequence[Reached]:  # source, target, and the folder of each
        return (
            *written(args[0], args[2], follow=False, there=True),
            *written(args[1], args[3], follow=False),
        )

    def linked(args: tuple[Any, ...]) -> Sequence[Reached]:
        return written(args[1], args[-1], follow=False)

    def database(args: tuple[Any, ...]) -> Sequence[Reached]:
        name = os.fsdecode(args[0])
        if name.startswith("file:"):
            if "mode=memory" in name or "mode=ro" in name:
                return ()
            name = name[5:].partition("?")[0]
            name = name[2:] if name.startswith("///") else name
        return written(name) if name and name != ":memory:" else ()

    return {
        "open": opened,
        "os.rename": moved,
        "os.remove": entry,
        "os.rmdir": entry,
        "os.mkdir": made,
        "os.link": linked,
        "os.symlink": linked,
        "os.chmod": changed,
        "os.chown": changed,
        "os.utime": changed,
        "os.truncate": first,
        "os.setxattr": first,
        "os.removexattr": first,
        "os.chflags": first,
        "sqlite3.connect": database,
    }


def _multiprocessing() -> Callable[[], Sequence[Reached]]:
    """Tells of the processes that ``multiprocessing`` starts by ``spawn`` and ``forkserver``.

    It starts them past ``subprocess`` and its event; but then it opens the pipe through which each is told
    what to do, without which it does nothing.
    """
    frame_of, interpreter = sys._getframe, sys.executable
    folder = os.path.join(os.path.dirname(os.__file__), "multiprocessing")
    launchers = frozenset(
        os.path.join(folder, name) for name in ("popen_spawn_posix.py", "popen_forkserver.py")
    )

    def started() -> Sequence[Reached]:
        if frame_of(3).f_code.co_filename not in launchers:
            return ()
        return (Reached(PROCESS, f"{interpreter}, by multiprocessing", interpreter),)

    return started


def _held(is_outside: Callable[[str], bool]) -> Callable[[Any], Sequence[Reached]]:
    """Tells where ``os.open`` may write, of which no event says whether it was given a ``dir_fd``.

    That are the folders outside that are held open.
    """
    from os import fsdecode, fstat, listdir, readlink

    def in_held_folders(path: Any) -> Sequence[Reached]:
        name = str(fsdecode(path))
        if name.startswith("/"):
            return ()
        found: list[Reached] = []
        try:
            descriptors = listdir("/proc/self/fd")
        except OSError:
            return ()
        for each in descriptors:
            try:
                if not stat.S_ISDIR(fstat(int(each)).st_mode):
                    continue
                place = f"{readlink(f'/proc/self/fd/{each}').rstrip('/')}/{name}"
            except (OSError, ValueError):
                continue
            if is_outside(place):
                found.append(Reached(WRITE, place, place, before=stamp_of(place)))
        return found

    return in_held_folders


def stamp_of(path: str) -> tuple[int, ...]:
    """What tells whether a file was written since; of one that is not there nothing."""
    try:
        facts = _lstat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def path_resolver() -> Callable[[Any, Any, bool], str | None]:
    """What makes a path absolute and free of links, even while a test has replaced functions of ``os``."""
    from os import fsdecode, getcwd, readlink

    def resolve(path: Any, folder: Any, follow: bool) -> str | None:
        name = fsdecode(path)
        name = "".join((name,))  # a plain string, whatever class it was
        if not name.startswith("/"):
            try:
                base = readlink(f"/proc/self/fd/{folder}") if _is_folder(folder) else getcwd()
            except OSError:
                return None
            name = f"{base}/{name}"
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

    return resolve


def _is_folder(descriptor: object) -> bool:
    return isinstance(descriptor, int) and descriptor >= 0


def outside_of(folders: Sequence[str]) -> Callable[[str], bool]:
    """Says of a path without links whether it lies in none of the folders, in no device and in no cache."""
    kept = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    exact = frozenset(folder.rstrip("/") for folder in folders)
    starts = (*kept, "/dev/", "/proc/", *((sys.pycache_prefix + "/",) if sys.pycache_prefix else ()))

    def is_outside(path: str) -> bool:
        if path.startswith(starts) or path in exact:
            return False
        parts = path.split("/")
        return not (CACHES.intersection(parts) or parts[-1].startswith(".coverage"))

    return is_outside


def temporary_folders() -> list[str]:
    """Where temporary files belong: the folders that the environment names, and the usual ones."""
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    return [folder for folder in (*named, "/tmp", "/var/tmp", "/usr/tmp") if posixpath.isabs(folder)]
