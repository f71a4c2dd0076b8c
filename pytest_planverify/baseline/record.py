"""Makes a baseline: what the plan's checks and tests say, and what every file below the root holds."""

from __future__ import annotations

import getpass
import hashlib
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from planner.model.baseline import Baseline, BaselineFile, BaselineTest
from planner.model.verdicts import TestOutcome
from pytest_planverify.baseline.answers import all_records, broken_files, tests_of, todos_of
from pytest_planverify.baseline.inventory import inventory_of
from pytest_planverify.baseline.kinds import judges_of
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.baseline.work_tree import WorkTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.answers import Run

LARGEST_COPY = 5 << 20
MOST_COPIED = 256 << 20
"""Of a larger file that no commit holds, and of what goes beyond this, only the sha256 is kept."""


class SeenFile(NamedTuple):
    """One file; its content is held where no commit holds it and it is not too large."""

    sha256: str
    size: int
    committed: bool
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The files of a tree before anything of it ran."""

    tree: WorkTree
    files: Mapping[str, SeenFile]
    revision: str | None = None
    dirty: bool = False


def look(root: Path) -> Seen:
    """See what the files are, so that what tests leave behind does not count among them."""
    repository = Repository.around(root)
    tree = WorkTree(root, repository)
    commit = None if repository is None else repository.commit("HEAD")
    blobs: Mapping[str, str] = {}
    if repository is not None and commit is not None:
        blobs = repository.blobs(commit, *(path for path in tree.paths() if path.startswith("../")))
    files: dict[str, SeenFile] = {}
    held = 0
    for path in tree.paths():
        content = tree.read(path)
        if content is not None:
            blob = blobs.get(path)
            committed = blob is not None and blob == object_id(content, len(blob))
            digest = hashlib.sha256(content).hexdigest()
            copied = not committed and len(content) <= LARGEST_COPY and held + len(content) <= MOST_COPIED
            held += len(content) if copied else 0
            files[path] = SeenFile(digest, len(content), committed, content if copied else None)
    dirty = any(not file.committed and not tree.is_nested(path) for path, file in files.items()) or any(
        path not in files and not path.startswith("../") for path in blobs
    )
    return Seen(tree=tree, files=files, revision=commit, dirty=commit is not None and dirty)


def make_baseline(flat: FlatPlan, seen: Seen, runs: Sequence[Run]) -> tuple[Baseline, dict[str, bytes]]:
    """The baseline that one or several runs of the plan make, and by sha256 what no commit holds."""
    tests = dict(tests_of(flat, runs))
    for path in broken_files(runs):
        tests.setdefault(path, BaselineTest(outcome=TestOutcome.ERROR))
    judges = judges_of(flat, {nodeid.partition("::")[0] for nodeid in tests}, seen.tree)
    files: dict[str, BaselineFile] = {}
    contents: dict[str, bytes] = {}
    for path, file in seen.files.items():
        kind = judges.kind_of(path)
        if file.content is not None:
            contents[file.sha256] = file.content
        files[path] = BaselineFile(sha256=file.sha256, size=file.size, kind=kind, committed=file.committed)
    document = Baseline(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now(),
        revision=seen.revision,
        dirty=seen.dirty,
        python=platform.python_version(),
        pytest=runs[0].document.run.pytest,
        runs=len(runs),
        run_id=runs[0].document.run.run_id,
        todos=dict(todos_of(flat, runs)),
        tests=dict(sorted(tests.items())),
        files=dict(sorted(files.items())),
        inventory=inventory_of(all_records(runs), flat.loaded.root),
        sub_plans={name: part.plan.todo_list_id for name, part in flat.files.items()},
    )
    return document, contents


def now() -> str:
    """The time, as RFC 3339 has it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def user() -> str | None:
    """Who is at work, as far as the system tells."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name
        return None


def object_id(content: bytes, digits: int = 40) -> str:
    """The name that git gives a content, in a repository whose names have that many digits."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()
