"""Files below a root that differ from before the work began."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
