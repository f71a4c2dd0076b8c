"""Atomic writing of whole files, to a temporary file that is then renamed; and broken standard streams.

:func:`write_file` is for files that users name: it follows links, streams to devices and pipes, and
accepts ``-`` for standard output. :func:`replace_file` is for our own records, in whose place code
under test may have put a link or pipe: whatever is there is replaced, nothing is followed.
:func:`create_file` never replaces, and writes directly to the target instead of a temporary file.

All take text (written as UTF-8) or bytes, create missing folders, and raise
:class:`planner.errors.FileWriteError`. A new file gets the permissions ``mode`` regardless of the umask
(``None``: by the umask); a replaced file keeps its own.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from planner.errors import FileWriteError
from planner.planfile.locks import open_flags
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

STANDARD_OUTPUT = Path("-")
OWNER_ONLY = 0o600
"""Permissions of files with captured output, which may contain secrets."""

READABLE = 0o644
_STDOUT_NAMES = frozenset(("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"))
_DESCRIPTORS = ("/dev/fd/", "/dev/std", "/proc/")
_MOST_LINKS = 40
_NAME_KEPT = 40
"""Characters of the target's name in the temporary name, which is limited to 255 bytes."""

_PERMISSIONS = 0o777


def write_file(
    path: Path, content: str | bytes, *, mode: int | None = OWNER_ONLY, durable: bool = False
) -> None:
    """Write to a path: a file is replaced, a link followed, a device or pipe streamed to."""
    with _named_errors(path):
        if _is_stdout(path):
            sys.stdout.flush()  # what was printed before comes first
            _stream(os.dup(1 if _apart is None else _apart), content)
        elif _is_streamed_to(path):
            # Non-blocking, as opening a pipe without a reader would block; it fails with ENXIO instead.
            flags = os.O_WRONLY | os.O_APPEND | open_flags("O_NONBLOCK", "O_NOCTTY")
            _stream(os.open(path, flags), content)
        else:
            _replace(Path(os.path.realpath(path)), content, mode, durable=durable)


def replace_file(
    path: Path, content: str | bytes, *, mode: int | None = OWNER_ONLY, durable: bool = False
) -> None:
    """Put a regular file exactly there, replacing even a link or pipe."""
    with _named_errors(path):
        _replace(path, content, mode, durable=durable)


def create_file(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Write a new file; an existing one is never replaced, even if it appears meanwhile."""
    with _named_errors(path):
        _make_folder(path.parent)
        _write_new(path, content, mode, durable=True)


def is_stream(path: Path) -> bool:
    """Return whether a path is standard output, a device or a pipe, which is streamed to."""
    try:
        return _is_stdout(path) or _is_streamed_to(path)
    except (OSError, ValueError):
        return False


def prepare_place(path: Path) -> None:
    """Check before a long run that ``write_file`` can write there; creates the folder.

    Raises :class:`planner.errors.FileWriteError`.
    """
    with _named_errors(path):
        if is_stream(path):
            return
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        folder = Path(os.path.realpath(path)).parent
        _make_folder(folder)
        # The folder, and not the file, has to be writable: the file is replaced by another one.
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, "not permitted")


@contextmanager
def stdout_redirected(path: Path | None) -> Generator[None]:
    """Redirect prints to standard error meanwhile, if the file is standard output.

    This includes child processes; only ``write_file`` still writes to standard output.
    """
    global _apart
    if path is None or _apart is not None or not _is_stdout(path):
        yield
        return
    # The descriptor is replaced, and not sys.stdout, so that child processes are redirected, too.
    # What is buffered until now belongs to the old one.
    sys.stdout.flush()
    _apart = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(_apart, 1)
        os.close(_apart)
        _apart = None


_apart: int | None = None
"""Descriptor of standard output while prints are redirected."""


# -- streams -------------------------------------------------------------------------------------------


def _is_stdout(path: Path) -> bool:
    # By name: a shell may have opened a regular file there, and replacing it would lose earlier output.
    return _linked(path) in _STDOUT_NAMES


def _linked(path: Path) -> str:
    """Return the path that links lead to, but the name of a descriptor as it is."""
    name = str(path)
    for _ in range(_MOST_LINKS):
        if name.startswith(_DESCRIPTORS) or not os.path.islink(name):
            break
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    return name


def _is_streamed_to(path: Path) -> bool:
    """Return whether the path is a device, pipe or socket; a missing path is none. Raises ``OSError``."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    # What is behind the path of a descriptor may be a file that somebody else has open, too.
    is_descriptor = _linked(path).startswith(_DESCRIPTORS)
    return is_descriptor or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _stream(handle: int, content: str | bytes) -> None:
    """Write everything and close."""
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)  # another program may have set it non-blocking
    with open(handle, "wb", buffering=0) as file:
        # Without a buffer, one call may write only a part, as to a pipe that is nearly full.
        rest = memoryview(_encoded(content))
        while rest:
            rest = rest[file.write(rest) or 0 :]


