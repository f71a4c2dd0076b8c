"""The version of the tables: made new, brought up to date in one transaction, refused where it is newer.

To change the tables: change :mod:`.tables`, raise :data:`VERSION`, and add a :class:`Migration` that makes
of the version before what is now. What it cannot fill, ``remakes`` has made from the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from sqlalchemy import DDL, inspect, select

from planner.edges.store.remaking import remake_all
from planner.edges.store.tables import CORRECTIONS, DIAGNOSES, METADATA, SCHEMA
from planner.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

VERSION = 2
"""Of the tables in :mod:`.tables`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from one version to the next."""

    source: int
    """The version that it starts from; it leads to the one after."""
    change: Callable[[Connection], None]
    remakes: bool = False
    """Whether the projections are to be made from the events anew when the last step is done."""


def _learn(connection: Connection) -> None:
    """Corrections say whose fault it was, and by what failures like it are found."""
    for table, column in (
        (DIAGNOSES, DIAGNOSES.c.features),
        (CORRECTIONS, CORRECTIONS.c.right_owner),
        (CORRECTIONS, CORRECTIONS.c.features),
    ):
        kind = column.type.compile(connection.dialect)
        connection.execute(DDL(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}"))


MIGRATIONS: tuple[Migration, ...] = (Migration(source=1, change=_learn),)
"""Every step since the first version."""


def found_version(connection: Connection) -> int | None:
    """The version of the tables that are there; ``None`` where there are none of planner."""
    if not inspect(connection).has_table(SCHEMA.name):
        return None
    return connection.execute(select(SCHEMA.c.version)).scalar()


def is_current(connection: Connection, name: str) -> bool:
    """Whether the tables are as they should be. Raises ``StoreError`` for those of a newer planner."""
    found = found_version(connection)
    if found is None or found == VERSION:
        return found is not None
    if found > VERSION:
        by = connection.execute(select(SCHEMA.c.written_by)).scalar()
        raise StoreError(
            f"{name}: the store has version {found}, written by planner {by}; this planner knows version "
            f"{VERSION}: update it (pip install --upgrade pytest-planverify), or name another store with "
            "--store"
        )
    return False


def bring_up_to_date(connection: Connection, name: str, *, alone: bool) -> None:
    """Make the tables, or change those of an older version; the caller's transaction holds all of it.

    ``alone``: the database is a file of planner's own, so other tables mean that it is something else.
    """
    if is_current(connection, name):  # another process may have done it while this one waited
        return
    found = found_version(connection)
    if found is None:
        strangers = inspect(connection).get_table_names()
        if alone and strangers:
            raise StoreError(
                f"{name} is the database of another program: it has the table '{min(strangers)}'; it "
                "was left as it is: name another store with --store"
            )
        METADATA.create_all(connection)
        connection.execute(SCHEMA.insert().values(version=VERSION, written_by=_this_planner()))
        return
    steps = _steps(found, name)
    for step in steps:
        step.change(connection)
    if any(step.remakes for step in steps):
        remake_all(connection, name)
    connection.execute(SCHEMA.update().values(version=VERSION, written_by=_this_planner()))


def _steps(found: int, name: str) -> Sequence[Migration]:
    by_source = {each.source: each for each in MIGRATIONS}
    missing = [source for source in range(found, VERSION) if source not in by_source]
    if missing:
        raise StoreError(
            f"{name}: the store has version {found}, and this planner cannot bring version {missing[0]} up "
            "to date; update planner, or move the store away and replay the log files of its runs"
        )
    return [by_source[source] for source in range(found, VERSION)]


def _this_planner() -> str:
    try:
        return version("pytest-planverify")
    except PackageNotFoundError:
        return "unknown"
