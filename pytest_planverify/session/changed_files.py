"""Which files are not as they were, and whose they are: evidence of who changed what before a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.evidence import ChangedFile
from planner.model.kinds import Side
from pytest_planverify.observe.project_map import ProjectMap

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_planverify.session.changes import Changes

MOST = 50
"""How many changed files evidence holds."""

_PYTHON = (".py", ".pyi")


def changed_files(root: Path, changes: Changes) -> tuple[ChangedFile, ...] | None:
    """What differs from the baseline or the last commit, code first; ``None`` where nothing tells.

    Plans and the reports of earlier runs are left out: they are no part of the work.
    """
    files = changes.files()
    if files is None:
        return None
    apart = changes.apart
    mine = [
        file for file in files if not any(file == each or file.startswith(f"{each}/") for each in apart)
    ]
    project = ProjectMap.discover(root)
    told = [ChangedFile(path=file, side=_side(file, project)) for file in mine]
    return tuple(sorted(told, key=lambda each: (each.side is None, each.path))[:MOST])


def _side(file: str, project: ProjectMap) -> Side | None:
    if not file.endswith(_PYTHON):
        return None
    return Side.TEST if project.is_test(str(project.root / file)) else Side.PRODUCT
