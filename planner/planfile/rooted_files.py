"""Reads the project's own files with care: only below one root, only ordinary files, only so much of each,
and each only once."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from planner.planfile.confinement import Confinement

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_READ = 1024 * 1024
"""Bytes. Of a larger file only the beginning is read; no source that a person wrote is as long."""


@dataclass(frozen=True)
class ReadFile:
    """What was read of a file."""

    path: str
    data: bytes
    total_bytes: int

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.total_bytes

    @cached_property
    def text(self) -> str:
        return self.data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """As Python counts them: form feeds do not end one."""
        return tuple(self.text.removesuffix("\n").split("\n"))

    @property
    def is_binary(self) -> bool:
        return b"\0" in self.data[:8192]


class RootedFiles:
    """The files below one root."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._confinement = Confinement(root)
        self._files: dict[str, ReadFile | None] = {}

    def read(self, path: str) -> ReadFile | None:
        """The file, or ``None`` where there is none that may be read."""
        key = os.path.normpath(path)
        if key not in self._files:
            self._files[key] = self.read_once(key)
        return self._files[key]

    def read_once(self, path: str, *, limit: int = LARGEST_READ) -> ReadFile | None:
        """The same for a file that nobody asks for twice: it is not kept."""
        if not path or self._confinement.fault(path) is not None:
            return None
        try:
            # Opened without blocking: a pipe or a device of that name must not hold anything up.
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
            with open(os.open(f"{self._root}/{path}", flags), "rb") as stream:
                facts = os.fstat(stream.fileno())
                if not stat.S_ISREG(facts.st_mode):
                    return None
                data = stream.read(limit)
        except (OSError, ValueError):
            return None  # what cannot be read is left out; the outcome still names it
        return ReadFile(path, data, max(facts.st_size, len(data)))

    def near(self, path: str) -> str | None:
        """An existing file beside a missing one, whose name looks like it."""
        folder, _, name = path.rpartition("/")
        if self._confinement.fault(path) is not None:
            return None
        try:
            names = sorted(os.listdir(f"{self._root}/{folder}"))[:5_000]
        except OSError:
            return None
        found = get_close_matches(name, names, n=1, cutoff=0.75)
        near = f"{folder}/{found[0]}".removeprefix("/") if found else None
        return near if near is not None and self.read(near) is not None else None
