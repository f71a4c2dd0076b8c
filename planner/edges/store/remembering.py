"""What a run is given of the past, what people correct in it, and which plan served which goal."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from sqlalchemy import case, select

from planner.edges.store.tables import CORRECTIONS, PLANS, REPAIRS, RUNS, TODOS
from planner.edges.store.times import moment
from planner.edges.store.writing import as_list, insert
from planner.model.life import PlanState
from planner.model.past import Correction, PastRecords, PastRepair, PastTodo

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy import Connection, Table

_Past = TypeVar("_Past", PastRepair, PastTodo, Correction)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPlan:
    """A plan that served a goal before."""

    goal: str
    fingerprint: str
    """Of the repository as it was then."""
    at: str
    digest: str
    path: str
    document: str
    """The plan as JSON."""
    run_id: str | None
    ended: str | None
    """The state of its run; ``None`` where it had none."""


def past_of(connection: Connection, fingerprint: str, now: datetime, limit: int) -> PastRecords:
    """At most so many of each kind, none later than now: those of the repository first, the newest before.

    What was learnt elsewhere fills what is left: it is worth less, and better than nothing.
    """
    repairs = _newest(connection, REPAIRS, fingerprint, now, limit)
    todos = _newest(connection, TODOS, fingerprint, now, limit)
    corrections = _newest(connection, CORRECTIONS, fingerprint, now, limit)
    return PastRecords(
        fingerprint=fingerprint,
        repairs=_known(PastRepair, repairs),
        todos=_known(PastTodo, ({**each, "categories": json.loads(each["categories"])} for each in todos)),
        corrections=_known(
            Correction, ({**each, "by": each["corrected_by"], "features": ()} for each in corrections)
        ),
    )


def write_correction(connection: Connection, correction: Correction) -> None:
    """Keep what a person has corrected."""
    row = {
        **correction.model_dump(mode="json", exclude={"at", "by"}),
        "at": moment(correction.at),
        "corrected_by": correction.by,
        "features": as_list(correction.features),
    }
    insert(connection, CORRECTIONS, [row])


def write_plan(connection: Connection, plan: CachedPlan) -> None:
    """Keep a plan under its goal."""
    row = {
        "goal_key": goal_key(plan.goal),
        "goal": plan.goal,
        "fingerprint": plan.fingerprint,
        "at": plan.at,
        "digest": plan.digest,
        "path": plan.path,
        "document": plan.document,
        "run_id": plan.run_id,
    }
    insert(connection, PLANS, [row])


def plans_for(connection: Connection, goal: str, fingerprint: str | None) -> list[CachedPlan]:
    """The plans that served a goal, the best first: one that was completed before others, then the newest.

    Without a fingerprint, in any state of any repository.
    """
    of_run = (RUNS.c.state.label("ended"), RUNS.c.path.label("run_path"))
    wanted = select(PLANS, *of_run).outerjoin(RUNS, PLANS.c.run_id == RUNS.c.run_id)
    wanted = wanted.where(PLANS.c.goal_key == goal_key(goal)).order_by(PLANS.c.at.desc(), PLANS.c.id.desc())
    if fingerprint is not None:
        wanted = wanted.where(PLANS.c.fingerprint == fingerprint)
    found = [_cached(row._mapping) for row in connection.execute(wanted)]
    return sorted(found, key=lambda plan: _WORTH.get(plan.ended or "", 1))


def goal_key(goal: str) -> str:
    """What two ways to write one goal have in common."""
    return hashlib.sha256(" ".join(goal.casefold().split()).encode("utf-8", "replace")).hexdigest()


_WORTH = {PlanState.COMPLETED.value: 0, PlanState.HALTED.value: 2, PlanState.REJECTED.value: 3}


def _known(kind: type[_Past], rows: Iterable[dict[str, Any]]) -> tuple[_Past, ...]:
    """The rows as values. One with a role or category of another version is of no use here."""
    found: list[_Past] = []
    for row in rows:
        with suppress(ValidationError):
            found.append(kind.model_validate(row))
    return tuple(found)


def _cached(row: Any) -> CachedPlan:
    return CachedPlan(
        goal=row["goal"],
        fingerprint=row["fingerprint"],
        at=row["at"],
        digest=row["digest"],
        path=row["path"] or row["run_path"] or "",
        document=row["document"],
        run_id=row["run_id"],
        ended=row["ended"],
    )


def _newest(
    connection: Connection, table: Table, fingerprint: str, now: datetime, limit: int
) -> list[dict[str, Any]]:
    elsewhere = case((table.c.fingerprint == fingerprint, 0), else_=1)
    wanted = select(table).where(table.c.at <= moment(now))
    if "fixed" in table.c:
        wanted = wanted.where(table.c.fixed.is_not(None))
    keys = [column.desc() for column in table.primary_key.columns]
    wanted = wanted.order_by(elsewhere, table.c.at.desc(), *keys).limit(limit)
    return [dict(row._mapping) for row in connection.execute(wanted)]
