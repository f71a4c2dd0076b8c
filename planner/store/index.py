"""The index over logs and outcome files: opened, and brought up to date from the files.

It is no record: the SQLite file ``.planverify/planverify.db`` can be deleted at any time, and is made again
from what it was made from. Any other database that SQLAlchemy can open takes the runs of several checkouts.
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
from sqlalchemy.pool import StaticPool

from planner.errors import PlannerError, StoreError
from planner.planfile.plan_folder import HOME, PLANS, make_home
from planner.store.chain import one_line
from planner.store.corrections import CORRECTIONS
from planner.store.run_log import FOLDER
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
    from collections.abc import Generator, Iterable

    from sqlalchemy import Connection, Table

    from planner.store.run_rows import Row, Rows

USUAL = f"{HOME}/planverify.db"
"""The index of a project, below the plan's root."""

OUTCOMES = "outcomes.json"

BUSY_SECONDS = 30.0
"""So long one process waits for another that is writing."""

_MOST_TRIES = 40
"""Where other processes make the tables of a new database, too."""

_MADE_MEANWHILE = ("already exists", "duplicate key")
"""Words of SQLite and of PostgreSQL for that."""


class Index:
    """One database. Everything that it cannot do is a ``StoreError`` of one line."""

    def __init__(self, name: str, engine: Engine, *, is_shared: bool) -> None:
        """Make the tables where there are none. Raises ``StoreError`` for those of another version."""
        self.name = name
        """How messages call it."""
        self.remarks: list[str] = []
        """What a person should know: files that could not be read."""
        self._engine = engine
        self._is_shared = is_shared
        """It holds rows of other checkouts: none are dropped because their files are not here."""
        try:
            for left in reversed(range(_MOST_TRIES)):
                try:
                    self._make_tables()
                    break
                except StoreError as error:  # another process makes them at this moment, one by one
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
                connection.execute(INDEX.insert().values(version=VERSION))
            elif found != VERSION:
                raise StoreError(
                    f"{self.name}: the tables have version {found}, and this planner knows {VERSION}; "
                    "update the older planner, or drop the planverify_ tables and import the logs again"
                )

    @classmethod
    def open(cls, url_or_path: str | Path, *, create: bool = True) -> Self:
        """Open a database that somebody names. Raises :class:`planner.errors.StoreError`.

        Tables of another version of this planner are refused.
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
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Give a connection for the questions of :mod:`.questions`."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            cause = (error.orig or error) if isinstance(error, DBAPIError) else error
            raise StoreError(_complaint(self.name, cause)) from error

    def sync(self, root: Path, logs: Iterable[Path] = ()) -> list[str]:
        """Bring the rows of a project up to date with its files; return what could not be read.

        ``logs`` are read beside those in the project's folder. A file of the size and time of change that
        it had when it was read last is not read again.
        """
        origin = f"{os.uname().nodename}:{os.path.realpath(root)}" if self._is_shared else ""
        files = _files(root, logs)
        with self.reading() as connection:
            wanted = select(SOURCES.c.name, SOURCES.c.stamp).where(SOURCES.c.origin == origin)
            known = {row.name: row.stamp for row in connection.execute(wanted)}
        stale = {name: path for name, (path, stamp) in files.items() if known.get(name) != stamp}
        gone = set[str]() if self._is_shared else known.keys() - files.keys()
        if not stale and not gone:
            return []
        remarks: list[str] = []
        made = {name: _rows(path, remarks) for name, path in stale.items()}
        with self.reading() as connection:
            # One writer at a time, from the first statement on: none finds rows that another is changing.
            connection.execute(INDEX.update().values(version=VERSION))
            for name in (*gone, *stale):
                text = f"{origin}\n{name}".encode("utf-8", "surrogatepass")
                key = hashlib.sha256(text).hexdigest()[:32]
                for table in (*OF_SOURCES, SOURCES):
                    connection.execute(table.delete().where(table.c.source == key))
                if (rows := made.get(name)) is not None:
                    stamp = {"origin": origin, "name": name, "stamp": files[name][1]}
                    for table, those in {SOURCES: [stamp], **rows}.items():
                        _insert(connection, table, [{"source": key, **row} for row in those])
        return remarks


def open_index(root: Path, url: str | None = None, *, rebuild: bool = False) -> Index:
    """Open the index of a project, or the named database, brought up to date with the project's files.

    The project's own index is made again where it is damaged or of another version, and where it cannot be
    written it is made in memory. A named database is brought up to date by an import alone.
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
    in_memory = create_engine("sqlite://", poolclass=StaticPool)
    return _up_to_date(Index(str(path), in_memory, is_shared=False), root)


def _up_to_date(index: Index, root: Path) -> Index:
    try:
        index.remarks += index.sync(root)
    except StoreError:
        index.close()
        raise
    return index


def _files(root: Path, logs: Iterable[Path]) -> dict[str, tuple[Path, str]]:
    """Return the files that rows are made from with a stamp of their state, by name below the root."""
    found = [root / CORRECTIONS, *logs]
    found += [*root.glob(f"{HOME}/runs/*/{OUTCOMES}"), *root.glob(f"{PLANS}/*/{OUTCOMES}")]
    with suppress(OSError), os.scandir(root / FOLDER) as entries:  # of which there may be thousands
        found += [Path(each.path) for each in entries if each.name.endswith(".jsonl")]
    base = os.path.realpath(root)
    folders: dict[Path, str] = {}
    files: dict[str, tuple[Path, str]] = {}
    for path in sorted(found, key=str):
        with suppress(OSError):
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode) and facts.st_size:  # empty files say nothing
                folder = path.parent
                if folder not in folders:
                    folders[folder] = os.path.relpath(os.path.realpath(folder), base).replace(os.sep, "/")
                name = f"{folders[folder]}/{path.name}".removeprefix("./")
                files.setdefault(name, (path, f"{facts.st_size} {facts.st_mtime_ns}"))
    return files


def _rows(path: Path, remarks: list[str]) -> Rows | None:
    """Return the rows of a file; ``None`` where it cannot be read, which is remarked."""
    try:
        if path.name == OUTCOMES:
            return rows_of_outcomes(path)
        if path.name == Path(CORRECTIONS).name:
            return rows_of_corrections(path)
        return rows_of_log(path, remarks)
    except PlannerError as error:
        remarks.append(str(error))
        return None


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    """Insert rows, which need not have every column, in text that every database can hold."""

    def storable(value: Any) -> Any:  # half characters and the character zero are for no database
        if not isinstance(value, str):
            return value
        return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")

    columns = {name for row in rows for name in row}
    if rows:
        connection.execute(
            table.insert(), [{name: storable(row.get(name)) for name in columns} for row in rows]
        )


def _url_of(url_or_path: str | Path) -> tuple[str, URL]:
    """Return how a database is called, and its URL."""
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
    """Return an engine for a file that only its owner reads. Raises ``StoreError`` for what is no file."""
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
    return create_engine(url, connect_args={"timeout": BUSY_SECONDS})


def _complaint(name: str, error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return one_line(
        f"{name}: the index cannot be used: {first[:300]}; nothing is lost, for the logs hold everything: "
        "see to the database, or name another with --store"
    )
