"""The append-only record of a run: one JSON object a line, written as it happens.

Every line is one ``write`` to a file opened for appending, so that the processes of a run may share
the file and a killed run loses at most the line being written. Each record carries its tag in
``record`` and the session that wrote it in ``session``; the first record of a run names the format's
version. Readers pass over tags and keys that they do not know.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from json import dumps  # as it is now: tests may replace the functions of these modules for a while
from os import getpid
from os import write as write_bytes
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = 1
"""Version of the record format."""

Record = dict[str, Any]

_PENS = count(1)
_FROM_ANY_PROCESS = frozenset({"metric", "audit_event"})
_MAC_BYTES = 8
_SIGNATURE = b', "mac": "'
_DECODE = json.JSONDecoder().decode


class JournalWriter:
    """Appends records. Cheap to open; never buffers.

    Where a process was killed in the middle of a line, that line is ended first: it must not cost the next
    record as well.
    """

    def __init__(self, path: str | Path, session: str, key: str = "") -> None:
        """With a ``key`` each record is numbered and signed, so that none is forged or missed."""
        flags = os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, os.O_RDWR | flags, 0o600)
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
        self._stream: BinaryIO | None = None
        self._offset = 0
        self._rest = b""
        self.lost = False
        """The file was cut off after something had been read of it."""
        self.line = b""
        """The record that was yielded last, as it was written."""

    def follow(self, *, create: bool = False) -> None:
        """Turn to the file that bears the name now, if it is another; ``create`` makes a missing one."""
        if create:
            os.close(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            stream = open(self._path, "rb")  # noqa: SIM115  # held until another file bears the name
        except FileNotFoundError:
            return
        if self._stream is not None and os.path.sameopenfile(stream.fileno(), self._stream.fileno()):
            stream.close()
            return
        self.close()
        self._stream, self._offset, self._rest = stream, 0, b""

    def read(self) -> Iterator[Record]:
        """Yield each complete record that has been written since; a torn last line waits."""
        if self._stream is None:
            self.follow()
        if self._stream is None:
            return
        if os.fstat(self._stream.fileno()).st_size < self._offset:
            self.lost = True
            self._offset, self._rest = 0, b""
        self._stream.seek(self._offset)
        data = self._stream.read()
        if not data:
            return
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            record = _parse(line)
            if record is not None:
                self.line = line
                yield record

    def close(self) -> None:
        """Let go of the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def read_journal(path: str | Path) -> list[Record]:
    """Every complete record of a journal; lines that are no records are passed over."""
    tail = JournalTail(path)
    try:
        return list(tail.read())
    finally:
        tail.close()


def is_signed(line: bytes, key: str) -> bool:
    """Whether a line was written by somebody who has the key."""
    body, separator, rest = line.rpartition(_SIGNATURE)
    return bool(separator) and rest == f'{_mac(body, key.encode())}"}}'.encode()


def _mac(data: bytes, key: bytes) -> str:
    return blake2b(data, digest_size=_MAC_BYTES, key=key).hexdigest()


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
