"""The append-only record of a run: one JSON object a line, written as it happens.

Every line is one ``write`` to a file opened for appending, so that the processes of a run may share
the file and a killed run loses at most the line being written. Each record carries its tag in
``record`` and the session that wrote it in ``session``; the first record of a run names the format's
version. Readers pass over tags and keys that they do not know.
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from errno import EEXIST
from hashlib import blake2b
from itertools import count
from json import dumps  # as it is now: tests may replace the functions of these modules for a while
from os import getpid
from os import write as write_bytes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this platform
    fcntl = None

Record = dict[str, Any]

_PENS = count(1)
_FROM_ANY_PROCESS = frozenset({"metric", "audit_event"})
_MAC_BYTES = 8
_NEVER_ELSEWHERE = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
_HIGH = 200
"""The lowest number of the journal's descriptor, where the system grants so many."""
_REMEMBERED = 64
"""So many of the bytes that were read last are compared when more is read."""
_HEAD = 200
"""So many bytes of a line hold its tag and the session that wrote it."""
_SIGNATURE = b', "mac": "'
_DECODE = json.JSONDecoder().decode


class JournalWriter:
    """Appends records. Cheap to open; never buffers.

    Where a process was killed in the middle of a line, that line is ended first: it must not cost the next
    record as well.
    """

    def __init__(self, path: str | Path, session: str, key: str = "") -> None:
        """With a ``key`` each record is numbered and signed, so that none is forged or missed.

        Raises ``OSError``, also where something stands in the journal's place that is no plain file.
        """
        self._descriptor = _out_of_the_way(_open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT))
        self._session = dumps(session)
        self._key = key.encode()
        self._pid = os.getpid()
        self._written = 0
        self._pen = f"{self._pid}.{next(_PENS)}"
        if _is_torn(self._descriptor):
            write_bytes(self._descriptor, b"\n")

    def write(self, record: str, **facts: object) -> None:
        """Append one record with the time of now."""
        body = dumps(facts, default=str)
        self.write_raw(record, body[1:-1])

    def write_raw(self, record: str, body: str) -> None:
        """Append one record whose further members are already JSON: ``"a": 1, "b": 2``.

        In a copy of the process, which a test has forked and which goes on with the session, only what was
        measured is written: what becomes of the tests is for the process to tell whose session it is.
        """
        if record not in _FROM_ANY_PROCESS and getpid() != self._pid:
            return
        line = f'{{"record": "{record}", "session": {self._session}, "at": {time.time():.6f}, {body}'
        line = line.rstrip(", ")
        if self._key:
            self._written += 1
            line += f', "pen": "{self._pen}", "number": {self._written}'
            line += f', "mac": "{_mac(line.encode("utf-8", "backslashreplace"), self._key)}"'
        rest = (line + "}\n").encode("utf-8", "backslashreplace")
        while rest:  # a write may be cut short, as by a signal
            rest = rest[write_bytes(self._descriptor, rest) :]

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._descriptor

    def close(self) -> None:
        """Close the file; writing again is an error."""
        os.close(self._descriptor)


class JournalTail:
    """Reads the records that were appended since the last look.

    It holds the file open: what is written to it is still read when its name has been removed.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._stream: FileIO | None = None
        self._offset = 0
        self._rest = b""
        self._read_last = b""
        self.lost = False
        """The file was cut off, or written over, after something had been read of it."""
        self.line = b""
        """The record that was yielded last, as it was written."""
        self.only = b""
        """Text that a line holds near its beginning, unless it is passed over unread."""

    def follow(self, *, create: bool = False) -> None:
        """Turn to the file that bears the name now, if it is another; ``create`` makes a missing one."""
        if create:
            descriptor = _open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            if not os.fstat(descriptor).st_size:
                write_bytes(descriptor, b"\n")  # of an empty file nobody could tell that it was cut
            os.close(descriptor)
        try:
            # Unbuffered, for a buffer would still show what has been cut off.
            stream = os.fdopen(_open(self._path, os.O_RDONLY), "rb", buffering=0)
        except FileNotFoundError:
            return
        if self._stream is not None and os.path.sameopenfile(stream.fileno(), self._stream.fileno()):
            stream.close()
            return
        self.close()
        self._stream, self._offset, self._rest, self._read_last = stream, 0, b"", b""

    def read(self) -> Iterator[Record]:
        """Yield each complete record that has been written since; a torn last line waits."""
        if self._stream is None:
            self.follow()
        if self._stream is None:
            return
        # One that was cut may have grown to the same size again: equal sessions write equally long records.
        if os.fstat(self._stream.fileno()).st_size < self._offset or not self._is_as_it_was():
            self.lost = True
            self._offset, self._rest, self._read_last = 0, b"", b""
        self._stream.seek(self._offset)
        data = self._stream.read()
        if not data:
            return
        self._offset += len(data)
        self._read_last = data[-_REMEMBERED:]
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if self.only and self.only not in line[:_HEAD]:
                continue
            record = _parse(line)
            if record is not None:
                self.line = line
                yield record

    def skip(self) -> None:
        """Pass over what is there by now; whether that was cut is of no interest any more."""
        if self._stream is not None:
            self._offset = os.fstat(self._stream.fileno()).st_size
            self._stream.seek(max(self._offset - _REMEMBERED, 0))
            self._read_last = self._stream.read(min(self._offset, _REMEMBERED))
        self._rest, self.lost = b"", False

    def _is_as_it_was(self) -> bool:
        """Return whether the last line read still stands there: a truncated file may have grown again."""
        assert self._stream is not None
        self._stream.seek(self._offset - len(self._read_last))
        return self._stream.read(len(self._read_last)) == self._read_last

    def close(self) -> None:
        """Let go of the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def read_journal(path: str | Path) -> list[Record]:
    """Return every complete record of a journal; lines that are no records are passed over."""
    tail = JournalTail(path)
    try:
        return list(tail.read())
    finally:
        tail.close()


def is_signed(line: bytes, key: str) -> bool:
    """Return whether a line was written by somebody who has the key."""
    body, separator, rest = line.rpartition(_SIGNATURE)
    return bool(separator) and rest == f'{_mac(body, key.encode())}"}}'.encode()


def _mac(data: bytes, key: bytes) -> str:
    return blake2b(data, digest_size=_MAC_BYTES, key=key).hexdigest()


def _open(path: str | Path, flags: int) -> int:
    """Open a plain file; never wait for whoever holds the other end of a pipe, and follow no link."""
    descriptor = os.open(path, flags | _NEVER_ELSEWHERE, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise FileExistsError(EEXIST, "it is no plain file", str(path))


def _out_of_the_way(descriptor: int) -> int:
    """Return the file under a high number, which whoever closes all others does not hand to the next."""
    if fcntl is None:
        return descriptor
    with suppress(OSError):
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(descriptor)
        return high
    return descriptor


def _is_torn(descriptor: int) -> bool:
    with suppress(OSError):  # what is no file has no end to look at
        size = os.fstat(descriptor).st_size
        return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    return False


def _parse(line: bytes) -> Record | None:
    try:
        record = _DECODE(line.decode("utf-8", "surrogatepass"))  # json.loads would guess the encoding
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "record" in record else None  # pyright: ignore
