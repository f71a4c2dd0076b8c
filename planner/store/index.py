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
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import URL, Engine, create_engine, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from planner.errors import PlannerError, StoreError
from planner.planfile.plan_folder import HOME, PLANS, make_home
from planner.store.chain import one_line
from planner.store.corrections import CORRECTIONS
from planner.store.run_log import FOLDER
from planner.store.run_rows import (
    INDEX,
    METADATA,
    OF_SOURCES,
    RUNS,
    SOURCES,
    VERSION,
    rows_of_corrections,
    rows_of_log,
    rows_of_outcomes,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from sqlalchemy import Connection, Table

    from planner.store.run_rows import Row, Rows

USUAL = f"{HOME}/planverify.db"
"""Default path of a project's index, below the plan's root."""

OUTCOMES = "outcomes.json"

BUSY_SECONDS = 30.0
"""Seconds that SQLite waits for another writer."""

ALL_SECONDS = 30.0
"""Interval, in seconds, at which an open index checks the logs of finished runs, which rarely change."""

_MOST_TRIES = 40
"""Attempts to create tables while other processes create them, too."""

_CREATED_MEANWHILE = ("already exists", "duplicate key")
"""Parts of the error messages of SQLite and PostgreSQL if another process created a table first."""


class Index:
    """One database. Its methods raise a :class:`planner.errors.StoreError` with a one-line message.

    An index that stays open remembers the file states of its rows between calls of :meth:`sync`. It reads
    them from the database again only if another process has written since.
    """

    def __init__(self, name: str, engine: Engine, *, is_shared: bool) -> None:
        """Create the tables if missing. Raises ``StoreError`` if they have another version."""
        self.name = name
        """Name in messages."""
        self._engine = engine
        self._is_shared = is_shared
        """Whether it may have rows of other checkouts, whose files may be missing here."""
        self._unread: dict[str, list[str]] = {}
        """Remarks for people by file."""
        self._stamps: dict[str, str] = {}
        """Size and time of each file when its rows were derived, valid while the database's count of
        changes equals ``_changes``."""
        self._over: set[str] = set()
        """Names of those files that are logs of finished runs."""
        self._changes = 0
        """Count of changes in the database that ``_stamps`` belongs to."""
        self._checked_at = -ALL_SECONDS
        """Monotonic time of the last check of all files."""
        self._folder_changed = 0
        """Time in ns at which a log was last added or removed; 0 if uncertain."""
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
                connection.execute(INDEX.delete())
                # The count starts at the current time, so that an open index notices if its database was
                # deleted and built again: with an equal count it would keep outdated stamps.
                connection.execute(INDEX.insert().values(version=VERSION, changes=time.time_ns()))
            elif found != VERSION:
                raise StoreError(
                    f"{self.name}: the tables have version {found}, but this planner uses {VERSION}; "
                    "update the older planner, or drop the planverify_ tables and import the logs again"
                )

    @property
    def remarks(self) -> list[str]:
        """Remarks for people on unreadable files, sorted by file."""
        return [remark for name in sorted(self._unread) for remark in self._unread[name]]

    @classmethod
    def open(cls, url_or_path: str | Path, *, create: bool = True) -> Self:
        """Open a database named by a user, as URL or as path of an SQLite file.

        Raises :class:`planner.errors.StoreError` if it cannot be used, has tables of another version, or is
        a missing file and ``create`` is false.
        """
        name, url = _url_of(url_or_path)
        if url.get_backend_name() != "sqlite" or url.database is None:
            try:
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

    def sync(self, root: Path, logs: Iterable[Path] = ()) -> bool:
        """Update the rows of a project from its files; return whether any file had changed.

        ``logs`` are read in addition to the project's. A file with unchanged size and time is not read
        again; logs of finished runs are checked every :data:`ALL_SECONDS` only. Afterwards
        :attr:`remarks` names the unreadable files.
        """
        # In a database of several checkouts, rows are identified by machine and folder, too.
        origin = f"{os.uname().nodename}:{os.path.realpath(root)}" if self._is_shared else ""
        with self.reading() as connection:
            changes = connection.execute(select(INDEX.c.changes)).scalar_one()
            if changes != self._changes:
                wanted = select(SOURCES.c.name, SOURCES.c.stamp, SOURCES.c.is_over)
                found = connection.execute(wanted.where(SOURCES.c.origin == origin)).all()
                self._stamps = {name: stamp for name, stamp, _ in found}
                self._over = {name for name, _, is_over in found if is_over}
                self._changes = changes
        stamps, over = self._stamps, self._over
        if time.monotonic() - self._checked_at >= ALL_SECONDS:
            self._checked_at, over = time.monotonic(), set[str]()
        expected, moved = stamps.keys(), _time_of_change(root / FOLDER)
        # While no log was added or removed, the folder need not be listed.
        if over and moved and moved == self._folder_changed:
            expected = expected - over
            logs = [*logs, *(root / name for name in expected if name.endswith(".jsonl"))]
            files = _files(root, logs, None)
        else:
            files = _files(root, logs, {name: stamps[name] for name in over})
        stale = sorted(name for name, stamp in files.items() if stamps.get(name) != stamp)
        # A shared database keeps the rows of removed files.
        removed = [] if self._is_shared else sorted(expected - files.keys())
        # Hundreds of files share a transaction, as each transaction waits for the disk.
        for names in (*batched(removed), *batched(stale)):
            made: dict[str, Rows] = {}
            for name in names:
                self._unread[name] = []
                if name in files and (rows := _rows(root / name, self._unread[name])) is not None:
                    is_over = any(run["closed"] is not None for run in rows.get(RUNS, ()))
                    source = {"origin": origin, "name": name, "stamp": files[name], "is_over": is_over}
                    made[name] = rows | {SOURCES: [source]}
            self._replace({name: _key(origin, name) for name in names}, made)
            for name in names:
                self._over.discard(name)
                self._stamps.pop(name, None)
                if name in files:
                    self._stamps[name] = files[name]
                if name in made and made[name][SOURCES][0]["is_over"]:
                    self._over.add(name)
        self._folder_changed = moved
        self._unread = {name: lines for name, lines in self._unread.items() if name in stamps and lines}
        return bool(stale or removed)

    def _replace(self, keys: Mapping[str, str], made: Mapping[str, Rows]) -> None:
        """Replace the rows of files in one transaction.

        ``keys`` maps each name to the value of its ``source`` column. Names that are not in ``made`` only
        lose their rows.
        """
        with self.reading() as connection:
            # The update comes first: it locks before anything is read, so that writers do not interleave.
            connection.execute(INDEX.update().values(changes=INDEX.c.changes + 1))
            changes = connection.execute(select(INDEX.c.changes)).scalar_one()
            known = select(SOURCES.c.source).where(SOURCES.c.source.in_(keys.values()))
            if old := connection.execute(known).scalars().all():
                for table in (*OF_SOURCES, SOURCES):
                    connection.execute(table.delete().where(table.c.source.in_(old)))
            for table in (*OF_SOURCES, SOURCES):
                rows = [{"source": keys[name], **row} for name in made for row in made[name].get(table, ())]
                if rows:
                    connection.execute(table.insert(), _storable(table, rows))
        # If another process has written, too, the old count stays, and the next sync reads all stamps.
        if changes == self._changes + 1:
            self._changes = changes


def open_index(root: Path, url: str | None = None, *, rebuild: bool = False) -> Index:
    """Open the index of a project, updated from its files, or the database that ``url`` names.

    The project's own index is built again with ``rebuild``, or if it is damaged or of another version; it
    is kept in memory if it cannot be written. A named database is returned as it is: only an import updates
    it. Raises :class:`planner.errors.StoreError`.
    """
    if url is not None:
        return Index.open(url, create=False)
    path = root / USUAL
    for deletes in (rebuild, True):
        if not os.access(root / HOME, os.W_OK):
            break
        if deletes:
            for end in ("", "-journal", "-wal", "-shm"):
                with suppress(OSError):
                    path.with_name(f"{path.name}{end}").unlink()
        with suppress(StoreError):
            make_home(root)
            return _up_to_date(Index(str(path), _sqlite_engine(path), is_shared=False), root)
    in_memory = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    return _up_to_date(Index(str(path), in_memory, is_shared=False), root)


def _up_to_date(index: Index, root: Path) -> Index:
    try:
        index.sync(root)
    except StoreError:
        index.close()
        raise
    return index


def _time_of_change(folder: Path) -> int:
    """Return when a folder's entries last changed, in ns; 0 if a later change may be indistinguishable."""
    with suppress(OSError):
        changed = folder.stat().st_mtime_ns
        # Some file systems have a resolution of two seconds: a later change could have the same time.
        return changed if time.time_ns() - changed > 2_500_000_000 else 0
    return 0


def _files(root: Path, logs: Iterable[Path], known: Mapping[str, str] | None) -> dict[str, str]:
    """Return the files that rows are derived from, as stamp (size and time) by name relative to the root.

    Logs with a stamp in ``known`` keep it while they exist, without a stat call. With ``None``, the folder
    of logs is not listed: only ``logs``, outcomes and corrections are returned.
    """
    base = os.path.realpath(root)
    files: dict[str, str] = {}

    # Cached, as thousands of logs share a folder.
    @cache
    def name_of(folder: str) -> str:
        below = os.path.relpath(os.path.realpath(folder), base).replace(os.sep, "/")
        return f"{below}/".removeprefix("./")

    def add(name: str, facts: os.stat_result) -> None:
        # Skip links, and empty files, which a kill may leave.
        if stat.S_ISREG(facts.st_mode) and facts.st_size:
            files[name] = f"{facts.st_size} {facts.st_mtime_ns}"

    outcomes = (f"{HOME}/runs/*/{OUTCOMES}", f"{PLANS}/*/{OUTCOMES}")
    for path in (root / CORRECTIONS, *logs, *(each for glob in outcomes for each in root.glob(glob))):
        with suppress(OSError):
            add(name_of(str(path.parent)) + path.name, path.lstat())
    if known is None:
        return files
    folder = root / FOLDER
    below = name_of(str(folder))
    with suppress(OSError), os.scandir(folder) as entries:
        # For ten thousand logs, listing takes 3 ms, and stat calls 25 ms or more.
        for entry in entries:
            name = below + entry.name
            if name in known:
                files[name] = known[name]
            elif name.endswith(".jsonl"):
                with suppress(OSError):
                    add(name, entry.stat(follow_symlinks=False))
    return files


def batched(names: list[str], most: int = 250) -> Iterator[list[str]]:
    """Yield a list in chunks."""
    for at in range(0, len(names), most):
        yield names[at : at + most]


def _key(origin: str, name: str) -> str:
    """Return the value of the ``source`` column for the rows of a file."""
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
        if not isinstance(value, str) or (value.isascii() and "\0" not in value):
            return value
        # Databases reject lone surrogates and null characters.
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")

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
