"""Check that a path of a plan stays under the plan's root, symbolic links included."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DRIVE = re.compile(r"[A-Za-z]:")
_WILDCARD = re.compile(r"[*?\[]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Confinement:
    """Judge relative paths against one root. Folders are resolved once each."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._inside: dict[str, bool] = {"": True}

    def fault(self, path: str) -> str | None:
        """Return why a path is refused, or ``None``. A path that does not exist yet may be fine."""
        lexical = lexical_fault(path)
        if lexical is not None:
            return lexical
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            return (
                f"'{path}' has a character that this locale cannot encode ({sys.getfilesystemencoding()}); "
                "run with LC_ALL=C.UTF-8 or PYTHONUTF8=1"
            )
        if not self._holds(path):
            return f"'{path}' leaves the plan's root through a symbolic link; name a file under the root"
        return None

    def glob_fault(self, pattern: str) -> str | None:
        """Return why a glob is refused, or ``None``. Judged by what stands before its first wildcard."""
        lexical = lexical_fault(pattern)
        if lexical is not None:
            return lexical
        if ".." in pattern.split("/") and _WILDCARD.search(pattern):
            return f"'{pattern}' mixes wildcards with '..'; name the folder itself"
        fixed = _WILDCARD.split(pattern, maxsplit=1)[0]
        folder = fixed if fixed == pattern else fixed.rpartition("/")[0]
        return self.fault(folder) if folder else None

    def _holds(self, path: str) -> bool:
        folder, _, _ = path.rpartition("/")
        if ".." in path:
            return self._resolves_inside(path)
        known = self._inside.get(folder)
        if known is None:
            known = self._inside[folder] = self._resolves_inside(folder)
        # The folder is known; only the last part of the path can still be a link that leads away.
        if known and os.path.islink(f"{self._root}/{path}"):
            return self._resolves_inside(path)
        return known

    def _resolves_inside(self, path: str) -> bool:
        real = os.path.realpath(f"{self._root}/{path}")
        return is_below(real, self._root)


def is_below(path: str, folder: str) -> bool:
    """Return whether a resolved path is a resolved folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def lexical_fault(path: str) -> str | None:
    """Return why a path cannot be under the plan's root, whatever the file system holds, or ``None``."""
    unusual = unusual_fault(path, "the plan's root")
    if unusual is None and ".." in path:
        depth = 0
        for part in path.split("/"):
            depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
            if depth < 0:
                return f"'{path}' leaves the plan's root; name a file under the root"
    return unusual


def unusual_fault(path: str, start: str) -> str | None:
    """Return why a text is no relative path, or ``None``. ``start`` is what it should be relative to."""
    if path.startswith(("/", "\\", "~")) or _DRIVE.match(path):
        return f"'{path}' is an absolute path; write it relative to {start}"
    if _CONTROL.search(path):
        return f"'{path}' holds a control character; name the file without it"
    return None
