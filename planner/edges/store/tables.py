"""The tables of the store, in the words of SQLAlchemy: nothing here is of one database only.

Times are RFC 3339 in UTC with microseconds, so that their order as text is their order in time.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData()

Time = String(32)
Word = String(100)
Name = String(2_000)


def _of_run() -> Column[str]:
    return Column("run_id", String(200), ForeignKey("planner_runs.run_id"), primary_key=True)


def _of_event() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["run_id", "n"], ["planner_events.run_id", "planner_events.n"])


SCHEMA = Table(
    "planner_schema",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("written_by", Word, nullable=False),
)
"""One row: which version of these tables it is, and which planner made it."""

RUNS = Table(
    "planner_runs",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("plan_id", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("digest", Word, nullable=False),
    Column("fingerprint", Name, nullable=False),
    Column("goal", Text, nullable=False),
    Column("opened", Time, nullable=False),
    Column("changed", Time, nullable=False),
    Column("closed", Time),
    Column("state", Word, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("blocked", Integer, nullable=False),
    Column("blocked_since", Time),
    Column("blocked_todos", Text, nullable=False),
    Index("planner_runs_by_plan", "plan_id"),
)
"""One row a run, as its events have left it."""

EVENTS = Table(
    "planner_events",
    METADATA,
    _of_run(),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("kind", Word, nullable=False),
    Column("line", Text, nullable=False),
    Column("digest", Word, nullable=False),
)
"""The logs: what is in here is never changed. Everything else can be made from it anew."""

BRANCHES = Table(
    "planner_branches",
    METADATA,
    _of_run(),
    Column("branch_id", Name, primary_key=True),
    Column("n", Integer, nullable=False),
    Column("parent_id", Name, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("via", Name),
    Column("role", Word, nullable=False),
    Column("category", Word, nullable=False),
    Column("signature", Text),
    Column("opened", Time, nullable=False),
    Column("closed", Time),
    Column("attempts", Integer, nullable=False),
    Column("outcome", Word),
    Column("resolution", Word),
    Column("duration_seconds", Float),
    _of_event(),
    Index("planner_branches_by_signature", "signature"),
)

DIAGNOSES = Table(
    "planner_diagnoses",
    METADATA,
    _of_run(),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("todo_id", Name, nullable=False),
    Column("decides", Boolean, nullable=False),
    Column("category", Word, nullable=False),
    Column("owner", Word),
    Column("repeatability", Word),
    Column("confidence", Float),
    Column("rule", Text),
    Column("signature", Text),
    Column("role", Word),
    Column("check_id", Text),
    Column("since", Word, nullable=False),
    Column("head", Text),
    Column("path", Text),
    Column("line", Integer),
    Column("function", Text),
    Column("suggestion", Text),
    Column("features", Text),
    _of_event(),
    Index("planner_diagnoses_by_signature", "signature"),
)

APPROVALS = Table(
    "planner_approvals",
    METADATA,
    _of_run(),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("question_id", Name, primary_key=True),
    Column("kind", Word, nullable=False),
    Column("todo_id", Name, nullable=False),
    Column("question", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("asked", Time, nullable=False),
    Column("decision", Text),
    Column("decided", Time),
    Column("decided_by", Text),
    Column("because", Text),
    _of_event(),
)
"""What a person was asked, approvals and other questions, and what came of it."""

ARTIFACTS = Table(
    "planner_artifacts",
    METADATA,
    _of_run(),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Time, nullable=False),
    Column("todo_id", Name, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("role", Word, nullable=False),
    Column("source", Word, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("files", Text, nullable=False),
    Column("new_files", Text, nullable=False),
    Column("diff_hash", Text),
    Column("tokens", BigInteger),
    Column("cycles", BigInteger),
    Column("duration_ms", BigInteger),
    _of_event(),
)

REPAIRS = Table(
    "planner_past_repairs",
    METADATA,
    _of_run(),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("subject", Name, primary_key=True),
    Column("todo_id", Name, nullable=False),
    Column("at", Time, nullable=False),
    Column("fingerprint", Name, nullable=False),
    Column("task_kind", Word, nullable=False),
    Column("text", Text, nullable=False),
    Column("signature", Text),
    Column("category", Word, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("role", Word, nullable=False),
    Column("fixed", Boolean),
    Column("attempts", Integer, nullable=False),
    _of_event(),
    Index("planner_past_repairs_by_time", "fingerprint", "at"),
    Index("planner_past_repairs_by_signature", "signature"),
)
"""Memory: who repaired what, and how it went; ``fixed`` is absent until that is known."""

TODOS = Table(
    "planner_past_todos",
    METADATA,
    _of_run(),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("todo_id", Name, primary_key=True),
    Column("at", Time, nullable=False),
    Column("fingerprint", Name, nullable=False),
    Column("task_kind", Word, nullable=False),
    Column("text", Text, nullable=False),
    Column("role", Word, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("first_time", Boolean, nullable=False),
    Column("categories", Text, nullable=False),
    _of_event(),
    Index("planner_past_todos_by_time", "fingerprint", "at"),
)
"""Memory: how todos went."""

CORRECTIONS = Table(
    "planner_corrections",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("at", Time, nullable=False),
    Column("fingerprint", Name, nullable=False),
    Column("signature", Text, nullable=False),
    Column("category", Word, nullable=False),
    Column("role", Word, nullable=False),
    Column("right_category", Word),
    Column("corrected_by", Text),
    Column("because", Text),
    Column("right_owner", Word),
    Column("features", Text),
    Index("planner_corrections_by_time", "fingerprint", "at"),
)
"""Memory: what people corrected. No log holds it. ``features`` are a list in JSON, here and above."""

PLANS = Table(
    "planner_plans",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("goal_key", Word, nullable=False),
    Column("goal", Text, nullable=False),
    Column("fingerprint", Name, nullable=False),
    Column("at", Time, nullable=False),
    Column("digest", Word, nullable=False),
    Column("path", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("run_id", String(200), ForeignKey("planner_runs.run_id")),
    Index("planner_plans_by_goal", "goal_key", "fingerprint"),
)
"""The plan cache: which plan served which goal. How it ended is told by its run."""

MADE_FROM_EVENTS = (ARTIFACTS, BRANCHES, DIAGNOSES, APPROVALS, REPAIRS, TODOS)
"""The projections, beside the columns of a run that move."""
