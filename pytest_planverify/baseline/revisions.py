"""The baseline of a git revision: the plan of now, verified over the code and the tests of then."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from typing import TYPE_CHECKING

from planner.edges.baseline_file import baseline_bytes, read_baseline, write_whole
from planner.edges.plan_tree import load_tree
from planner.errors import BaselineError, PlannerError
from pytest_planverify.baseline.keeping import (
    HOME,
    MORE,
    REVISION_REFS,
    KeptBaseline,
    keep_contents,
)
from pytest_planverify.baseline.recording import look, make_baseline
from pytest_planverify.baseline.verifying import verify_apart
from pytest_planverify.repository import GitFailed, Repository
from pytest_planverify.worktrees import checkout, counterpart, environment_for

if TYPE_CHECKING:
    from pathlib import Path

    from planner.edges.plan_tree import FlatPlan


def baseline_at(revision: str, flat: FlatPlan, directory: Path) -> KeptBaseline:
    """What held at a revision; made once for each commit and plan, then kept.

    ``directory`` is where the run was started. Raises :class:`planner.errors.BaselineError`.
    """
    root = flat.loaded.root
    repository = Repository.around(root)
    if repository is None:
        raise BaselineError(
            f"--planverify-baseline {revision}: {root} is under no git repository; record one with "
            "planverify baseline PLAN instead"
        )
    commit = repository.commit(revision)
    if commit is None:
        raise BaselineError(
            f"--planverify-baseline {revision}: there is no such revision in {repository.top}; name a "
            "commit, a tag or a branch"
        )
    name = f"{commit}-{_conditions(flat)}"
    path = root / HOME / MORE / f"{name}.json"
    known = _known(path, repository, f"{REVISION_REFS}/{name}", root)
    return known or _made(revision, commit, flat, directory, path, repository, f"{REVISION_REFS}/{name}")


def _conditions(flat: FlatPlan) -> str:
    """What the result depends on besides the commit: the plan and the interpreter."""
    digest = hashlib.sha256(platform.python_version().encode())
    for part in flat.parts:
        digest.update(part.digest.encode())
    return digest.hexdigest()[:16]


def _known(path: Path, repository: Repository, ref: str, root: Path) -> KeptBaseline | None:
    """The baseline that was made before, where it is just what git keeps of it."""
    if not path.exists():
        return None
    try:
        document, data = read_baseline(path)
    except BaselineError:
        return None
    if repository.kept(ref) != data:  # it can be made again, so nothing that was changed is believed
        return None
    return KeptBaseline(root, document, path=path, repository=repository)


def _made(
    revision: str,
    commit: str,
    flat: FlatPlan,
    directory: Path,
    path: Path,
    repository: Repository,
    ref: str,
) -> KeptBaseline:
    root = flat.loaded.root
    try:
        with checkout(root, commit) as tree:
            plan = _bring_plans(flat, tree)
            inside = counterpart(directory, tree, root)
            there = inside if inside is not None and inside.is_dir() else tree
            copy = load_tree(plan, boundary=there if there in plan.parents else None).load_all().flat()
            seen = look(copy.loaded.root)
            verified = verify_apart(plan, directory=there, env=environment_for(tree, root))
            records = copy.loaded.root / HOME / "runs" / verified.document.run.run_id / "journal.jsonl"
            document, contents = make_baseline(copy, seen, verified.document, records)
    except PlannerError as error:
        raise BaselineError(f"--planverify-baseline {revision}: {error}") from None
    plans = _plan_files(flat)  # those of now; else only what the revision itself holds
    kept = {name: file for name, file in document.files.items() if file.committed or name in plans}
    texts = {file.sha256: contents[file.sha256] for file in kept.values() if file.sha256 in contents}
    document = document.model_copy(update={"revision": commit, "dirty": False, "files": kept})
    data = baseline_bytes(document)
    try:
        keep_contents(root, texts)
        write_whole(path, data)
        repository.keep(ref, data)
    except (OSError, GitFailed):
        pass  # it is made again next time
    return KeptBaseline(root, document, path=path, repository=repository)


def _plan_files(flat: FlatPlan) -> frozenset[str]:
    return frozenset(os.path.relpath(part.path, flat.loaded.root) for part in flat.parts)


def _bring_plans(flat: FlatPlan, tree: Path) -> Path:
    """Lay the plan files of now over those of then."""
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
