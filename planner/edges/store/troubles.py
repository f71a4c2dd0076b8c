"""What a database complains about, as one line: what happened, to which store, what to do."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from planner.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_SAFE = "what was committed before is safe"
_ANOTHER = "name another store with --store"

_BY_CODE: Mapping[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: (
        "another process has kept it locked for too long",
        f"{_SAFE}: wait for that process or end it, then try again",
    ),
    sqlite3.SQLITE_FULL: (
        "its disk is full, or its quota used up",
        f"{_SAFE}: make room, then go on where the log ends",
    ),
    sqlite3.SQLITE_READONLY: (
        "the file or its folder is read-only",
        f"{_SAFE}: make both writable, or {_ANOTHER}",
    ),
    sqlite3.SQLITE_PERM: ("access is denied", f"make the file and its folder accessible, or {_ANOTHER}"),
    sqlite3.SQLITE_AUTH: ("access is denied", f"make the file and its folder accessible, or {_ANOTHER}"),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened, or its folder is read-only",
        f"make both accessible, or {_ANOTHER}",
    ),
    sqlite3.SQLITE_IOERR: (
        "its disk refuses to read or write: it may be full, or a limit of the size of files is reached",
        f"{_SAFE}: see to the disk, then go on where the log ends",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "keep it (sqlite3 FILE .recover reads what is left), move it away, and go on with a new store: the "
        "log file of a run holds the same lines",
    ),
    sqlite3.SQLITE_NOTADB: (
        "it is no SQLite database, or its header is damaged",
        f"move it away, or {_ANOTHER}",
    ),
}
"""By the first byte of SQLite's result code: what happened, and what to do."""


@contextmanager
def told(name: str, doing: str) -> Generator[None]:
    """Let what the database complains about become a ``StoreError``; ``doing`` says what failed for it."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_message(name, doing, error.orig)) from error
    except SQLAlchemyError as error:
        raise StoreError(f"{name}: {doing} failed: {_first_line(error)}; {_ANOTHER}") from error
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise StoreError(f"{name}: {doing} failed: {said}; make the place usable, or {_ANOTHER}") from error


def _message(name: str, doing: str, error: BaseException | None) -> str:
    code = getattr(error, "sqlite_errorcode", None)
    happened, remedy = _BY_CODE.get((code or 0) & 0xFF, (_first_line(error), ""))
    if not remedy:
        remedy = f"{_SAFE}: see to the database, then go on where the log ends, or {_ANOTHER}"
    return f"{name}: {doing} failed: {happened}; {remedy}"


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines() if error is not None else []
    return lines[0][:300] if lines else type(error).__name__
