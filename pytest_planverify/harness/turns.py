"""One turn of work in a temporary work tree, as a function that any worker can run.

The job has the files as a snapshot, together with ignored files that tests may need; the result has the
changes as two snapshots. The user's tree is not touched: the loop judges and merges the result. A worker
that cannot access the snapshot store, for example on another machine, exchanges git bundles.
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
"""Limit in bytes of the ignored files that are sent with a turn."""

_PLAN_RECORDS = ("plans", "answers.json", "harness/*/plan.*")
"""Files of ``.planverify`` that an agent needs to verify its own work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJob:
    """Everything that a worker needs for a turn."""

    turn: Turn
    """The turn with the loop's folder and root, not the worker's."""
    agents: Agents
    briefs: Mapping[str, str]
    """Contents of the briefs by file name."""
    before: str
    """Id of the snapshot that the turn starts from."""
    store: Path
    """The loop's snapshot store."""
    bundle: bytes | None
    """The snapshot as a bundle, for a worker without access to the store."""
    carried: bytes
    """Ignored files and plan records, as a tar archive."""
    prefix: str
    """Prefix of the run's temporary folders, see :func:`tree_prefix`."""
    place: str
    """Path of the root below the parent of the repository's top, which the temporary tree repeats."""
    has_repository: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """Result of a turn, to be judged by the loop."""

    report: TurnReport
    before: str
    """Id of the snapshot before the agent, with the carried files."""
    after: str
    bundle: bytes | None
    """Both snapshots as a bundle, for a loop without access to the store."""
    files: Mapping[str, bytes]
    """Files of the turn's folder: output and the agent's report."""


def make_job(
    agents: Agents, turn: Turn, snapshots: Snapshots, before: str, run: Path, *, is_shared: bool
) -> TurnJob:
    """Return the job for a turn.

    ``before`` is the snapshot to start from, ``run`` the folder of the run. With ``is_shared`` the worker
    accesses the store of the snapshots; otherwise the job contains a bundle. Raises
    :class:`~pytest_planverify.harness.snapshots.SnapshotError`.
    """
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
    """Run the agent of a job in a temporary tree; return its changes, to be judged by the loop.

    ``on_output`` and ``watch`` are those of :func:`~pytest_planverify.harness.agents.run_turn`. The tree is
    deleted in any case.
    """

    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=job.prefix)))
    try:
        tree, store = folder / job.place, folder / "objects.git"
        tree.mkdir(parents=True)
        shared = job.store if job.bundle is None else store
        snapshots = Snapshots(tree, folder.name, store=shared, index=folder / "index")
        if job.bundle is not None:
            snapshots.unbundle(folder / "given", job.bundle)
        snapshots.lay_out(job.before)
        _link_environments(job.turn.root, tree)
        with tarfile.open(fileobj=io.BytesIO(job.carried)) as archive:
            archive.extractall(tree, filter="tar")
        # The carried files become part of the initial state, so that they are no changes of the turn.
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
        contents = {path.name: path.read_bytes() for path in turn.folder.iterdir() if path.is_file()}
        files = {name: content for name, content in contents.items() if name not in job.briefs}
        return TurnResult(report=report, before=before, after=after, bundle=bundle, files=files)
    finally:
        delete_folder(folder)


def tree_prefix(run: Path) -> str:
    """Return the prefix of a run's temporary folders, by which they are found after a kill."""
    return f"planverify-tree-{sha256(os.fsencode(run)).hexdigest()[:12]}-"


def delete_trees(run: Path) -> None:
    """Delete the temporary folders that a killed run left on this machine."""
    for path in Path(tempfile.gettempdir()).glob(f"{tree_prefix(run)}*"):
        delete_folder(path)


def _with_briefs(job: TurnJob, folder: Path, tree: Path) -> Turn:
    """Write the briefs into the worker's ``folder``; return the turn with the worker's paths."""
    folder.mkdir()
    turn = replace(job.turn, folder=folder, root=tree)
    brief: dict[str, Any] = json.loads(job.briefs["brief.json"])
    brief["turn"]["result"] = str(turn.result)
    turn.brief.write_text(job.briefs["brief.md"], "utf-8")
    (folder / "brief.json").write_text(json.dumps(brief, indent=2) + "\n", "utf-8")
    return turn


def _make_repository(tree: Path, store: Path, before: str) -> None:
    """Create a git repository in the tree whose last commit is the state before the turn."""
    git(tree, "init", "--quiet")
    # Objects are shared by alternates instead of copied, as the store may contain a run's whole history.
    (tree / ".git/objects/info/alternates").write_text(f"{store / 'objects'}\n")
    git(tree, "update-ref", "HEAD", before)
    git(tree, "reset", "--quiet")


def _link_environments(root: Path, tree: Path) -> None:
    """Link the virtual environments and ``node_modules`` of the user's tree, if this machine has them."""
    if not root.is_dir():
        return
    for path in root.iterdir():
        is_environment = path.name == "node_modules" or (path / "pyvenv.cfg").is_file()
        if is_environment and path.is_dir() and not os.path.lexists(tree / path.name):
            (tree / path.name).symlink_to(path, target_is_directory=True)


def _archive(root: Path, known: frozenset[str]) -> bytes:
    """Return a tar archive of the files that no snapshot contains, up to ``MOST_CARRIED`` bytes.

    ``known`` are the files of the snapshot. Plan records come first, because agents need them to verify
    their work; then ignored files.
    """
    packed, remaining = io.BytesIO(), MOST_CARRIED
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in _carried(root, known):
            try:
                remaining -= (root / path).lstat().st_size
                if remaining < 0:
                    break
                archive.add(root / path, path, recursive=False)
            except OSError:  # deleted in the meantime, or unreadable
                continue
    return packed.getvalue()


def _carried(root: Path, known: frozenset[str]) -> Iterator[str]:
    """Yield the paths to send with a turn, relative to the root: plan records, then unknown files."""
    for pattern in _PLAN_RECORDS:
        for path in (root / HOME).glob(pattern):
            for file in (path, *path.rglob("*")):
                if file.is_file():
                    yield file.relative_to(root).as_posix()
    yield from (path for path in walk(root) if path not in known)
