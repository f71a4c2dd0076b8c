"""Record of the project files that a worker reads, from audit events of its interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_planverify.observe import read_files
from pytest_planverify.observe.read_files import ReadFiles

READ, WRITE = os.O_RDONLY, os.O_WRONLY | os.O_CREAT


class Events:
    """Audit events, raised in place of the interpreter."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = ReadFiles([str(root)])
        self._notes = self.files.notes()

    def raised(self, event: str, *args: Any) -> Events:
        self._notes[event](args)
        return self

    def opened(self, name: str, flags: int = READ) -> Events:
        return self.raised("open", str(self.root / name), "r", flags)

    @property
    def facts(self) -> dict[str, Any]:
        return self.files.facts()

    @property
    def names(self) -> set[str]:
        """Return the files below the root, since this process has also read others."""
        return {
            os.path.relpath(each, self.root)
            for each in self.facts.get("files", ())
            if each.startswith(f"{self.root}/")
        }


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Events:
    # This process has loaded modules of a project; a worker starts before any of them is loaded.
    monkeypatch.setattr(read_files, "_before", read_files._Before(frozenset(sys.modules)))
    return Events(tmp_path)


def test_what_was_opened_for_reading_was_read(events: Events):
    events.opened("data.csv").opened("both.db", os.O_RDWR | os.O_CREAT).opened("sub/../none.json")

    assert events.names == {"data.csv", "both.db", "none.json"}


def test_what_was_written_first_is_the_workers_own(events: Events):
    events.opened("out.txt", WRITE | os.O_TRUNC).opened("out.txt")
    events.opened("log.txt", WRITE | os.O_APPEND)
    events.raised("os.rename", "whatever", str(events.root / "made.txt"), -1, -1).opened("made.txt")
    events.opened("read.txt").opened("read.txt", WRITE | os.O_TRUNC)

    assert events.names == {"read.txt"}


def test_bytecode_stands_for_its_source_and_caches_for_nothing(events: Events):
    name = sys.implementation.cache_tag
    events.opened(f"pkg/__pycache__/test_a.{name}-pytest-9.0.pyc").opened(
        ".pytest_cache/v/cache/lastfailed"
    )

    assert events.names == {"pkg/test_a.py"}


def test_a_relative_path_starts_from_the_folder_of_that_moment(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    (events.root / "sub").mkdir()
    monkeypatch.chdir(events.root / "sub")
    events.raised("open", "a.txt", "r", READ).raised("open", b"b.txt", "rb", READ).raised(
        "open", 3, "r", READ
    )
    monkeypatch.chdir(events.root)

    assert events.names == {"sub/a.txt", "sub/b.txt"}


def test_files_of_the_system_and_temporary_ones_are_nobodys(events: Events):
    events.raised("open", "/proc/self/status", "r", READ).raised("open", "/etc/hosts", "r", READ)
    events.raised("open", os.__file__, "r", READ).raised("open", "/somewhere/else.csv", "r", READ)

    assert events.facts["files"] == ["/somewhere/else.csv"]


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("subprocess.Popen", ("sh", ["sh"], None, None)),
        ("os.fork", ()),
        ("os.system", ("ls",)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("open", ("not-there", None, READ)),
    ],
)
def test_where_nobody_can_tell_what_was_read_that_is_said(
    event: str, args: tuple[Any, ...], events: Events
):
    events.opened("a.py").raised(event, *args)

    assert events.facts["unknown"]
    assert "files" not in events.facts


def test_asking_for_the_kind_of_machine_reads_nothing(events: Events):
    assert "unknown" not in events.raised("subprocess.Popen", "uname", ["uname", "-p"], None, None).facts


@pytest.mark.parametrize("event", ["sqlite3.connect", "ctypes.dlopen"])
def test_code_that_is_not_python_may_read_any_data(event: str, events: Events):
    assert not events.facts["native"]
    assert events.raised(event, "x").facts["native"]


def test_more_files_than_can_be_kept_and_names_that_are_no_text_are_not_told(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    events.opened("\udcff.txt")
    assert "no text" in events.facts["unknown"]
    monkeypatch.setattr("pytest_planverify.observe.read_files.MOST_FILES", 0)
    assert "too many" in Events(events.root).opened("a").facts["unknown"]


def test_a_project_that_was_imported_before_the_worker_began_may_have_read_anything(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    product = ModuleType("product")
    product.__file__ = str(events.root / "product.py")
    monkeypatch.setitem(sys.modules, "product", product)
    assert events.names == {"product.py"}

    read_files.note_modules()

    assert "before the worker began" in events.facts["unknown"]
