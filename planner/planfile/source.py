"""The bytes of a plan file: read within bounds, decoded, with a position for every character."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import stat
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from planner.planfile.faults import Fault, Refused

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
"""The size of the largest plan file that is read."""

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WIDE_ENCODING = "the file is UTF-16 or UTF-32 text; save it as UTF-8"


@dataclass(frozen=True)
class Source:
    """The text of a file. A character is named by its offset in ``text``."""

    text: str
    digest: str = field(default="")
    """``sha256:`` and the hexadecimal digest of the file's bytes."""
    marked: bool = False
    """Whether a byte order mark stands in front of the text, which does not hold it."""

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column of a character, both counted from one."""
        starts = self._line_starts
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        # Editors count only these as the end of a line, str.splitlines many more.
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]


def read_source(path: Path) -> Source:
    """Read a plan file. Raises :class:`Refused` for whatever is not a UTF-8 text of bearable size."""
    return decode(_read_bytes(path))


def decode(data: bytes) -> Source:
    """The text that these bytes are. Raises :class:`Refused`."""
    if len(data) > MAX_BYTES:
        raise Refused(_TOO_LARGE)
    if data.startswith(_WIDE_MARKS):
        raise Refused(_WIDE_ENCODING)
    if not data.strip():
        raise Refused("the file is empty; a plan needs at least a todo_list_id and one item")
    if b"\0" in data:
        raise Refused("the file is binary; a plan is YAML or JSON text")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise Refused("", (_undecodable(error),)) from None
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return Source(text, digest, marked=data.startswith(codecs.BOM_UTF8))


def _read_bytes(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        raise Refused(_unreadable(error)) from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise Refused(_DIRECTORY)
        if not stat.S_ISREG(mode):
            raise Refused(_NOT_REGULAR)
        with open(handle, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(_unreadable(error)) from None
    finally:
        os.close(handle)
    return data


_TOO_LARGE = f"the file is larger than {MAX_BYTES // 2**20} MiB; split the plan with sub_plan"
_DIRECTORY = "this is a directory; name the plan file in it"
_NOT_REGULAR = "this is a pipe, a socket or a device; a plan is a regular file"
_CAUSES = {
    errno.ENOENT: "there is no such file; check the path",
    errno.ENOTDIR: "there is no such file; a part of the path is no directory",
    errno.EISDIR: _DIRECTORY,
    errno.EACCES: "the file may not be read; change its permissions",
    errno.ELOOP: "the path is a circle of symbolic links; name the file itself",
    errno.ENAMETOOLONG: "the path is too long to be a file's",
    errno.ENXIO: _NOT_REGULAR,
}


def _unreadable(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno in _CAUSES:
        return _CAUSES[error.errno]
    cause = error.strerror if isinstance(error, OSError) else str(error)
    return f"the file cannot be read ({cause})"


def _undecodable(error: UnicodeDecodeError) -> Fault:
    before = error.object[: error.start].decode()
    line, column = Source(before).position(len(before))
    problem = f"the byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
    return Fault(line=line, column=column, path="", problem=problem)
