"""Baseline of a git revision: the current plan, verified on the code and tests of that revision."""

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
from pytest_planverify.baseline.kept_baseline import (
    REVISION_REFS,
    KeptBaseline,
    keep_contents,
)
from pytest_planverify.baseline.record import look, make_baseline, verify_often
from pytest_planverify.baseline.repository import GitFailed, Repository
from pytest_planverify.baseline.worktrees import checkout, counterpart, environment_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planner.model.baseline import Baseline
    from planner.planfile.tree import FlatPlan


def baseline_at(
    revision: str,
    flat: FlatPlan,
    directory: Path,
    *,
    runs: int = 1,
    option: str = "--planverify-baseline",
    say: Callable[[str], None] = lambda _: None,
) -> KeptBaseline:
    """Return the baseline of a revision, cached by commit and plan.

    ``directory`` is where the run was started, ``runs`` the number of verifications, ``option`` the
    option named in errors. Raises :class:`planner.errors.BaselineError`.
    """
    root = flat.loaded.root
    repository = Repository.around(root)
    if repository is None:
        raise BaselineError(
            f"{option} {revision}: {root} is under no git repository; record one with "
            "planverify baseline PLAN instead"
        )
    commit = repository.commit(revision)
    if commit is None:
        raise BaselineError(
            f"{option} {revision}: there is no such revision in {repository.top}; name a "
            "commit, a tag or a branch"
        )
    # Cache key: the result also depends on plan and interpreter.
    conditions = hashlib.sha256(platform.python_version().encode())
    for part in flat.parts:
        conditions.update(part.digest.encode())
    name = f"{commit}-{conditions.hexdigest()[:16]}"
    path = PlanFolder(root, flat.loaded.plan.todo_list_id).baselines / f"{name}.json"
    ref = f"{REVISION_REFS}/{name}"
    known = _known(path, repository, ref, root)
    if known is not None and known.document.runs >= runs:
        return known
    try:
        document, texts = _made(commit, flat, directory, runs, say)
    except PlannerError as error:
        raise BaselineError(f"{option} {revision}: {error}") from None
    data = baseline_bytes(document)
    with suppress(FileWriteError, GitFailed):  # else recorded again next time
        keep_contents(root, texts)
        replace_file(path, data)
        repository.keep(ref, data)
    return KeptBaseline(root, document, path=path)


def _known(path: Path, repository: Repository, ref: str, root: Path) -> KeptBaseline | None:
    """Return the cached baseline if it equals git's copy."""
    if not path.exists():
        return None
    try:
        document, data = read_baseline(path)
    except BaselineError:
        return None
    if repository.kept(ref) != data:  # a modified cache is recorded again
        return None
    return KeptBaseline(root, document, path=path)


def _made(
    commit: str, flat: FlatPlan, directory: Path, runs: int, say: Callable[[str], None]
) -> tuple[Baseline, dict[str, bytes]]:
    """Record the baseline of a commit; return it with its uncommitted contents by SHA-256."""
    root = flat.loaded.root
    with checkout(root, commit) as tree:
        plan = _bring_plans(flat, tree)
        inside = counterpart(directory, tree, root)
        there = inside if inside is not None and inside.is_dir() else tree
        copy = load_tree(plan, boundary=there if there in plan.parents else None).load_all().flat()
        seen = look(copy.loaded.root)
        env = environment_for(tree, root)
        verified = verify_often(plan, copy.loaded.root, directory=there, runs=runs, env=env, say=say)
        document = make_baseline(copy, seen, verified)
    # Current plan files, else those of the revision.
    plans = {os.path.relpath(part.path, root) for part in flat.parts}
    kept = {
        name: file
        for name, file in document.files.items()
        if file.committed or name in plans or seen.tree.is_nested(name)
    }
    digests = {file.sha256 for file in kept.values()}
    texts = {digest: content for digest, content in seen.contents.items() if digest in digests}
    return document.model_copy(update={"revision": commit, "dirty": False, "files": kept}), texts


def _bring_plans(flat: FlatPlan, tree: Path) -> Path:
    """Copy the current plan files into the tree of the revision."""
    root = flat.loaded.root
    for part in flat.parts:
        place = counterpart(part.path, tree, root)
        if place is None:
            raise BaselineError(f"{part.path} lies outside the repository; keep the plan with the code")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(part.path, place)
    found = counterpart(flat.loaded.path, tree, root)
    assert found is not None
    return found
