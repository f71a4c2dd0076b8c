"""Index over logs, outcome files and corrections: an SQL database that is updated from these files.

It is a cache: ``.planverify/planverify.db`` can be deleted at any time and is rebuilt from the files. Any
other database that SQLAlchemy supports can collect the runs of several checkouts. :meth:`Index.sync`
compares size and time of each file with those stored beside its rows, and replaces the rows of the files
that changed; :mod:`.run_rows` derives the rows.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import URL, Engine, create_engine, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from planner.errors import PlannerError, StoreError
from planner.planfile.plan_folder import HOME, PLANS, make_home
from planner.store.chain import one_line
from planner.store.corrections import CORRECTIONS
from planner.store.run_log import FOLDER, is_superseded
from planner.store.run_rows import (
    INDEX,
    METADATA,
    OF_SOURCES,
    SOURCES,
    VERSION,
    rows_of_corrections,
    rows_of_log,
    rows_of_outcomes,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from sqlalchemy import Connection, Table

    from planner.store.run_rows import Row, Rows

USUAL = f"{HOME}/planverify.db"
"""Default path of a project's index, below the plan's root."""

OUTCOMES = "outcomes.json"

BUSY_SECONDS = 30.0
"""Seconds that SQLite waits for another writer."""

_MOST_TRIES = 40
"""Attempts to create tables while other processes create them, too."""

_AT_ONCE = 250
"""Limit of the files whose rows are replaced in one transaction: each transaction waits for the disk, and
holds all of its rows in memory."""

_CREATED_MEANWHILE = ("already exists", "duplicate key")
"""Parts of the error messages of SQLite and PostgreSQL if another process created a table first."""


class Index:
    """One database. Its methods raise a :class:`planner.errors.StoreError` with a one-line message."""

    def __init__(self, name: str, engine: Engine, *, is_shared: bool) -> None:
        """Create the tables if missing. Raises ``StoreError`` if they have another version."""
        self.name = name
        """Name in messages."""
        self.remarks: list[str] = []
        """Remarks for people on the files that the last :meth:`sync` read, sorted by file."""
        self._engine = engine
        self._is_shared = is_shared
        """Whether it may have rows of other checkouts, whose files may be missing here."""
        try:
            for left in reversed(range(_MOST_TRIES)):
                try:
                    self._make_tables()
                    break
                # Several processes may find no tables and create them at once: the losers try again.
                except StoreError as error:
                    if not left or not any(words in str(error) for words in _CREATED_MEANWHILE):
                        raise
                    time.sleep(0.05)
        except BaseException:
            self.close()
            raise

    def _make_tables(self) -> None:
        """Create the tables if the database has none; check the version of existing ones."""
        with self.reading() as connection:
            found = None
            if inspect(connection).has_table(INDEX.name):
                found = connection.execute(select(INDEX.c.version)).scalar()
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
    def open(cls, url_or_path: str | Path, *, create: bool = True) -> Self:
        """Open a database named by a user, as URL or as path of an SQLite file.

        Raises :class:`planner.errors.StoreError` if it cannot be used, has tables of another version, or is
        a missing file and ``create`` is false.
        """
        name, url = _url_of(url_or_path)
        if url.get_backend_name() != "sqlite" or url.database is None:
            try:
                # A server may have closed a pooled connection that was idle.
                return cls(name, create_engine(url, pool_pre_ping=True), is_shared=True)
            except (NoSuchModuleError, ImportError):
                raise StoreError(
                    f"{name}: there is no driver for '{url.drivername}'; install one, or name an installed "
                    f"one, as in {url.get_backend_name()}+DRIVER://…"
                ) from None
        path = Path(url.database)
        if not create and not path.exists():
            raise StoreError(
                f"{path}: the index does not exist; make it with planner history --import --store {path}"
            )
        return cls(name, _sqlite_engine(path), is_shared=True)

    def close(self) -> None:
        """Release the connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Context with a connection in a transaction, for the queries of :mod:`.questions`.

        Raises :class:`planner.errors.StoreError` in place of each database error inside it.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            cause = (error.orig or error) if isinstance(error, DBAPIError) else error
            raise StoreError(_error_message(self.name, cause)) from error

    def sync(self, root: Path) -> None:
        """Update the rows of a project from its files.

        A file with an unchanged stamp is not read again, an unreadable one each time.
        """
        # In a database of several checkouts, rows are identified by machine and folder, too.
        origin = f"{os.uname().nodename}:{os.path.realpath(root)}" if self._is_shared else ""
        with self.reading() as connection:
            wanted = select(SOURCES.c.name, SOURCES.c.stamp).where(SOURCES.c.origin == origin)
            known = {row.name: row.stamp for row in connection.execute(wanted)}
        files = source_files(root)
        stale = sorted(name for name, stamp in files.items() if known.get(name) != stamp)
        # A shared database keeps the rows of removed files.
        removed = [] if self._is_shared else sorted(known.keys() - files.keys())
        self.remarks = []
        changed = [*removed, *stale]
        for at in range(0, len(changed), _AT_ONCE):
            # A removed or unreadable file keeps the value None, and its old rows are only deleted.
            made: dict[str, Rows | None] = dict.fromkeys(changed[at : at + _AT_ONCE])
            for name in made:
                if name in files and (rows := _rows(root / name, self.remarks)) is not None:
                    source = {"origin": origin, "name": name, "stamp": files[name]}
                    made[name] = rows | {SOURCES: [source]}
            self._replace({_key(origin, name): rows or {} for name, rows in made.items()})

    def _replace(self, made: Mapping[str, Rows]) -> None:
        """Replace the rows of files, by the value of their ``source`` column, in one transaction."""
        with self.reading() as connection:
            # The update comes first: it locks before anything is read, so that writers do not interleave.
            connection.execute(INDEX.update().values(version=VERSION))
            known = select(SOURCES.c.source).where(SOURCES.c.source.in_(made))
            if old := connection.execute(known).scalars().all():
                for table in (*OF_SOURCES, SOURCES):
                    connection.execute(table.delete().where(table.c.source.in_(old)))
            for table in (*OF_SOURCES, SOURCES):
                rows = [{"source": key, **row} for key in made for row in made[key].get(table, ())]
                if rows:
                    connection.execute(table.insert(), _storable(table, rows))


