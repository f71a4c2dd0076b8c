"""Baseline of a git revision: the current plan, verified on the code and tests of that revision.

The revision is checked out into a temporary work tree, and the current plan files are copied into it. The
result is cached by commit, plan and Python version, with a copy in git against manipulation.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.errors import BaselineError, FileWriteError, PlannerError
from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.record_files import baseline_bytes, read_baseline
from planner.planfile.tree import load_tree
from pytest_planverify.baseline.kept_baseline import REVISION_REFS, KeptBaseline, keep_contents
from pytest_planverify.baseline.record import look, make_baseline
from pytest_planverify.baseline.repository import GitFailed, Repository
from pytest_planverify.baseline.worktrees import checkout, counterpart, environment_for

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.baseline import Baseline
    from planner.planfile.tree import FlatPlan


def baseline_at(revision: str, flat: FlatPlan, directory: Path) -> KeptBaseline:
    """Return the baseline of a revision, from the cache or recorded now.

    ``directory`` is where the run was started. Raises :class:`planner.errors.BaselineError` without git,
    for an unknown revision, or if the plan cannot be verified there.
    """
    asked = f"--planverify-baseline {revision}"
    root = flat.loaded.root
    repository = Repository.around(root)
    if repository is None:
        raise BaselineError(
            f"{asked}: {root} is not in a git repository; record a baseline with planverify "
            "baseline PLAN instead"
        )
    commit = repository.commit(revision)
    if commit is None:
        raise BaselineError(
            f"{asked}: unknown revision in {repository.top}; name a commit, a tag or a branch"
        )
    # The cache's key: results depend on the commit, the plan files and the interpreter.
    conditions = hashlib.sha256(platform.python_version().encode())
    for part in flat.parts:
        conditions.update(part.digest.encode())
    name = f"{commit}-{conditions.hexdigest()[:16]}"
    path = PlanFolder(root, flat.loaded.plan.todo_list_id).baselines / f"{name}.json"
    ref = f"{REVISION_REFS}/{name}"
    with suppress(BaselineError):
        document, data = read_baseline(path)
        if repository.kept(ref) == data:  # a modified cache is recorded again
            return KeptBaseline(root, document, path=path)
    try:
        document, contents = _record_at(repository, commit, flat, directory)
    except PlannerError as error:
        raise BaselineError(f"{asked}: {error}") from None
    data = baseline_bytes(document)
    with suppress(FileWriteError, GitFailed):  # without a cache it is recorded again next time
        keep_contents(root, contents)
        replace_file(path, data)
        repository.keep(ref, data)
    return KeptBaseline(root, document, path=path)


def _record_at(
    repository: Repository, commit: str, flat: FlatPlan, directory: Path
) -> tuple[Baseline, dict[str, bytes]]:
    """Record the baseline of a commit; return it with its uncommitted contents by SHA-256."""
    root = flat.loaded.root
    with checkout(repository, commit) as tree:
        plan = _copy_plans(flat, tree)
        inside = counterpart(directory, tree, root)
        # The revision may lack the folder in which the run was started.
        working = inside if inside is not None and inside.is_dir() else tree
        # As for the original, the plan's root may lie anywhere below the folder where the run was started.
        copy = load_tree(plan, boundary=working if working in plan.parents else None).load_all().flat()
        seen = look(copy.loaded.root)
        document, _ = make_baseline(copy, seen, directory=working, env=environment_for(tree, root))
    # Of uncommitted files only the plans, which are the current ones, and files of submodules belong to it.
    plans = {os.path.relpath(part.path, root) for part in flat.parts}
    kept = {
        name: file
        for name, file in document.files.items()
        if file.committed or name in plans or seen.tree.is_nested(name)
    }
    digests = {file.sha256 for file in kept.values()}
    contents = {digest: content for digest, content in seen.contents.items() if digest in digests}
    return document.model_copy(update={"revision": commit, "dirty": False, "files": kept}), contents


def _copy_plans(flat: FlatPlan, tree: Path) -> Path:
    """Copy the current plan files into the tree of the revision; return the top plan's path there.

    Raises :class:`planner.errors.BaselineError` if one lies outside of the repository.
    """
    root = flat.loaded.root
    for part in flat.parts:
        place = counterpart(part.path, tree, root)
        if place is None:
            raise BaselineError(f"{part.path} is outside of the repository; keep the plan with the code")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(part.path, place)
    found = counterpart(flat.loaded.path, tree, root)
    assert found is not None
    return found
