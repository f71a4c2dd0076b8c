"""Append-only file of JSON lines, each with a digest over itself and the digest of the previous line.

::

    {"n":1,…,"digest":"sha256:…"}

The digest covers the previous digest, a newline, and the line's bytes up to ``,"digest":``. Changing,
dropping or moving a line breaks the chain at that place. A writer locks the file (:meth:`ChainedFile.hold`)
before it reads the lines that other writers appended, and unlocks it when its own line is on disk, so no
line is lost and the chain never forks. The run log (:mod:`.run_log`) and the log of corrections
(:mod:`.corrections`) are chained files.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

from planner.errors import LogError
from planner.planfile.locks import locked, open_flags
from planner.text import sanitizing

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

GENESIS = "sha256:" + "0" * 64
"""Digest that precedes the first line."""

WAIT_SECONDS = 30.0
"""Seconds that a writer waits for the lock of another process."""

_DIGEST_KEY = ',"digest":"'


class LogEntry(NamedTuple):
    """A line whose digest was verified."""

    n: int
    """Number of the line, from 0."""
    event: Any
    """The result of :meth:`ChainedFile.parse`; ``None`` if the line was read without parsing."""
    text: str
    """The line as written, without newline."""


def chained(body: str, previous: str) -> tuple[str, str]:
    """Append the digest in the chain after ``previous`` to a line's body.

    Return the complete line, without newline, and the digest.
    """
    digest = "sha256:" + sha256(f"{previous}\n{body}".encode()).hexdigest()
    return f'{body}{_DIGEST_KEY}{digest}"}}', digest


def check_link(text: str, n: int, previous: str) -> str:
    """Return the digest of line ``n``. Raises :class:`planner.errors.LogError` if it breaks the chain."""
    if not text.startswith(f'{{"n":{n},'):
        raise LogError(
            f"line {n} is not that of a log: lines were dropped, added or moved, or it is another file"
        )
    # The whole line is compared, so that nothing can be hidden around the digest.
    expected, digest = chained(text[: text.rfind(_DIGEST_KEY)], previous)
    if text != expected:
        raise LogError(f"line {n} was changed, or the line before it: its digest does not fit")
    return digest


class ChainedFile:
    """A file with the position up to which it was read. Open it by :meth:`append_to` or :meth:`read`.

    Subclasses set ``first_key``, and validate lines in :meth:`parse`.
    """

    first_key = ""
    """Text that follows the number and a comma in each line."""

    def __init__(self, path: Path, handle: int, *, writable: bool) -> None:
        self.path = path
        self.count = 0
        """Number of lines read or written, which is the number of the next line."""
        self.remarks: list[str] = []
        """Remarks for people, such as on a line that a kill has torn."""
        self._handle = handle
        self._writable = writable
        self._digest = GENESIS
        self._end = 0
        """Byte offset after the last of these lines."""

    @classmethod
    def append_to(cls, path: Path) -> Self:
        """Open a log for appending; create it, readable for its owner only, if it is missing.

        Raises :class:`planner.errors.LogError` if that fails or the path is no regular file.
        """
        # O_NOFOLLOW: code under test could have made a link, to have another file written.
        return cls._open(path, os.O_RDWR | os.O_CREAT | open_flags("O_NOFOLLOW"))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open an existing log for reading. Raises :class:`planner.errors.LogError` if that fails."""
        return cls._open(path, os.O_RDONLY)

    @classmethod
    def _open(cls, path: Path, flags: int) -> Self:
        remedy = "name another file"
        try:
            # Without O_NONBLOCK, opening a pipe would block until its other end is opened.
            handle = os.open(path, flags | open_flags("O_NONBLOCK"), 0o600)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise log_error(path, f"the log cannot be opened ({why})", remedy) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise log_error(path, "this is not a regular file", remedy)
        return cls(path, handle, writable=bool(flags & os.O_RDWR))

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def hold(self) -> Generator[None]:
        """Context in which this process is the only writer of the file.

        Raises :class:`planner.errors.LogError` if the lock is not obtained within :data:`WAIT_SECONDS`, or
        if the file was removed, replaced or shortened since it was opened.
        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self._handle, WAIT_SECONDS))
            except TimeoutError:
                problem = f"another process has locked the log for {WAIT_SECONDS:g} s"
                raise log_error(self.path, problem, "end that process, then continue") from None
            except OSError as error:
                problem = f"the log cannot be locked ({error.strerror})"
                remedy = "name a file on another file system with --log"
                raise log_error(self.path, problem, remedy) from None
            # A line written to a file that was unlinked meanwhile would be acknowledged, and lost.
            is_whole = False
            with contextlib.suppress(OSError):
                held, named = os.fstat(self._handle), os.stat(self.path)
                is_whole = os.path.samestat(held, named) and held.st_size >= self._end
            if not is_whole:
                problem = "the log was removed, replaced or shortened during a run"
                raise log_error(self.path, problem, "restore it from a copy, or start a new run")
            yield

    def parse(self, text: str) -> Any:
        """Return the content of line :attr:`count`. Subclasses validate it and raise ``LogError``."""
        return text

    def entries(self, *, parses: bool = True) -> Iterator[LogEntry]:
        """Yield each line written since the last read, with its digest verified.

        A writer must be inside :meth:`hold`. An incomplete last line, left by a kill, is skipped by
        readers and cut off by the next writer. Raises :class:`planner.errors.LogError` for any other
        damage, when it reaches the damaged line.
        """
        try:
            with open(self._handle, "rb", closefd=False) as file:
                file.seek(self._end)
                while raw := file.readline():
                    is_last = not raw.endswith(b"\n")
                    if is_last and self._is_torn(raw):
                        return
                    yield self._entry(raw.removesuffix(b"\n"), parses=parses)
                    # A writer has added the newline that the last line lacked: it is no line of its own.
                    if is_last:
                        return
        except OSError as error:
            problem = f"the log cannot be read ({error.strerror})"
            raise log_error(self.path, problem, "check the disk") from None

    def _entry(self, raw: bytes, *, parses: bool) -> LogEntry:
        """Return the next line, once its digest is verified, and move the position behind it."""
        try:
            text = raw.decode("ascii")
            digest = check_link(text, self.count, self._digest)
            entry = LogEntry(self.count, self.parse(text) if parses else None, text)
        except UnicodeDecodeError as error:
            self._refuse(f"line {self.count} cannot be read: byte {error.start} is not ASCII")
        except LogError as error:
            self._refuse(str(error))
        self._advance(text, digest)
        return entry

    def skip(self) -> None:
        """Read the lines written since the last read, verify their digests, and discard them."""
        for _ in self.entries(parses=False):
            pass

    def write(self, bodies: Sequence[str]) -> None:
        """Append lines and sync them to disk; the caller is in :meth:`hold` and has read all lines.

        ``bodies`` are lines without digest and closing brace. Raises :class:`planner.errors.LogError` if
        writing fails; the log is unchanged then.
        """
        lines: list[tuple[str, str]] = []
        for body in bodies:
            lines.append(chained(body, lines[-1][1] if lines else self._digest))
        try:
            # Written at an explicit offset, and in a loop: a single write may be short, as on a full disk.
            at, left = self._end, memoryview("".join(f"{text}\n" for text, _ in lines).encode("ascii"))
            while left:
                os.lseek(self._handle, at, os.SEEK_SET)
                written = os.write(self._handle, left)
                at, left = at + written, left[written:]
            os.fsync(self._handle)
            if self.count == 0:
                # The new file's directory entry is synced, too, on systems that can sync directories.
                with contextlib.suppress(OSError):
                    folder = os.open(self.path.parent, os.O_RDONLY)
                    try:
                        os.fsync(folder)
                    finally:
                        os.close(folder)
        except BaseException as error:
            # Also on an interrupt. If truncating fails, the next writer cuts the incomplete line off.
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._end)
            if not isinstance(error, OSError):
                raise
            problem = f"the event cannot be written ({error.strerror}) and was not recorded"
            raise log_error(self.path, problem, "free space, then send it again") from None
        for text, digest in lines:
            self._advance(text, digest)

    def _refuse(self, problem: str) -> NoReturn:
        """Raise the error about a damaged line."""
        raise log_error(self.path, problem, "restore the log from a copy, or name another file")

    def _advance(self, text: str, digest: str) -> None:
        """Move the position behind a line that was read or written."""
        self.count += 1
        self._digest = digest
        # Lines are ASCII: characters are bytes.
        self._end += len(text) + 1

    def _is_torn(self, tail: bytes) -> bool:
        """Return whether a last line without newline is only the beginning of a line, left by a kill.

        A writer cuts such a line off. Raises ``LogError`` if no log line begins like that.
        """
        try:
            length = json.JSONDecoder().raw_decode(tail.decode("ascii"))[1]
        except (ValueError, RecursionError):
            length = 0
        if length:  # complete but for its newline, or with something after it, which its digest shows
            if self._writable and length == len(tail):
                os.lseek(self._handle, self._end + length, os.SEEK_SET)
                os.write(self._handle, b"\n")
            return False
        # Only text that begins like the next line is cut off, so that no foreign file is truncated.
        start = f'{{"n":{self.count},{self.first_key}'.encode()
        # After a crash of the machine, blocks that were allocated but never written read as null bytes.
        written = tail.rstrip(b"\0")
        if not written.startswith(start) and not start.startswith(written):
            self._refuse(f"line {self.count} is not a line of a log")
        # Only writers hold the lock; to a reader, the line may look torn because it is just being written.
        if self._writable:
            os.ftruncate(self._handle, self._end)
        does = "was cut off" if self._writable else "is left out"
        torn = f"line {self.count} was torn by a kill, and {does}: its event was not recorded"
        self.remarks.append(one_line(f"{self.path}: {torn}"))
        return True


def log_error(path: Path, problem: str, remedy: str) -> LogError:
    """Return the error about a log whose one-line message is path, problem and remedy."""
    return LogError(one_line(f"{path}: {problem}; {remedy}"))


def one_line(text: str) -> str:
    """Return a message without control characters and line breaks, cut to 1,500 characters."""
    return sanitizing.one_line(text, limit=1_500)
