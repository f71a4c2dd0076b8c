"""Writes an event and what it changes, in the transaction of the caller."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, select

from planner.edges.store.tables import (
    APPROVALS,
    ARTIFACTS,
    BRANCHES,
    DIAGNOSES,
    REPAIRS,
    RUNS,
    TODOS,
)
from planner.edges.store.times import seconds_between

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Table

    from planner.edges.store.rows import ArtifactRow, RepairOpened, Rows, TodoClosed

SHOWN_BLOCKED = 20
"""So many of the blocked todos are named; all are counted."""


def write_rows(connection: Connection, run_id: str, n: int, rows: Rows) -> None:
    """Write what the event with that number changes beside the log."""
    _RowWriter(connection, run_id, n, rows.at).write(rows)


def insert(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows, in text that every database can hold."""
    held = [{name: _storable(value) for name, value in row.items()} for row in rows]
    if held:
        connection.execute(table.insert(), held)


def as_list(words: Sequence[str]) -> str | None:
    """Words as they are held in one column; nothing where there are none."""
    return json.dumps(list(words), ensure_ascii=False) if words else None


class _RowWriter:
    """Knows the event whose rows are written."""

    def __init__(self, connection: Connection, run_id: str, n: int, at: str) -> None:
        self._connection = connection
        self._key: dict[str, Any] = {"run_id": run_id, "n": n}
        self._run_id = run_id
        self._at = at

    def write(self, rows: Rows) -> None:
        fingerprint = self._move_run(rows)
        if rows.branches:
            plain = [asdict(each) for each in rows.branches]
            self._insert(BRANCHES, [{**each, "opened": self._at, "attempts": 0} for each in plain])
        for move in rows.moves:
            self._move_branch(move.branch_id, asdict(move))
        self._insert(
            DIAGNOSES,
            [
                {"place": place, "at": self._at, **asdict(each), "features": as_list(each.features)}
                for place, each in enumerate(rows.diagnoses)
            ],
        )
        self._insert(APPROVALS, [{**asdict(each), "asked": self._at} for each in rows.questions])
        for answer in rows.answers:
            self._update(
                APPROVALS,
                and_(APPROVALS.c.question_id == answer.question_id, APPROVALS.c.decision.is_(None)),
                decision=answer.decision,
                decided=self._at,
                decided_by=answer.by,
                because=answer.because,
            )
        self._insert(ARTIFACTS, [self._artifact(each) for each in rows.artifacts])
        for closed in rows.repaired:
            self._update(
                REPAIRS,
                and_(REPAIRS.c.subject == closed.subject, REPAIRS.c.fixed.is_(None)),
                fixed=closed.fixed,
                attempts=REPAIRS.c.attempts if closed.attempts is None else closed.attempts,
                at=self._at,
            )
        for repair in rows.repairs:
            self._open_repair(repair, fingerprint)
        self._insert(TODOS, [self._todo(each, fingerprint) for each in rows.todos])

    def _move_run(self, rows: Rows) -> str:
        """Bring the row of the run up to date. Returns its fingerprint."""
        mine = RUNS.c.run_id == self._run_id
        found = self._connection.execute(
            select(RUNS.c.fingerprint, RUNS.c.blocked_since, RUNS.c.closed).where(mine)
        ).one()
        run = rows.run
        stands = bool(run.blocked or run.waiting)
        since = (found.blocked_since or self._at) if stands and not run.closed else None
        self._connection.execute(
            RUNS.update()
            .where(mine)
            .values(
                state=run.state,
                changed=self._at,
                closed=(found.closed or self._at) if run.closed else None,
                waiting=run.waiting,
                blocked=len(run.blocked),
                blocked_since=since,
                blocked_todos=json.dumps(run.blocked[:SHOWN_BLOCKED]),
            )
        )
        return found.fingerprint

    def _move_branch(self, branch_id: str, moved: dict[str, Any]) -> None:
        """Bring the row of a branch up to date. What came of it is said once: the first is what holds."""
        mine = and_(BRANCHES.c.run_id == self._run_id, BRANCHES.c.branch_id == branch_id)
        found = self._connection.execute(select(BRANCHES.c.opened, BRANCHES.c.resolution).where(mine)).one()
        values = {name: moved[name] for name in ("attempts", "role") if moved[name] is not None}
        if moved["outcome"] is not None:
            values |= {
                "outcome": moved["outcome"],
                "closed": self._at,
                "duration_seconds": seconds_between(found.opened, self._at),
            }
        if moved["resolution"] is not None and found.resolution is None:
            values["resolution"] = moved["resolution"]
        if values:
            self._connection.execute(BRANCHES.update().where(mine).values(**values))

    def _artifact(self, row: ArtifactRow) -> dict[str, Any]:
        plain = asdict(row)
        plain |= {"files": json.dumps(row.files), "new_files": json.dumps(row.new_files), "at": self._at}
        return plain

    def _open_repair(self, repair: RepairOpened, fingerprint: str) -> None:
        """A turn that follows another before anything was verified belongs to the same repair."""
        mine = and_(
            REPAIRS.c.run_id == self._run_id,
            REPAIRS.c.subject == repair.subject,
            REPAIRS.c.fixed.is_(None),
        )
        more = REPAIRS.update().where(mine).values(attempts=REPAIRS.c.attempts + 1)
        if self._connection.execute(more).rowcount:
            return
        self._insert(
            REPAIRS, [{**asdict(repair), "at": self._at, "fingerprint": fingerprint, "attempts": 1}]
        )

    def _todo(self, row: TodoClosed, fingerprint: str) -> dict[str, Any]:
        """How the todo went, with the categories of its deciding failures in the order of their coming."""
        found = self._connection.execute(
            select(DIAGNOSES.c.category)
            .where(
                DIAGNOSES.c.run_id == self._run_id,
                DIAGNOSES.c.todo_id == row.todo_id,
                DIAGNOSES.c.decides.is_(True),
            )
            .order_by(DIAGNOSES.c.n)
        ).scalars()
        categories = list(dict.fromkeys(found))
        return {
            **asdict(row),
            "at": self._at,
            "fingerprint": fingerprint,
            "categories": json.dumps(categories),
        }

    def _insert(self, table: Table, rows: Iterable[dict[str, Any]]) -> None:
        insert(self._connection, table, [{**self._key, **row} for row in rows])

    def _update(self, table: Table, which: ColumnElement[bool], **values: Any) -> None:
        held = {name: _storable(value) for name, value in values.items()}
        self._connection.execute(table.update().where(table.c.run_id == self._run_id, which).values(**held))


def _storable(value: Any) -> Any:
    """Text without what some databases cannot hold: half characters, and the character zero."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
