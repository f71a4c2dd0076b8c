"""Remembers which new files the runs themselves left in the tree, so that no todo is blamed for them later.

Only a file that was not there before the run, that is no source or setting, and that is still just what the
run left counts as the run's. What tests make of files that were there is told like anybody's change.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

FILE = "left_by_runs.json"
MOST_FILES = 10_000
_LARGEST = 64 << 20
_NEVER = frozenset(
    {".py", ".pyi", ".pyx", ".so", ".pth", ".toml", ".cfg", ".ini", ".sh", ".yaml", ".yml", ".js", ".ts"}
)
"""Endings of files that make a project do something else; a run that writes one is not excused."""


def left_by_runs(home: Path, root: Path, files: Iterable[str]) -> set[str]:
    """Return those of the files below the root that are just as an earlier run left them."""
    known = _read(home).get(str(root), {})
    return {file for file in files if file in known and known[file] == _digest(root / file)}


def remember(home: Path, root: Path, before: Collection[str], after: Iterable[str]) -> None:
    """Note the files that are new since before the run, beside those of earlier runs that are unchanged."""
    found = _read(home)
    known = found.get(str(root), {})
    new = [file for file in after if file not in before and PurePosixPath(file).suffix not in _NEVER]
    kept = {file: known[file] for file in before if file in known and known[file] == _digest(root / file)}
    for file in new[:MOST_FILES]:
        digest = _digest(root / file)
        if digest is not None:
            kept[file] = digest
    if kept == known:
        return
    from planner.planfile.file_writer import replace_file

    found[str(root)] = kept
    replace_file(home / FILE, json.dumps({"version": 1, "roots": found}, indent=1))


def _read(home: Path) -> dict[str, dict[str, str]]:
    try:
        data: Any = json.loads((home / FILE).read_bytes())
        roots = cast("dict[str, Any]", dict(data["roots"]))
        return {root: dict(files) for root, files in roots.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _digest(path: Path) -> str | None:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
