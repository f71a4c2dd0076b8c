"""Index over logs, outcome files and corrections: an SQL database that is updated from these files.

It is a cache: ``.planverify/planverify.db`` can be deleted at any time and is rebuilt from the files. Any
other database that SQLAlchemy supports can collect the runs of several checkouts. :meth:`Index.sync`
compares size and time of each file with those stored beside its rows, and replaces the rows of the files
that changed; :mod:`.run_rows` derives the rows. Only this module imports SQLAlchemy.

Tables are portable between databases. Every row belongs to one source file (column ``source``) and can be
derived again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import sqlalchemy as sql
from pydantic import ValidationError
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from planner.catalog.tables import load_table
from planner.errors import PlannerError, StoreError
from planner.model.past import Correction, PastRecords, PastRepair, PastTodo
from planner.planfile.locks import open_flags
from planner.planfile.plan_folder import HOME, make_home
from planner.store.chain import one_line
from planner.store.corrections import CORRECTIONS
from planner.store.run_log import FOLDER, is_superseded
from planner.store.run_rows import OUTCOMES, PASSED, moment, rows_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from datetime import datetime

    from planner.store.run_rows import Row, Rows

VERSION = 12
"""Version of the tables; a project's index with another version is rebuilt, other databases are refused."""

USUAL = f"{HOME}/planverify.db"
"""Default path of a project's index, below the plan's root."""

BUSY_SECONDS = 30.0
"""Seconds that SQLite waits for another writer."""

_MOST_TRIES = 40
"""Attempts to create tables while other processes create them, too."""

_CREATED_MEANWHILE = ("already exists", "duplicate key")
"""Parts of the error messages of SQLite and PostgreSQL if another process created a table first."""

Found: TypeAlias = "dict[str, Any]"
"""A row that a query has found: values by column name, without the primary key."""

_Past = TypeVar("_Past", PastRepair, PastTodo, Correction)

# -- the tables -------------------------------------------------------------------------------------------

METADATA = sql.MetaData()

_TYPES: Mapping[str, Any] = {
    "word": sql.String(100),
    "text": sql.Text(),
    "count": sql.BigInteger(),
    "float": sql.Float(),
    "bool": sql.Boolean(),
    "json": sql.JSON(none_as_null=True),
}


