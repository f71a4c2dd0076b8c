"""The store: the logs of runs, what is made from them, and what is remembered of them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, cast

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from planner.edges.log_lines import GENESIS, actions_text, digest_of
from planner.edges.store import sqlite, telling
from planner.edges.store.opening import engine_for, place_of
from planner.edges.store.remaking import remake
from planner.edges.store.remembering import (
    CachedPlan,
    past_of,
    plans_for,
    write_correction,
    write_plan,
)
from planner.edges.store.tables import EVENTS, RUNS
from planner.edges.store.times import moment
from planner.edges.store.troubles import told
from planner.edges.store.versions import bring_up_to_date, is_current
from planner.edges.store.writing import insert, write_rows
from planner.errors import LineTaken, NoStoreError, StoreError
from planner.model.life import PlanState
from planner.planfile.dump import render

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from planner.edges.store.opening import Place
    from planner.edges.store.rows import Rows
    from planner.edges.store.telling import Run
    from planner.model.events import PlanSubmitted
    from planner.model.past import Correction, PastRecords
    from planner.model.plan import Plan

_PAGE = 500
"""So many lines are read at once."""

_MAX_RUN_ID = 200


class Store:
    """One database. Every method is one transaction; every failure is a ``StoreError`` of one line.

    A method that writes returns when what it wrote is on the disk. Several processes may use one store.
    """

    def __init__(self, place: Place, engine: Engine) -> None:
        self.name = place.name
        """What messages call it."""
        self.path = place.path
        """The file, of SQLite."""
        self._engine = engine
        self._writer = engine.execution_options(**{sqlite.WRITES: True})

    @classmethod
    def open(cls, url_or_path: str | Path, *, create: bool = True) -> Self:
        """Open a store, and make it where it is not there and ``create`` is set.

        Tables of an older version are brought up to date. Raises ``StoreError``.
        """
        place = place_of(url_or_path)
        store = cls(place, engine_for(place, create=create))
        try:
            store._settle(create=create)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Give the connections back. What was committed is on the disk already."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_run(self, run_id: str, submitted: PlanSubmitted, line: str, digest: str) -> None:
        """Begin the log of a run with its line 0. Raises :class:`LineTaken` where the run is there."""
        if not run_id or len(run_id) > _MAX_RUN_ID:
            raise StoreError(f"a run's id has 1 to {_MAX_RUN_ID} characters, and this one {len(run_id)}")
        _fits(line, 0, digest, GENESIS)
        plan, at = submitted.plan, moment(submitted.at)
        rejected = '"result":"rejected"' in actions_text(line)
        goal = goal_of(plan)
        fingerprint = submitted.policy.fingerprint or submitted.memory.fingerprint
        run = {
            "run_id": run_id,
            "plan_id": plan.todo_list_id,
            "path": submitted.path,
            "digest": submitted.digest,
            "fingerprint": fingerprint,
            "goal": goal,
            "opened": at,
            "changed": at,
            "closed": at if rejected else None,
            "state": PlanState.REJECTED if rejected else PlanState.READY,
            "waiting": 0,
            "blocked": 0,
            "blocked_since": None,
            "blocked_todos": "[]",
        }
        cached = CachedPlan(
            goal=goal,
            fingerprint=fingerprint,
            at=at,
            digest=submitted.digest,
            path=submitted.path,
            document=render(plan, format="json"),
            run_id=run_id,
            ended=None,
        )
        with self._taking(run_id, 0), self._writing(f"opening run {run_id}") as connection:
            if _last(connection, run_id) is not None:
                raise LineTaken(self.name, run_id, 0)
            insert(connection, RUNS, [run])
            insert(connection, EVENTS, [_event(run_id, 0, at, submitted.event, line, digest)])
            write_plan(connection, cached)

    def append(self, run_id: str, n: int, line: str, digest: str, rows: Rows) -> None:
        """Commit the line with that number, and what it changes beside the log.

        Raises :class:`LineTaken` where another writer has committed that number: read :meth:`lines` after
        the last line that you know, fold them, and go on from there. Nothing is changed then.
        """
        with self._taking(run_id, n), self._writing(f"storing line {n} of run {run_id}") as connection:
            last = _last(connection, run_id)
            if last is None:
                raise StoreError(f"{self.name}: there is no run {run_id}; open it with its line 0 first")
            if n <= last[0]:
                raise LineTaken(self.name, run_id, n)
            if n > last[0] + 1:
                raise StoreError(
                    f"{self.name}: line {n} of run {run_id} cannot be stored, as line {last[0] + 1} is not "
                    f"there; store the lines from {last[0] + 1} on"
                )
            _fits(line, n, digest, last[1])
            insert(connection, EVENTS, [_event(run_id, n, rows.at, rows.kind, line, digest)])
            write_rows(connection, run_id, n, rows)

    def lines(self, run_id: str, after: int = -1) -> Iterator[str]:
        """The committed lines of a run behind the one with that number, in order."""
        following = after + 1
        while True:
            page = self._page(run_id, following)
            for n, line in page:
                if n != following:
                    raise StoreError(
                        f"{self.name}: line {following} of run {run_id} is missing: the store is damaged; "
                        "go on from the log file of the run, in a new store"
                    )
                yield line
                following += 1
            if len(page) < _PAGE:
                return

    def runs(self, plan_id: str | None = None) -> tuple[Run, ...]:
        """The runs of a plan, or all, the newest first."""
        with self._reading("reading the runs") as connection:
            return telling.runs(connection, plan_id)

    def past(self, fingerprint: str, now: datetime | float, limit: int) -> PastRecords:
        """What is remembered: at most so many repairs, todos and corrections.

        Those of the repository come first, the newest before others; then those of other repositories.
        """
        at = now if isinstance(now, datetime) else datetime.fromtimestamp(now, UTC)
        with self._reading("reading what is remembered") as connection:
            return past_of(connection, fingerprint, at, limit)

    def record_correction(self, correction: Correction) -> None:
        """Remember what a person has corrected."""
        with self._writing("remembering the correction") as connection:
            write_correction(connection, correction)

    def cached_plan(self, goal: str, fingerprint: str) -> CachedPlan | None:
        """The plan that served that goal in that repository before; one that was completed, if any was."""
        fit = (each for each in self.cached_plans(goal, fingerprint) if each.ended != PlanState.REJECTED)
        return next(fit, None)

    def cached_plans(self, goal: str, fingerprint: str | None = None) -> tuple[CachedPlan, ...]:
        """Every plan that was made for that goal, the best first."""
        with self._reading("reading the plans") as connection:
            return tuple(plans_for(connection, goal, fingerprint))

    def cache_plan(
        self,
        goal: str,
        fingerprint: str,
        plan: Plan,
        digest: str,
        at: datetime,
        *,
        run_id: str | None = None,
    ) -> None:
        """Keep a plan that serves a goal, and the run that tells how it ended.

        Opening a run does so by itself; do it again for a plan that the run has edited.
        """
        cached = CachedPlan(
            goal=goal,
            fingerprint=fingerprint,
            at=moment(at),
            digest=digest,
            path="",
            document=render(plan, format="json"),
            run_id=run_id,
            ended=None,
        )
        with self._writing("keeping the plan") as connection:
            write_plan(connection, cached)

    def rebuild(self, run_id: str) -> None:
        """Make what is beside the log of a run anew from its events."""
        with self._writing(f"remaking run {run_id}") as connection:
            if _last(connection, run_id) is None:
                raise StoreError(
                    f"{self.name}: there is no run {run_id}; `planner history` lists those there"
                )
            remake(connection, run_id, self.name)

    @contextmanager
    def asking(self, what: str) -> Generator[Connection]:
        """A connection for the questions of :mod:`.telling`, which sees one state of the store."""
        with self._reading(what) as connection:
            yield connection

    def _settle(self, *, create: bool) -> None:
        with self._reading("opening the store") as connection:
            if is_current(connection, self.name):
                return
        with self._writing("opening the store") as connection:
            if not create and telling.is_empty(connection):
                raise NoStoreError(
                    f"{self.name}: there is no store yet; `planner step` makes one when it is given --store"
                )
            bring_up_to_date(connection, self.name, alone=self.path is not None)

    def _page(self, run_id: str, following: int) -> Sequence[tuple[int, str]]:
        wanted = (
            select(EVENTS.c.n, EVENTS.c.line)
            .where(EVENTS.c.run_id == run_id, EVENTS.c.n >= following)
            .order_by(EVENTS.c.n)
            .limit(_PAGE)
        )
        with self._reading(f"reading run {run_id}") as connection:
            return cast("Sequence[tuple[int, str]]", connection.execute(wanted).all())

    @contextmanager
    def _reading(self, doing: str) -> Generator[Connection]:
        try:
            with told(self.name, doing), self._engine.begin() as connection:
                yield connection
        except ValueError as error:  # of JSON, of a time, of an enumeration
            raise StoreError(
                f"{self.name}: {doing} failed: something in it cannot be read ({error}); it was changed "
                "from outside, or is damaged: keep it, and go on from the log files in a new store"
            ) from None

    @contextmanager
    def _writing(self, doing: str) -> Generator[Connection]:
        with told(self.name, doing), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _taking(self, run_id: str, n: int) -> Generator[None]:
        """Where the database lets two writers in at once, the key of the events tells which was second."""
        try:
            yield
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError) and self._has(run_id, n):
                raise LineTaken(self.name, run_id, n) from None
            raise

    def _has(self, run_id: str, n: int) -> bool:
        with self._reading(f"reading run {run_id}") as connection:
            last = _last(connection, run_id)
            return last is not None and last[0] >= n


def goal_of(plan: Plan) -> str:
    """What a plan is for: its ``x-goal``, else its name, else its id."""
    said = plan.extensions.get("x-goal")
    return said if isinstance(said, str) and said.strip() else plan.workflow_name or plan.todo_list_id


def _event(run_id: str, n: int, at: str, kind: str, line: str, digest: str) -> dict[str, object]:
    return {"run_id": run_id, "n": n, "at": at, "kind": kind, "line": line, "digest": digest}


def _last(connection: Connection, run_id: str) -> tuple[int, str] | None:
    """The number and the digest of the last line of a run."""
    newest = select(func.max(EVENTS.c.n)).where(EVENTS.c.run_id == run_id).scalar_subquery()
    row = connection.execute(
        select(EVENTS.c.n, EVENTS.c.digest).where(EVENTS.c.run_id == run_id, EVENTS.c.n == newest)
    ).one_or_none()
    return None if row is None else (row.n, row.digest)


def _fits(line: str, n: int, digest: str, previous: str) -> None:
    """Raise ``StoreError`` where a line is not the next of its chain: nothing of the kind is ever kept."""
    body, key, _ = line.rpartition(',"digest":')
    if (
        not line.startswith(f'{{"n":{n},"event":')
        or "\n" in line
        or line != f"{body}{key}{json.dumps(digest)}}}"
        or digest_of(body, previous) != digest
    ):
        raise StoreError(
            f"line {n} does not continue the log: its number or its digest does not fit the line before; "
            "read the committed lines again, and go on from the last"
        )
