"""An append-only file of JSON lines, each with a digest over itself and the line before.

::

    {"n":1,…,"digest":"sha256:…"}

The digest is that of the digest before it, a newline, and the bytes of the line up to ``,"digest":``.
Whoever changes, drops or moves a line breaks the chain there. A writer locks the file from before it reads
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
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self

from planner.errors import LogError
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

GENESIS = "sha256:" + "0" * 64
"""What stands for the digest before the first line."""

WAIT_SECONDS = 30.0
"""How long a writer waits for another."""

_DIGEST_KEY = ',"digest":"'
_CHUNK = 1 << 20
_PAUSE_SECONDS = 0.005
_LONGEST_MESSAGE = 1_500
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_BUSY = (errno.EAGAIN, errno.EACCES)


class ChainLine(NamedTuple):
    """A line whose place in the chain was checked."""

    n: int
    text: str
    """As it is written, without its newline."""
    digest: str


def chained(body: str, previous: str) -> tuple[str, str]:
    """Return the line with this body, ``{"n":…`` up to its digest, and the digest."""
    digest = digest_of(body, previous)
    return f'{body}{_DIGEST_KEY}{digest}"}}', digest


def digest_of(body: str, previous: str) -> str:
    """Return the digest of a line without its digest, in the chain after ``previous``."""
    return "sha256:" + sha256(f"{previous}\n{body}".encode()).hexdigest()


def body_of(text: str) -> str:
    """Return a line up to its digest."""
    return text[: text.rfind(_DIGEST_KEY)]


def check_link(text: str, n: int, previous: str) -> str:
    """Return the digest of a line. Raises :class:`planner.errors.LogError` where it breaks the chain."""
    body, key, end = text.rpartition(_DIGEST_KEY)
    digest = digest_of(body, previous)
    if key and end == f'{digest}"}}' and text.startswith(f'{{"n":{n},'):
        return digest
    try:
        number = json.loads(text)["n"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise LogError(f"line {n} cannot be read: it is no line of a log") from None
    if number != n:
        raise LogError(f"line {n} bears the number {number}: a line was dropped, added or moved")
    raise LogError(f"line {n} was changed, or the line before it: its digest does not fit")


class ChainedFile:
    """One file at the place up to which it was read. Opened by :meth:`append_to` or :meth:`read`."""

    first_key = ""
    """What follows the number and a comma."""
    longest_line = 256 * 1024 * 1024
    """Bytes; more than any line that can be written: the first of a run holds the plan, at most 64 MiB, and
    the past."""

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

    @classmethod
    def append_to(cls, path: Path) -> Self:
        """Open a log to append to; make it, readable for its owner only, where it is missing.

        Raises :class:`planner.errors.LogError`.
        """
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        return cls._open(path, flags, "name another file with --log")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a log that is there, to read it only. Raises :class:`planner.errors.LogError`."""
        return cls._open(path, os.O_RDONLY, "name the log of a run")

    @classmethod
    def _open(cls, path: Path, flags: int, remedy: str) -> Self:
        try:
            handle = os.open(path, flags | _FLAGS, 0o600)
        except (OSError, ValueError) as error:
            raise log_error(path, _why_not_opened(path, error), remedy) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise log_error(path, "this is no regular file", remedy)
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

    def skip(self) -> int:
        """Go to the end, with the places in the chain checked; return how many lines there are."""
        for _ in self.lines(parses=False):
            pass
        return self.count

    def lines(self, *, parses: bool = True) -> Iterator[ChainLine]:
        """Yield each line that was written since, its place in the chain checked; a writer holds meanwhile.

        A last line that a kill has left torn is no line: a writer cuts it off. Raises
        :class:`planner.errors.LogError` for any other damage, at the line in question.
        """
        for raw in self._whole_lines():
            try:
                text = raw.decode("ascii")
            except UnicodeDecodeError as error:
                self.refuse(f"line {self.count} cannot be read: byte {error.start} is not ASCII")
            try:
                digest = check_link(text, self.count, self._digest)
            except LogError as error:
                self.refuse(str(error))
            line = ChainLine(self.count, text, digest)
            if parses:
                self.check(line)
            self._advance(len(raw) + 1, digest)
            yield line

    def write(self, bodies: Sequence[str]) -> list[ChainLine]:
        """Write the next lines and see them on the disk; asked of one that holds, and has read all lines.

        Raises :class:`planner.errors.LogError` where they cannot be written; then the log is as it was.
        """
        lines: list[ChainLine] = []
        digest = self._digest
        for at, body in enumerate(bodies):
            text, digest = chained(body, digest)
            lines.append(ChainLine(self.count + at, text, digest))
        try:
            self._write("".join(f"{line.text}\n" for line in lines).encode("ascii"))
        except OSError as error:
            self._cut_back()
            problem = f"the event cannot be written ({error.strerror}) and was not taken in"
            raise log_error(self.path, problem, "make room, then tell it again") from None
        except BaseException:
            self._cut_back()
            raise
        for line in lines:
            self._advance(len(line.text) + 1, line.digest)
        return lines

    def check(self, line: ChainLine) -> None:
        """Check what a line holds; for logs that hold more than a chain. Raises ``LogError``."""

    def refuse(self, problem: str) -> NoReturn:
        """Raise :class:`planner.errors.LogError` with what can be done about damage at the next line."""
        remedy = "restore the log from a copy, or name the log of a run"
        if self.count:
            remedy = (
                f"planner replay {self.path} --until {self.count - 1} shows the state before it; restore "
                "the log from a copy"
            )
        raise log_error(self.path, problem, remedy)

    def _advance(self, length: int, digest: str) -> None:
        self.count += 1
        self._digest = digest
        self._end += length

    def _lock(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _BUSY:
                    remedy = "name a file on another file system with --log"
                    raise log_error(
                        self.path, f"the log cannot be locked ({error.strerror})", remedy
                    ) from None
                if time.monotonic() > deadline:
                    problem = f"another process has held the log for {WAIT_SECONDS:g} s"
                    raise log_error(self.path, problem, "end that process, then go on") from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def _refuse_another_file(self) -> None:
        # What was acknowledged must not be written into a file that nobody finds any more.
        here = os.fstat(self._handle)
        try:
            there = os.stat(self.path)
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            problem = "the log was removed or replaced under a run"
            raise log_error(self.path, problem, "put it back, or begin a new run")
        if here.st_size < self._end:
            problem = f"the log has lost lines under a run: {self.count} were read"
            raise log_error(self.path, problem, "restore it from a copy")

    def _whole_lines(self) -> Iterator[bytes]:
        """Yield the lines that end with a newline, then what a kill has left of the last."""
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
            if len(held) > self.longest_line:
                self.refuse(f"line {self.count} is longer than any line of a log")
        if held:
            yield from self._torn(bytes(held))

    def _read(self, at: int) -> bytes:
        try:
            return os.pread(self._handle, _CHUNK, at)
        except OSError as error:
            problem = f"the log cannot be read ({error.strerror})"
            raise log_error(self.path, problem, "see to the disk") from None

    def _torn(self, tail: bytes) -> Iterator[bytes]:
        """Look at what stands after the last newline: a part of a line, or all of it but its end."""
        where = f"line {self.count}"
        try:
            _, length = json.JSONDecoder().raw_decode(tail.decode("ascii"))
        except (ValueError, RecursionError):
            if not self._may_be_torn(tail):
                self.refuse(f"{where} is no line of a log")
            if self._writable:
                self._truncate()
            does = "was cut off" if self._writable else "is left out"
            text = f"{self.path}: {where} was torn by a kill, and {does}: its event was not taken in"
            self.remarks.append(one_line(text))
            return
        if length != len(tail):
            self.refuse(f"{where} does not end where it should")
        if self._writable:
            os.pwrite(self._handle, b"\n", self._end + len(tail))
        yield tail

    def _may_be_torn(self, tail: bytes) -> bool:
        # Nothing but the beginning of the next line is ever cut off, whatever file was named.
        start = f'{{"n":{self.count},{self.first_key}'.encode()
        written = tail.rstrip(b"\0")  # what a crash of the machine has left of a block
        return written.startswith(start) or start.startswith(written)

    def _write(self, data: bytes) -> None:
        at = self._end
        left = memoryview(data)
        while left:
            written = os.pwrite(self._handle, left, at)
            at += written
            left = left[written:]
        os.fsync(self._handle)
        if self.count == 0:
            with contextlib.suppress(OSError):  # where folders can be synchronised, for the file's name
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)

    def _cut_back(self) -> None:
        # Where even that fails, the next to hold the log finds a torn line, and cuts it off.
        with contextlib.suppress(OSError):
            self._truncate()

    def _truncate(self) -> None:
        os.ftruncate(self._handle, self._end)
        os.fsync(self._handle)


def log_error(path: Path, problem: str, remedy: str) -> LogError:
    """Return the error in one line: the file, what is wrong, what to do."""
    return LogError(one_line(f"{path}: {problem}; {remedy}"))


def one_line(text: str) -> str:
    """Return a message without what moves a cursor or breaks a line."""
    return " ".join(clean(text, limit=_LONGEST_MESSAGE).split())


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
