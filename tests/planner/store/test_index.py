"""The index of logs and outcome files: derived from these alone, updated, and rebuilt."""

from __future__ import annotations

import functools
import os
import pwd
import random
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_samples import Carried, Project, at_random, everything, failure, shop, verified

from planner.errors import StoreError
from planner.store import index as index_module
from planner.store.index import USUAL, Index, open_index

Found = TypeVar("Found")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def in_threads(count: int, ask: Callable[[], Found]) -> list[Found]:
    """Return the results of `ask`, called in `count` threads at once."""
    begin = threading.Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: (begin.wait(), ask())[1], range(count)))


def rows_of(project: Project, *, rebuild: bool = False) -> dict[str, list[str]]:
    with open_index(project.root, rebuild=rebuild) as index:
        assert index.remarks == []
        return everything(index)


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_an_incremental_sync_equals_a_rebuild(seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        verifications: list[Path] = []
        for place in range(4):
            at_random(Carried(project, shop(), f"run-{place}"), chance, most=chance.randrange(1, 20))
            found = [failure("a1")] if chance.random() < 0.5 else []
            verifications.append(verified(project.root, f"v-{place}", *found))
            if chance.random() < 0.4:
                verifications.pop(chance.randrange(len(verifications))).unlink()
            if chance.random() < 0.6:
                rows_of(project)

        kept = rows_of(project)

        assert kept == rows_of(project, rebuild=True)
        (project.root / USUAL).unlink()
        assert kept == rows_of(project)


def test_only_changed_files_are_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Carried(project, shop(), "run-1")
    Carried(project, shop(), "run-2")
    verified(project.root, "v-1")
    rows_of(project)
    read: list[str] = []
    rows = index_module.rows_of
    monkeypatch.setattr(
        index_module, "rows_of", lambda path, remarks: (read.append(path.name), rows(path, remarks))[1]
    )

    rows_of(project)
    assert read == []
    run.tell("run_started")
    rows_of(project)
    assert read == ["run-1.jsonl"]


def test_an_open_index_sees_additions_and_removals_by_other_writers(project: Project) -> None:
    over = Carried(project, shop(), "run-1")
    at_random(over, random.Random(3))
    assert over.state.plan_state.is_final
    with open_index(project.root) as index, open_index(project.root) as other:

        def known() -> dict[str, str]:
            index.sync(project.root)
            return {each["run_id"]: each["state"] for each in index.runs()}

        begun = Carried(project, shop(), "run-2")
        assert known() == {"run-1": over.state.plan_state.value, "run-2": "ready"}
        begun.tell("run_started")
        other.sync(project.root)
        assert known()["run-2"] == "executing"
        over.path.unlink()
        assert known().keys() == {"run-2"}
        begun.path.write_text("no log")
        assert known() == {}
        assert len(index.remarks) == 1
        begun.path.unlink()
        assert known() == {}
        assert index.remarks == []


@pytest.mark.parametrize("damage", ["cut", "another version", "link"])
def test_an_unusable_index_is_rebuilt(project: Project, damage: str) -> None:
    at_random(Carried(project, shop()), random.Random(3), most=10)
    before = rows_of(project)
    path = project.root / USUAL
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "another version":
        with sqlite3.connect(path) as raw:
            raw.execute("UPDATE planverify_index SET version = 99")
    else:
        path.unlink()
        target = project.root / "elsewhere.db"
        with sqlite3.connect(target) as raw:
            raw.execute("CREATE TABLE songs (title)")
        path.symlink_to(target)

    assert rows_of(project) == before
    assert not path.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if damage == "link":
        with sqlite3.connect(project.root / "elsewhere.db") as raw:
            assert raw.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]


def test_a_damaged_text_in_the_index_is_an_error_that_names_the_rebuild(project: Project) -> None:
    verified(project.root, "v-1")
    before = rows_of(project)
    with sqlite3.connect(project.root / USUAL) as raw:
        raw.execute("UPDATE planverify_verifications SET run_id = CAST(x'ff' AS TEXT)")
    with (
        open_index(project.root) as index,
        pytest.raises(StoreError, match="planner history --rebuild makes the project's own index again"),
    ):
        index.verifications()
    assert rows_of(project, rebuild=True) == before


