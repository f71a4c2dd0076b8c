"""Installed code: the origin of a pytest plugin, and start-up files that run anything."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path


def is_from_index(entry_point: str) -> bool:
    """Return whether a plugin, ``name = module``, was installed from a package index as anybody could.

    One that comes from a folder, or that no installer knows of, somebody has made here.
    """
    name, _, value = (part.strip() for part in entry_point.partition("="))
    for each in importlib.metadata.entry_points(group="pytest11", name=name):
        if each.value != value or each.dist is None:
            continue
        return bool(each.dist.read_text("RECORD")) and each.dist.read_text("direct_url.json") is None
    return False


def runs_code(path: str) -> bool:
    """Return whether an interpreter runs something of a start-up file; a ``.pth`` may only name folders."""
    if not path.endswith(".pth"):
        return True
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return True
    if not any(line.startswith(("import ", "import\t")) for line in lines):
        return False
    return not _is_recorded(Path(path))


def _is_recorded(path: Path) -> bool:
    """Return whether an installed distribution of an index says that the file is its own."""
    for each in importlib.metadata.distributions(path=[str(path.parent)]):
        if each.read_text("direct_url.json") is None and path.name in (each.read_text("RECORD") or ""):
            return True
    return False
