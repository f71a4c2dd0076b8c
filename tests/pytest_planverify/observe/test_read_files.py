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

    def renamed(self, before: str, now: str, folder: int = -1) -> Events:
        return self.raised("os.rename", str(self.root / before), str(self.root / now), -1, folder)

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


def test_file_opened_for_reading_counts_as_read_unless_the_worker_wrote_it_first(events: Events):
    events.opened("data.csv").opened("both.db", os.O_RDWR | os.O_CREAT).opened("sub/../none.json")
    events.opened("out.txt", WRITE | os.O_TRUNC).opened("out.txt")
    events.opened("log.txt", WRITE | os.O_APPEND)
    events.renamed("out.txt", "made.txt").opened("made.txt")
    events.opened("read.txt").opened("read.txt", WRITE | os.O_TRUNC)
    assert events.names == {"data.csv", "both.db", "none.json", "read.txt"}


def test_file_of_the_project_that_was_renamed_counts_as_read(events: Events):
    events.renamed("config.json", "config.bak").renamed("config.bak", "config.json").opened("config.json")
    assert "config.json" in events.names
    assert "unknown" in events.renamed("out.txt", "made.txt", folder=3).facts


def test_target_of_a_new_link_counts_as_read(events: Events):
    link, copy = str(events.root / "sub" / "link.json"), "/dev/shm/copy.json"
    events.raised("os.symlink", "../config.json", link, -1)
    events.raised("os.link", str(events.root / "data.csv"), copy, -1, -1).opened(copy)
    assert events.names == {"config.json", "data.csv"}


@pytest.mark.parametrize("event", ["os.symlink", "os.rename"])
def test_files_of_a_folder_with_another_name_are_unknown(event: str, events: Events):
    (events.root / "data").mkdir()
    assert "unknown" not in events.renamed("data", ".pytest_cache").facts
    made = events.raised("os.mkdir", str(events.root / "new"), 0o777, -1).renamed("new", "now")
    assert "unknown" not in made.facts
    events.raised(event, str(events.root / "data"), "/dev/shm/data", -1, -1)
    assert "folder" in events.facts["unknown"]


def test_relative_path_is_resolved_against_the_current_directory_of_its_event(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    (events.root / "sub").mkdir()
    monkeypatch.chdir(events.root / "sub")
    for path in ("a.txt", b"b.txt", 3):
        events.raised("open", path, "r", READ)
    monkeypatch.chdir(events.root)
    assert events.names == {"sub/a.txt", "sub/b.txt"}


def test_system_files_and_caches_are_ignored_and_bytecode_counts_as_its_source(events: Events):
    name = sys.implementation.cache_tag
    events.opened(f"pkg/__pycache__/test_a.{name}-pytest-9.0.pyc").opened(".pytest_cache/v/lastfailed")
    for path in ("/proc/self/status", "/etc/hosts", os.__file__, "/somewhere/else.csv"):
        events.raised("open", path, "r", READ)
    assert events.facts["files"] == ["/somewhere/else.csv", str(events.root / "pkg/test_a.py")]


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("cpython.PyInterpreterState_New", ()),
        ("subprocess.Popen", ("sh", ["sh"], None, None)),
        ("os.fork", ()),
        ("os.system", ("ls",)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("open", ("not-there", None, READ)),
    ],
)
def test_events_with_unknown_reads_are_reported_as_unknown(
    event: str, args: tuple[Any, ...], events: Events
):
    query = events.raised("subprocess.Popen", "uname", ["uname", "-p"], None, None)
    assert "unknown" not in query.facts, "it reads only the type of the machine"
    events.opened("a.py").raised(event, *args)
    assert events.facts["unknown"]
    assert "files" not in events.facts


@pytest.mark.parametrize("event", ["sqlite3.connect", "ctypes.dlopen"])
def test_native_code_may_read_any_data(event: str, events: Events):
    assert not events.facts["native"]
    assert events.raised(event, "x").facts["native"]


def test_too_many_files_or_undecodable_names_make_reads_unknown(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    events.opened("\udcff.txt")
    assert "no text" in events.facts["unknown"]
    monkeypatch.setattr("pytest_planverify.observe.read_files.MOST_FILES", 0)
    assert "too many" in Events(events.root).opened("a").facts["unknown"]


def test_project_imported_before_the_worker_makes_reads_unknown(
    events: Events, monkeypatch: pytest.MonkeyPatch
):
    product = ModuleType("product")
    product.__file__ = str(events.root / "product.py")
    monkeypatch.setitem(sys.modules, "product", product)
    assert events.names == {"product.py"}
    read_files.note_modules()
    assert "before the worker began" in events.facts["unknown"]
