"""The tables of the index, in the words of SQLAlchemy: nothing here is of one database only.

Every row belongs to one source, a log or an outcome file, and is made again from it at any time. Times are
RFC 3339 in UTC with microseconds, so that their order as text is their order in time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.types import TypeEngine

VERSION = 7
"""Of these tables: those of another version are made anew."""

PASSED = "passed"
"""The outcome of a branch that passed."""

METADATA = MetaData()

_TYPES: Mapping[str, TypeEngine[Any]] = {
    "word": String(100),
    "text": Text(),
    "count": BigInteger(),
    "float": Float(),
    "bool": Boolean(),
    "json": JSON(none_as_null=True),
}


def moment(at: datetime | float) -> str:
    """Return a time as the tables hold it."""
    known = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return known.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _table(name: str, columns: str) -> Table:
    """Return a table of rows of a source; a column is ``name:type``, with ``?`` where it may be null."""
    made: list[Column[Any]] = [Column("id", Integer, primary_key=True)]
    for column in ("source:word", *columns.split()):
        label, _, kind = column.partition(":")
        made.append(Column(label, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?")))
    return Table(f"planverify_{name}", METADATA, *made)


INDEX = Table("planverify_index", METADATA, Column("version", Integer, primary_key=True))
"""One row: the version of the tables."""

SOURCES = _table("sources", "origin:text name:text stamp:word")
"""The files that the rows were made from, as they were then."""

RUNS = _table(
    "runs",
    """
    run_id:text plan_id:text path:text digest:word fingerprint:text goal:text log:text opened:word
    changed:word closed:word? state:word events:count blocked:json blocked_since:word? document:json
    """,
)
"""Runs of the engine. ``document`` is the plan, without what was made to repair it."""

VERIFICATIONS = _table(
    "verifications",
    """
    run_id:text plan_id:text path:text digest:word started:word finished:word scope:word
    exit_status:count done:count todos:count
    """,
)
"""Runs of ``pytest --planverify``."""

REPAIRS = _table(
    "repairs",
    """
    branch_id:text? parent_id:text depth:count via:text? role:word category:word signature:text?
    opened:word closed:word? attempts:count outcome:word? resolution:word? duration_seconds:float?
    at:word fingerprint:text task_kind:word text:text strategy:text fixed:bool?
    """,
)
"""Who repaired which todo, ``parent_id``, in a branch or in a turn of its own, and how it went.

``fixed`` is absent until that is known, and where memory has nothing to learn of it."""

FAILURES = _table(
    "failures",
    """
    run_id:text plan_id:text fingerprint:text? n:count at:word todo_id:text category:word
    signature:text? role:word? head:text? features:json?
    """,
)
"""Every failure of every verification; ``n`` numbers the verifications of one run."""

QUESTIONS = _table(
    "questions",
    """
    question_id:text kind:word todo_id:text question:text rule:text digest:text asked:word
    decision:text? decided:word? decided_by:text? because:text?
    """,
)
"""What a person was asked, approvals and other questions, and what came of it."""

TODOS = _table(
    "todos",
    """
    todo_id:text at:word fingerprint:text task_kind:word text:text role:word done:bool first_time:bool
    categories:json
    """,
)
"""Memory: how todos went that were worked on to their end."""

CORRECTIONS = _table(
    "corrections",
    """
    at:word fingerprint:text signature:text category:word role:word right_category:word?
    right_owner:word? features:json? by:text? because:text?
    """,
)
"""Memory: what people corrected."""

OF_SOURCES = (RUNS, VERIFICATIONS, REPAIRS, FAILURES, QUESTIONS, TODOS, CORRECTIONS)

# What a page of the newest reads, of which there may be ten thousand.
for _column in (RUNS.c.opened, VERIFICATIONS.c.started, REPAIRS.c.source):
    Index(f"{_column.table.name}_by_{_column.name}", _column)
