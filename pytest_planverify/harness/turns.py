"""Turns of work in temporary work trees, as jobs that any worker can run, and the pool that runs them.

A job has the files as a snapshot, together with ignored files that tests may need; its result has the
changes as two snapshots. The user's tree is not touched: the loop judges and merges the result. A worker
that cannot access the snapshot store, for example on another machine, exchanges git bundles.

The pool's ``concurrent.futures.Executor`` has threads of this process, or is a dask cluster, which
resubmits a turn if its worker is lost. Each result is returned at most once. Turns that may change the same
files are returned in the order of their submission; all others as they finish.
"""

from __future__ import annotations

import io
import json
import socket
import tarfile
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from planner.cli.exits import UsageMistake
from planner.errors import PlannerError
from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import walk
from planner.text.sanitizing import one_line
from pytest_planverify.baseline.repository import Repository, git
from pytest_planverify.baseline.worktrees import environment_for, link_environments, temporary_folder
from pytest_planverify.harness.agents import run_turn
from pytest_planverify.harness.snapshots import Snapshots, tree_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from pytest_planverify.harness.agents import Agents, Turn, TurnReport

MOST_CARRIED = 64 << 20
"""Limit in bytes of the ignored files that are sent with a turn."""
THREADS = "threads"
"""Name of the executor with threads of this process."""
_ANSWER_SECONDS = 10
"""Time within which the scheduler of a cluster has to answer."""
MOST_LOST = 3
"""Number of times that a cluster resubmits a turn before its workers count as lost."""

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
    :class:`planner.errors.PlannerError`.
    """
    repository = Repository.around(turn.root)
    top = turn.root if repository is None else repository.top
    return TurnJob(
        turn=turn,
        agents=agents,
        briefs={name: (turn.folder / name).read_text("utf-8") for name in ("brief.md", "brief.json")},
        before=before,
        store=snapshots.store,
        bundle=None if is_shared else snapshots.bundle(before),
        carried=_archive(turn.root, snapshots.files(before)),
        prefix=tree_prefix(run),
        place=f"{top.name}/{turn.root.relative_to(top).as_posix()}",
        has_repository=repository is not None,
    )


def perform_turn(job: TurnJob, watch: Callable[[], None] | None = None) -> TurnResult:
    """Run the agent of a job in a temporary tree; return its changes, to be judged by the loop.

    ``watch`` is that of :func:`~pytest_planverify.harness.agents.run_turn`. The tree is deleted in any
    case.
    """
    # The prefix names the run, so that its successor finds the tree if this process is killed.
    with temporary_folder(job.prefix) as folder:
        tree, store = folder / job.place, folder / "objects.git"
        tree.mkdir(parents=True)
        shared = job.store if job.bundle is None else store
        snapshots = Snapshots(tree, folder.name, store=shared, index=folder / "index")
        if job.bundle is not None:
            snapshots.unbundle(job.bundle)
        snapshots.lay_out(job.before)
        link_environments(job.turn.root, tree)
        with tarfile.open(fileobj=io.BytesIO(job.carried)) as archive:
            archive.extractall(tree, filter="tar")
        # The carried files become part of the initial state, so that they are no changes of the turn.
        before = snapshots.take("before", job.before)
        if job.has_repository:  # whose last commit is the state before the turn
            git(tree, "init", "--quiet")
            # Objects are shared by alternates, not copied: the store may contain a run's whole history.
            (tree / ".git/objects/info/alternates").write_text(f"{shared / 'objects'}\n")
            git(tree, "update-ref", "HEAD", before)
            git(tree, "reset", "--quiet")
        turn = replace(job.turn, folder=folder / "turn", root=tree)
        turn.folder.mkdir()
        brief: dict[str, Any] = json.loads(job.briefs["brief.json"])
        brief["turn"]["result"] = str(turn.result)
        briefs = {**job.briefs, "brief.json": json.dumps(brief, indent=2) + "\n"}
        for name, content in briefs.items():
            (turn.folder / name).write_text(content, "utf-8")
        report = run_turn(
            job.agents,
            turn,
            prompt=job.briefs["brief.md"],
            watch=watch,
            surroundings=environment_for(tree, job.turn.root),
        )
        after = snapshots.take("after", before, since=before)
        bundle = None if job.bundle is None else snapshots.bundle(after, job.before)
        contents = {path.name: path.read_bytes() for path in turn.folder.iterdir() if path.is_file()}
        files = {name: content for name, content in contents.items() if name not in job.briefs}
        return TurnResult(report=report, before=before, after=after, bundle=bundle, files=files)


def _archive(root: Path, known: frozenset[str]) -> bytes:
    """Return a tar archive of the plan records, and of the files that no snapshot contains.

    ``known`` are the files of the snapshot. At most ``MOST_CARRIED`` bytes are packed.
    """
    # The records come first, within the limit: without them agents cannot verify their work.
    named = (path for pattern in _PLAN_RECORDS for path in (root / HOME).glob(pattern))
    files = (file for path in named for file in (path, *path.rglob("*")) if file.is_file())
    records = (file.relative_to(root).as_posix() for file in files)
    packed, remaining = io.BytesIO(), MOST_CARRIED
    with tarfile.open(fileobj=packed, mode="w") as archive:
        # Without .git of linked work trees and submodules, which would make the copy one of the original.
        unknown = (path for path in walk(root) if path not in known and not f"/{path}".endswith("/.git"))
        for path in chain(records, unknown):
            try:
                size = (root / path).lstat().st_size
                if size <= remaining:  # else smaller files behind it may fit
                    archive.add(root / path, path, recursive=False)
                    remaining -= size
            except OSError:  # deleted in the meantime, or unreadable
                continue
    return packed.getvalue()


# -- the pool ------------------------------------------------------------------------------------------


class _Stopped(Exception):
    """Raised inside a turn whose result is no longer wanted; ends its agent."""


@dataclass(slots=True)
class SentTurn:
    """A submitted turn with its future result."""

    job: TurnJob
    future: Future[TurnResult] = field(default_factory=Future[Any])
    stop: threading.Event = field(default_factory=threading.Event)


class TurnPool:
    """Executor of turns, with those that are submitted and not returned yet, in order of submission.

    All methods are called by the loop's thread.
    """

    def __init__(self, jobs: int | None, executor: str) -> None:
        """Start the executor, ``threads`` or ``dask://HOST:PORT``, for ``jobs`` concurrent turns.

        Without ``jobs`` that is one on this machine, or one for each thread of the cluster. Raises
        :class:`PlannerError` if the cluster cannot be reached.
        """
        self.is_shared = executor == THREADS
        """Whether the workers share the files of this machine."""
        self._sent: list[SentTurn] = []
        self._client: Any = None
        self._executor: Executor
        if self.is_shared:
            self.jobs = jobs or 1
            """Limit of concurrent turns."""
            self._executor = ThreadPoolExecutor(self.jobs, "planverify-turn")
        else:
            self._client = _connect(executor)
            self.jobs = jobs or max(1, sum(self._client.nthreads().values()))
            # Not pure: dask would return the result of an earlier turn for an equal job.
            self._executor = self._client.get_executor(pure=False, retries=MOST_LOST)
        self.is_apart = self.jobs > 1 or not self.is_shared
        """Whether turns run here, in trees of their own; else the loop runs them in the user's tree."""

    @property
    def is_busy(self) -> bool:
        """Return whether any submitted turn has not been returned yet."""
        return bool(self._sent)

    def send(self, sent: SentTurn) -> None:
        """Submit a turn, and set its future."""

        def watch() -> None:
            if sent.stop.is_set():
                raise _Stopped

        # A cluster calls nothing back, so that its turns cannot be stopped.
        if self.is_shared:
            sent.future = self._executor.submit(perform_turn, sent.job, watch)
        else:
            sent.future = self._executor.submit(perform_turn, sent.job)
        self._sent.append(sent)

    def wait(self, seconds: float) -> None:
        """Wait until any turn has finished, at most ``seconds``."""
        wait([each.future for each in self._sent], seconds, FIRST_COMPLETED)

    def take_ended(self) -> tuple[SentTurn, TurnResult | None] | None:
        """Return a finished turn with its result (``None`` if its workers were lost), or ``None``.

        The turn that was submitted first has precedence. A turn that may change the same files as an
        earlier one is not returned before that. Raises :class:`PlannerError` or ``OSError`` if a turn could
        not be run.
        """
        # Turns with overlapping allowlists are not sent together, because the engine separates todos by the
        # files that they name; but a turn without an allowlist may change any file.
        free = [each.job.turn.action.bounds.allowed_files is None for each in self._sent]
        for at, sent in enumerate(self._sent):
            if (at and any(free[: at + 1])) or not sent.future.done():
                continue
            self._sent.remove(sent)
            if sent.future.cancelled():
                return sent, None
            # Others, such as KilledWorker of dask, mean that the workers were lost.
            if isinstance(error := sent.future.exception(), (PlannerError, OSError)):
                raise error
            return sent, sent.future.result() if error is None else None
        return None

    def drop(self, todo_id: str | None = None) -> None:
        """Cancel the turn on a todo, or all turns.

        Agents that ran on this machine have ended when this returns. Turns that a cluster already runs are
        only forgotten.
        """
        dropped = [each for each in self._sent if todo_id in (None, each.job.turn.action.todo_id)]
        for sent in dropped:
            self._sent.remove(sent)
            # All are asked to stop before the first is waited for, so that they end concurrently.
            sent.stop.set()
        wait([sent.future for sent in dropped if not sent.future.cancel() and self.is_shared])

    def close(self) -> None:
        """Cancel all turns and shut the executor down."""
        self.drop()
        self._executor.shutdown(wait=self.is_shared)
        if self._client is not None:
            self._client.close()


def _connect(executor: str) -> Any:
    """Return a client of the cluster ``dask://HOST:PORT``.

    Raises ``UsageMistake`` for another name, and :class:`PlannerError` without dask, or if no scheduler
    answers.
    """
    address = executor.removeprefix("dask://")
    if address == executor or ":" not in address:
        raise UsageMistake(f"--executor {executor}: write {THREADS} or dask://HOST:PORT")
    try:
        from distributed import Client
    except ImportError:
        raise PlannerError(
            f"--executor {executor} needs dask.distributed; pip install 'pytest-planverify[dask]'"
        ) from None
    host, _, port = address.rpartition(":")
    try:
        place = host.strip("[]"), int(port)  # an IPv6 address stands in brackets
        # A scheduler speaks first; the client would wait for ever for a port that is silent.
        with suppress(ConnectionRefusedError), socket.create_connection(place, _ANSWER_SECONDS) as probe:
            probe.recv(1)
        return Client(f"tcp://{address}", timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        why = one_line(error, limit=200)
        raise PlannerError(
            f"--executor {executor}: no scheduler answers there ({why}); start one"
        ) from None
