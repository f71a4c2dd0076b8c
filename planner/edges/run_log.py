"""The log of a run as a file of JSON lines, to which several processes may append and which any of them may
be killed over.

What the lines hold stands in :mod:`planner.edges.log_lines`. A writer holds the file from before it reads
what others have written until its own line is on the disk: no line is lost, and the chain never forks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from planner.edges.log_lines import GENESIS, decode, encode
from planner.errors import LogError
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from planner.edges.log_lines import LogLine
    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event

LOG_VERSION = 1
"""Of the format; the first line tells it."""

MAX_LINE_BYTES = 256 * 1024 * 1024
"""More than any line that can be written: the first holds the plan, at most 64 MiB, and the past."""

WAIT_SECONDS = 30.0
"""How long a writer waits for another."""

_CHUNK = 1 << 20
_PAUSE_SECONDS = 0.005
_LONGEST_MESSAGE = 1_500
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_BUSY = (errno.EAGAIN, errno.EACCES)


class Entry(NamedTuple):
    """A line of the log."""

    n: int
    event: Event
    text: str
    """As it is written, without its newline."""
    digest: str


class Taken(NamedTuple):
    """An event that the engine has taken in, and is to be written."""

    event: Event
    actions: tuple[Action, ...]
    before: State | None
    after: State


class RunLog:
    """One log, at the place up to which it was read. Opened by :meth:`append_to` or :meth:`read`."""

    def __init__(self, path: Path, handle: int, *, writable: bool) -> None:
        self.path = path
        self.count = 0
        """Of the lines that were read or written: the number of the next."""
        self.remarks: list[str] = []
        """What a person should know about the file, each told once."""
        self._handle = handle
        self._writable = writable
        self._digest = GENESIS
        self._end = 0
        """Of the last of these lines, in bytes from the beginning."""

    @property
    def name(self) -> str:
        """How messages call it."""
        return str(self.path)

    @classmethod
    def append_to(cls, path: Path) -> RunLog:
        """Open a log to append to it; it is made, for nobody else to read, where it is not there.

        Raises :class:`planner.errors.LogError`.
        """
        return cls._open(
            path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), "name another file with --log"
        )

    @classmethod
    def read(cls, path: Path) -> RunLog:
        """Open a log that is there, to read it only. Raises :class:`planner.errors.LogError`."""
        return cls._open(path, os.O_RDONLY, "name the log of a run")

    @classmethod
    def _open(cls, path: Path, flags: int, remedy: str) -> RunLog:
        try:
            handle = os.open(path, flags | _FLAGS, 0o600)
        except (OSError, ValueError) as error:
            raise _error(path, _why_not_opened(path, error), remedy) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise _error(path, "this is no regular file", remedy)
        return cls(path, handle, writable=bool(flags & os.O_RDWR))

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    @contextlib.contextmanager
    def hold(self) -> Generator[None]:
        """Keep other writers out. Raises :class:`planner.errors.LogError` where that cannot be had."""
        self._lock()
        try:
            self._refuse_another_file()
            yield
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def news(self) -> Iterator[Entry]:
        """Each line that was written since, its place in the chain checked; a writer asks while it holds.

        A last line that a kill has left torn is no line: a writer cuts it off. Raises
        :class:`planner.errors.LogError` for any other damage, at the line in question.
        """
        for raw in self._whole_lines():
            text = self._decoded(raw)
            line = self._checked(text)
            self.count += 1
            self._digest = line.digest
            self._end += len(raw) + 1
            yield Entry(line.n, line.event, text, line.digest)

    def append(self, taken: Taken) -> Entry:
        """Write the next line and see it on the disk; asked of one that holds, and has read all news.

        Raises :class:`planner.errors.LogError` where it cannot be written; then the log is as it was.
        """
        text, digest = encode(self.count, taken.event, taken.actions, self._digest)
        data = text.encode("ascii") + b"\n"
        try:
            self._write(data)
        except OSError as error:
            self._cut_back()
            problem = f"the event cannot be written ({error.strerror}) and was not taken in"
            raise _error(self.path, problem, "make room, then tell it again") from None
        except BaseException:
            self._cut_back()
            raise
        self.count += 1
        self._digest = digest
        self._end += len(data)
        return Entry(self.count - 1, taken.event, text, digest)

    def _lock(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _BUSY:
                    remedy = "name a file on another file system with --log"
                    raise _error(
                        self.path, f"the log cannot be locked ({error.strerror})", remedy
                    ) from None
                if time.monotonic() > deadline:
                    problem = f"another process has held the log for {WAIT_SECONDS:g} s"
                    raise _error(self.path, problem, "end that process, then go on") from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def _refuse_another_file(self) -> None:
        """What was acknowledged must not be written into a file that nobody finds any more."""
        here = os.fstat(self._handle)
        try:
            there = os.stat(self.path)
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            raise _error(
                self.path, "the log was removed or replaced under a run", "put it back, or begin a new run"
            )
        if here.st_size < self._end:
            problem = f"the log has lost lines under a run: {self.count} were read"
            raise _error(self.path, problem, "restore it from the store or a copy")

    def _whole_lines(self) -> Iterator[bytes]:
        """The lines that end with a newline, then a look at what comes after them."""
        at, held = self._end, bytearray()
        searched = 0
        while chunk := self._read(at):
            at += len(chunk)
            held += chunk
            start = 0
            while (end := held.find(b"\n", max(start, searched))) >= 0:
                yield bytes(held[start:end])
                start = end + 1
            del held[:start]
            searched = len(held)
            if len(held) > MAX_LINE_BYTES:
                self._refuse(f"line {self.count} is longer than any line of a log")
        if held:
            yield from self._torn(bytes(held))

    def _read(self, at: int) -> bytes:
        try:
            return os.pread(self._handle, _CHUNK, at)
        except OSError as error:
            problem = f"the log cannot be read ({error.strerror})"
            raise _error(self.path, problem, "see to the disk") from None

    def _torn(self, tail: bytes) -> Iterator[bytes]:
        """What stands after the last newline: the beginning of a line, or all of it but its end."""
        where = f"line {self.count}"
        try:
            _, length = json.JSONDecoder().raw_decode(tail.decode("ascii"))
        except (ValueError, RecursionError):
            if not self._may_be_torn(tail):
                self._refuse(f"{where} is no line of a log")
            if self._writable:
                self._truncate()
            does = "was cut off" if self._writable else "is left out"
            self._remark(f"{where} was torn by a kill, and {does}: its event was not taken in")
            return
        if length != len(tail):
            self._refuse(f"{where} does not end where it should")
        if self._writable:
            os.pwrite(self._handle, b"\n", self._end + len(tail))
        yield tail

    def _may_be_torn(self, tail: bytes) -> bool:
        """Whether it begins as the next line does: nothing else is cut off, whatever file was named."""
        start = f'{{"n":{self.count},"event":{{"event":"'.encode()
        written = tail.rstrip(b"\0")  # what a crash of the machine has left of a block
        return written.startswith(start) or start.startswith(written)

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode("ascii")
        except UnicodeDecodeError as error:
            self._refuse(f"line {self.count} cannot be read: byte {error.start} is not ASCII")

    def _checked(self, text: str) -> LogLine:
        try:
            line = decode(text, self.count, self._digest)
        except LogError as error:
            version = _version_of(text)
            if version > LOG_VERSION:
                problem = (
                    f"the log was written by a newer version (format {version}, known is {LOG_VERSION})"
                )
                raise _error(self.path, problem, "update pytest-planverify") from None
            self._refuse(str(error))
        if (line.event.event == "plan_submitted") != (self.count == 0):
            self._refuse(
                f"line {self.count} holds {line.event.event}: the first line of a run, and no other, "
                "holds plan_submitted"
            )
        return line

    def _refuse(self, problem: str) -> NoReturn:
        remedy = "restore the log from the store or a copy, or name the log of a run"
        if self.count:
            remedy = (
                f"planner replay {self.path} --until {self.count - 1} shows the state before it; restore "
                "the log from the store or a copy"
            )
        raise _error(self.path, problem, remedy)

    def _write(self, data: bytes) -> None:
        at = self._end
        left = memoryview(data)
        while left:
            written = os.pwrite(self._handle, left, at)
            at += written
            left = left[written:]
        os.fsync(self._handle)
        if self.count == 0:
            _sync_folder(self.path)

    def _cut_back(self) -> None:
        # Where even that fails, the next to hold the log finds a torn line, and cuts it off.
        with contextlib.suppress(OSError):
            self._truncate()

    def _truncate(self) -> None:
        os.ftruncate(self._handle, self._end)
        os.fsync(self._handle)

    def _remark(self, text: str) -> None:
        self.remarks.append(_line(f"{self.path}: {text}"))


def _sync_folder(path: Path) -> None:
    """See to it that the name of a new file is on the disk, too, where folders can be synchronised."""
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _version_of(text: str) -> int:
    """The version that the first line of a log tells; 0 where it tells none."""
    try:
        held: Any = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    event: Any = cast("dict[str, Any]", held).get("event") if isinstance(held, dict) else None
    version: Any = cast("dict[str, Any]", event).get("version") if isinstance(event, dict) else None
    return version if isinstance(version, int) else 0


def _why_not_opened(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return f"this is no path ({error})"
    if isinstance(error, FileNotFoundError):
        return f"there is no folder {path.parent}" if not path.parent.is_dir() else "there is no such log"
    if error.errno == errno.ELOOP:
        return "this is a symbolic link, which code under test could have made"
    if isinstance(error, PermissionError):
        return "the log may not be written, or not be read, there"
    return f"the log cannot be opened ({error.strerror})"


def _error(path: Path, problem: str, remedy: str) -> LogError:
    return LogError(_line(f"{path}: {problem}; {remedy}"))


def _line(text: str) -> str:
    return " ".join(clean(text, limit=_LONGEST_MESSAGE).split())
