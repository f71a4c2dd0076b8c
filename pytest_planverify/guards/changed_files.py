"""Files below a root that differ from before the work began, and those that the runs themselves left."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline


LEFT_BY_RUNS = "left_by_runs.json"
MOST_FILES = 10_000
_LARGEST = 64 << 20
_NEVER_LEFT = frozenset(
    {".py", ".pyi", ".pyx", ".so", ".pth", ".toml", ".cfg", ".ini", ".sh", ".yaml", ".yml", ".js", ".ts"}
)
"""Endings of files that make a project do something else; a run that writes one is not excused."""


class Differing(NamedTuple):
    """Paths relative to the root, sorted."""

    files: tuple[str, ...]
    """What differs and no person has accepted."""
    added: tuple[str, ...]
    """Those of them that are new."""


def since(
    root: Path, flat: FlatPlan, kept: KeptBaseline | None, commit: str | None = None
) -> Differing | None:
    """Return what differs below one root of a plan; ``None`` where nothing is known of the time before.

    ``kept`` is what the plan's top root is compared with, and every root below that with its part of it.
    Of a root elsewhere its own baseline counts, or the ``commit`` that the run was asked to compare with.
    """
    from pytest_planverify.baseline import load_baseline
    from pytest_planverify.baseline.work_tree import WorkTree

    folder = ""
    if kept is not None and root.is_relative_to(flat.loaded.root):
        folder = os.path.relpath(root, flat.loaded.root) + "/"
    elif commit is not None:
        return _since_commit(root, commit)
    else:
        own = (load_baseline(root, part.plan.todo_list_id) for part in flat.parts if part.root == root)
        kept = next((each for each in own if each is not None), None)
        if kept is None:
            return None
    folder = folder.removeprefix("./")
    held = kept.digests().items()
    then = {path.removeprefix(folder): digest for path, digest in held if path.startswith(folder)}
    now = WorkTree(root).digests()
    differing = sorted(
        path
        for path in {*then, *now}
        if then.get(path) != now.get(path)
        and not path.startswith("../")
        and not kept.accepted(folder + path, now.get(path))
    )
    return Differing(tuple(differing), tuple(path for path in differing if path not in then))


def _since_commit(root: Path, commit: str) -> Differing | None:
    """Ask git alone; ``None`` where the root is of another repository, which has no such commit."""
    from pytest_planverify.baseline.repository import Repository

    repository = Repository.around(root)
    if repository is None or repository.commit(commit) is None:
        return None
    changed, added = repository.differing(commit)
    return Differing(tuple(sorted({*changed, *added})), tuple(sorted(added)))


# Only a new file that is no source or setting, and that is still what the run left, counts as the run's.
# What tests make of files that were there is told like anybody's change.


def left_by_runs(home: Path, root: Path, files: Iterable[str]) -> set[str]:
    """Return those of the files below the root that are just as an earlier run left them."""
    known = _read(home).get(str(root), {})
    return {file for file in files if file in known and known[file] == _digest(root / file)}


def remember(home: Path, root: Path, before: Collection[str], after: Iterable[str]) -> None:
    """Note the files that are new since before the run, beside those of earlier runs that are unchanged."""
    from planner.planfile.file_writer import replace_file

    found = _read(home)
    known = found.get(str(root), {})
    new = [file for file in after if file not in before and PurePosixPath(file).suffix not in _NEVER_LEFT]
    digests = {file: _digest(root / file) for file in new[:MOST_FILES]}
    kept = {file: known[file] for file in left_by_runs(home, root, before)}
    kept |= {file: digest for file, digest in digests.items() if digest is not None}
    if kept != known:
        found[str(root)] = kept
        replace_file(home / LEFT_BY_RUNS, json.dumps({"version": 1, "roots": found}, indent=1))


def _read(home: Path) -> dict[str, dict[str, str]]:
    try:
        data: Any = json.loads((home / LEFT_BY_RUNS).read_bytes())
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
