"""One turn of work in a work tree of its own, as a function that any worker can call.

What it needs comes with it: the files as a snapshot, and what git ignores and tests may need. What comes
back is what the turn has changed; nobody else's files are touched. Where the store of the snapshots cannot
be shared, as by a worker on another machine, both travel as bundles of git.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import walk
from pytest_planverify.baseline.repository import Repository, git
from pytest_planverify.baseline.worktrees import delete_folder, environment_for
from pytest_planverify.harness.agents import run_turn
from pytest_planverify.harness.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_planverify.harness.agents import Agents, Turn, TurnReport

MOST_CARRIED = 64 << 20
"""Bytes of ignored files that a turn is given; those beyond stay away."""

_OF_PLAN = ("plans", "answers.json", "harness/*/plan.*")
"""What an agent that checks itself needs of the plan's own folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJob:
    """All that a worker needs to know of a turn."""

    turn: Turn
    """As the loop sees it: its folder and its root are not those of the worker."""
    agents: Agents
    briefs: Mapping[str, str]
    before: str
    """The snapshot that the turn begins with."""
    store: Path
    bundle: bytes | None
    """The snapshot, for a worker that does not share the store."""
    carried: bytes
    """Ignored files, as a tar archive."""
    prefix: str
    """How the temporary folders of the run begin."""
    place: str
    """Where the root lies below the parent of its repository's top."""
    has_repository: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The result of a turn, to be judged by the loop."""

    report: TurnReport
    before: str
    after: str
    bundle: bytes | None
    """Both snapshots, for a loop that does not share the store."""
    files: Mapping[str, bytes]
    """What the turn has left in its folder: the output, and what the agent reports."""


def make_job(
    agents: Agents, turn: Turn, snapshots: Snapshots, before: str, run: Path, *, is_shared: bool
) -> TurnJob:
    """Return a turn as a worker takes it; ``run`` is the folder of the run."""
    repository = Repository.around(turn.root)
    top = turn.root if repository is None else repository.top
    with tempfile.TemporaryDirectory() as folder:
        bundle = None if is_shared else snapshots.bundle(Path(folder) / "before", before)
    return TurnJob(
        turn=turn,
        agents=agents,
        briefs={name: (turn.folder / name).read_text("utf-8") for name in ("brief.md", "brief.json")},
        before=before,
        store=snapshots.store,
        bundle=bundle,
        carried=_archive(turn.root, snapshots.files(before)),
        prefix=tree_prefix(run),
        place=f"{top.name}/{turn.root.relative_to(top).as_posix()}",
        has_repository=repository is not None,
    )


def perform_turn(
    job: TurnJob,
    on_output: Callable[[str], None] | None = None,
    watch: Callable[[], None] | None = None,
) -> TurnResult:
    """Let the agent work in a tree that is made for the turn, and is gone afterwards."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=job.prefix)))
    try:
        tree, store = folder / job.place, folder / "objects.git"
        tree.mkdir(parents=True)
        shared = job.store if job.bundle is None else store
        snapshots = Snapshots(tree, folder.name, store=shared, index=folder / "index")
        if job.bundle is not None:
            snapshots.unbundle(folder / "given", job.bundle)
        snapshots.lay_out(job.before)
        _lend(job.turn.root, tree)
        with tarfile.open(fileobj=io.BytesIO(job.carried)) as archive:
            archive.extractall(tree, filter="tar")
        before = snapshots.take("before", job.before)
        if job.has_repository:
            _make_repository(tree, shared, before)
        turn = _with_briefs(job, folder / "turn", tree)
        report = run_turn(
            job.agents,
            turn,
            prompt=job.briefs["brief.md"],
            on_output=on_output,
            watch=watch,
            surroundings=environment_for(tree, job.turn.root),
        )
        after = snapshots.take("after", before)
        bundle = None if job.bundle is None else snapshots.bundle(folder / "back", after, job.before)
        left = {path.name: path.read_bytes() for path in turn.folder.iterdir() if path.is_file()}
        files = {name: content for name, content in left.items() if name not in job.briefs}
        return TurnResult(report=report, before=before, after=after, bundle=bundle, files=files)
    finally:
        delete_folder(folder)


def tree_prefix(run: Path) -> str:
    """Return how the names of the temporary folders of a run begin."""
    return f"planverify-tree-{sha256(os.fsencode(run)).hexdigest()[:12]}-"


def delete_trees(run: Path) -> None:
    """Delete the trees that a run has left behind on this machine when it was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{tree_prefix(run)}*"):
        delete_folder(path)


def _with_briefs(job: TurnJob, folder: Path, tree: Path) -> Turn:
    """Write the briefs for the place where the turn is taken."""
    folder.mkdir()
    turn = replace(job.turn, folder=folder, root=tree)
    brief: dict[str, Any] = json.loads(job.briefs["brief.json"])
    brief["turn"]["result"] = str(turn.result)
    turn.brief.write_text(job.briefs["brief.md"], "utf-8")
    (folder / "brief.json").write_text(json.dumps(brief, indent=2) + "\n", "utf-8")
    return turn


def _make_repository(tree: Path, store: Path, before: str) -> None:
    """Let the agent see a repository whose last commit is the state before its turn."""
    git(tree, "init", "--quiet")
    # The objects are borrowed, not copied: a store may hold the whole history of a run.
    (tree / ".git/objects/info/alternates").write_text(f"{store / 'objects'}\n")
    git(tree, "update-ref", "HEAD", before)
    git(tree, "reset", "--quiet")


def _lend(root: Path, tree: Path) -> None:
    """Link the virtual environments of the original, where this machine has them, and ``node_modules``."""
    if not root.is_dir():
        return
    for path in root.iterdir():
        is_lent = path.name == "node_modules" or (path / "pyvenv.cfg").is_file()
        if is_lent and path.is_dir() and not os.path.lexists(tree / path.name):
            (tree / path.name).symlink_to(path, target_is_directory=True)


def _archive(root: Path, known: frozenset[str]) -> bytes:
    """Pack the files that no snapshot has: ignored ones, and what the plan keeps for verifications."""
    packed, left = io.BytesIO(), MOST_CARRIED
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in _carried(root, known):
            try:
                left -= (root / path).lstat().st_size
                if left < 0:
                    break
                archive.add(root / path, path, recursive=False)
            except OSError:  # gone in the meantime, or nobody may read it
                continue
    return packed.getvalue()


def _carried(root: Path, known: frozenset[str]) -> Iterator[str]:
    for pattern in _OF_PLAN:
        for path in (root / HOME).glob(pattern):
            for file in (path, *path.rglob("*")):
                if file.is_file():
                    yield file.relative_to(root).as_posix()
    yield from (path for path in walk(root) if path not in known)
