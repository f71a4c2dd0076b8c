"""Read files of a project: only below one root, only regular ones, only so much of each, and each once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from planner.planfile.confinement import Confinement
from planner.planfile.project_files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_READ = 1024 * 1024
"""Bytes. Of a larger file only the beginning is read; no source that a person wrote is as long."""

MAX_GUESSES = 100
"""After so many missing paths nothing more is guessed."""


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
        """Return the lines as Python counts them: form feeds do not end one."""
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
        self._guesses_left = MAX_GUESSES

    def read(self, path: str) -> ReadFile | None:
        """Return the file, or ``None`` where there is none that may be read."""
        key = os.path.normpath(path)
        if key not in self._files:
            self._files[key] = self.read_once(key)
        return self._files[key]

    def read_once(self, path: str, *, limit: int = LARGEST_READ) -> ReadFile | None:
        """Return the same for a file that nobody asks for twice: it is not kept."""
        if not path or self._confinement.fault(path) is not None:
            return None
        try:
            with open_regular(f"{self._root}/{path}") as stream:
                size = os.fstat(stream.fileno()).st_size
                data = stream.read(limit)
        except (OSError, ValueError):
            return None  # what cannot be read is left out; the outcome still names it
        return ReadFile(path, data, max(size, len(data)))

    def near(self, path: str) -> str | None:
        """Return an existing path beside a missing one that looks like it."""
        self._guesses_left -= 1
        folder, _, name = path.rpartition("/")
        if self._guesses_left < 0 or self._confinement.fault(path) is not None:
            return None
        try:
            names = sorted(os.listdir(f"{self._root}/{folder}"))[:5_000]
        except OSError:
            return None
        found = get_close_matches(name, names, n=1, cutoff=0.75)
        return f"{folder}/{found[0]}".removeprefix("/") if found else None
