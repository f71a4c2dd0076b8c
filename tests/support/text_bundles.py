"""Bundles of several text files in one, each below a line ``=== path``.

``=== path (no end)`` marks a file without a final newline.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = re.compile(r"^=== (.+?)( \(no end\))?\n", re.MULTILINE)


def read_bundle(path: Path) -> dict[str, str]:
    """Return the texts of a bundle by path, in order. Raises ``ValueError`` if the file is no bundle."""
    first, *parts = _HEAD.split(path.read_text(encoding="utf-8"))
    if first:
        raise ValueError(f"{path}: text stands before the first line '=== path'")
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {name: text[:-1] if is_cut else text for name, is_cut, text in found}


def write_bundle(path: Path, texts: Mapping[str, str]) -> None:
    """Write texts as one bundle."""
    said: list[str] = []
    for name, text in texts.items():
        is_cut = bool(text) and not text.endswith("\n")
        said.append(f"=== {name}{' (no end)' if is_cut else ''}\n{text}{chr(10) if is_cut else ''}")
    path.write_text("".join(said), encoding="utf-8")


def unpack_bundle(path: Path, folder: Path) -> Path:
    """Write the files of a bundle below a folder; return the folder."""
    write_files(folder, read_bundle(path))
    return folder


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files by their paths below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
