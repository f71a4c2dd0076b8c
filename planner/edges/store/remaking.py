"""Makes everything beside the log anew: folds the events of a run and projects each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from planner.edges.log_lines import GENESIS, decode
from planner.edges.store.projecting import project
from planner.edges.store.tables import EVENTS, MADE_FROM_EVENTS, RUNS
from planner.edges.store.writing import write_rows
from planner.errors import LogError, RefusedEvent, StoreError
from planner.model.events import PlanSubmitted

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from planner.engine import State


def remake_all(connection: Connection, name: str) -> None:
    """Remake the projections of every run."""
    for run_id in connection.execute(select(RUNS.c.run_id).order_by(RUNS.c.run_id)).scalars().all():
        remake(connection, run_id, name)


def remake(connection: Connection, run_id: str, name: str) -> None:
    """Remake the projections of one run. Raises ``StoreError`` where its log does not fold any more."""
    for table in MADE_FROM_EVENTS:
        connection.execute(table.delete().where(table.c.run_id == run_id))
    blank = {"closed": None, "waiting": 0, "blocked": 0, "blocked_since": None, "blocked_todos": "[]"}
    connection.execute(RUNS.update().where(RUNS.c.run_id == run_id).values(**blank))
    lines = connection.execute(
        select(EVENTS.c.n, EVENTS.c.line).where(EVENTS.c.run_id == run_id).order_by(EVENTS.c.n)
    ).all()
    try:
        _fold(connection, run_id, [(n, line) for n, line in lines])
    except (LogError, RefusedEvent) as error:
        raise StoreError(
            f"{name}: what was recorded of run {run_id} cannot be made anew from its events: {error}; the "
            "events are kept as they are: export them (planner history log), and go on in a new store"
        ) from error


def _fold(connection: Connection, run_id: str, lines: list[tuple[int, str]]) -> None:
    from planner.engine import start, step

    state: State | None = None
    previous = GENESIS
    for place, (_, text) in enumerate(lines):
        line = decode(text, place, previous)
        previous = line.digest
        before = state
        if before is None:
            if not isinstance(line.event, PlanSubmitted):
                raise LogError("line 0 submits no plan")
            state, actions = start(line.event)
        else:
            state, actions = step(before, line.event)
        write_rows(connection, run_id, place, project(line.event, actions, before, state))
