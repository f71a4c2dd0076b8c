"""The index over logs and outcome files: opened, and brought up to date from the files.

It is no record: the SQLite file ``.planverify/planverify.db`` can be deleted at any time, and is made again
from what it was made from. Any other database that SQLAlchemy can open takes the runs of several checkouts.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sqlalchemy import URL, create_engine, event, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from planner.errors import PlannerError, StoreError
from planner.planfile.plan_folder import HOME, PLANS, make_home
from planner.store.chain import one_line
from planner.store.corrections import CORRECTIONS
from planner.store.run_log import FOLDER
from planner.store.run_rows import rows_of_corrections, rows_of_log, rows_of_outcomes
from planner.store.tables import INDEX, METADATA, OF_SOURCES, RUNS, SOURCES, VERIFICATIONS, VERSION

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from sqlalchemy import Connection, Engine

    from planner.store.run_rows import Rows

USUAL = f"{HOME}/planverify.db"
"""The index of a project, below the plan's root."""

RUN_FOLDERS = f"{HOME}/runs"
OUTCOMES = "outcomes.json"

BUSY_SECONDS = 30.0
"""So long one process waits for another that is writing."""

_WRITES = "planverify_writes"
"""The execution option of connections that are going to write: they wait their turn before they read."""

_TAIL_BYTES = 4096
_MAX_HASHED_BYTES = 64 * 1024 * 1024
_SQLITE_HEADER = b"SQLite format 3\x00"


class _File(NamedTuple):
    """A file that rows are made from."""

    name: str
    """Below the root, with slashes."""
    path: Path
    size: int
    digest: str


