"""All that is of SQLite alone: how its file is made and opened, and what keeps the log from being changed.

The file is in WAL mode where its disk allows it, so that readers and a writer do not wait for each other,
and every commit is on the disk before it is answered.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import DDL, create_engine, event
from sqlalchemy.pool import QueuePool

from planner.edges.store.tables import EVENTS, SCHEMA
from planner.errors import StoreError
from planner.planfile.plan_folder import HOME, make_home

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection, Engine

BUSY_SECONDS = 30.0
"""So long one process waits for another that is writing."""

SYNCHRONOUS = "FULL"
"""A commit is answered when it is on the disk; with less, a failure of power could take it back."""

WRITES = "planner_writes"
"""The execution option of connections that are going to write: they wait their turn before they read."""

_HEADER = b"SQLite format 3\x00"
_PAUSE_SECONDS = 0.02


def make_file(path: Path) -> None:
    """Make an empty store that only its owner reads, and its folder where that is ``.planverify``.

    A file that is there stays as it is. Raises ``OSError``.
    """
    if path.parent.name == HOME:
        make_home(path.parent.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def refuse_strange_file(path: Path) -> None:
    """Raise ``StoreError`` for what cannot be a store of SQLite; a file that is not there is none."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(
            f"{path} is a link: code under test could have put it there; name the file that it leads to "
            "with --store, or remove the link"
        )
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is no file, so it cannot be the store; name another with --store")
    if found.st_size == 0:
        return
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise StoreError(
                f"{path} is no SQLite database, or its header is damaged; it was left as it is: move it "
                "away, or name another store with --store"
            )


def engine_of(path: Path) -> Engine:
    """An engine for the file, which must be there. Nothing is opened yet."""
    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = _open(path, "mode=rw")
        _settle(connection, path)
    except sqlite3.OperationalError as error:
        if not _is_left_alone(path, error):
            raise
        # In a folder that is read-only, not even the files beside it can be made that readers need.
        connection = _open(path, "mode=ro&immutable=1")
    return connection


def _open(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    return sqlite3.connect(
        address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _settle(connection: sqlite3.Connection, path: Path) -> None:
    """Set what is not written in the file, and the mode of the journal, which is."""
    connection.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
    connection.execute("PRAGMA foreign_keys=ON")
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode == "wal" or not os.access(path, os.W_OK) or _is_anothers(connection):
        return
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # For this one change SQLite does not wait by itself while another process is at it.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _is_anothers(connection: sqlite3.Connection) -> bool:
    """Whether it is the database of another program, in which nothing is to be changed."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return bool(tables) and SCHEMA.name not in tables


def _is_left_alone(path: Path, error: sqlite3.OperationalError) -> bool:
    """Whether it cannot be opened for its folder alone, and nothing is in the making beside it."""
    if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return False
    beside = path.with_name(f"{path.name}-wal")
    return os.access(path, os.R_OK) and not (beside.exists() and beside.stat().st_size)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _append_only(when: str, condition: str = "") -> Any:
    statement = DDL(
        f"CREATE TRIGGER planner_events_no_{when.lower()} BEFORE {when} ON planner_events {condition}"
        "BEGIN SELECT RAISE(ABORT, 'planner_events is append-only'); END"
    )
    return statement.execute_if(dialect="sqlite")


_IS_THERE = "WHEN EXISTS (SELECT 1 FROM planner_events WHERE run_id = NEW.run_id AND n = NEW.n) "
"""Without it, ``INSERT OR REPLACE`` would pass the trigger for deletions by."""

event.listen(EVENTS, "after_create", _append_only("UPDATE"))
event.listen(EVENTS, "after_create", _append_only("DELETE"))
event.listen(EVENTS, "after_create", _append_only("INSERT", _IS_THERE))
