"""The tables of the index, in the words of SQLAlchemy: nothing here is of one database only.

Every row belongs to one source, a log or an outcome file, and is made again from it at any time. Times are
RFC 3339 in UTC with microseconds, so that their order as text is their order in time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.types import TypeEngine

VERSION = 3
"""Of these tables: those of another version are made anew."""

PASSED = "passed"
"""The outcome of a branch that passed."""

METADATA = MetaData()

_TYPES: Mapping[str, TypeEngine[Any]] = {
    "time": String(32),
    "word": String(100),
    "name": String(2_000),
    "text": Text(),
    "count": BigInteger(),
    "float": Float(),
    "bool": Boolean(),
}

_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def moment(at: datetime | float) -> str:
    """Return a time as the tables hold it; the first or last that can be written where it lies beyond."""
    seconds = at.timestamp() if isinstance(at, datetime) else at
    known = min(max(seconds, _FIRST.timestamp()), _LAST.timestamp())
    text = datetime.fromtimestamp(known, UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def _table(name: str, columns: str) -> Table:
    """Return a table of rows of a source; a column is ``name:type``, with ``?`` where it may be null."""
    source = Column("source", String(100), ForeignKey("planverify_sources.key"), nullable=False, index=True)
    made: list[Column[Any]] = [Column("id", Integer, primary_key=True), source]
    for column in columns.split():
        label, _, kind = column.partition(":")
        made.append(Column(label, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?")))
    return Table(f"planverify_{name}", METADATA, *made)


INDEX = Table(
    "planverify_index", METADATA, Column("version", Integer, primary_key=True, autoincrement=False)
)
"""One row: the version of the tables."""

SOURCES = Table(
    "planverify_sources",
    METADATA,
    Column("key", String(100), primary_key=True),
    Column("origin", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("digest", String(100), nullable=False),
)
"""The files that the rows were made from, as they were then."""

RUNS = _table(
    "runs",
    """
    run_id:name plan_id:text path:text digest:word fingerprint:name goal:text log:text opened:time
    changed:time closed:time? state:word events:count waiting:count blocked:text blocked_since:time?
    document:text
    """,
)
"""Runs of the engine. ``blocked`` is a list in JSON, ``document`` the plan as JSON, without branches."""

VERIFICATIONS = _table(
    "verifications",
    """
    run_id:name plan_id:text path:text digest:word started:time finished:time scope:word
    exit_status:count done:count todos:count
    """,
)
"""Runs of ``pytest --planverify``."""

TODOS = _table(
    "todos",
    """
    todo_id:name at:time state:word role:word? turns:count fingerprint:name? task_kind:word? text:text?
    first_time:bool? categories:text?
    """,
)
"""How todos stood at the end of what was told. Those with a ``task_kind`` are remembered."""

BRANCHES = _table(
    "branches",
    """
    branch_id:name parent_id:name depth:count via:name? role:word category:word signature:text?
    opened:time closed:time? attempts:count outcome:word? resolution:word? duration_seconds:float?
    """,
)

FAILURES = _table(
    "failures",
    """
    plan_id:text fingerprint:name? n:count at:time todo_id:name category:word owner:word? rule:text?
    signature:text? role:word? head:text? features:text?
    """,
)
"""Every failure of every verification; ``n`` numbers the verifications of one source."""

QUESTIONS = _table(
    "questions",
    """
    question_id:name kind:word todo_id:name question:text rule:text digest:text asked:time
    decision:text? decided:time? decided_by:text? because:text?
    """,
)
"""What a person was asked, approvals and other questions, and what came of it."""

WORK = _table(
    "work",
    """
    at:time todo_id:name turn:count role:word? kind:word success:bool files:text new_files:text
    diff_hash:text? tokens:count?
    """,
)
"""The artifact log: what turns of work, ``kind`` work, and verifications said of the files."""

REPAIRS = _table(
    "repairs",
    """
    todo_id:name at:time fingerprint:name task_kind:word text:text signature:text? category:word
    strategy:text role:word fixed:bool? attempts:count
    """,
)
"""Memory: who repaired what, and how it went; ``fixed`` is absent until that is known."""

CORRECTIONS = _table(
    "corrections",
    """
    at:time fingerprint:name signature:text category:word role:word right_category:word?
    right_owner:word? features:text? by:text? because:text?
    """,
)
"""Memory: what people corrected."""

OF_SOURCES = (
    RUNS,
    VERIFICATIONS,
    TODOS,
    BRANCHES,
    FAILURES,
    QUESTIONS,
    WORK,
    REPAIRS,
    CORRECTIONS,
)