class Index:
    """One database. Everything that it cannot do is a ``StoreError`` of one line."""

    def __init__(self, name: str, engine: Engine, *, is_shared: bool) -> None:
        self.name = name
        """How messages call it."""
        self.remarks: list[str] = []
        """What a person should know: files that could not be read."""
        self._engine = engine
        self._is_shared = is_shared
        """It holds rows of other checkouts: none are dropped because their files are not here."""

    @classmethod
    def open(cls, url_or_path: str | Path, *, create: bool = True) -> Self:
        """Open a database that somebody names. Raises :class:`planner.errors.StoreError`.

        Tables of another version of this planner are refused where the database is shared.
        """
        name, engine, path = _engine_for(url_or_path, create=create)
        index = cls(name, engine, is_shared=True)
        try:
            index._prepare(alone=path is not None)
        except BaseException:
            index.close()
            raise
        return index

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Give a connection for the questions of :mod:`.questions`, which sees one state of the index."""
        with _errors_of(self.name), self._engine.begin() as connection:
            yield connection

    def logs(self, plan_id: str | None = None, run_id: str | None = None) -> list[Path]:
        """Return the logs of the runs of the engine, of a plan or of one id, the newest first."""
        wanted = select(RUNS.c.log).order_by(RUNS.c.opened.desc(), RUNS.c.run_id.desc(), RUNS.c.source)
        for column, value in ((RUNS.c.plan_id, plan_id), (RUNS.c.run_id, run_id)):
            wanted = wanted if value is None else wanted.where(column == value)
        with self.reading() as connection:
            return [Path(each) for each in connection.execute(wanted).scalars()]

    def sync(self, root: Path, logs: Iterable[Path] = ()) -> list[str]:
        """Bring the rows of a project up to date with its files; return what could not be read.

        ``logs`` are read beside those in the project's folder. A file that has the size and digest of the
        last time is not read again.
        """
        origin = f"{socket.gethostname()}:{os.path.realpath(root)}" if self._is_shared else ""
        files = {each.name: each for each in _files(root, logs)}
        remarks: list[str] = []
        with _errors_of(self.name), self._engine.begin() as connection:
            known = _known(connection, origin)
        stale = {
            name: each
            for name, each in files.items()
            if known.get(name, ())[1:] != (each.size, each.digest)
        }
        gone = [] if self._is_shared else [row[0] for name, row in known.items() if name not in files]
        if not stale and not gone:
            return remarks
        # What the latest run has left for its plan may be kept with its run, too: it is read last.
        latest = {name: each for name, each in files.items() if name.startswith(PLANS)}
        made = [(each, _rows(each, remarks)) for each in ({**stale, **latest}).values()]
        made.sort(key=lambda pair: pair[0].name in latest)
        writer = self._engine.execution_options(**{_WRITES: True})
        with _errors_of(self.name), writer.begin() as connection:
            known = _known(connection, origin)  # another process may have done it while this one read
            for key in gone:
                _drop(connection, key)
            for file, rows in made:
                key = _key(origin, file.name)
                _drop(connection, key)
                if rows is not None:
                    if file.name in latest and _is_kept_with_its_run(connection, origin, rows):
                        rows = {}
                    source = {"key": key, "origin": origin, **file._asdict()}
                    del source["path"]
                    _insert(connection, SOURCES, [source])
                    for table, those in rows.items():
                        _insert(connection, table, [{"source": key, **row} for row in those])
        return remarks

    def _prepare(self, *, alone: bool) -> None:
        """Make the tables where there are none. Raises ``StoreError`` for those of another version."""
        with _errors_of(self.name), self._engine.begin() as connection:
            tables = set(inspect(connection).get_table_names())
            if INDEX.name in tables:
                found = connection.execute(select(INDEX.c.version)).scalar()
                if found == VERSION:
                    return
                raise StoreError(
                    f"{self.name}: the tables have version {found}, and this planner knows {VERSION}; "
                    "update the older planner, or drop the planverify_ tables and import the logs again"
                )
            if alone and tables:
                raise StoreError(
                    f"{self.name} is the database of another program: it has the table '{min(tables)}'; it "
                    "was left as it is: name another file with --store"
                )
        with (
            _errors_of(self.name),
            self._engine.execution_options(**{_WRITES: True}).begin() as connection,
        ):
            METADATA.create_all(connection)
            if connection.execute(select(INDEX.c.version)).scalar() is None:
                connection.execute(INDEX.insert().values(version=VERSION))


def open_index(root: Path, url: str | None = None, *, rebuild: bool = False) -> Index:
    """Open the index of a project, or the named database, brought up to date with the project's files.

    The project's own index is made anew where it is damaged or of another version, and where it cannot be
    written it is made in memory. A named database is brought up to date by an import alone.
    """
    if url is not None:
        return Index.open(url, create=False)
    path = root / USUAL
    index = None
    if os.access(root / HOME, os.W_OK):
        for _ in range(2):
            if rebuild:
                _remove(path)
            with suppress(StoreError):
                index = _own_index(path)
                index.remarks += index.sync(root)
                return index
            rebuild = True
    index = Index(str(path), _sqlite_engine(None), is_shared=False)
    index._prepare(alone=True)  # pyright: ignore[reportPrivateUsage]
    index.remarks += index.sync(root)
    return index


def _own_index(path: Path) -> Index:
    make_home(path.parent.parent)
    _refuse_no_file(path)
    index = Index(str(path), _sqlite_engine(path), is_shared=False)
    try:
        index._prepare(alone=True)  # pyright: ignore[reportPrivateUsage]
    except BaseException:
        index.close()
        raise
    return index


def _remove(path: Path) -> None:
    """Remove an index with the files that SQLite keeps beside it; of a link, the link itself."""
    for each in (path, *(path.with_name(f"{path.name}{end}") for end in ("-journal", "-wal", "-shm"))):
        with suppress(OSError):
            each.unlink()


# -- files ---------------------------------------------------------------------------------------------


def _files(root: Path, logs: Iterable[Path]) -> Iterator[_File]:
    """Yield the files of a project that rows are made from; empty ones say nothing."""
    found = [*root.glob(f"{FOLDER}/*.jsonl"), root / CORRECTIONS, *logs]
    found += [*root.glob(f"{RUN_FOLDERS}/*/{OUTCOMES}"), *root.glob(f"{PLANS}/*/{OUTCOMES}")]
    base = os.path.realpath(root)
    names: set[str] = set()
    for path in sorted(found):
        name = os.path.relpath(os.path.realpath(path), base).replace(os.sep, "/")
        digest = _digest(path)
        if digest is not None and name not in names:
            names.add(name)
            yield _File(name, path, *digest)


def _digest(path: Path) -> tuple[int, str] | None:
    """Return the size and a digest of a regular file; the end of a log is chained to all of it."""
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        size = facts.st_size
        if not stat.S_ISREG(facts.st_mode) or not size:
            return None
        start = max(size - _TAIL_BYTES, 0) if path.suffix == ".jsonl" else 0
        held = os.pread(handle, min(size - start, _MAX_HASHED_BYTES), start)
    except OSError:
        return None
    finally:
        os.close(handle)
    return size, hashlib.sha256(held).hexdigest()


def _rows(file: _File, remarks: list[str]) -> Rows | None:
    """Return the rows of a file; ``None`` where it cannot be read, which is remarked."""
    try:
        if file.path.name == OUTCOMES:
            return rows_of_outcomes(file.path, remarks)
        if file.path.name == Path(CORRECTIONS).name:
            return rows_of_corrections(file.path, remarks)
        return rows_of_log(file.path, remarks)
    except PlannerError as error:
        remarks.append(str(error))
        return None


# -- rows ----------------------------------------------------------------------------------------------


def _key(origin: str, name: str) -> str:
    return hashlib.sha256(f"{origin}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _known(connection: Connection, origin: str) -> dict[str, tuple[str, int, str]]:
    """Return key, size and digest of each source by its name."""
    wanted = select(SOURCES).where(SOURCES.c.origin == origin)
    return {row.name: (row.key, row.size, row.digest) for row in connection.execute(wanted)}


def _is_kept_with_its_run(connection: Connection, origin: str, rows: Rows) -> bool:
    """Return whether another file has told of the same run of the same plan."""
    return any(
        connection.execute(
            select(VERIFICATIONS.c.id)
            .join(SOURCES, SOURCES.c.key == VERIFICATIONS.c.source)
            .where(
                SOURCES.c.origin == origin,
                VERIFICATIONS.c.run_id == row["run_id"],
                VERIFICATIONS.c.plan_id == row["plan_id"],
            )
        ).first()
        for row in rows[VERIFICATIONS]
    )


def _drop(connection: Connection, key: str) -> None:
    for table in OF_SOURCES:
        connection.execute(table.delete().where(table.c.source == key))
    connection.execute(SOURCES.delete().where(SOURCES.c.key == key))


def _insert(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows, which need not have every column, in text that every database can hold."""
    columns = {name for row in rows for name in row}
    held = [{name: _storable(row.get(name)) for name in columns} for row in rows]
    if held:
        connection.execute(table.insert(), held)