# -- files ---------------------------------------------------------------------------------------------


def _replace(place: Path, content: str | bytes, mode: int | None, *, durable: bool) -> None:
    with suppress(OSError):  # usually there is no file yet
        facts = place.lstat()
        if stat.S_ISREG(facts.st_mode):
            mode = facts.st_mode & _PERMISSIONS
    _make_folder(place.parent)
    # Without the target's suffix, so that no tool picks it up.
    beside = place.with_name(f".{place.name[:_NAME_KEPT]}.{os.urandom(8).hex()}.tmp")
    _write_new(beside, content, mode, durable=durable)
    try:
        os.replace(beside, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _write_new(path: Path, content: str | bytes, mode: int | None, *, durable: bool) -> None:
    """Create a file exclusively, and remove it again if it cannot be written completely."""
    # With O_EXCL no link is followed, even a dangling one that somebody puts there at this moment.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | open_flags()
    handle = os.open(path, flags, 0o666 if mode is None else OWNER_ONLY)
    try:
        with open(handle, "wb") as file:
            file.write(_encoded(content))
            file.flush()
            if durable:
                os.fsync(handle)
        if mode is not None:
            # Only now: while it is written, the file is accessible to its owner only.
            os.chmod(path, mode)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "a file has the name of the folder") from None


def _encoded(content: str | bytes) -> bytes:
    # Output of a run may contain lone surrogates.
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


# -- standard streams that are closed, or cannot be written: a full disk, a reader that has ended ------


def open_closed_streams() -> None:
    """Connect standard streams that are closed (``>&-``) to the null device.

    Otherwise Python has no object for the stream, and the next file that is opened gets its descriptor:
    what a child process prints would be written into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            # The lowest free descriptor, which is this one unless a file was opened in its place.
            if handle == number:
                # Python makes descriptors private to the process, but children need the streams.
                os.set_inheritable(handle, True)
            else:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def drop_output() -> None:
    """Connect standard output to the null device, so that what is buffered fails no more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


class OptionalOutput:
    """Standard output that is dropped from the first failure to write on; a run must not end for it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        """The failure; ``None`` as long as everything was written. A reader that ended is no failure."""

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._attempt(self._stream.flush)

    def _attempt(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.failure = error
            drop_output()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# -- errors --------------------------------------------------------------------------------------------

_CAUSES = {
    errno.ENOTDIR: "a part of its path is not a folder; remove it, or name another file",
    errno.EISDIR: "it is a folder; name a file in it",
    errno.EEXIST: "the file exists already and is not replaced; name a new file, or remove it",
    errno.EACCES: "permission denied; make it and its folder writable",
    errno.ENOSPC: "no space left on device; free space, or name a file elsewhere",
    errno.ENXIO: "nothing reads this pipe; start its reader first, or name a file",
}


@contextmanager
def _named_errors(path: Path) -> Generator[None]:
    """Convert errors to :class:`FileWriteError`, with the path and a remedy in one line."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        cause = _CAUSES.get(getattr(error, "errno", 0), f"{reason}; name another file")
        shown = "standard output" if path == STANDARD_OUTPUT else str(path)
        raise FileWriteError(one_line(f"{shown}: cannot be written: {cause}", limit=600)) from error
