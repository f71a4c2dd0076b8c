"""Index over logs and outcome files: an SQL database that is updated from the files.

It is no record: ``.planverify/planverify.db`` can be deleted at any time and is rebuilt from the files.
Any other database supported by SQLAlchemy can collect the runs of several checkouts.
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
"""Path of a project's index, below the plan's root."""

OUTCOMES = "outcomes.json"

BUSY_SECONDS = 30.0
"""Seconds to wait for another writer."""

ALL_SECONDS = 30.0
"""Interval, in seconds, in which an open index checks logs of finished runs."""

_MOST_TRIES = 40
"""Attempts to create tables while other processes do the same."""

_MADE_MEANWHILE = ("already exists", "duplicate key")
"""Error messages of SQLite and PostgreSQL for that case."""


class Index:
    """One database. All failures are one-line ``StoreError``.

    An open index that is updated repeatedly remembers the file states of its rows, and only checks
    whether another process has written since.
    """

    def __init__(self, name: str, engine: Engine, *, is_shared: bool) -> None:
        """Create the tables if missing. Raises ``StoreError`` for those of another version."""
        self.name = name
        """Name in messages."""
        self._engine = engine
        self._is_shared = is_shared
        """It has rows of other checkouts, whose files may be missing here."""
        self._unread: dict[str, list[str]] = {}
        """Remarks for people by file."""
        self._stamps: dict[str, str] = {}
        """State of each file at the time of its rows, valid for ``_changes``."""
        self._over: set[str] = set()
        """Logs of finished runs among them."""
        self._changes = 0
        self._looked = -ALL_SECONDS
        """Time of the last check of all files."""
        self._moved = 0
        """Time at which a log was last added or removed, if certain."""
        try:
            for left in reversed(range(_MOST_TRIES)):
                try:
                    self._make_tables()
                    break
                except StoreError as error:  # another process is creating the tables at this moment
                    if not left or not any(words in str(error) for words in _MADE_MEANWHILE):
                        raise
                    time.sleep(0.05)
        except BaseException:
            self.close()
            raise

    def _make_tables(self) -> None:
        with self.reading() as connection:
            found = None
            if inspect(connection).has_table(INDEX.name):
                found = connection.execute(select(INDEX.c.version)).scalar()
            if found is None:
                METADATA.create_all(connection)
                connection.execute(INDEX.delete())
                # A random start of the count distinguishes a database from one that replaced it.
                connection.execute(INDEX.insert().values(version=VERSION, changes=time.time_ns()))
            elif found != VERSION:
                raise StoreError(
                    f"{self.name}: the tables have version {found}, and this planner knows {VERSION}; "
                    "update the older planner, or drop the planverify_ tables and import the logs again"
                )

    @property
    def remarks(self) -> list[str]:
        """Remarks for people on unreadable files."""
        return [remark for name in sorted(self._unread) for remark in self._unread[name]]

    @classmethod
    def open(cls, url_or_path: str | Path, *, create: bool = True) -> Self:
        """Open a database named by a user. Raises :class:`planner.errors.StoreError`.

        Tables of another version of this program are refused.
        """
        name, url = _url_of(url_or_path)
        if url.get_backend_name() != "sqlite" or url.database is None:
            try:
                return cls(name, create_engine(url, pool_pre_ping=True), is_shared=True)
            except (NoSuchModuleError, ImportError):
                raise StoreError(
                    f"{name}: there is no driver for '{url.drivername}' here; install one, or name the one "
                    f"that you have, as in {url.get_backend_name()}+DRIVER://…"
                ) from None
        path = Path(url.database)
        if not create and not path.exists():
            raise StoreError(
                f"{path}: there is no such index; fill one with planner history --import --store {path}"
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
        """Context with a connection for queries of :mod:`.questions`."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            cause = (error.orig or error) if isinstance(error, DBAPIError) else error
            raise StoreError(_complaint(self.name, cause)) from error

    def sync(self, root: Path, logs: Iterable[Path] = ()) -> bool:
        """Update the rows of a project from its files; return whether any file had changed.

        ``logs`` are read in addition to the project's. A file with unchanged size and time is not read
        again; logs of finished runs are checked at intervals only. ``remarks`` lists unreadable files.
        """
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
        if time.monotonic() - self._looked >= ALL_SECONDS:
            self._looked, over = time.monotonic(), set[str]()
        expected, moved = stamps.keys(), _time_of_change(root / FOLDER)
        if over and moved and moved == self._moved:  # no log was added or removed
            expected = expected - over
            logs = [*logs, *(root / name for name in expected if name.endswith(".jsonl"))]
            files = _files(root, logs, None)
        else:
            files = _files(root, logs, {name: stamps[name] for name in over})
        stale = sorted(name for name, stamp in files.items() if stamps.get(name) != stamp)
        gone = [] if self._is_shared else sorted(expected - files.keys())
        # Hundreds of files share a transaction, as each transaction waits for the disk.
        for names in (*batched(gone), *batched(stale)):
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
        self._moved = moved
        self._unread = {name: held for name, held in self._unread.items() if name in stamps and held}
        return bool(stale or gone)

    def _replace(self, keys: Mapping[str, str], made: Mapping[str, Rows]) -> None:
        """Replace the rows of these files."""
        with self.reading() as connection:
            # Locks from the first statement on, so that writers do not interleave.
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
        if (
            changes == self._changes + 1
        ):  # otherwise another process has written: the next sync reads everything
            self._changes = changes


