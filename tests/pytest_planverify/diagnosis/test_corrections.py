"""The corrections of a project are read when an unsure diagnosis asks, and never fail a run."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from learning_samples import NOW, said, unusable

from planner.model.taxonomy import Category
from planner.store.corrections import CorrectionLog, append_correction, read_corrections
from pytest_planverify import hookspecs
from pytest_planverify.diagnosis import diagnose
from pytest_planverify.session import opinions as asking
from pytest_planverify.session.opinions import FILE, Opinions

if TYPE_CHECKING:
    from pathlib import Path

FAILURE = unusable()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".planverify"
    folder.mkdir()
    return folder


@pytest.fixture
def opinions() -> Opinions:
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    return Opinions(manager)


def correct(home: Path) -> None:
    for name in ("ann", "bob"):
        append_correction(home.parent, said(FAILURE, by=name))


def test_what_people_corrected_is_learned(
    home: Path, opinions: Opinions, monkeypatch: pytest.MonkeyPatch
) -> None:
    correct(home)
    monkeypatch.setattr(opinions, "_now", NOW)

    found = opinions.below(home)(FAILURE)

    assert (found.category, found.rule) == (Category.SPEC_MISMATCH, "learned")
    assert found.target_agent is None
    assert opinions.notes == ()


def test_without_corrections_the_rules_decide(home: Path, opinions: Opinions) -> None:
    assert opinions.below(home)(FAILURE).rule == diagnose(FAILURE).rule
    (home / FILE).touch()
    assert opinions.below(home)(FAILURE).rule == diagnose(FAILURE).rule
    assert opinions.notes == ()


@pytest.mark.parametrize("damage", ["text", "changed", "large", "folder", "link"])
def test_a_log_that_cannot_be_read_is_a_note(damage: str, home: Path, opinions: Opinions) -> None:
    file = home / FILE
    if damage == "text":
        file.write_text("no log at all, but long enough to be looked at as one\n")
    elif damage == "folder":
        file.mkdir()
    elif damage == "link":
        file.symlink_to(home / "elsewhere.jsonl")
    else:
        correct(home)
        if damage == "changed":
            file.write_text(file.read_text().replace("ann", "eve"))
        else:
            os.truncate(file, 20 * 1024 * 1024)
    ask = opinions.below(home)

    assert ask(FAILURE) == ask(FAILURE)

    (note,) = opinions.notes
    assert note.startswith(f"corrections were not used: {file}")
    assert "\n" not in note
    assert ask(FAILURE).rule != "learned"


@pytest.mark.parametrize("field", ['"role":"king"', '"at":"x"'])
def test_a_correction_of_another_version_says_nothing(field: str, home: Path, opinions: Opinions) -> None:
    correct(home)
    with closing(CorrectionLog.append_to(home / FILE)) as log, log.hold():
        assert len(list(log.entries())) == 2
        log.write([f'{{"n":2,"correction":{{{field}}}'])
    opinions.below(home)(FAILURE)
    assert len(opinions.corrections(home)) == 2
    assert opinions.notes == ()


def test_the_newest_corrections_come_first_and_none_is_of_the_future(home: Path) -> None:
    correct(home)
    append_correction(home.parent, said(FAILURE, by="eve", days_ago=-1))
    append_correction(home.parent, said(FAILURE, None, by="zoe"))
    append_correction(home.parent, said(FAILURE, by="old", days_ago=9))

    found = read_corrections(home / FILE, NOW, 2)

    assert [each.by for each in found] == ["bob", "ann"]
    assert read_corrections(home / "gone.jsonl", NOW, 5) == ()


def test_neither_rules_nor_a_database_are_imported_before_a_failure_asks() -> None:
    names = ("sqlalchemy", "planner.store", "planner.engine", "pytest_planverify.diagnosis")
    program = (
        f"import sys; before = set(sys.modules); import {asking.__name__}\n"  # what measures may be there
        f"print([name for name in {names} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
