"""The questions that are asked of the index: runs, branches, what repaired what, what stands still."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import ValidationError
from sqlalchemy import case, func, select

from planner.model.life import PlanState
from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
from planner.store.tables import (
    BRANCHES,
    CORRECTIONS,
    FAILURES,
    PASSED,
    QUESTIONS,
    REPAIRS,
    RUNS,
    TODOS,
    VERIFICATIONS,
    WORK,
    moment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Select, Table

Found: TypeAlias = "dict[str, Any]"
"""A row of the index by its columns, lists as lists."""

_Past = TypeVar("_Past", PastRepair, PastTodo, Correction)

_LISTS = frozenset(("blocked", "files", "new_files", "features", "categories"))
_HIDDEN = frozenset(("id", "document"))
_AT_ONCE = 300
"""So many values are named in one statement: no database takes any number."""

_WORTH = {PlanState.COMPLETED.value: 0, PlanState.HALTED.value: 2, PlanState.REJECTED.value: 3}


def runs(connection: Connection, plan_id: str | None = None) -> list[Found]:
    """Return the runs of the engine for a plan, or all, the newest first."""
    wanted = select(RUNS).order_by(RUNS.c.opened.desc(), RUNS.c.run_id.desc(), RUNS.c.source)
    return _rows(connection, wanted if plan_id is None else wanted.where(RUNS.c.plan_id == plan_id))


def verifications(connection: Connection, plan_id: str | None = None) -> list[Found]:
    """Return the runs of ``pytest --planverify`` for a plan, or all, the newest first."""
    at = VERIFICATIONS.c
    wanted = select(VERIFICATIONS).order_by(at.started.desc(), at.run_id.desc(), at.source)
    return _rows(connection, wanted if plan_id is None else wanted.where(at.plan_id == plan_id))


def blocked_runs(connection: Connection) -> list[Found]:
    """Return the runs in which something is blocked or waits for a person, the longest first."""
    wanted = select(RUNS).where(RUNS.c.blocked_since.is_not(None))
    return _rows(connection, wanted.order_by(RUNS.c.blocked_since, RUNS.c.run_id, RUNS.c.source))


def of_runs(connection: Connection, table: Table, found: Sequence[Found]) -> list[list[Found]]:
    """Return the rows of a table for each of these runs, in the order in which they were made."""
    by_source: dict[str, list[Found]] = {run["source"]: [] for run in found}
    sources = list(by_source)
    for first in range(0, len(sources), _AT_ONCE):
        some = sources[first : first + _AT_ONCE]
        for row in _rows(connection, select(table).where(table.c.source.in_(some)).order_by(table.c.id)):
            by_source[row["source"]].append(row)
    return [by_source[run["source"]] for run in found]


def branches(connection: Connection, found: Sequence[Found]) -> list[list[Found]]:
    """Return the branches of each of these runs."""
    return of_runs(connection, BRANCHES, found)


def questions(connection: Connection, found: Sequence[Found]) -> list[list[Found]]:
    """Return what was asked in each of these runs."""
    return of_runs(connection, QUESTIONS, found)


def work(connection: Connection, found: Sequence[Found]) -> list[list[Found]]:
    """Return the artifact log of each of these runs."""
    return of_runs(connection, WORK, found)


def mean_resolution(found: Iterable[Found]) -> float | None:
    """Return how long branches that passed took on average, in seconds; ``None`` where none has."""
    times = [each["duration_seconds"] for each in found if each["outcome"] == PASSED]
    return sum(times) / len(times) if times else None


def failure_counts(connection: Connection, plan_id: str) -> list[Found]:
    """Return the failures of a plan by category and role: how many, in how many todos, when last."""
    at = FAILURES.c
    wanted = select(at.category, at.role, at.signature, at.todo_id, at.at).where(at.plan_id == plan_id)
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in connection.execute(wanted):
        groups.setdefault((row.category, row.role), []).append(row)
    counts = [
        {
            "category": category,
            "role": role,
            # One failure may stand in many runs, and in the log of the engine beside them.
            "failures": len({(row.signature, row.todo_id) for row in rows}),
            "todos": sorted({row.todo_id for row in rows}),
            "last": max(row.at for row in rows),
        }
        for (category, role), rows in groups.items()
    ]
    return sorted(counts, key=lambda each: (-each["failures"], each["category"], each["role"]))


def signatures(connection: Connection) -> list[str]:
    """Return every signature that was ever diagnosed, the newest first."""
    wanted = (
        select(FAILURES.c.signature)
        .where(FAILURES.c.signature.is_not(None))
        .group_by(FAILURES.c.signature)
        .order_by(func.max(FAILURES.c.at).desc(), FAILURES.c.signature)
    )
    return list(connection.execute(wanted).scalars())


def signature_meant(known: Sequence[str], begin: str) -> str:
    """Return the one signature that begins so; the text itself where none or several do."""
    found = [each for each in known if begin and each.startswith(begin)]
    return found[0] if len(found) == 1 and begin not in known else begin


def failure(connection: Connection, signature: str) -> Found | None:
    """Return what is known of a signature: who had it, who repaired it; ``None`` where nothing is."""
    at = FAILURES.c
    rows = _rows(
        connection,
        select(FAILURES).where(at.signature == signature).order_by(at.at.desc(), at.source, at.n.desc()),
    )
    corrected = _rows(
        connection,
        select(CORRECTIONS)
        .where(CORRECTIONS.c.signature == signature)
        .order_by(CORRECTIONS.c.at.desc(), CORRECTIONS.c.id.desc()),
    )
    if not rows and not corrected:
        return None
    newest = rows[0] if rows else None
    made = (
        select(BRANCHES)
        .where(BRANCHES.c.signature == signature)
        .order_by(BRANCHES.c.opened.desc(), BRANCHES.c.source, BRANCHES.c.branch_id)
    )
    told = [*rows, *corrected]
    return {
        "signature": signature,
        "category": told[0]["category"],
        "head": newest["head"] if newest else None,
        "times": len({(row["source"], row["n"]) for row in rows}),
        "todos": list(dict.fromkeys(row["todo_id"] for row in rows)),
        "last": newest["at"] if newest else None,
        "fingerprint": next((row["fingerprint"] for row in told if row["fingerprint"]), None),
        "role": newest["role"] if newest else None,
        "features": next((row["features"] for row in told if row["features"]), list[str]()),
        "repairs": _repairs_of(connection, signature),
        "branches": _rows(connection, made),
        "corrections": corrected,
    }


def _repairs_of(connection: Connection, signature: str) -> list[Found]:
    """Return who repaired it, those who did so most often first."""
    at = REPAIRS.c
    wanted = select(REPAIRS).where(at.signature == signature, at.fixed.is_not(None)).order_by(at.at)
    groups: dict[tuple[str, str], list[Found]] = {}
    for row in _rows(connection, wanted):
        groups.setdefault((row["role"], row["strategy"]), []).append(row)
    found = [
        {
            "role": role,
            "strategy": strategy,
            "fixed": sum(bool(row["fixed"]) for row in rows),
            "tried": len(rows),
            "last": rows[-1]["at"],
        }
        for (role, strategy), rows in groups.items()
    ]
    return sorted(found, key=lambda each: (-each["fixed"], each["tried"], each["role"], each["strategy"]))


def plans_for(connection: Connection, goal: str) -> list[Found]:
    """Return the plans that served a goal: those that were completed first, then the newest.

    Each is as its run has left it, without the todos that were made to repair others. Two goals are one
    where only blanks and capitals differ.
    """
    wanted = select(RUNS).order_by(RUNS.c.opened.desc(), RUNS.c.run_id.desc())
    key = " ".join(goal.casefold().split())
    plans = [
        {
            "goal": row.goal,
            "fingerprint": row.fingerprint,
            "at": row.opened,
            "digest": row.digest,
            "path": row.path,
            "run_id": row.run_id,
            "ended": row.state,
            "document": json.loads(row.document),
        }
        for row in connection.execute(wanted)
        if " ".join(row.goal.casefold().split()) == key
    ]
    return sorted(plans, key=lambda plan: _WORTH.get(plan["ended"], 1))


def past_records(connection: Connection, fingerprint: str, now: datetime, limit: int) -> PastRecords:
    """Return what a run is given of the past, at most so many of each kind, none later than now.

    Those of the repository come first, the newest before others; then those of other repositories: what was
    learnt there is worth less, and better than nothing.
    """

    def newest(table: Table, *conditions: Any) -> list[Found]:
        elsewhere = case((table.c.fingerprint == fingerprint, 0), else_=1)
        wanted = select(table).where(table.c.at <= moment(now), *conditions)
        return _rows(
            connection,
            wanted.order_by(elsewhere, table.c.at.desc(), table.c.source, table.c.id.desc()).limit(limit),
        )

    todos = [
        {**row, "done": row["state"] == "done"} for row in newest(TODOS, TODOS.c.task_kind.is_not(None))
    ]
    return PastRecords(
        fingerprint=fingerprint,
        repairs=_known(PastRepair, newest(REPAIRS, REPAIRS.c.fixed.is_not(None))),
        todos=_known(PastTodo, todos),
        corrections=_known(Correction, [{**row, "features": ()} for row in newest(CORRECTIONS)]),
    )


def _known(kind: type[_Past], rows: Iterable[Found]) -> tuple[_Past, ...]:
    """Return the rows as values; one with a role or category of another version is of no use here."""
    found: list[_Past] = []
    for row in rows:
        with suppress(ValidationError):
            found.append(kind.model_validate(row))
    return tuple(found)


def _rows(connection: Connection, wanted: Select[Any]) -> list[Found]:
    found: list[Found] = []
    for row in connection.execute(wanted):
        held = {name: value for name, value in row._mapping.items() if name not in _HIDDEN}
        for name in _LISTS & held.keys():
            held[name] = json.loads(held[name]) if held[name] else []
        found.append(held)
    return found