def _storable(value: Any) -> Any:
    """Return text without half characters and the character zero, which some databases cannot hold."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


# -- databases -----------------------------------------------------------------------------------------


def _engine_for(url_or_path: str | Path, *, create: bool) -> tuple[str, Engine, Path | None]:
    """Return how a database is called, its engine, and its path where it is a file of SQLite."""
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        path = Path(url_or_path)
        return str(path), _named_file(path, create=create), path
    try:
        url = make_url(url_or_path)
    except ArgumentError:
        head, at, tail = url_or_path.rpartition("@")
        shown = f"{head.split('://')[0]}://…{at}{tail}" if at else url_or_path
        raise StoreError(
            f"'{shown}' is no URL of a database; write one like sqlite:///folder/file.db or "
            "postgresql://user@host/database, or the path of a file"
        ) from None
    name = url.render_as_string(hide_password=True)
    if url.get_backend_name() != "sqlite":
        return name, _engine_for_url(name, url), None
    if not url.database or url.database == ":memory:" or url.query:
        raise StoreError(
            f"{name}: this has to be a file, and is opened without settings; write "
            "sqlite:///folder/file.db, or the path of the file"
        )
    return url.database, _named_file(Path(url.database), create=create), Path(url.database)


def _engine_for_url(name: str, url: URL) -> Engine:
    try:
        engine = create_engine(url, pool_pre_ping=True)
    except (NoSuchModuleError, ImportError):
        engine = None
    if engine is None or engine.dialect.is_async:
        raise StoreError(
            f"{name}: there is no driver for '{url.drivername}' here, or it is asynchronous; install one, "
            f"or name the one that you have, as in {url.get_backend_name()}+DRIVER://…"
        )
    return engine


def _named_file(path: Path, *, create: bool) -> Engine:
    _refuse_no_file(path)
    if not path.exists():
        if not create:
            raise StoreError(
                f"{path}: there is no such index; fill one with planner history --import --store {path}"
            )
        if not path.parent.is_dir():
            raise StoreError(f"{path}: there is no folder {path.parent} for the index; make it")
    return _sqlite_engine(path)


def _refuse_no_file(path: Path) -> None:
    """Raise ``StoreError`` for what cannot be an index of SQLite; what is not there can become one."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(
            f"{path} is a link: code under test could have put it there; name the file that it leads to "
            "with --store, or remove the link"
        )
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is no file, so it cannot be the index; name another with --store")
    with path.open("rb") as file:
        if found.st_size and file.read(len(_SQLITE_HEADER)) != _SQLITE_HEADER:
            raise StoreError(
                f"{path} is no SQLite database, or its header is damaged; it was left as it is: move it "
                "away, or name another with --store"
            )


def _sqlite_engine(path: Path | None) -> Engine:
    """Return an engine for a file that only its owner reads, or for a database in memory."""
    if path is None:
        engine = create_engine("sqlite://", poolclass=StaticPool)
    else:
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        engine = create_engine(
            URL.create("sqlite", database=os.path.abspath(path)), connect_args={"timeout": BUSY_SECONDS}
        )
    event.listen(engine, "connect", _let_transactions_begin)
    event.listen(engine, "begin", _begin)
    return engine


def _let_transactions_begin(connection: Any, _: object) -> None:
    # The driver would begin a transaction before a change of rows only, and let two readers become writers.
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _errors_of(name: str) -> Generator[None]:
    """Let what the database complains about become a ``StoreError`` of one line."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_complaint(name, error.orig or error)) from error
    except (SQLAlchemyError, OSError) as error:
        raise StoreError(_complaint(name, error)) from error


def _complaint(name: str, error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return one_line(
        f"{name}: the index cannot be used: {first[:300]}; nothing is lost, for the logs hold everything: "
        "see to the database, or name another with --store"
    )
