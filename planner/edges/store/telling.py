"""The questions that are asked of the store: runs, branches, what repaired what, what stands still."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import case, func, inspect, select

from planner.edges.store.rows import PASSED
from planner.edges.store.tables import (
    APPROVALS,
    ARTIFACTS,
    BRANCHES,
    CORRECTIONS,
    DIAGNOSES,
    EVENTS,
    REPAIRS,
    RUNS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select

_AT_ONCE = 300
_LISTS = frozenset(("blocked_todos", "files", "new_files"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run and how it stands. Times are RFC 3339 in UTC."""

    run_id: str
    plan_id: str
    path: str
    digest: str
    fingerprint: str
    goal: str
    opened: str
    changed: str
    closed: str | None
    state: str
    waiting: int
    """So many questions wait for a person."""
    blocked: int
    blocked_since: str | None
    """Since when something has been blocked, or a person has been waited for, without interruption."""
    blocked_todos: tuple[str, ...]
    """The first of those that are blocked."""
    events: int = 0

    @property
    def is_stuck(self) -> bool:
        """Whether something in it is blocked or waits for a person."""
        return self.blocked_since is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch and what came of it."""

    run_id: str
    branch_id: str
    parent_id: str
    depth: int
    via: str | None
    role: str
    category: str
    signature: str | None
    opened: str
    closed: str | None
    attempts: int
    outcome: str | None
    resolution: str | None
    duration_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What a person was asked, and what came of it."""

    run_id: str
    question_id: str
    kind: str
    todo_id: str
    question: str
    rule: str
    digest: str
    asked: str
    decision: str | None
    decided: str | None
    decided_by: str | None
    because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """What one turn of work, or one verification, said of the files."""

    run_id: str
    n: int
    at: str
    todo_id: str
    turn: int
    role: str
    source: str
    success: bool
    files: tuple[str, ...]
    new_files: tuple[str, ...]
    diff_hash: str | None
    tokens: int | None
    cycles: int | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """How one role did with one failure, by one strategy."""

    role: str
    strategy: str
    fixed: int
    tried: int
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a signature."""

    signature: str
    category: str | None
    head: str | None
    times: int
    """So many verifications found it."""
    todos: tuple[str, ...]
    last: str | None
    fingerprint: str
    repairs: tuple[Repairs, ...]
    branches: tuple[Branch, ...]
    """Those that were made for it, the newest first."""
    corrections: tuple[Mapping[str, Any], ...]
    role: str | None = None
    """Who was to act on it when it was seen last."""
    features: tuple[str, ...] = ()


_Held = TypeVar("_Held", Run, Branch, Approval, Artifacts)


def is_empty(connection: Connection) -> bool:
    """Whether the database has not a single table."""
    return not inspect(connection).get_table_names()


def runs(connection: Connection, plan_id: str | None = None) -> tuple[Run, ...]:
    """The runs of a plan, or all, the newest first."""
    wanted = _runs()
    if plan_id is not None:
        wanted = wanted.where(RUNS.c.plan_id == plan_id)
    return tuple(_made(Run, row) for row in connection.execute(wanted))


def blocked_runs(connection: Connection) -> tuple[Run, ...]:
    """The runs in which something is blocked or waits for a person, the longest first."""
    wanted = _runs().where(RUNS.c.blocked_since.is_not(None))
    found = [_made(Run, row) for row in connection.execute(wanted)]
    return tuple(sorted(found, key=lambda run: run.blocked_since or ""))


def branches(connection: Connection, run_ids: Sequence[str]) -> tuple[Branch, ...]:
    """The branches of runs, in the order in which they were made."""
    rows = _of_runs(connection, select(BRANCHES), run_ids, BRANCHES.c.n, BRANCHES.c.branch_id)
    return tuple(_made(Branch, row) for row in rows)


def mean_resolution(found: Iterable[Branch]) -> float | None:
    """How long branches that passed took on average, in seconds; ``None`` where none has."""
    times = [
        each.duration_seconds
        for each in found
        if each.outcome == PASSED and each.duration_seconds is not None
    ]
    return sum(times) / len(times) if times else None


def approvals(
    connection: Connection, run_ids: Sequence[str], *, open_only: bool = False
) -> tuple[Approval, ...]:
    """What was asked in runs, in order."""
    wanted = select(APPROVALS)
    if open_only:
        wanted = wanted.where(APPROVALS.c.decision.is_(None))
    rows = _of_runs(connection, wanted, run_ids, APPROVALS.c.n, APPROVALS.c.question_id)
    return tuple(_made(Approval, row) for row in rows)


def artifacts(connection: Connection, run_ids: Sequence[str]) -> tuple[Artifacts, ...]:
    """The artifact log of runs, in the order of the events."""
    rows = _of_runs(connection, select(ARTIFACTS), run_ids, ARTIFACTS.c.n)
    return tuple(_made(Artifacts, row) for row in rows)


def seen(connection: Connection, signature: str) -> Seen | None:
    """What is known of a signature; ``None`` where nothing is."""
    failures = connection.execute(
        select(DIAGNOSES, RUNS.c.fingerprint)
        .join(RUNS, RUNS.c.run_id == DIAGNOSES.c.run_id)
        .where(DIAGNOSES.c.signature == signature)
        .order_by(DIAGNOSES.c.at.desc(), DIAGNOSES.c.run_id, DIAGNOSES.c.n.desc(), DIAGNOSES.c.place)
    ).all()
    corrected = connection.execute(
        select(CORRECTIONS)
        .where(CORRECTIONS.c.signature == signature)
        .order_by(CORRECTIONS.c.at.desc(), CORRECTIONS.c.id.desc())
    ).all()
    if not failures and not corrected:
        return None
    newest = failures[0] if failures else None
    made = connection.execute(
        select(BRANCHES)
        .where(BRANCHES.c.signature == signature)
        .order_by(BRANCHES.c.opened.desc(), BRANCHES.c.run_id, BRANCHES.c.branch_id)
    )
    return Seen(
        signature=signature,
        category=newest.category if newest else corrected[0].category,
        head=newest.head if newest else None,
        times=len({(row.run_id, row.n) for row in failures}),
        todos=tuple(dict.fromkeys(row.todo_id for row in failures)),
        last=newest.at if newest else None,
        fingerprint=newest.fingerprint if newest else corrected[0].fingerprint,
        repairs=_repairs(connection, signature),
        branches=tuple(_made(Branch, row) for row in made),
        corrections=tuple(
            {name: value for name, value in row._mapping.items() if name != "features"} for row in corrected
        ),
        role=newest.role if newest else None,
        features=_features([*failures, *corrected]),
    )


def _features(rows: Iterable[Row[Any]]) -> tuple[str, ...]:
    """Of the first row that holds any: an older planner has kept none."""
    return next((tuple(json.loads(row.features)) for row in rows if row.features), ())


def signatures(connection: Connection) -> tuple[str, ...]:
    """Every signature that was ever diagnosed, the newest first."""
    newest = func.max(DIAGNOSES.c.at)
    wanted = (
        select(DIAGNOSES.c.signature)
        .where(DIAGNOSES.c.signature.is_not(None))
        .group_by(DIAGNOSES.c.signature)
        .order_by(newest.desc(), DIAGNOSES.c.signature)
    )
    return tuple(connection.execute(wanted).scalars())


def _repairs(connection: Connection, signature: str) -> tuple[Repairs, ...]:
    """Who repaired it, those who did so most often first."""
    wanted = select(REPAIRS).where(REPAIRS.c.signature == signature, REPAIRS.c.fixed.is_not(None))
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in connection.execute(wanted.order_by(REPAIRS.c.at, REPAIRS.c.run_id, REPAIRS.c.n)):
        groups.setdefault((row.role, row.strategy), []).append(row)
    found = [
        Repairs(
            role=role,
            strategy=strategy,
            fixed=sum(bool(row.fixed) for row in rows),
            tried=len(rows),
            last=rows[-1].at,
        )
        for (role, strategy), rows in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.fixed, each.tried, each.role, each.strategy)))


def _of_runs(
    connection: Connection, wanted: Select[Any], run_ids: Sequence[str], *order: ColumnElement[Any]
) -> Iterator[Row[Any]]:
    """The rows of runs, in the order of the ids given: no database takes any number of values at once."""
    column = wanted.selected_columns.run_id
    for first in range(0, len(run_ids), _AT_ONCE):
        some = run_ids[first : first + _AT_ONCE]
        place = case({run_id: at for at, run_id in enumerate(some)}, value=column)
        yield from connection.execute(wanted.where(column.in_(some)).order_by(place, *order))


def _runs() -> Select[Any]:
    counted = (
        select(EVENTS.c.run_id, func.count().label("events")).group_by(EVENTS.c.run_id).subquery("counted")
    )
    wanted = select(RUNS, counted.c.events).join(counted, counted.c.run_id == RUNS.c.run_id)
    return wanted.order_by(RUNS.c.opened.desc(), RUNS.c.run_id.desc())


def _made(kind: type[_Held], row: Any) -> _Held:
    """A row as a value; lists are kept as JSON."""
    values: dict[str, Any] = {each.name: row._mapping[each.name] for each in fields(kind)}
    for name in _LISTS & values.keys():
        values[name] = tuple(json.loads(values[name]))
    return kind(**values)
