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
import re
import secrets
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from planner.errors import FileWriteError
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

STANDARD_OUTPUT = Path("-")
OWNER_ONLY = 0o600
"""Permissions of files with captured output, which may contain secrets."""

READABLE = 0o644
_MOST_LINKS = 40
_NAME_KEPT = 40
"""Characters of the target's name in the temporary name, which is limited to 255 bytes."""

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self|proc/thread-self)/fd/([0-9]+)")
"""Path of an open descriptor of this process."""

_PERMISSIONS = 0o777


def write_file(
    path: Path, content: str | bytes, *, mode: int | None = OWNER_ONLY, durable: bool = False
) -> None:
    """Write to a path: a file is replaced, a link followed, a device or pipe streamed to."""
    with _named_errors(path):
        place = _place(path)
        if isinstance(place, int):
            if place == 1 and _apart is not None:
                place = _apart
            _stream(os.dup(place), _encoded(content), after={1: sys.stdout, 2: sys.stderr}.get(place))
        elif _is_streamed_to(place):
            # Non-blocking, as opening a pipe without a reader would block; it fails with ENXIO instead.
            handle = os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            _stream(handle, _encoded(content))
        else:
            _replace(place, content, mode, durable=durable)


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
    """Return whether a path is a device, pipe or open descriptor, which is streamed to."""
    try:
        place = _place(path)
    except (OSError, ValueError):
        return False
    return isinstance(place, int) or _is_streamed_to(place)


def prepare_place(path: Path) -> None:
    """Check before a long run that ``write_file`` can write there; creates the folder.

    Raises :class:`planner.errors.FileWriteError`.
    """
    with _named_errors(path):
        place = _place(path)
        if isinstance(place, int):
            os.fstat(place)
        elif place.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        elif not _is_streamed_to(place):
            _make_folder(place.parent)
            # The folder, and not the file, has to be writable: the file is replaced by another one.
            if not os.access(place.parent, os.W_OK):
                raise PermissionError(errno.EACCES, "not permitted")


@contextmanager
def stdout_redirected(path: Path | None) -> Generator[None]:
    """Redirect prints to standard error meanwhile, if the file is standard output.

    This includes child processes; only ``write_file`` still writes to standard output.
    """
    global _apart
    try:
        is_output = path is not None and _apart is None and _place(path) == 1
    except (OSError, ValueError):
        is_output = False
    if not is_output:
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


# -- where a path leads --------------------------------------------------------------------------------


def _place(path: Path) -> Path | int:
    """Return the path with links resolved, or the descriptor that it refers to.

    Links are followed one by one: ``/dev/stdout`` may end in a regular file opened by a shell, and
    replacing that would lose earlier output.
    """
    if path == STANDARD_OUTPUT:
        return 1
    for _ in range(_MOST_LINKS):
        if descriptor := _DESCRIPTOR.fullmatch(str(path)):
            return int(descriptor[1])
        if not path.is_symlink():
            return path
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, "the path is a loop of symbolic links")


def _is_streamed_to(place: Path) -> bool:
    """Return whether the path is a device, pipe or socket; a missing path is none."""
    try:
        mode = place.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


# -- streams -------------------------------------------------------------------------------------------


def _stream(handle: int, data: bytes, *, after: TextIO | None = None) -> None:
    """Write everything and close, after flushing ``after``."""
    os.set_blocking(handle, True)  # another program may have set it non-blocking
    with open(handle, "wb", buffering=0) as file:
        if after is not None:  # what was printed before comes first
            after.flush()
        # Without a buffer, one call may write only a part, as to a pipe that is nearly full.
        rest = memoryview(data)
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
    beside = place.with_name(f".{place.name[:_NAME_KEPT]}.{secrets.token_hex(8)}.tmp")
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
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
    errno.EACCES: "permission denied; change its permissions, or name another file",
    errno.EPIPE: "its reader has ended; keep it running, or name a file",
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
