"""Queries of the index: runs, branches, questions, failures, repairs, and the memory of past runs.

Each takes a connection of :meth:`planner.store.index.Index.reading` and returns rows as dictionaries by
column, without the primary key.
"""

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
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy import Column, Connection, Select, Table

Found: TypeAlias = "dict[str, Any]"
"""A row of the index: values by column name."""

_Past = TypeVar("_Past", PastRepair, PastTodo, Correction)

_NEWEST_RUNS = (RUNS.c.opened.desc(), RUNS.c.run_id.desc(), RUNS.c.source.desc())
_WORTH = {PlanState.COMPLETED.value: 0, PlanState.HALTED.value: 2, PlanState.REJECTED.value: 3}


def runs(connection: Connection, plan_id: str | None = None, *, limit: int | None = None) -> list[Found]:
    """Return the runs of a plan, or of all plans, newest first, with their branches and questions."""
    found = _rows(connection, _of_plan(RUNS, plan_id).order_by(*_NEWEST_RUNS).limit(limit))
    # One query for each table, not for each run.
    sources = [run["source"] for run in found]
    for table, key in ((REPAIRS, "branches"), (QUESTIONS, "questions")):
        wanted = select(table).where(table.c.source.in_(sources)).order_by(table.c.id)
        rows: dict[str, list[Found]] = {source: [] for source in sources}
        for row in _rows(connection, wanted):
            rows[row["source"]].append(row)
        for run in found:
            run[key] = rows[run["source"]]
    for run in found:
        run["branches"] = [row for row in run["branches"] if row["branch_id"] is not None]
        run["average_resolution_seconds"] = mean_resolution(run["branches"])
    return found


def verifications(
    connection: Connection, plan_id: str | None = None, *, limit: int | None = None
) -> list[Found]:
    """Return the runs of ``pytest --planverify`` for a plan, or for all plans, newest first.

    Outcomes are stored in the run's folder and in the plan's folder, hence in two rows: they are one
    verification, and returned once.
    """
    at = VERIFICATIONS.c
    wanted = _of_plan(VERIFICATIONS, plan_id).order_by(
        at.started.desc(), at.run_id.desc(), at.source.desc()
    )
    # Each verification may have two rows: twice the limit is enough.
    found = _rows(connection, wanted if limit is None else wanted.limit(2 * limit))
    return list({(each["run_id"], each["plan_id"]): each for each in found}.values())[:limit]


def decided(connection: Connection, question_id: str, digest: str) -> Found | None:
    """Return the latest decided question with this id and digest; ``None`` if none was decided.

    An equal digest means that the same was asked.
    """
    at = QUESTIONS.c
    wanted = select(QUESTIONS).where(
        at.question_id == question_id, at.digest == digest, at.decision.is_not(None)
    )
    return next(iter(_rows(connection, wanted.order_by(at.decided.desc()).limit(1))), None)


def mean_resolution(found: Iterable[Found]) -> float | None:
    """Return the mean duration in seconds of the branches that passed; ``None`` if none passed."""
    times = [each["duration_seconds"] for each in found if each["outcome"] == PASSED]
    return fmean(times) if times else None


def signatures(connection: Connection) -> list[str]:
    """Return all diagnosed failure signatures, the most recently seen first."""
    at = FAILURES.c
    wanted = select(at.signature).where(at.signature.is_not(None)).group_by(at.signature)
    return list(connection.execute(wanted.order_by(func.max(at.at).desc(), at.signature)).scalars())