def open_index(root: Path, url: str | None = None, *, rebuild: bool = False) -> Index:
    """Open the index of a project, or the named database, updated from the project's files.

    The project's own index is rebuilt if damaged or of another version, and kept in memory if it cannot
    be written. A named database is only updated by an import.
    """
    if url is not None:
        return Index.open(url, create=False)
    path = root / USUAL
    for anew in (rebuild, True):
        if not os.access(root / HOME, os.W_OK):
            break
        if anew:
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
        moved = folder.stat().st_mtime_ns
        # Some file systems have a resolution of two seconds.
        return moved if time.time_ns() - moved > 2_500_000_000 else 0
    return 0


def _files(root: Path, logs: Iterable[Path], known: Mapping[str, str] | None) -> dict[str, str]:
    """Return the source files of rows, as state stamp by name below the root.

    Logs with a ``known`` stamp are not examined while they exist; with ``None`` the folder of logs is
    not listed.
    """
    base = os.path.realpath(root)
    files: dict[str, str] = {}

    @cache
    def name_of(folder: str) -> str:
        below = os.path.relpath(os.path.realpath(folder), base).replace(os.sep, "/")
        return f"{below}/".removeprefix("./")

    def add(name: str, facts: os.stat_result) -> None:
        if stat.S_ISREG(facts.st_mode) and facts.st_size:  # skip empty files
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
    """Return the value that identifies a file in its rows."""
    return hashlib.sha256(f"{origin}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _rows(path: Path, remarks: list[str]) -> Rows | None:
    """Return the rows of a file; ``None``, with a remark, if it is unreadable."""
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
    """Return complete rows with texts that every database accepts."""

    def storable(value: Any) -> Any:
        if not isinstance(value, str) or (value.isascii() and "\0" not in value):
            return value
        # Databases reject lone surrogates and null characters.
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")

    columns = [column.name for column in table.columns if column.name != "id"]
    return [{name: storable(row.get(name)) for name in columns} for row in rows]


def _url_of(url_or_path: str | Path) -> tuple[str, URL]:
    """Return the name and URL of a database."""
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
        f"'{shown}' is no URL of a database; write one like sqlite:///folder/file.db or "
        "postgresql://user@host/database, or the path of a file"
    )


def _sqlite_engine(path: Path) -> Engine:
    """Return an engine for a private SQLite file. Raises ``StoreError`` if the path is not a file."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise StoreError(
                f"{path} is a link, or no file: code under test could have put it there; name another with "
                "--store, or remove it"
            ) from None
    except (OSError, ValueError) as error:
        raise StoreError(_complaint(str(path), error)) from None
    url = URL.create("sqlite", database=os.path.abspath(path))
    # No pooling, as another process may have replaced the file.
    return create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


def _complaint(name: str, error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return one_line(
        f"{name}: the index cannot be used: {first[:300]}; nothing is lost, for the logs hold everything: "
        "see to the database, or name another with --store"
    )