def test_the_index_is_kept_in_memory_if_the_folder_is_read_only(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_random(Carried(project, shop()), random.Random(3), most=10)
    monkeypatch.setattr(os, "access", lambda *_: False)
    alone = rows_of(project)
    assert not (project.root / USUAL).exists()
    monkeypatch.undo()
    assert rows_of(project) == alone


def test_special_files_in_the_runs_folder_do_not_block_the_index(project: Project) -> None:
    runs = project.root / ".planverify/runs"
    for name in ("pipe", "link", "folder", "empty", "text"):
        (runs / name).mkdir(parents=True)
    os.mkfifo(runs / "pipe/outcomes.json")
    (runs / "link/outcomes.json").symlink_to("/dev/zero")
    (runs / "folder/outcomes.json").mkdir()
    (runs / "empty/outcomes.json").write_text("")
    (runs / "text/outcomes.json").write_text("[1]")
    verified(project.root, "v-1")

    with open_index(project.root) as index:
        assert [each["run_id"] for each in index.verifications()] == ["v-1"]
    (remark,) = index.remarks
    assert "text/outcomes.json: the outcome file cannot be used" in remark


def test_concurrent_readers_get_equal_rows(project: Project) -> None:
    for place in range(3):
        at_random(Carried(project, shop(), f"run-{place}"), random.Random(place), most=20)
    found = in_threads(4, lambda: rows_of(project))
    assert found == [rows_of(project, rebuild=True)] * 4


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("sqlite://", "is not the URL of a database"),
        ("sqlite:///:memory:", "is not the URL of a database"),
        ("sqlite:///x.db?mode=ro", "is not the URL of a database"),
        ("no/such/x.db", "No such file or directory"),
        ("://x", "is not the URL of a database"),
        ("postgresql://host:port/x", "is not the URL of a database"),
        ("postgresql+nodriver://ann:secret@host/x", "***@host/x' is not the URL of a database with"),
        ("notes.txt", "notes.txt: the index cannot be used: file is not a database"),
        ("pipe", "pipe is a link, or not a regular file"),
    ],
)
def test_an_unusable_index_location_is_refused_in_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    monkeypatch.chdir(project.root)
    Path("notes.txt").write_text("my notes")
    os.mkfifo("pipe")
    with pytest.raises(StoreError) as refused:
        Index.open(place)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """Yield the URL of an empty database on a server started for these tests."""
    pytest.importorskip("psycopg")
    # Debian does not put the programs of the server on PATH.
    places = os.pathsep.join([os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
    programs = [shutil.which(name, path=places) for name in ("initdb", "pg_ctl")]
    if None in programs:
        pytest.skip("there is no server of PostgreSQL here")
    initdb, pg_ctl = map(str, programs)
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    owner: dict[str, Any] = {}
    if os.getuid() == 0:  # the server refuses to run as root
        nobody = pwd.getpwnam("nobody")
        owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    run = functools.partial(subprocess.run, check=True, cwd=folder, stdout=subprocess.DEVNULL, **owner)
    data = str(folder / "data")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    run([initdb, "-D", data, "-U", "ann", "-A", "trust", "--no-sync"])
    run([pg_ctl, "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start"])
    yield f"postgresql+psycopg://ann@/postgres?host={folder}"
    run([pg_ctl, "-D", data, "-m", "immediate", "stop"])
    shutil.rmtree(folder)


def test_postgresql_gives_the_same_answers_as_sqlite(project: Project, postgresql: str) -> None:
    for place in range(3):
        at_random(Carried(project, shop(), f"run-{place}"), random.Random(place), most=20)
    verified(project.root, "v-1", failure("a1", stack_trace_head="a \0 that it cannot hold"))
    answers: list[Any] = []
    for url in (postgresql, str(project.root / "team.db")):
        remarks = in_threads(4, lambda url=url: synced(url, project.root))
        assert remarks == [[]] * 4, "processes that begin at once wait for each other"
        with Index.open(url) as index:
            answers.append([index.runs("shop"), index.verifications(), index.failures()])
    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 3


def synced(url: str, root: Path) -> list[str]:
    with Index.open(url) as index:
        index.sync(root)
        return index.remarks
