"""A run in the store: kept there alone, or as a copy of its log file with what is made from it.

Importing it imports SQLAlchemy: do so only where a store is wanted.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from planner.edges.log_lines import GENESIS, decode, encode
from planner.edges.plan_versions import NewestPlans
from planner.edges.run_log import Entry
from planner.edges.store import LineTaken, Store, StoreError, goal_of, project
from planner.errors import LogError
from planner.model.actions import Finish
from planner.model.events import PlanSubmitted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from datetime import datetime

    from planner.edges.run_log import Taken
    from planner.model.past import PastRecords
    from planner.planfile.loader import LoadedPlan

MOST_REMEMBERED = 500
"""So many repairs, todos and corrections of the past are given to a run, each."""

MOST_WAITING = 1_000
"""So many lines wait for a store that cannot be written; the next process copies what is missing."""


class StoreLog:
    """One run in one store."""

    def __init__(self, place: str, loaded: LoadedPlan, run_id: str | None) -> None:
        """Open the store. Without a ``run_id``, the newest run of the plan that is not over is meant.

        Raises :class:`planner.errors.StoreError`.
        """
        self._store = Store.open(place)
        self._plan_id = loaded.plan.todo_list_id
        self._known = {run.run_id: run for run in self._store.runs(self._plan_id)}
        open_runs = (
            run for run in self._known.values() if run.closed is None and run.digest == loaded.digest
        )
        newest = next(open_runs, None)
        self.run_id = run_id or (newest.run_id if newest is not None else None)
        self.count = 0
        self.remarks: list[str] = []
        self._digest = GENESIS
        self._stored: int | None = None
        """How many lines of a copied log are in the store; unknown before the first."""
        self._waiting: list[tuple[Entry, Taken]] = []
        self._told: set[str] = set()
        self._plans = NewestPlans()

    @property
    def name(self) -> str:
        """How messages call it."""
        return self._store.name

    def close(self) -> None:
        """Copy what waits, if that can be, and let go of the store."""
        self._flush()
        self._store.close()

    def hold(self) -> AbstractContextManager[None]:
        """Nobody is kept out: of two writers the second is told, and reads first."""
        return contextlib.nullcontext()

    def news(self) -> Iterator[Entry]:
        """The lines that were committed since. Raises :class:`planner.errors.StoreError`."""
        if self.run_id is None:
            return
        for text in self._store.lines(self.run_id, self.count - 1):
            try:
                line = decode(text, self.count, self._digest)
            except LogError as error:
                raise StoreError(
                    f"{self.name}: run {self.run_id}: {error}; go on from the log file of the run, in a "
                    "new store"
                ) from None
            self.count += 1
            self._digest = line.digest
            yield Entry(line.n, line.event, text, line.digest)

    def append(self, taken: Taken) -> Entry | None:
        """Commit the next line; ``None`` where another writer was first.

        Raises :class:`planner.errors.StoreError`; then nothing has changed.
        """
        text, digest = encode(self.count, taken.event, taken.actions, self._digest)
        entry = Entry(self.count, taken.event, text, digest)
        try:
            self._commit(entry, taken)
        except LineTaken:
            return None
        self.count += 1
        self._digest = digest
        return entry

    def copy(self, entry: Entry, taken: Taken) -> None:
        """Keep a line of the log file, unless it is there. What cannot be stored waits, with a remark.

        Raises :class:`planner.errors.StoreError` where the store holds another run of that id.
        """
        if entry.n == 0:
            self._begin_copy(entry)
        if self._stored is None or entry.n < self._stored:
            return
        self._waiting.append((entry, taken))
        self._flush()

    def notice(self, taken: Taken) -> None:
        """Follow the plan as it is edited, whoever has told the event."""
        self._plans.take(taken.event, taken.actions)

    def free_id(self, wanted: str) -> str:
        """The id, or one like it, that no run of the plan has."""
        free, number = wanted, 1
        while free in self._known:
            number += 1
            free = f"{wanted}-{number}"
        return free

    def past(self, fingerprint: str, now: datetime) -> PastRecords:
        """What is remembered of the repository. Raises :class:`planner.errors.StoreError`."""
        return self._store.past(fingerprint, now, MOST_REMEMBERED)

    def _begin_copy(self, entry: Entry) -> None:
        assert isinstance(entry.event, PlanSubmitted)  # the log refuses any other first line
        self.run_id = entry.event.run_id or f"{self._plan_id}-{entry.digest.rpartition(':')[2][:12]}"
        known = self._known.get(self.run_id)
        self._stored = 0 if known is None else known.events
        if self._stored and next(self._store.lines(self.run_id), None) != entry.text:
            raise StoreError(
                f"{self.name}: holds another run '{self.run_id}'; name another store, or begin anew with "
                "--run"
            )

    def _flush(self) -> None:
        while self._waiting:
            entry, taken = self._waiting[0]
            try:
                self._commit(entry, taken)
            except LineTaken:
                pass  # another process has copied it
            except StoreError as error:
                self._tell(error)
                return
            del self._waiting[0]
            self._stored = entry.n + 1

    def _tell(self, error: StoreError) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            self.remarks.append(f"{error} (the log file has the event; it will be copied later)")
        if len(self._waiting) > MOST_WAITING:
            self._waiting.clear()
            self._stored = None

    def _commit(self, entry: Entry, taken: Taken) -> None:
        if isinstance(taken.event, PlanSubmitted):
            self.run_id = self.run_id or taken.event.run_id or self._plan_id
            self._store.open_run(self.run_id, taken.event, entry.text, entry.digest)
            return
        assert self.run_id is not None  # its first line was stored
        rows = project(taken.event, taken.actions, taken.before, taken.after)
        self._store.append(self.run_id, entry.n, entry.text, entry.digest, rows)
        if any(isinstance(action, Finish) and action.result == "completed" for action in taken.actions):
            self._remember_plan(taken)

    def _remember_plan(self, taken: Taken) -> None:
        """Keep the plan as it was carried out: the edits of the run are worth as much as its beginning."""
        if not self._plans.is_edited:
            return
        plan, policy = self._plans.newest(), taken.after.policy
        digest = taken.after.parts[""].digest
        with contextlib.suppress(StoreError):  # it can be made from the log at any time
            self._store.cache_plan(
                goal_of(plan),
                policy.fingerprint or "",
                plan,
                digest,
                taken.event.at,
                run_id=self.run_id,
            )
