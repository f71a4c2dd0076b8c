"""Snapshots: the files of a tree at one moment, on disk, in a commit, or in a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Snapshot(Protocol):
    """The files of a tree, by their paths relative to the plan's root, with forward slashes."""

    def digests(self) -> Mapping[str, str]:
        """The sha256 of every file, in hexadecimal."""
        ...

    def read(self, path: str) -> bytes | None:
        """The content of a file; nothing where there is no such file, or it cannot be read any more."""
        ...


class HeldFiles:
    """A snapshot that is held in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)

    def digests(self) -> Mapping[str, str]:
        """The sha256 of every file, in hexadecimal."""
        from hashlib import sha256

        return {path: sha256(content).hexdigest() for path, content in self._files.items()}

    def read(self, path: str) -> bytes | None:
        """The content of a file."""
        return self._files.get(path)