def _table(name: str, columns: str) -> sql.Table:
    """Return a table with an id, a source and ``columns``: ``name:type``, with ``?`` if nullable."""
    made: list[sql.Column[Any]] = [sql.Column("id", sql.Integer, primary_key=True)]
    for column in ("source:word", *columns.split()):
        label, _, kind = column.partition(":")
        made.append(sql.Column(label, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?")))
    return sql.Table(f"planverify_{name}", METADATA, *made)


INDEX = sql.Table("planverify_index", METADATA, sql.Column("version", sql.Integer, primary_key=True))
"""One row: the version of the tables."""

TABLES = {name: _table(name, columns) for name, columns in load_table("index", "planner.store").items()}
"""Tables by name: ``sources``, and those with rows derived from sources."""
SOURCES, RUNS, VERIFICATIONS = TABLES["sources"], TABLES["runs"], TABLES["verifications"]
REPAIRS, FAILURES, QUESTIONS = TABLES["repairs"], TABLES["failures"], TABLES["questions"]
TODOS, CORRECTED = TABLES["todos"], TABLES["corrections"]

# For pages of the newest rows, as there may be ten thousand.
sql.Index("planverify_runs_by_opened", RUNS.c.opened)
sql.Index("planverify_repairs_by_source", REPAIRS.c.source)


class Index:
    """One database. Its methods raise a :class:`planner.errors.StoreError` with a one-line message."""

    def __init__(self, name: str, engine: sql.Engine, *, is_shared: bool) -> None:
        """Create the tables if missing. Raises ``StoreError`` if they have another version."""
        self.name = name
        """Name in messages."""
        self.remarks: list[str] = []
        """Remarks for people on the files that the last :meth:`sync` read, sorted by file."""
        self._engine = engine
        self._is_shared = is_shared
        """Whether it may have rows of other checkouts, whose files may be missing here."""
        for left in reversed(range(_MOST_TRIES)):
            try:
                self._make_tables()
                break
            # Several processes may find no tables and create them at once: the losers try again.
            except StoreError as error:
                if not left or not any(words in str(error) for words in _CREATED_MEANWHILE):
                    self.close()
                    raise
                time.sleep(0.05)

    def _make_tables(self) -> None:
        """Create the tables if the database has none; check the version of existing ones."""
        with self.connection() as connection:
            found = None
            if sql.inspect(connection).has_table(INDEX.name):
                found = connection.execute(sql.select(INDEX.c.version)).scalar()
            if found is None:
                METADATA.create_all(connection)
                connection.execute(INDEX.delete())  # of a process that was killed, or created them, too
                connection.execute(INDEX.insert().values(version=VERSION))
            elif found != VERSION:
                raise StoreError(
                    f"{self.name}: the tables have version {found}, but this planner uses {VERSION}; "
                    "update the older planner, or drop the planverify_ tables and import the logs again"
                )

    @classmethod
    def open(cls, url_or_path: str, *, create: bool = True) -> Self:
        """Open a database named by a user, as URL or as path of an SQLite file.

        Raises :class:`planner.errors.StoreError` if it cannot be used, has tables of another version, or is
        a missing file and ``create`` is false.
        """
        path = url_or_path.removeprefix("sqlite:///")
        # In a URL, a question mark begins settings, and the name means a database in memory.
        if path not in ("", ":memory:") and "://" not in path and "?" not in path:
            if not create and not os.path.exists(path):
                remedy = f"make it with planner history --import --store {path}"
                raise StoreError(f"{path}: the index does not exist; {remedy}")
            return cls(path, _sqlite_engine(Path(path)), is_shared=True)
        # It may contain a password, and SQLAlchemy can hide only that of a URL it understands.
        name, engine = re.sub("//[^@]*@", "//…@", url_or_path), None
        with suppress(ArgumentError, NoSuchModuleError, ImportError, ValueError):  # a port may be no number
            url = sql.make_url(url_or_path)
            name = url.render_as_string(hide_password=True)
            if url.get_backend_name() != "sqlite":
                # A server may have closed a pooled connection that was idle.
                engine = sql.create_engine(url, pool_pre_ping=True)
        if engine is None:
            raise StoreError(
                f"'{name}' is not the URL of a database with an installed driver; write one like "
                "sqlite:///folder/file.db or postgresql+DRIVER://user@host/database, or the path of a file"
            )
        return cls(name, engine, is_shared=True)

    def close(self) -> None:
        """Release the connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def connection(self) -> Generator[sql.Connection]:
        """Context with a connection in a transaction; each database error becomes a ``StoreError``."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError, ValueError) as error:  # ValueError: a damaged text
            cause = (error.orig or error) if isinstance(error, DBAPIError) else error
            raise _unusable(self.name, cause) from error

    # -- update ------------------------------------------------------------------------------------------

    def sync(self, root: Path) -> None:
        """Update the rows of a project from its files.

        A file with an unchanged stamp is not read again, an unreadable one each time.
        """
        # In a database of several checkouts, rows are identified by machine and folder, too.
        origin = f"{platform.node()}:{os.path.realpath(root)}" if self._is_shared else ""
        wanted = sql.select(SOURCES.c.name, SOURCES.c.stamp).where(SOURCES.c.origin == origin)
        known = {row["name"]: row["stamp"] for row in self._rows(wanted)}
        files = source_files(root)
        stale = {name for name, stamp in files.items() if known.get(name) != stamp}
        # A shared database keeps the rows of removed files.
        changed = sorted(stale if self._is_shared else stale | (known.keys() - files.keys()))
        self.remarks = []
        made: dict[str, Rows] = {}
        for name in changed:
            # Of a removed or unreadable file, the old rows are only deleted.
            # surrogatepass: bytes of a file's name that are not UTF-8 are shown by Python as surrogates.
            key = hashlib.sha256(f"{origin}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
            rows = made.setdefault(key, {})
            try:
                if name in files:
                    rows |= rows_of(root / name, self.remarks)
                    rows["sources"] = [{"origin": origin, "name": name, "stamp": files[name]}]
            except PlannerError as error:
                self.remarks.append(str(error))
        if made:
            self._replace(made)

    def _replace(self, made: Mapping[str, Rows]) -> None:
        """Replace the rows of files, by the value of their ``source`` column, in one transaction."""
        with self.connection() as connection:
            # The update comes first: it locks before anything is read, so that writers do not interleave.
            connection.execute(INDEX.update().values(version=VERSION))
            for name, table in TABLES.items():
                old = table.delete().where(table.c.source == sql.bindparam("key"))
                connection.execute(old, [{"key": key} for key in made])
                rows = [_storable(table, key, row) for key in made for row in made[key].get(name, ())]
                if rows:
                    connection.execute(table.insert(), rows)

    # -- queries -----------------------------------------------------------------------------------------

    def _rows(self, wanted: sql.Executable) -> list[Found]:
        with self.connection() as connection:
            found = connection.execute(wanted).mappings()
            return [{name: value for name, value in row.items() if name != "id"} for row in found]

    def runs(self, plan_id: str | None = None, *, limit: int | None = None) -> list[Found]:
        """Return the runs of a plan, or of all plans, newest first, with their branches and questions."""
        at = RUNS.c
        wanted = sql.select(RUNS).order_by(at.opened.desc(), at.run_id.desc(), at.source.desc())
        wanted = _of_plan(wanted, RUNS, plan_id).limit(limit)
        by_source: dict[str, Found] = {}
        for run in self._rows(wanted):
            by_source[run["source"]] = run | {"branches": [], "questions": []}
        # One query for each table, not for each run.
        sources = sql.select(wanted.subquery().c.source)
        for table, key in ((REPAIRS, "branches"), (QUESTIONS, "questions")):
            of_runs = sql.select(table).where(table.c.source.in_(sources)).order_by(table.c.id)
            for row in self._rows(of_runs):
                # A retry is no branch; a run may have been added since.
                if row.get("branch_id", "") is not None and row["source"] in by_source:
                    by_source[row["source"]][key].append(row)
        for run in by_source.values():
            run["average_resolution_seconds"] = mean_resolution(run["branches"])
        return list(by_source.values())

    def verifications(self, plan_id: str | None = None, *, limit: int | None = None) -> list[Found]:
        """Return the runs of ``pytest --planverify`` for a plan, or for all plans, newest first."""
        at = VERIFICATIONS.c
        wanted = sql.select(VERIFICATIONS).order_by(at.started.desc(), at.run_id.desc(), at.source.desc())
        return self._rows(_of_plan(wanted, VERIFICATIONS, plan_id).limit(limit))

    def failures(self) -> list[Found]:
        """Return all diagnosed failures with a signature, the newest first."""
        at = FAILURES.c
        wanted = sql.select(FAILURES).where(at.signature.is_not(None))
        return self._rows(wanted.order_by(at.at.desc(), at.source, at.id.desc()))

    def past_records(self, fingerprint: str, now: datetime, limit: int) -> PastRecords:
        """Return the memory for a run: at most ``limit`` repairs, todos and corrections each.

        None is later than ``now``. Records of this repository (``fingerprint``) come first, then those of
        other repositories, which are worth less, but better than none; within each, the newest first.
        """

        def newest(kind: type[_Past], table: sql.Table) -> tuple[_Past, ...]:
            at = table.c
            wanted = sql.select(table).where(at.at <= moment(now))
            if table is REPAIRS:
                wanted = wanted.where(at.fixed.is_not(None))
            elsewhere = sql.case((at.fingerprint == fingerprint, 0), else_=1)
            wanted = wanted.order_by(elsewhere, at.at.desc(), at.source, at.id.desc()).limit(limit)
            found: list[_Past] = []
            for row in self._rows(wanted):
                with suppress(ValidationError):  # a role or category of another version of the program
                    found.append(kind.model_validate({**row, "attempts": row.get("attempts") or 1}))
            return tuple(found)

        return PastRecords(
            fingerprint=fingerprint,
            repairs=newest(PastRepair, REPAIRS),
            todos=newest(PastTodo, TODOS),
            corrections=newest(Correction, CORRECTED),
        )


def mean_resolution(branches: Iterable[Found]) -> float | None:
    """Return the mean duration in seconds of the branches that passed; ``None`` if none passed."""
    times = [each["duration_seconds"] for each in branches if each["outcome"] == PASSED]
    return fmean(times) if times else None


def open_index(
    root: Path, url: str | None = None, *, rebuild: bool = False, imports: bool = False
) -> Index:
    """Open the index of a project, updated from its files, or the database that ``url`` names.

    The project's own index is built again with ``rebuild``, or if it is damaged or of another version; it
    is kept in memory if it cannot be written. A named database is updated with ``imports`` only. Raises
    :class:`planner.errors.StoreError`.
    """
    if url is not None:
        named = Index.open(url, create=imports)
        return _up_to_date(named, root) if imports else named
    path = root / USUAL
    # The second attempt is made with a new file, as the first one is damaged or of another version.
    for deletes in (rebuild, True):
        if not os.access(root / HOME, os.W_OK):
            break
        if deletes:
            # With its journals: SQLite would apply one that is left to the new file.
            for end in ("", "-journal", "-wal", "-shm"):
                with suppress(OSError):
                    path.with_name(f"{path.name}{end}").unlink()
        with suppress(StoreError):
            make_home(root)
            return _up_to_date(Index(str(path), _sqlite_engine(path), is_shared=False), root)
    # One connection for all threads: each connection to SQLite's memory has a database of its own.
    arguments = {"check_same_thread": False}
    in_memory = sql.create_engine("sqlite://", poolclass=StaticPool, connect_args=arguments)
    return _up_to_date(Index(str(path), in_memory, is_shared=False), root)


def _up_to_date(index: Index, root: Path) -> Index:
    try:
        index.sync(root)
    except StoreError:
        index.close()
        raise
    return index


def source_files(root: Path) -> dict[str, str]:
    """Return the stamps of the files that rows are derived from, by name relative to the root.

    Equal stamps (size, time, and whether a later log exists) mean equal rows.
    """
    files: dict[str, str] = {}
    for path in (each for glob in (CORRECTIONS, f"{FOLDER}/*.jsonl", _RUNS) for each in root.glob(glob)):
        with suppress(OSError):
            facts = path.lstat()
            # Skip links, and empty files, which a kill may leave.
            if stat.S_ISREG(facts.st_mode) and facts.st_size:
                later = " superseded" if is_superseded(path) else ""
                files[path.relative_to(root).as_posix()] = f"{facts.st_size} {facts.st_mtime_ns}{later}"
    return files


_RUNS = f"{HOME}/runs/*/{OUTCOMES}"


def _of_plan(wanted: sql.Select[Any], table: sql.Table, plan_id: str | None) -> sql.Select[Any]:
    return wanted if plan_id is None else wanted.where(table.c.plan_id == plan_id)


def _storable(table: sql.Table, key: str, row: Row) -> Row:
    """Return a row of a source with all columns of the table, with texts that every database accepts."""

    def storable(value: Any) -> Any:
        # Databases reject lone surrogates and null characters.
        is_text = isinstance(value, str)
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd") if is_text else value

    columns = (column.name for column in table.columns if column.name not in ("id", "source"))
    return {"source": key, **{name: storable(row.get(name)) for name in columns}}


def _sqlite_engine(path: Path) -> sql.Engine:
    """Return an engine for an SQLite file, created readable for its owner only if it is missing.

    Raises ``StoreError`` if the path is a link or no regular file, or cannot be created.
    """
    try:
        # SQLite would create it with the permissions that the umask leaves, and would follow a link.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | open_flags(), 0o600))
    except FileExistsError:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise StoreError(
                f"{path} is a link, or not a regular file, perhaps made by code under test; name "
                "another with --store, or remove it"
            ) from None
    except (OSError, ValueError) as error:
        raise _unusable(str(path), error) from None
    url = sql.URL.create("sqlite", database=os.path.abspath(path))
    # No pooling: another process may replace the file, and a pooled connection would keep the old one.
    return sql.create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


def _unusable(name: str, error: BaseException) -> StoreError:
    """Return the error about a database, with the first line of the driver's text."""
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return StoreError(
        one_line(
            f"{name}: the index cannot be used: {first[:300]}; nothing is lost, because the logs have "
            "everything; planner history --rebuild makes the project's own index again; check another "
            "database, or name one with --store"
        )
    )
