"""Which files below a root differ from what they were before the work began."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline


class Differing(NamedTuple):
    """Paths relative to the root, sorted."""

    files: tuple[str, ...]
    """What differs and no person has accepted."""
    added: tuple[str, ...]
    """Those of them that are new."""


def since(
    root: Path, flat: FlatPlan, kept: KeptBaseline | None, commit: str | None = None
) -> Differing | None:
    """What differs below one root of a plan; ``None`` where nothing is known of the time before.

    ``kept`` is what the plan's top root is compared with, and every root below that with its part of it.
    Of a root elsewhere its own baseline counts, or the ``commit`` that the run was asked to compare with.
    """
    top = flat.loaded.root
    if kept is not None and root.is_relative_to(top):
        return _since_baseline(kept, root, os.path.relpath(root, top))
    if commit is not None:
        return _since_commit(root, commit)
    own = _baseline_of(root, flat)
    return None if own is None else _since_baseline(own, root, ".")


def _baseline_of(root: Path, flat: FlatPlan) -> KeptBaseline | None:
    from pytest_planverify.baseline import load_baseline

    parts = (part for part in flat.parts if part.root == root)
    found = (load_baseline(root, part.plan.todo_list_id) for part in parts)
    return next((each for each in found if each is not None), None)


def _since_baseline(kept: KeptBaseline, root: Path, folder: str) -> Differing:
    from pytest_planverify.baseline.work_tree import WorkTree

    before = "" if folder == "." else f"{folder}/"
    then, now = _inside(kept.snapshot().digests(), before), WorkTree(root).digests()
    differing = sorted(
        path
        for path in {*then, *now}
        if then.get(path) != now.get(path)
        and not path.startswith("../")
        and not kept.accepted(before + path, now.get(path))
    )
    return Differing(tuple(differing), tuple(path for path in differing if path not in then))


def _inside(digests: Mapping[str, str], before: str) -> Mapping[str, str]:
    if not before:
        return digests
    return {path[len(before) :]: held for path, held in digests.items() if path.startswith(before)}


def _since_commit(root: Path, commit: str) -> Differing | None:
    """By git alone; ``None`` where the root is of another repository, which has no such commit."""
    from pytest_planverify.baseline.repository import Repository

    repository = Repository.around(root)
    if repository is None or repository.commit(commit) is None:
        return None
    changed, added = repository.differing(commit)
    return Differing(tuple(sorted({*changed, *added})), tuple(sorted(added)))
