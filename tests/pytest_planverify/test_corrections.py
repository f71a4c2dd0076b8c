"""The corrections of the project's store are read when an unsure diagnosis asks, and never fail a run."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from learning_samples import NOW, said, unusable

from planner.edges import correction_reader
from planner.edges.correction_reader import NEWEST
from planner.edges.store import Store, sqlite, versions
from planner.edges.store.opening import USUAL
from planner.model.taxonomy import Category
from planner.planfile.plan_folder import HOME
from pytest_planverify import hookspecs
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.session import opinions as asking
from pytest_planverify.session.opinions import FILE, Corrections, Opinions

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.evidence import Evidence
    from planner.model.outcome import Diagnosis

FAILURE = unusable()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".planverify"
    folder.mkdir()
    return folder


@pytest.fixture
def opinions(monkeypatch: pytest.MonkeyPatch) -> Opinions:
    """Opinions of rules that are as unsure as those of this failure were when it was written."""

    def unsure(evidence: Evidence) -> Diagnosis:
        return diagnose(evidence).model_copy(update={"confidence": 0.6})

    monkeypatch.setattr("pytest_planverify.diagnosis.diagnose", unsure)
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    return Opinions(manager)


def correct(home: Path) -> None:
    with Store.open(home / FILE) as store:
        for name in ("ann", "bob"):
            store.record_correction(said(FAILURE, by=name))


def test_the_store_is_where_and_as_the_planner_has_it() -> None:
    assert USUAL.as_posix() == f"{HOME}/{FILE}"
    assert versions.VERSION == NEWEST


def test_what_people_corrected_is_learned(
    home: Path, opinions: Opinions, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(home)
    ask = opinions.below(home)
    monkeypatch.setattr(opinions._corrections[home], "now", NOW)  # pyright: ignore[reportPrivateUsage]

    found = ask(FAILURE)

    assert (found.category, found.rule) == (Category.SPEC_MISMATCH, "learned")
    assert found.target_agent is None
    assert opinions.notes == ()


def test_without_a_store_the_rules_decide(home: Path, opinions: Opinions) -> None:
    assert opinions.below(home)(FAILURE).rule == diagnose(FAILURE).rule
    (home / FILE).touch()
    assert opinions.below(home)(FAILURE).rule == diagnose(FAILURE).rule
    assert opinions.notes == ()


def test_a_sure_diagnosis_reads_no_store(
    home: Path, opinions: Opinions, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / FILE).write_text("no database")

    def sure(evidence: Evidence) -> Diagnosis:
        return diagnose(evidence).model_copy(update={"confidence": 0.7})

    monkeypatch.setattr("pytest_planverify.diagnosis.diagnose", sure)
    assert opinions.below(home)(FAILURE).confidence == 0.7
    assert opinions.notes == ()


@pytest.mark.parametrize("damage", ["text", "newer", "folder", "link"])
def test_a_store_that_cannot_be_read_is_a_note(damage: str, home: Path, opinions: Opinions) -> None:
    file = home / FILE
    if damage == "text":
        file.write_text("no database at all, but long enough to be looked at as one")
    elif damage == "folder":
        file.mkdir()
    elif damage == "link":
        file.symlink_to(home / "elsewhere.db")
    else:
        correct(home)
        changed(file, "UPDATE planner_schema SET version = 99")
    ask = opinions.below(home)

    assert ask(FAILURE) == ask(FAILURE)

    (note,) = opinions.notes
    assert note.startswith(f"nothing was learned from corrections: {file}")
    assert "\n" not in note
    assert ask(FAILURE).rule != "learned"


def changed(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute(statement)
        raw.commit()


@pytest.mark.parametrize("column", ["features = '{'", "features = '[1, {}]'", "role = 'king'", "at = 'x'"])
def test_a_correction_that_was_damaged_says_nothing(column: str, home: Path, opinions: Opinions) -> None:
    correct(home)
    changed(home / FILE, f"UPDATE planner_corrections SET {column} WHERE corrected_by = 'ann'")
    opinions.below(home)(FAILURE)
    (left,) = [*opinions._corrections[home].all()]  # pyright: ignore[reportPrivateUsage]
    assert left.by == "bob"
    assert opinions.notes == ()


def test_a_store_in_a_folder_that_is_read_only_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    correct(home)
    real = sqlite3.connect
    asked: list[str] = []

    def connect(address: str, **more: Any) -> sqlite3.Connection:
        asked.append(address)
        if address.endswith("?mode=ro"):  # root could open it all the same
            return real(f"file:{quote(str(home / 'gone.db'))}?mode=rwc", uri=True, factory=Refusing)
        return real(address, **more)

    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(os, "access", never)
    assert len(Corrections(home).all()) == 2
    assert asked[-1].endswith("?mode=ro&immutable=1")
    monkeypatch.setattr(os, "access", always)
    corrections = Corrections(home)
    assert corrections.all() == ()
    assert ["unable to open" in note for note in corrections.notes] == [True]


def never(path: object, mode: int) -> bool:
    return False


def always(path: object, mode: int) -> bool:
    return True


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "CREATE VIEW planner_corrections AS WITH RECURSIVE n(at) AS "
            "(VALUES ('1') UNION ALL SELECT '1' FROM n) SELECT at, at AS right_category, 1 AS id FROM n",
            "interrupted",
        ),
        (
            "CREATE VIEW planner_corrections AS SELECT '1' AS at, '1' AS right_category, 1 AS id, "
            "hex(zeroblob(1000000)) AS because",
            "too big",
        ),
    ],
    ids=["endless", "huge"],
)
def test_a_store_that_was_made_to_keep_the_run_busy_is_left(
    statement: str, said: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correction_reader, "PATIENCE_SECONDS", 0.05)
    correct(home)
    changed(home / FILE, "DROP TABLE planner_corrections")
    changed(home / FILE, statement)
    corrections = Corrections(home)
    assert corrections.all() == ()
    (note,) = corrections.notes
    assert said in note


def test_a_store_without_corrections_of_an_even_older_planner_has_none(home: Path) -> None:
    with closing(sqlite3.connect(home / FILE)) as raw:
        raw.execute("CREATE TABLE songs (title)")
    corrections = Corrections(home)
    assert corrections.all() == ()
    assert corrections.notes == []


def test_a_store_that_goes_away_while_it_is_looked_for_is_none(tmp_path: Path) -> None:
    assert correction_reader.read_corrections(tmp_path / "gone.db", NOW, 5) == ()


def test_a_version_that_is_no_number_is_another_planners(home: Path) -> None:
    correct(home)
    changed(home / FILE, "DROP TABLE planner_schema")
    changed(home / FILE, "CREATE VIEW planner_schema AS SELECT 'x' AS version, 'me' AS written_by")
    corrections = Corrections(home)
    assert corrections.all() == ()
    assert ["the store has version x" in note for note in corrections.notes] == [True]


class Refusing(sqlite3.Connection):
    """A connection to a file in a folder where nothing can be written."""

    def execute(self, *_: Any) -> sqlite3.Cursor:
        raise sqlite3.OperationalError("unable to open database file")


def test_the_store_is_read_once_for_all_failures(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    correct(home)
    corrections = Corrections(home)
    first = corrections.all()
    (home / FILE).unlink()
    assert corrections.all() is first
    assert len(first) == 2


def test_neither_rules_nor_a_database_are_imported_before_a_failure_asks() -> None:
    names = ("sqlalchemy", "sqlite3", "pytest_planverify.diagnosis")
    program = (
        f"import sys; before = set(sys.modules); import {asking.__name__}\n"  # what measures may be there
        f"print([name for name in {names} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
