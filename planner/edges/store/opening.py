"""Finds out which database is meant, and makes the engine for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from planner.edges.store import sqlite
from planner.edges.store.troubles import told
from planner.errors import NoStoreError, StoreError
from planner.planfile.plan_folder import HOME

if TYPE_CHECKING:
    from sqlalchemy import Engine

USUAL = Path(HOME, "planverify.db")
"""The store below a plan's root."""


class Place(NamedTuple):
    """Which database is meant."""

    name: str
    """What messages call it; without its password."""
    path: Path | None
    """Of a file of SQLite."""
    url: URL | None


def place_of(url_or_path: str | Path) -> Place:
    """What a word of the command line means: a path, or with ``://`` in it the URL of a database."""
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return Place(str(url_or_path), Path(url_or_path), None)
    try:
        url = make_url(url_or_path)
    except ArgumentError:
        raise StoreError(
            f"'{_without_password(url_or_path)}' is no URL of a database; write one like "
            "sqlite:///folder/file.db or postgresql://user@host/database, or the path of a file"
        ) from None
    name = url.render_as_string(hide_password=True)
    if url.get_backend_name() != "sqlite":
        return Place(name, None, url)
    if not url.database or url.database == ":memory:" or url.query:
        raise StoreError(
            f"{name}: a store has to be a file, and is opened without settings; "
            "write sqlite:///folder/file.db, or the path of the file"
        )
    return Place(url.database, Path(url.database), None)


def engine_for(place: Place, *, create: bool) -> Engine:
    """The engine for that database. Raises ``StoreError`` for what cannot be one."""
    if place.path is not None:
        return _engine_for_file(place.name, place.path, create=create)
    assert place.url is not None
    engine = _engine_for_url(place.name, place.url)
    if engine.dialect.is_async:
        raise StoreError(
            f"{place.name}: the driver of '{place.url.drivername}' is asynchronous; name another, as in "
            f"{place.url.get_backend_name()}+DRIVER://…"
        )
    return engine


def _engine_for_url(name: str, url: URL) -> Engine:
    with told(name, "opening the store"):
        try:
            return create_engine(url, pool_pre_ping=True)
        except NoSuchModuleError:
            raise StoreError(
                f"{name}: there is no database of the kind '{url.drivername}'; sqlite:///FILE and "
                "postgresql://… are known, others where their dialect of SQLAlchemy is installed"
            ) from None
        except ImportError as error:
            raise StoreError(
                f"{name}: the driver for '{url.drivername}' is not installed (there is no module "
                f"'{error.name}'): install it, or name the one that you have, as in "
                f"{url.get_backend_name()}+DRIVER://…"
            ) from None


def _engine_for_file(name: str, path: Path, *, create: bool) -> Engine:
    with told(name, "opening the store"):
        try:
            if create:
                sqlite.make_file(path)
            sqlite.refuse_strange_file(path)
        except FileNotFoundError:
            if create:
                raise StoreError(
                    f"{name}: there is no folder {path.parent} for the store; make it"
                ) from None
            raise NoStoreError(
                f"{name}: there is no store yet; `planner step` makes one when it is given --store"
            ) from None
    return sqlite.engine_of(path)


def _without_password(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return f"{head.split('://')[0]}://…{at}{tail}" if at else text