def failure(connection: Connection, begin: str) -> Found | None:
    """Return the history of a signature: its failures, repairs and corrections; ``None`` if unknown.

    The start of a signature is enough where only one starts with it.

    ``repairs`` counts by role and strategy how often they were tried and fixed it, the most successful
    first; ``branches`` and ``corrections`` are rows. ``head``, ``role`` and ``last`` are those of the
    newest failure.
    """

    meant = [each for each in signatures(connection) if begin and each.startswith(begin)]
    signature = meant[0] if len(meant) == 1 else begin

    def known(table: Table, *order: Any) -> list[Found]:
        return _rows(connection, select(table).where(table.c.signature == signature).order_by(*order))

    rows = known(FAILURES, FAILURES.c.at.desc(), FAILURES.c.source, FAILURES.c.n.desc())
    corrected = known(CORRECTIONS, CORRECTIONS.c.at.desc(), CORRECTIONS.c.id.desc())
    if not rows and not corrected:
        return None
    records, newest = [*rows, *corrected], rows[0] if rows else {}
    repaired = known(REPAIRS, REPAIRS.c.opened.desc(), REPAIRS.c.source, REPAIRS.c.branch_id)
    rates = _success(REPAIRS.c.role, REPAIRS.c.strategy).where(REPAIRS.c.signature == signature)
    repairs = _rows(connection, rates)
    return {
        "signature": signature,
        "category": records[0]["category"],
        "head": newest.get("head"),
        # One verification has rows of the run's and of the plan's folder.
        "times": len({(row["run_id"], row["plan_id"], row["n"]) for row in rows}),
        "todos": list(dict.fromkeys(row["todo_id"] for row in rows)),
        "last": newest.get("at"),
        "fingerprint": next((row["fingerprint"] for row in records if row["fingerprint"]), None),
        "role": newest.get("role"),
        "repairs": sorted(repairs, key=lambda each: (-each["fixed"], each["tried"])),
        "branches": [row for row in repaired if row["branch_id"] is not None],
        "corrections": corrected,
    }


def plans_for(connection: Connection, goal: str) -> list[Found]:
    """Return the runs for a goal, sorted by their state, then newest first, each with its plan.

    The order of states is completed, unfinished, halted, rejected. ``document`` is the plan at the end of
    its run if that completed, otherwise as submitted; without branches. Goals are equal if they differ in
    blanks and capitals only.
    """
    # Compared in Python, as databases fold the case of letters differently.
    key = " ".join(goal.casefold().split())
    rows = _rows(connection, select(RUNS).order_by(*_NEWEST_RUNS))
    found = [row for row in rows if " ".join(row["goal"].casefold().split()) == key]
    return sorted(found, key=lambda run: _WORTH.get(run["state"], 1))


def past_records(connection: Connection, fingerprint: str, now: datetime, limit: int) -> PastRecords:
    """Return the memory for a run: at most ``limit`` repairs, todos and corrections each.

    None is later than ``now``. Records of this repository (``fingerprint``) come first, then those of other
    repositories, which are worth less, but better than none; within each, the newest first.
    """

    def newest(kind: type[_Past], table: Table) -> tuple[_Past, ...]:
        # Sorted, not filtered: experience of other repositories is better than none.
        elsewhere = case((table.c.fingerprint == fingerprint, 0), else_=1)
        wanted = select(table).where(table.c.at <= moment(now))
        if table is REPAIRS:
            wanted = wanted.where(REPAIRS.c.fixed.is_not(None))
        wanted = wanted.order_by(elsewhere, table.c.at.desc(), table.c.source, table.c.id.desc())
        found: list[_Past] = []
        for row in _rows(connection, wanted.limit(limit)):
            with suppress(ValidationError):  # a role or category of another version of the program
                found.append(kind.model_validate({**row, "attempts": row.get("attempts") or 1}))
        return tuple(found)

    return PastRecords(
        fingerprint=fingerprint,
        repairs=newest(PastRepair, REPAIRS),
        todos=newest(PastTodo, TODOS),
        corrections=newest(Correction, CORRECTIONS),
    )


def _of_plan(table: Table, plan_id: str | None) -> Select[Any]:
    """Return the query for a table's rows of one plan, or of all, without the column ``document``."""
    # Loading the complete plans of a page of runs takes longer than everything else.
    wanted = select(*(column for column in table.columns if column.name != "document"))
    return wanted if plan_id is None else wanted.where(table.c.plan_id == plan_id)


def _success(*columns: Column[Any]) -> Select[Any]:
    """Return the query for how many repairs were tried and fixed, and the latest time, by some columns.

    Repairs without a known result are not counted.
    """
    fixed = func.sum(case((REPAIRS.c.fixed, 1), else_=0)).label("fixed")
    counts = (fixed, func.count().label("tried"), func.max(REPAIRS.c.at).label("last"))
    wanted = select(*columns, *counts).where(REPAIRS.c.fixed.is_not(None))
    return wanted.group_by(*columns).order_by(*columns)


def _rows(connection: Connection, wanted: Select[Any]) -> list[Found]:
    return [
        {name: value for name, value in row.items() if name != "id"}
        for row in connection.execute(wanted).mappings()
    ]
