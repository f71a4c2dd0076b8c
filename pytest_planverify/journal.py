"""Journal of a run: an append-only file with one JSON object per line, written as events happen.

Each line is a single ``write`` to a file opened for appending, so all processes of a run can share the
file and a killed run loses at most its last line. Each record has its tag in ``record`` and its writer
in ``session``; the first one of a run has the version of the format. Readers ignore unknown tags and
keys.

The file is written in the processes of tests, which may close descriptors, truncate the file or write to
it. So a writer reopens the file if its descriptor was closed or reused, a reader detects changes of what it
has read, and records that decide verdicts are signed with a key that only the parent and the worker know.
Records that later runs read are modelled in :mod:`planner.model.journal`.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from errno import EEXIST
from hashlib import blake2b
from itertools import count
from json import dumps  # bound early: tests may monkeypatch these modules
from os import fstat as file_facts
from os import getpid
from os import write as write_bytes
from threading import RLock
from time import time, time_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO
    from pathlib import Path

Record = dict[str, Any]

_PENS = count(1)
"""Numbers of the writers of this process; with the process id they distinguish all writers of a file."""
_FROM_ANY_PROCESS = frozenset({"metric", "audit_event"})
"""Tags that forked children of tests may write, too."""
_MAC_BYTES = 8
"""Few, as each record has them: they can only be guessed by writing records, and wrong ones are counted."""
_SAFE_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
_REMEMBERED = 64
"""Number of bytes read last that are compared before reading on, to detect overwriting."""
_HEAD = 200
"""Number of leading bytes of a line that contain its tag and session."""
_SIGNATURE = b', "mac": "'
_DECODE = json.JSONDecoder().decode


class JournalWriter:
    """Appends records; cheap to open, unbuffered.

    If a killed process left an incomplete line, it is terminated first, so that it does not corrupt the
    next record.
    """

    def __init__(
        self,
        path: str | Path,
        session: str,
        key: str = "",
        redact: Callable[[str], str] = lambda body: body,
    ) -> None:
        """With a ``key`` records are numbered and signed, so that forged and missing ones are detected.

        ``redact`` removes secrets from the members of a record, as JSON text.

        Raises ``OSError``, also if the path is not a regular file.
        """
        self._path = path
        self._open()
        self._session = dumps(session)
        self._key = key.encode()
        self._redact = redact
        self._pid = self._numbered_in = os.getpid()
        self._written = 0
        self._lock = RLock()
        self._pen = f"{self._pid}.{next(_PENS)}"

    def _open(self) -> None:
        # Readable, too: the last byte shows whether the last line is complete.
        self._descriptor = _open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._file_id = _identity(self._descriptor)
        if _ends_within_line(self._descriptor):
            write_bytes(self._descriptor, b"\n")

    def write(self, record: str, **facts: object) -> None:
        """Append one record with the current time; ``facts`` that JSON cannot represent become texts."""
        body = dumps(facts, default=str)
        self.write_raw(record, body[1:-1])

    def write_raw(self, record: str, body: str) -> None:
        """Append one record whose further members are JSON text already: ``"a": 1, "b": 2``.

        ``body`` may be empty. Forked children of tests may only write metrics and audit events; their other
        records are dropped, as results belong to the process of the session.
        """
        if (pid := getpid()) != self._pid:
            if record not in _FROM_ANY_PROCESS:
                return
            if pid != self._numbered_in:
                # Continuing the inherited numbers would make the parent's next records look repeated. A
                # thread that does not exist in the child may have held the lock.
                self._numbered_in, self._written, self._lock = pid, 0, RLock()
                self._pen = f"{pid}.{time_ns()}"
        line = (
            f'{{"record": "{record}", "session": {self._session}, "at": {time():.6f}, {self._redact(body)}'
        )
        line = line.rstrip(", ")  # of an empty body
        # Numbered and written in one step: if two threads wrote in another order, the reader would find a
        # gap and drop the lower number as repeated. Reentrant, as a test's signal handler may record, too.
        with self._lock:
            if self._key:
                self._written += 1
                line += f', "pen": "{self._pen}", "number": {self._written}'
                # Last, so that a reader can split it off without parsing the line.
                line += f', "mac": "{_mac(line.encode("utf-8", "backslashreplace"), self._key)}"'
            # A test may have closed it, and reused its number for a file of its own.
            if _identity(self._descriptor) != self._file_id:
                self._open()
            # A lone surrogate becomes \udXXX, which JSON decodes to the same character.
            rest = (line + "}\n").encode("utf-8", "backslashreplace")
            while rest:  # a write may be partial, as after a signal
                rest = rest[write_bytes(self._descriptor, rest) :]

    def close(self) -> None:
        """Close the file; further writes are errors."""
        os.close(self._descriptor)


class JournalTail:
    """Reads the records appended since the last read.

    It keeps the file open: records written to it are read even after its name was removed. Not safe for
    concurrent use.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._stream: FileIO | None = None
        self._offset = 0
        self._rest = b""
        self._last_bytes = b""
        self.lost = False
        """The file was truncated or overwritten after it had been read."""
        self.line = b""
        """The line of the record yielded last."""
        self.only = b""
        """Text near the beginning of relevant lines; others are skipped unparsed."""

    def follow(self) -> None:
        """Read only what is written from now on. A missing file is created.

        Raises ``OSError`` if the path is not a regular file.
        """
        descriptor = _open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        if not os.fstat(descriptor).st_size:
            write_bytes(descriptor, b"\n")  # truncation of an empty file would go unnoticed
        self._stream = os.fdopen(descriptor, "rb", buffering=0)
        self._offset = os.fstat(descriptor).st_size
        # The first read compares these bytes, so that what is skipped cannot be cut unnoticed either.
        self._stream.seek(max(self._offset - _REMEMBERED, 0))
        self._last_bytes = self._stream.read(min(self._offset, _REMEMBERED))

    def read(self) -> Iterator[Record]:
        """Yield each complete record written since the last read; an incomplete last line waits.

        Lines that are no records are skipped. If the file was truncated or overwritten, :attr:`lost` is
        set, and it is read from the beginning: records may come twice.
        """
        if self._stream is None:
            try:
                # Unbuffered, as a buffer would still contain truncated data.
                self._stream = os.fdopen(_open(self._path, os.O_RDONLY), "rb", buffering=0)
            except FileNotFoundError:
                return
        # A truncated file may have grown to the same size: equal sessions write equally long records.
        if os.fstat(self._stream.fileno()).st_size < self._offset or not self._is_unchanged():
            self.lost = True
            self._offset, self._rest, self._last_bytes = 0, b"", b""
        self._stream.seek(self._offset)
        data = self._stream.read()
        if not data:
            return
        self._offset += len(data)
        self._last_bytes = data[-_REMEMBERED:]
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            # Parsing costs most: a reader of one worker skips the lines of all others.
            if self.only and self.only not in line[:_HEAD]:
                continue
            record = _parse(line)
            if record is not None:
                self.line = line
                yield record

    def _is_unchanged(self) -> bool:
        """Return whether the bytes read last are still in place: a truncated file may have grown again."""
        assert self._stream is not None
        self._stream.seek(self._offset - len(self._last_bytes))
        return self._stream.read(len(self._last_bytes)) == self._last_bytes

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def read_journal(path: str | Path) -> list[Record]:
    """Return all complete records of a journal; other lines are skipped."""
    tail = JournalTail(path)
    try:
        return list(tail.read())
    finally:
        tail.close()