def open_index(root: Path, url: str | None = None, *, rebuild: bool = False) -> Index:
    """Open the index of a project, updated from its files, or the database that ``url`` names.

    The project's own index is built again with ``rebuild``, or if it is damaged or of another version; it
    is kept in memory if it cannot be written. A named database is returned as it is: only an import updates
    it. Raises :class:`planner.errors.StoreError`.
    """
    if url is not None:
        return Index.open(url, create=False)
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
    in_memory = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    return _up_to_date(Index(str(path), in_memory, is_shared=False), root)


def _up_to_date(index: Index, root: Path) -> Index:
    try:
        index.sync(root)
    except StoreError:
        index.close()
        raise
    return index


def source_files(root: Path, logs: Iterable[Path] = ()) -> dict[str, str]:
    """Return the stamps of the files that rows are derived from, by name relative to the root.

    Equal stamps (size, time, and whether a later log exists) mean equal rows. ``logs`` are further files.
    """
    base = os.path.realpath(root)
    globs = (CORRECTIONS, f"{FOLDER}/*.jsonl", f"{HOME}/runs/*/{OUTCOMES}", f"{PLANS}/*/{OUTCOMES}")
    files: dict[str, str] = {}
    for path in (*logs, *(each for glob in globs for each in root.glob(glob))):
        with suppress(OSError):
            facts = path.lstat()
            # Skip links, and empty files, which a kill may leave.
            if stat.S_ISREG(facts.st_mode) and facts.st_size:
                name = os.path.relpath(os.path.realpath(path), base).replace(os.sep, "/")
                later = " superseded" if is_superseded(path) else ""
                files[name] = f"{facts.st_size} {facts.st_mtime_ns}{later}"
    return files


def _key(origin: str, name: str) -> str:
    """Return the value of the ``source`` column for the rows of a file."""
    # surrogatepass: names of files may contain bytes that are not UTF-8, which Python shows as surrogates.
    return hashlib.sha256(f"{origin}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _rows(path: Path, remarks: list[str]) -> Rows | None:
    """Return the rows of a file; ``None`` if it is unreadable, with the reason added to ``remarks``."""
    try:
        if path.name == OUTCOMES:
            return rows_of_outcomes(path)
        if path.name == Path(CORRECTIONS).name:
            return rows_of_corrections(path)
        return rows_of_log(path, remarks)
    except PlannerError as error:
        remarks.append(str(error))
        return None


def _storable(table: Table, rows: list[Row]) -> list[Row]:
    """Return the rows with all columns of the table, and with texts that every database accepts."""

    def storable(value: Any) -> Any:
        # Databases reject lone surrogates and null characters.
        is_text = isinstance(value, str)
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd") if is_text else value

    columns = [column.name for column in table.columns if column.name != "id"]
    return [{name: storable(row.get(name)) for name in columns} for row in rows]


def _url_of(url_or_path: str | Path) -> tuple[str, URL]:
    """Return the name for messages, without password, and the URL of a database.

    Raises ``StoreError`` if the text is no URL of a database.
    """
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return str(url_or_path), URL.create("sqlite", database=str(url_or_path))
    with suppress(ArgumentError):
        url = make_url(url_or_path)
        if url.get_backend_name() != "sqlite":
            return url.render_as_string(hide_password=True), url
        if url.database and url.database != ":memory:" and not url.query:
            return url.database, url
    # The text may contain a password, and SQLAlchemy can hide only that of a URL that it understands.
    shown = re.sub(r"//[^@]*@", "//…@", url_or_path)
    raise StoreError(
        f"'{shown}' is not the URL of a database; write one like sqlite:///folder/file.db or "
        "postgresql://user@host/database, or the path of a file"
    )


def _sqlite_engine(path: Path) -> Engine:
    """Return an engine for an SQLite file, created readable for its owner only if it is missing.

    Raises ``StoreError`` if the path is a link or no regular file, or cannot be created.
    """
    try:
        # SQLite would create it with the permissions that the umask leaves, and would follow a link.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise StoreError(
                f"{path} is a link, or not a regular file, perhaps made by code under test; name "
                "another with --store, or remove it"
            ) from None
    except (OSError, ValueError) as error:
        raise StoreError(_error_message(str(path), error)) from None
    url = URL.create("sqlite", database=os.path.abspath(path))
    # No pooling: another process may replace the file, and a pooled connection would keep the old one.
    return create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


def _error_message(name: str, error: BaseException) -> str:
    """Return the message about a database error, with the first line of its text."""
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return one_line(
        f"{name}: the index cannot be used: {first[:300]}; nothing is lost, because the logs have "
        "everything; check the database, or name another with --store"
    )
