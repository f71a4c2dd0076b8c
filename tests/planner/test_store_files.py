"""Files and databases that are no store of this version: told in one line, and left as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from datetime import timedelta
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from store_samples import START, Carried, append, chain, everything, filled, last_digest, one_line, shop

from planner.edges.correction_reader import read_corrections
from planner.edges.store import Store, StoreError, opening, sqlite, versions
from planner.edges.store.tables import ARTIFACTS, SCHEMA
from planner.edges.store.troubles import told
from planner.errors import NoStoreError
from planner.model.past import Correction
from planner.model.taxonomy import Category, Owner, Role


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")  # no test here is about what a power failure leaves


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


# What is no store, or a damaged one


def test_what_is_no_store_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("SQLite is what this is not about")
    (tmp_path / "link").symlink_to(tmp_path / "somewhere.db")
    os.mkfifo(tmp_path / "pipe")
    foreign = sqlite3.connect(tmp_path / "foreign")
    foreign.execute("CREATE TABLE songs (title)")
    foreign.close()
    before = (tmp_path / "foreign").read_bytes()
    for name, problem in {
        "folder": "is no file",
        "pipe": "is no file",
        "text": "is no SQLite database, or its header is damaged",
        "link": "is a link",
        "foreign": r"is the database of another program: it has the table 'songs'",
        "nowhere/runs.db": "there is no folder .*nowhere for the store; make it",
        "text/runs.db": "Not a directory",
    }.items():
        for create in (True, False):
            expected = problem if create or "/" not in name else "there is no store yet|Not a directory"
            with pytest.raises(StoreError, match=expected) as error:
                Store.open(tmp_path / name, create=create)
            one_line(error.value, tmp_path / name)
    assert (tmp_path / "text").read_text() == "SQLite is what this is not about"
    assert (tmp_path / "foreign").read_bytes() == before
    assert not (tmp_path / "somewhere.db").exists()


def test_a_store_that_is_not_there_is_not_made_by_who_only_asks(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    for name in ("runs.db", "empty.db"):
        with pytest.raises(NoStoreError, match="there is no store yet; `planner step` makes one") as error:
            Store.open(tmp_path / name, create=False)
        one_line(error.value, tmp_path / name)
    assert os.listdir(tmp_path) == ["empty.db"]


def overwrite(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * length)


def test_a_damaged_file_is_told_and_never_read_as_something_else(path: Path, tmp_path: Path) -> None:
    filled(path, 200)
    size = path.stat().st_size
    said: list[str] = []
    for name, start, length in [
        ("header", 0, 16),
        ("first page", 100, 3000),
        ("middle", 4096 * 3, size - 4096 * 4),
        ("all but the first page", 4096, size - 4096),
    ]:
        damaged = tmp_path / f"{name}.db"
        shutil.copy(path, damaged)
        overwrite(damaged, start, length)
        with pytest.raises(StoreError) as error, Store.open(damaged) as store:
            append(store, len(chain(store)), last_digest(store))
        said.append(one_line(error.value, damaged))
    assert "is no SQLite database, or its header is damaged" in said[0]
    assert all("the file is damaged; keep it" in each for each in said[1:]), said
    shutil.copy(path, tmp_path / "short.db")
    os.truncate(tmp_path / "short.db", size // 2)
    with pytest.raises(StoreError, match="the file is damaged"), Store.open(tmp_path / "short.db") as store:
        chain(store)


# Other versions


def test_a_newer_store_is_refused_and_left_as_it_is(path: Path) -> None:
    filled(path, 2)
    raw = sqlite3.connect(path)
    raw.execute("UPDATE planner_schema SET version = 7, written_by = '3.1'")
    raw.commit()
    raw.close()
    before = everything(path)
    with pytest.raises(
        StoreError, match=r"has version 7, written by planner 3\.1; this planner knows version 2: update"
    ) as t:
        Store.open(path)
    one_line(t.value, path)
    assert everything(path) == before


WITHOUT_FEATURES = (
    "ALTER TABLE planner_diagnoses DROP COLUMN features;"
    "ALTER TABLE planner_corrections DROP COLUMN features;"
    "ALTER TABLE planner_corrections DROP COLUMN right_owner;"
)
"""What makes version 1 of version 2."""


def make_older(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """A store as a planner before the first would have made it. Returns what is in it as it is now."""
    with Store.open(path) as store:
        run = Carried(store, shop())
        run.tell("run_started")
        for name in ("tax", "tax", "tax", "tax_branch_01"):
            run.worked(name)
            run.failed(name)
        run.worked("tax_branch_01")
        run.passed("tax_branch_01")
        run.passed("tax")
    before = everything(path)
    assert "parent_done" in before["planner_branches"][0]
    raw = sqlite3.connect(path)
    raw.executescript(
        "ALTER TABLE planner_branches DROP COLUMN resolution; DROP TABLE planner_artifacts;"
        f"{WITHOUT_FEATURES} UPDATE planner_schema SET version = 0;"
    )
    raw.close()
    return before


def upgrade(connection: sqlalchemy.Connection) -> None:
    connection.execute(sqlalchemy.text("ALTER TABLE planner_branches ADD COLUMN resolution VARCHAR(100)"))
    connection.execute(sqlalchemy.schema.CreateTable(ARTIFACTS))


def test_an_older_store_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = make_older(path)
    step = versions.Migration(source=0, change=upgrade, remakes=True)
    monkeypatch.setattr(versions, "MIGRATIONS", (step, *versions.MIGRATIONS))

    with Store.open(path, create=False) as store:
        assert len(chain(store)) > 10
    assert everything(path) == now


def test_corrections_of_the_first_version_are_kept_and_new_ones_hold_features(path: Path) -> None:
    said = Correction(
        at=START,
        fingerprint="here",
        signature="a1",
        category=Category.UNKNOWN,
        role=Role.CODER,
        right_category=Category.TYPE_ERROR,
    )
    with Store.open(path) as store:
        store.record_correction(said)
    raw = sqlite3.connect(path)
    raw.executescript(f"{WITHOUT_FEATURES} UPDATE planner_schema SET version = 1;")
    raw.close()
    before = path.read_bytes()
    assert read_corrections(path, START, 10) == (said,)
    assert path.read_bytes() == before
    later = {
        "at": START + timedelta(days=1),
        "right_owner": Owner.TEST,
        "features": ("kind:test", "é"),
        "by": "ann",
    }
    newer = said.model_copy(update=later)
    only_role = said.model_copy(update={"right_category": None, "at": START + timedelta(days=2)})

    with Store.open(path, create=False) as store:
        for each in (newer, only_role):
            store.record_correction(each)

        past = store.past("here", START + timedelta(days=9), 10).corrections
        assert [each.features for each in past] == [()] * 3, "a run has no use for them"
    later = START + timedelta(days=9)
    assert read_corrections(path, later, 10) == (newer, said)
    assert read_corrections(path, later, 1) == (newer,)
    assert read_corrections(path, START, 10) == (said,)


def test_a_step_that_fails_leaves_the_older_store_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(path)
    with pytest.raises(StoreError, match="version 0, and this planner cannot bring version 0 up to date"):
        Store.open(path)
    before = path.read_bytes()

    def fail(connection: sqlalchemy.Connection) -> None:
        upgrade(connection)
        connection.execute(sqlalchemy.text("UPDATE no_such_table SET x = 1"))

    steps = (versions.Migration(source=0, change=fail), *versions.MIGRATIONS)
    monkeypatch.setattr(versions, "MIGRATIONS", steps)
    with pytest.raises(
        StoreError, match=r"opening the store failed: no such table: no_such_table; "
    ) as error:
        Store.open(path)
    one_line(error.value, path)
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.select(SCHEMA.c.version)).scalar() == 0
        assert not sqlalchemy.inspect(connection).has_table("planner_artifacts")
    engine.dispose()
    assert path.read_bytes() == before


# Other databases


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql+psycopg2://ann:secret@host/runs", "the driver for .* is not installed .*: install it"),
        ("postgresql+asyncpg://ann:secret@host/runs", "is not installed|is asynchronous"),
        ("oracle2://ann:secret@host/runs", "there is no database of the kind 'oracle2'"),
        ("://ann:secret@host", "is no URL of a database; write one like"),
        ("sqlite://", "a store has to be a file"),
        ("sqlite:///:memory:", "a store has to be a file"),
        ("sqlite:///runs.db?mode=ro", "is opened without settings"),
    ],
)
def test_a_url_that_cannot_be_used_says_why_without_its_password(
    url: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(StoreError, match=problem) as error:
        Store.open(url)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


def test_an_asynchronous_driver_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SimpleNamespace(dialect=SimpleNamespace(is_async=True))
    monkeypatch.setattr(opening, "create_engine", lambda *_, **__: engine)
    with pytest.raises(StoreError, match=r"is asynchronous; name another, as in postgresql\+DRIVER"):
        Store.open("postgresql+asyncpg://host/runs")


def test_a_database_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = OperationalError("SELECT 1", {}, ConnectionError("refused\nmore about it"))
    engine = sqlalchemy.create_engine("sqlite://")
    monkeypatch.setattr(opening, "create_engine", lambda *_, **__: engine)
    monkeypatch.setattr(engine, "begin", lambda: (_ for _ in ()).throw(refused))
    with pytest.raises(StoreError, match="opening the store failed: refused; what was committed") as error:
        Store.open("postgresql://ann:secret@host/runs")
    one_line(error.value, "postgresql://ann:***@host/runs")


def test_another_database_is_told_from_a_file() -> None:
    place = opening.place_of("postgresql://ann:secret@host/runs")
    assert (place.name, place.path) == ("postgresql://ann:***@host/runs", None)
    assert opening.place_of("runs.db").path == Path("runs.db")
    assert opening.place_of("sqlite:////var/runs.db").path == Path("/var/runs.db")


def test_what_goes_wrong_beside_the_database_is_told_too(path: Path) -> None:
    with (
        pytest.raises(StoreError, match="reading failed: no place; name") as error,
        told(str(path), "reading"),
    ):
        raise SQLAlchemyError("no place\nmore about it")
    one_line(error.value, path)


def test_a_planner_that_is_not_installed_makes_stores_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", fail)
    filled(path, 2)
    assert everything(path)["planner_schema"] == [(2, "unknown")]
