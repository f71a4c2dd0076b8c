"""Paths of the plan, resolved so that none leads out of the root, not even by symbolic links."""

from __future__ import annotations

import hashlib
import stat
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_SIBLINGS = 5_000
"""Limit of names in a folder that are compared for similarity."""


class OutsideRoot(Exception):
    """Raised for a path that leads out of the root."""


def resolve_under(root: Path, path: str | Path) -> Path:
    """Return ``path``, relative to ``root``, as absolute path without symbolic links.

    Raises :class:`OutsideRoot`, or ``OSError`` if it cannot be resolved.
    """
    try:
        base = root.resolve()
        resolved = (base / path).resolve()
    except (ValueError, RuntimeError) as error:  # null byte, or cyclic symbolic links
        raise OSError(str(error)) from error
    if not resolved.is_relative_to(base):
        raise OutsideRoot(f"{path} is outside of the plan's root, at {resolved}")
    return resolved


def is_regular_file(path: Path) -> bool:
    """Return whether it is a regular file, which can be read without blocking. Raises ``OSError``."""
    return stat.S_ISREG(path.stat().st_mode)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Raises ``OSError``."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def names_like(root: Path, path: str) -> tuple[str, ...]:
    """Return up to three existing paths similar to a missing one, all relative to the root.

    If folders of the path are missing, too, the outermost of them is compared with its siblings.
    """
    try:
        wanted = root / path
        folder = wanted.parent
        while not folder.is_dir() and folder != root and root in folder.parents:
            wanted, folder = folder, folder.parent
        resolve_under(root, folder.relative_to(root))
        names = [entry.name for entry, _ in zip(folder.iterdir(), range(MAX_SIBLINGS), strict=False)]
    except (OSError, ValueError, OutsideRoot):
        return ()
    near = get_close_matches(wanted.name, sorted(names), n=3)
    return tuple((folder / name).relative_to(root).as_posix() for name in near)
