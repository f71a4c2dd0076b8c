"""The questions that are asked of the index: runs, branches, what repaired what, what stands still."""

from __future__ import annotations

from contextlib import suppress
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import ValidationError
from sqlalchemy import case, func, select

from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
from planner.model.verdicts import PlanState
from planner.store.run_rows import (
    CORRECTIONS,
    FAILURES,
    PASSED,
    QUESTIONS,
    REPAIRS,
    RUNS,
    TODOS,
    VERIFICATIONS,
    moment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Select, Table

Found: TypeAlias = "dict[str, Any]"
"""A row of the index by its columns."""

_Past = TypeVar("_Past", PastRepair, PastTodo, Correction)

_NEWEST_RUNS = (RUNS.c.opened.desc(), RUNS.c.run_id.desc(), RUNS.c.source)
_WORTH = {PlanState.COMPLETED.value: 0, PlanState.HALTED.value: 2, PlanState.REJECTED.value: 3}


def runs(
    connection: Connection, plan_id: str | None = None, *, limit: int | None = None, offset: int = 0
) -> list[Found]:
    """Return the runs of the engine for a plan, or all, the newest first; of these a page, with a limit."""
    wanted = _of_plan(RUNS, plan_id).order_by(*_NEWEST_RUNS)
    return _rows(connection, wanted if limit is None else wanted.limit(limit).offset(offset))


def count_runs(connection: Connection) -> tuple[int, int]:
    """Return how many runs of the engine there are, and how many of them are blocked."""
    blocked = func.count(RUNS.c.blocked_since)
    total, waiting = connection.execute(select(func.count(), blocked).select_from(RUNS)).one()
    return total, waiting


def repair_rates(connection: Connection) -> list[Found]:
    """Return by category and role how many repairs were tried and how many held, the most tried first."""
    at, tried = REPAIRS.c, func.count()
    wanted = select(at.category, at.role, tried, func.sum(case((at.fixed, 1), else_=0)))
    wanted = wanted.where(at.fixed.is_not(None)).group_by(at.category, at.role)
    rows = connection.execute(wanted.order_by(tried.desc(), at.category, at.role))
    return [
        {"category": category, "role": role, "tried": count, "fixed": fixed}
        for category, role, count, fixed in rows
    ]


def verifications(
    connection: Connection, plan_id: str | None = None, *, limit: int | None = None
) -> list[Found]:
    """Return the runs of ``pytest --planverify`` for a plan, or all, the newest first.

    What a run has left for its plan is kept with the run, too: it is one verification.
    """
    at = VERIFICATIONS.c
    wanted = _of_plan(VERIFICATIONS, plan_id).order_by(at.started.desc(), at.run_id.desc(), at.source)
    # Each may stand there twice.
    found = _rows(connection, wanted if limit is None else wanted.limit(2 * limit))
    return list({(each["run_id"], each["plan_id"]): each for each in found}.values())[:limit]


def branches(connection: Connection, found: Sequence[Found]) -> list[list[Found]]:
    """Return the branches of each of these runs."""
    rows = _of_runs(connection, REPAIRS, found)
    return [[row for row in those if row["branch_id"] is not None] for those in rows]


def questions(connection: Connection, found: Sequence[Found]) -> list[list[Found]]:
    """Return what was asked in each of these runs."""
    return _of_runs(connection, QUESTIONS, found)


def decided(connection: Connection, question_id: str, digest: str) -> Found | None:
    """Return the same question as it was asked and decided before, the latest decision first."""
    at = QUESTIONS.c
    wanted = select(QUESTIONS).where(
        at.question_id == question_id, at.digest == digest, at.decision.is_not(None)
    )
    return next(iter(_rows(connection, wanted.order_by(at.decided.desc()).limit(1))), None)


def mean_resolution(found: Iterable[Found]) -> float | None:
    """Return how long branches that passed took on average, in seconds; ``None`` where none has."""
    times = [each["duration_seconds"] for each in found if each["outcome"] == PASSED]
    return fmean(times) if times else None


def failure_counts(connection: Connection, plan_id: str) -> list[Found]:
    """Return the failures of a plan by category and role: how many, in how many todos, when last."""
    counts = [
        {
            "category": category,
            "role": role,
            # One failure may stand in many runs, and in the log of the engine beside them.
            "failures": len({(row["signature"], row["todo_id"]) for row in rows}),
            "todos": sorted({row["todo_id"] for row in rows}),
            "last": max(row["at"] for row in rows),
        }
        for (category, role), rows in _group(
            _rows(connection, _of_plan(FAILURES, plan_id)), "category", "role"
        )
    ]
    return sorted(counts, key=lambda each: (-each["failures"], each["category"], each["role"]))


def signatures(connection: Connection) -> list[str]:
    """Return every signature that was ever diagnosed, the newest first."""
    at = FAILURES.c
    wanted = select(at.signature).where(at.signature.is_not(None)).group_by(at.signature)
    return list(connection.execute(wanted.order_by(func.max(at.at).desc(), at.signature)).scalars())


def signature_meant(known: Sequence[str], begin: str) -> str:
    """Return the one signature that begins so; the text itself where none or several do."""
    found = [each for each in known if begin and each.startswith(begin)]
    return found[0] if len(found) == 1 and begin not in known else begin


def failure(connection: Connection, signature: str) -> Found | None:
    """Return what is known of a signature: who had it, who repaired it; ``None`` where nothing is."""

    def known(table: Table, *order: Any) -> list[Found]:
        return _rows(connection, select(table).where(table.c.signature == signature).order_by(*order))

    rows = known(FAILURES, FAILURES.c.at.desc(), FAILURES.c.source, FAILURES.c.n.desc())
    corrected = known(CORRECTIONS, CORRECTIONS.c.at.desc(), CORRECTIONS.c.id.desc())
    if not rows and not corrected:
        return None
    told, newest = [*rows, *corrected], rows[0] if rows else {}
    repaired = known(REPAIRS, REPAIRS.c.opened.desc(), REPAIRS.c.source, REPAIRS.c.branch_id)
    tried = [row for row in repaired if row["fixed"] is not None]
    repairs: list[Found] = [
        {
            "role": role,
            "strategy": strategy,
            "fixed": sum(row["fixed"] for row in rows_of_one),
            "tried": len(rows_of_one),
            "last": max(row["at"] for row in rows_of_one),
        }
        for (role, strategy), rows_of_one in _group(tried, "role", "strategy")
    ]
    return {
        "signature": signature,
        "category": told[0]["category"],
        "head": newest.get("head"),
        "times": len({(row["run_id"], row["plan_id"], row["n"]) for row in rows}),
        "todos": list(dict.fromkeys(row["todo_id"] for row in rows)),
        "last": newest.get("at"),
        "fingerprint": next((row["fingerprint"] for row in told if row["fingerprint"]), None),
        "role": newest.get("role"),
        "repairs": sorted(repairs, key=lambda each: (-each["fixed"], each["tried"])),
        "branches": [row for row in repaired if row["branch_id"] is not None],
        "corrections": corrected,
    }


def plans_for(connection: Connection, goal: str) -> list[Found]:
    """Return the plans that served a goal: those that were completed first, then the newest.

    Each is as its run has left it, without the todos that were made to repair others. Two goals are one
    where only blanks and capitals differ.
    """
    key = " ".join(goal.casefold().split())
    columns = ("goal", "fingerprint", "digest", "path", "run_id", "document")
    plans = [
        {**{name: row[name] for name in columns}, "at": row["opened"], "ended": row["state"]}
        for row in connection.execute(select(RUNS).order_by(*_NEWEST_RUNS)).mappings()
        if " ".join(row["goal"].casefold().split()) == key
    ]
    return sorted(plans, key=lambda plan: _WORTH.get(plan["ended"], 1))


def past_records(connection: Connection, fingerprint: str, now: datetime, limit: int) -> PastRecords:
    """Return what a run is given of the past, at most so many of each kind, none later than now.

    Those of the repository come first, the newest before others; then those of other repositories: what was
    learnt there is worth less, and better than nothing.
    """

    def newest(kind: type[_Past], table: Table) -> tuple[_Past, ...]:
        elsewhere = case((table.c.fingerprint == fingerprint, 0), else_=1)
        wanted = select(table).where(table.c.at <= moment(now))
        if table is REPAIRS:
            wanted = wanted.where(REPAIRS.c.fixed.is_not(None))
        wanted = wanted.order_by(elsewhere, table.c.at.desc(), table.c.source, table.c.id.desc())
        found: list[_Past] = []
        for row in _rows(connection, wanted.limit(limit)):
            with suppress(ValidationError):  # a role or category of another version is of no use here
                found.append(kind.model_validate({**row, "attempts": row.get("attempts") or 1}))
        return tuple(found)

    return PastRecords(
        fingerprint=fingerprint,
        repairs=newest(PastRepair, REPAIRS),
        todos=newest(PastTodo, TODOS),
        corrections=newest(Correction, CORRECTIONS),
    )


def _of_plan(table: Table, plan_id: str | None) -> Select[Any]:
    return select(table) if plan_id is None else select(table).where(table.c.plan_id == plan_id)


def _of_runs(connection: Connection, table: Table, found: Sequence[Found]) -> list[list[Found]]:
    """Return the rows of a table for each of these runs, in the order in which they were made."""
    wanted = select(table).where(table.c.source.in_([run["source"] for run in found])).order_by(table.c.id)
    rows = {source: those for (source,), those in _group(_rows(connection, wanted), "source")}
    return [rows.get(run["source"], []) for run in found]


def _group(rows: Iterable[Found], *columns: str) -> list[tuple[tuple[str, ...], list[Found]]]:
    """Return the rows by the values of some columns, in the order of these values."""
    groups: dict[tuple[str, ...], list[Found]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return sorted(groups.items())


def _rows(connection: Connection, wanted: Select[Any]) -> list[Found]:
    return [
        {name: value for name, value in row.items() if name not in ("id", "document")}
        for row in connection.execute(wanted).mappings()
    ]
