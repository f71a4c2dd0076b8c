"""Concurrent turns, submitted to a ``concurrent.futures.Executor``.

The executor has threads of this process, or is a dask cluster, which resubmits a turn if its worker is
lost. Each result is returned at most once. Turns that may change the same files are returned in the order
of their submission; all others as they finish.
"""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from pytest_planverify.harness.turns import perform_turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from pytest_planverify.harness.turns import TurnJob, TurnResult

THREADS = "threads"
"""Name of the executor with threads of this process."""
MOST_LOST = 3
"""Number of times that a cluster resubmits a turn before its workers count as lost."""


class _Stopped(Exception):
    """Raised inside a turn whose result is no longer wanted; ends its agent."""


@dataclass(slots=True)
class SentTurn:
    """A submitted turn with its future result."""

    job: TurnJob
    merges: int
    """Number of turns that had been merged when its snapshot was taken."""
    future: Future[TurnResult] = field(default_factory=Future[Any])
    stop: threading.Event = field(default_factory=threading.Event)

    def may_conflict_with(self, other: SentTurn) -> bool:
        """Return whether both turns may change the same file, because one of them has no allowlist.

        Turns with overlapping allowlists are not sent together: the engine separates todos by the files
        that they name.
        """
        return None in (each.job.turn.action.bounds.allowed_files for each in (self, other))


class TurnPool:
    """Executor of turns, with those that are submitted and not returned yet, in order of submission.

    All methods are called by the loop's thread.
    """

    def __init__(self, jobs: int, executor: str, on_output: Callable[[str], None]) -> None:
        """Start the executor, ``threads`` or ``dask://HOST:PORT``, for ``jobs`` concurrent turns.

        ``on_output`` is called with agents' output, from the threads of their turns; a cluster returns no
        output meanwhile. Raises :class:`PlannerError` if the cluster cannot be reached.
        """
        self.is_shared = executor == THREADS
        """Whether the workers share the files of this machine."""
        self.jobs = jobs
        self._on_output = on_output
        self._sent: list[SentTurn] = []
        self._client: Any = None
        self._executor: Executor
        if self.is_shared:
            self._executor = ThreadPoolExecutor(jobs, "planverify-turn")
        else:
            self._client = _connect(executor)
            self._executor = self._client.get_executor(pure=False, retries=MOST_LOST)

    @property
    def is_busy(self) -> bool:
        """Return whether any submitted turn has not been returned yet."""
        return bool(self._sent)

    def send(self, sent: SentTurn) -> None:
        """Submit a turn, and set its future."""

        def watch() -> None:
            if sent.stop.is_set():
                raise _Stopped

        if self.is_shared:
            sent.future = self._executor.submit(perform_turn, sent.job, self._on_output, watch)
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
        for at, sent in enumerate(self._sent):
            waits = any(sent.may_conflict_with(other) for other in self._sent[:at])
            if waits or not sent.future.done():
                continue
            self._sent.remove(sent)
            if sent.future.cancelled():
                return sent, None
            if isinstance(error := sent.future.exception(), (PlannerError, OSError)):
                raise error
            return sent, sent.future.result() if error is None else None
        return None

    def drop(self, todo_id: str) -> bool:
        """Cancel the turn on a todo; return whether its agent was running on this machine.

        That agent has ended when this returns. A turn that a cluster already runs is only forgotten.
        """
        running: list[Future[TurnResult]] = []
        for sent in [each for each in self._sent if each.job.turn.action.todo_id == todo_id]:
            self._sent.remove(sent)
            sent.stop.set()
            if not sent.future.cancel() and self.is_shared:
                running.append(sent.future)
        wait(running)
        return bool(running)

    def drop_all(self) -> None:
        """Cancel all turns, and wait until their agents on this machine have ended."""
        # All are asked to stop before the first is waited for, so that they end concurrently.
        for sent in self._sent:
            sent.stop.set()
        for sent in tuple(self._sent):
            self.drop(sent.job.turn.action.todo_id)

    def close(self) -> None:
        """Cancel all turns and shut the executor down."""
        self.drop_all()
        self._executor.shutdown(wait=self.is_shared)
        if self._client is not None:
            self._client.close()


def count_workers(executor: str) -> int:
    """Return the number of turns that a cluster can run concurrently, one for each of its threads.

    Raises :class:`PlannerError` if the cluster cannot be reached.
    """
    client = _connect(executor)
    try:
        return max(1, sum(client.nthreads().values()))
    finally:
        client.close()


def _connect(executor: str) -> Any:
    """Return a client of the cluster ``dask://HOST:PORT``.

    Raises :class:`PlannerError` for another name, without dask, or if no scheduler answers.
    """
    address = executor.removeprefix("dask://")
    if address == executor or ":" not in address:
        raise PlannerError(f"--executor {executor}: write {THREADS} or dask://HOST:PORT")
    try:
        from distributed import Client
    except ImportError:
        raise PlannerError(
            f"--executor {executor} needs dask.distributed; pip install 'pytest-planverify[dask]'"
        ) from None
    try:
        return Client(f"tcp://{address}", timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise PlannerError(
            f"--executor {executor}: no scheduler answers there ({why}); start one"
        ) from None
