"""Reads corrections from a store of SQLite by the standard library alone, and writes nothing.

A verification that learns from them does not pay for what a store can do besides, nor brings it up to date.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from contextlib import closing, suppress
from datetime import UTC
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import ValidationError

from planner.errors import StoreError
from planner.model.past import Correction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

NEWEST = 2
"""The newest version of the tables that this reads; of the first, corrections hold no features."""

PATIENCE_SECONDS = 2.0
"""So long a writer is waited for, and an answer."""

_STEPS = 100_000
_LONGEST_VALUE = 1 << 20

_COLUMNS = (
    "at",
    "fingerprint",
    "signature",
    "category",
    "role",
    "right_category",
    "right_owner",
    "corrected_by",
    "because",
    "features",
)


def read_corrections(path: Path, now: datetime, limit: int) -> tuple[Correction, ...]:
    """The newest corrections that say how a failure is to be read, at most so many, none later than now.

    Empty where there is no store yet. Raises ``StoreError`` for what cannot be read.
    """
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path} is no file, so it cannot be the store; remove it")
        with closing(_opened(path)) as connection:
            rows = list(_rows(connection, path, now, limit))
    except FileNotFoundError:
        return ()
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"{path}: the corrections cannot be read ({error}); keep the file, and see to it with "
            "planner history"
        ) from error
    return tuple(each for row in rows if (each := _correction(row)) is not None)


def _opened(path: Path) -> sqlite3.Connection:
    """Read-only, and bounded: the code under test could have put anything there."""
    address = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if os.access(path.parent, os.W_OK):
            raise
        # In a folder that is read-only, not even the files beside it can be made that readers need.
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    ends = time.monotonic() + PATIENCE_SECONDS
    connection.set_progress_handler(lambda: int(time.monotonic() > ends), _STEPS)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    return connection


def _rows(
    connection: sqlite3.Connection, path: Path, now: datetime, limit: int
) -> Iterator[dict[str, Any]]:
    present = {row[1] for row in connection.execute("PRAGMA table_info(planner_corrections)")}
    if not present:
        return
    for version, by in connection.execute("SELECT version, written_by FROM planner_schema"):
        if not isinstance(version, int) or version > NEWEST:
            raise StoreError(
                f"{path}: the store has version {version}, written by planner {by}, and version {NEWEST} "
                "is the newest that this one reads; update it (pip install --upgrade pytest-planverify)"
            )
    columns = [name for name in _COLUMNS if name in present]
    owner = "OR right_owner IS NOT NULL" if "right_owner" in present else ""
    wanted = (
        f"SELECT {', '.join(columns)} FROM planner_corrections WHERE at <= ? "
        f"AND (right_category IS NOT NULL {owner}) ORDER BY at DESC, id DESC LIMIT ?"
    )
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for row in connection.execute(wanted, (moment, limit)):
        yield dict(zip(columns, row, strict=True))


def _correction(row: dict[str, Any]) -> Correction | None:
    """One that another version wrote, or that was changed from outside, is of no use here."""
    with suppress(ValidationError, ValueError, TypeError):
        fields = {**row, "by": row.get("corrected_by"), "features": json.loads(row.get("features") or "[]")}
        return Correction.model_validate(fields)
    return None
