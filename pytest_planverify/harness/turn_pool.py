"""Concurrent turns: submitted to a ``concurrent.futures.Executor`` and taken back in order.

The executor has threads of this process, or is a dask cluster, which resubmits a turn if its worker is
lost; results are handed out at most once.
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
MOST_LOST = 3
"""Number of times that a cluster resubmits a turn before its workers count as lost."""


class _Stopped(Exception):
    """The turn is no longer wanted."""


@dataclass(slots=True)
class SentTurn:
    """A submitted turn."""

    job: TurnJob
    merges: int
    """Number of turns merged when its snapshot was taken."""
    future: Future[TurnResult] = field(default_factory=Future[Any])
    stop: threading.Event = field(default_factory=threading.Event)

    def may_touch_those_of(self, other: SentTurn) -> bool:
        """Return whether both may change the same file. The engine separates todos only by the files
        that they name.
        """
        return None in (each.job.turn.action.bounds.allowed_files for each in (self, other))


class TurnPool:
    """The submitted turns, in order of submission."""

    def __init__(self, jobs: int, executor: str, on_output: Callable[[str], None]) -> None:
        """``executor`` is ``threads`` or ``dask://HOST:PORT``; raises :class:`PlannerError`."""
        self.is_shared = executor == THREADS
        """Workers share the files of this machine."""
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
        """Return whether a turn is running."""
        return bool(self._sent)

    def send(self, sent: SentTurn) -> None:
        """Submit a turn."""

        def watch() -> None:
            if sent.stop.is_set():
                raise _Stopped

        if self.is_shared:
            sent.future = self._executor.submit(perform_turn, sent.job, self._on_output, watch)
        else:
            sent.future = self._executor.submit(perform_turn, sent.job)
        self._sent.append(sent)

    def wait(self, seconds: float) -> None:
        """Wait until a turn has ended, at most ``seconds``."""
        wait([each.future for each in self._sent], seconds, FIRST_COMPLETED)

    def take_ended(self) -> tuple[SentTurn, TurnResult | None] | None:
        """Return a finished turn with its result (``None`` if its workers were lost), or ``None``.

        Plan order decides. A turn that may change the same files as an earlier one waits for that.
        Raises :class:`PlannerError` if a turn could not be run.
        """
        for at, sent in enumerate(self._sent):
            waits = any(sent.may_touch_those_of(other) for other in self._sent[:at])
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
        """End the turn on a todo whose result is not wanted; return whether an agent was at work here.

        The agent has ended when this returns.
        """
        begun: list[Future[TurnResult]] = []
        for sent in [each for each in self._sent if each.job.turn.action.todo_id == todo_id]:
            self._sent.remove(sent)
            sent.stop.set()
            if not sent.future.cancel() and self.is_shared:
                begun.append(sent.future)
        wait(begun)
        return bool(begun)

    def drop_all(self) -> None:
        """End all running turns concurrently."""
        for sent in self._sent:
            sent.stop.set()
        for sent in tuple(self._sent):
            self.drop(sent.job.turn.action.todo_id)

    def close(self) -> None:
        """Shut the executor down."""
        self.drop_all()
        self._executor.shutdown(wait=self.is_shared)
        if self._client is not None:
            self._client.close()


def count_workers(executor: str) -> int:
    """Return the number of concurrent turns of a cluster. Raises :class:`PlannerError`."""
    client = _connect(executor)
    try:
        return max(1, sum(client.nthreads().values()))
    finally:
        client.close()


def _connect(executor: str) -> Any:
    """Return a cluster's client. Raises :class:`PlannerError`."""
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
