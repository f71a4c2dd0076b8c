"""A few lines of the project's own files, read with care: only below the root, only so much."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from planner.model.failure_report import SourceExcerpt
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT_LINES = 4
LARGEST_FILE = 4 * 1024 * 1024
"""Bytes. No source that a person wrote is larger."""

LONGEST_LINE = 400


class SourceReader:
    """Reads excerpts of files below one root, each file once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._files: dict[str, tuple[str, ...] | None] = {}

    def excerpt(self, path: str, line: int) -> SourceExcerpt | None:
        """The lines around that line; ``None`` where the file is not below the root or has no such line."""
        lines = self._lines(path)
        if lines is None or not 1 <= line <= len(lines):
            return None
        first = max(line - CONTEXT_LINES, 1)
        shown = lines[first - 1 : line + CONTEXT_LINES]
        return SourceExcerpt(
            path=path,
            line=line,
            first_line=first,
            lines=tuple(_shown(text) for text in shown),
        )

    def _lines(self, path: str) -> tuple[str, ...] | None:
        if path not in self._files:
            self._files[path] = self._read(path)
        return self._files[path]

    def _read(self, path: str) -> tuple[str, ...] | None:
        try:
            file = (self._root / path).resolve()
            if not file.is_relative_to(self._root):
                return None
            # Opened without blocking: a pipe or device of that name must not hold up the report.
            descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with open(descriptor, "rb") as stream:
                facts = os.fstat(descriptor)
                if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
                    return None
                raw = stream.read()
        except (OSError, ValueError):
            return None  # what cannot be read is not shown; the frames still say where it is
        text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        return tuple(text.split("\n"))  # as Python counts lines: form feeds do not end one


def _shown(text: str) -> str:
    return clean(text.expandtabs(4).rstrip(), limit=LONGEST_LINE).replace("\n", " ")