def is_signed(line: bytes, key: str) -> bool:
    """Return whether a line, without its line end, was signed with the key."""
    # The last one, as an object within the record may have a member of that name, too.
    body, separator, rest = line.rpartition(_SIGNATURE)
    return bool(separator) and rest == f'{_mac(body, key.encode())}"}}'.encode()


def _mac(data: bytes, key: bytes) -> str:
    return blake2b(data, digest_size=_MAC_BYTES, key=key).hexdigest()


def _open(path: str | Path, flags: int) -> int:
    """Open a regular file; never block on a pipe nor follow a link. Raises ``OSError`` for others."""
    descriptor = os.open(path, flags | _SAFE_FLAGS, 0o600)
    # Checked on the open descriptor, as a test may replace the file after a check of its name.
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise FileExistsError(EEXIST, "it is no plain file", str(path))


def _identity(descriptor: int) -> tuple[int, ...]:
    """Return inode and device behind a descriptor; empty if it is closed."""
    try:
        return file_facts(descriptor)[1:3]
    except OSError:
        return ()


def _ends_within_line(descriptor: int) -> bool:
    """Return whether the file ends within a line."""
    with suppress(OSError):  # not seekable
        if os.fstat(descriptor).st_size:
            os.lseek(descriptor, -1, os.SEEK_END)  # records are appended wherever the offset is
            return os.read(descriptor, 1) != b"\n"
    return False


def _parse(line: bytes) -> Record | None:
    """Return the record of a line; ``None`` if it is none."""
    try:
        record = _DECODE(line.decode("utf-8", "surrogatepass"))  # json.loads would guess the encoding
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "record" in record else None  # pyright: ignore
