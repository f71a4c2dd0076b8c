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
from json import dumps  # as it is now: tests may replace the functions of these modules for a while
from os import write as write_bytes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = 1
"""Version of the record format."""

Record = dict[str, Any]


class JournalWriter:
    """Appends records. Cheap to open; never buffers."""

    def __init__(self, path: str | Path, session: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._session = dumps(session)

    def write(self, record: str, **facts: object) -> None:
        """Append one record with the time of now."""
        body = dumps(facts, default=str)
        self.write_raw(record, body[1:-1])

    def write_raw(self, record: str, body: str) -> None:
        """Append one record whose further members are already JSON: ``"a": 1, "b": 2``."""
        line = f'{{"record": "{record}", "session": {self._session}, "at": {time.time():.6f}, {body}'
        line = line.rstrip(", ") + "}\n"
        write_bytes(self._descriptor, line.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Close the file; writing again is an error."""
        os.close(self._descriptor)


class JournalTail:
    """Reads the records that were appended since the last look."""

    def __init__(self, path: str | Path, *, from_end: bool = False) -> None:
        self._path = path
        self._offset = os.path.getsize(path) if from_end and os.path.exists(path) else 0
        self._rest = b""
        self._inode = os.stat(path).st_ino if os.path.exists(path) else None
        self.lost = False
        """The file was removed or cut off after something had been read of it."""

    def read(self) -> Iterator[Record]:
        """Yield each complete record that has been written since; a torn last line waits."""
        try:
            with open(self._path, "rb") as stream:
                status = os.fstat(stream.fileno())
                if status.st_size < self._offset or self._inode not in (None, status.st_ino):
                    self._begin_anew()
                self._inode = status.st_ino
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            self._begin_anew()
            return
        if not data:
            return
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            record = _parse(line)
            if record is not None:
                yield record

    def _begin_anew(self) -> None:
        """The file was removed or cut by what ran; what comes next stands in a file that is new."""
        self.lost = self.lost or self._inode is not None
        self._offset, self._rest = 0, b""


def read_journal(path: str | Path) -> list[Record]:
    """Every complete record of a journal; lines that are no records are passed over."""
    return list(JournalTail(path).read())


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "record" in record else None  # pyright: ignore
