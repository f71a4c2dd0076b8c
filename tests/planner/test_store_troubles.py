"""What goes wrong with a store is told in one line, and nothing that was committed is lost by it."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import select
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_samples import (
    append,
    began,
    chain,
    ended,
    filled,
    in_a_child,
    last_digest,
    one_line,
    tick,
)

from planner.edges.store import LineTaken, Store, StoreError, sqlite

NOBODY = 65534


@pytest.fixture(autouse=True)
def _quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "kill" not in request.node.name:
        monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")  # the disk is waited for only where it matters


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that a process without rights can reach: pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="planner-store-"))
    folder.chmod(0o755)
    yield folder
    for each in (folder, *folder.rglob("*")):
        each.chmod(0o755)
    shutil.rmtree(folder)


# Several at once


def test_of_two_processes_that_append_to_one_run_each_number_goes_to_one(
    path: Path, tmp_path: Path
) -> None:
    filled(path, 1)
    both_are_there = multiprocessing.get_context("fork").Barrier(2)

    def write(mine: Path) -> None:
        won: list[int] = []
        lost = 0
        with Store.open(path) as store:
            digest, n = last_digest(store), 0
            both_are_there.wait(30)
            while n < 80:
                line, after = tick(n + 1, digest)
                try:
                    append(store, n + 1, digest)
                except LineTaken:
                    lost += 1
                    news = list(store.lines("run-1", after=n))
                    n, digest = n + len(news), last_digest(store)
                else:
                    won.append(n + 1)
                    n, digest = n + 1, after
                    assert line
        mine.write_text(f"{lost}\n{' '.join(map(str, won))}")

    children = [in_a_child(lambda mine=tmp_path / name: write(mine)) for name in ("a", "b")]
    assert [ended(pid) for pid in children] == [0, 0]

    told = [(tmp_path / name).read_text().split("\n") for name in ("a", "b")]
    won = sorted(int(n) for _, numbers in told for n in numbers.split())
    with Store.open(path) as store:
        stored = len(chain(store))
    assert won == list(range(1, stored)), "every number once, and every one that was acknowledged is there"
    assert sum(int(lost) for lost, _ in told) >= 1, "they have met"


def test_processes_that_make_one_store_at_once_all_get_it(tmp_path: Path) -> None:
    path = tmp_path / ".planverify" / "planverify.db"

    def make(name: str) -> None:
        with Store.open(path) as store:
            began(store, name)

    children = [in_a_child(lambda name=name: make(name)) for name in ("a", "b", "c", "d")]

    assert [ended(pid) for pid in children] == [0] * 4
    with Store.open(path) as store:
        assert sorted(run.run_id for run in store.runs()) == ["a", "b", "c", "d"]


def test_a_store_that_is_locked_for_too_long_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, 2)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store.open(path) as store:
        with pytest.raises(
            StoreError, match="storing line 2 of run run-1 failed: another process has kept it"
        ) as told:
            append(store, 2, last_digest(store))
        one_line(told.value, path)
        assert len(chain(store)) == 2, "readers do not wait"
        other.execute("ROLLBACK")
        append(store, 2, last_digest(store))
    other.close()


def test_a_store_that_is_being_made_by_another_for_too_long_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    fresh = path.with_name("fresh.db")
    fresh.touch()
    for begin in ("BEGIN EXCLUSIVE", "BEGIN; SELECT * FROM sqlite_master"):
        other = sqlite3.connect(fresh, isolation_level=None)
        for statement in begin.split("; "):
            other.execute(statement).fetchall()
        with pytest.raises(StoreError, match="opening the store failed: another process") as told:
            Store.open(fresh)
        one_line(told.value, fresh)
        other.close()


# Killed


def killed_after(pid: int, acknowledged: int, seconds: float) -> list[int]:
    """Wait for the first word of a writer, then that long, kill it, and return what it has acknowledged."""
    ready, _, _ = select.select([acknowledged], [], [], 30)
    assert ready
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    assert ended(pid) == -signal.SIGKILL
    said = b""
    while part := os.read(acknowledged, 65536):
        said += part
    os.close(acknowledged)
    return [int(n) for n in said.split()]


def test_what_was_acknowledged_outlives_a_kill_at_any_moment(path: Path) -> None:
    filled(path, 1)
    chance = random.Random(7)
    in_the_middle = 0
    for _ in range(24):
        reading, writing = os.pipe()

        def write(writing: int = writing) -> None:
            with Store.open(path) as store:
                n, digest = len(list(store.lines("run-1"))), last_digest(store)
                os.write(writing, b"0 ")
                while True:
                    digest = append(store, n, digest)
                    os.write(writing, f"{n} ".encode())
                    n += 1

        pid = in_a_child(write)
        os.close(writing)
        acknowledged = killed_after(pid, reading, chance.uniform(0, 0.03))
        with Store.open(path) as store:
            stored = len(chain(store))
        last = max(acknowledged)
        assert not last or stored in (last + 1, last + 2), "one more may be committed than acknowledged"
        in_the_middle += last > 0
    assert in_the_middle, "none was killed while it wrote"
    with Store.open(path) as store, store._engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "journal_mode", "foreign_keys")
        }
    assert settings == {"synchronous": 2, "journal_mode": "wal", "foreign_keys": 1}, "2 is FULL"


def test_a_kill_while_the_store_is_made_leaves_one_that_can_be_opened(tmp_path: Path) -> None:
    chance = random.Random(3)
    for place in range(10):
        path = tmp_path / f"{place}.db"
        reading, writing = os.pipe()

        def make(path: Path = path, writing: int = writing) -> None:
            os.write(writing, b"0 ")
            Store.open(path)
            signal.pause()

        pid = in_a_child(make)
        os.close(writing)
        killed_after(pid, reading, chance.uniform(0, 0.03))
        filled(path, 3)
        with Store.open(path) as store:
            assert len(chain(store)) == 3


# Full, read-only


def test_a_full_disk_loses_nothing(path: Path) -> None:
    filled(path, 2)
    with Store.open(path) as store:
        with store._engine.connect() as connection:  # pooled: the store will get the same again
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
        n, told = 2, None
        while told is None and n < 500:
            try:
                append(store, n, last_digest(store))
                n += 1
            except StoreError as error:
                told = one_line(error, path)
        assert f"storing line {n} of run run-1 failed: its disk is full" in (told or "")
        assert "what was committed before is safe: make room" in (told or "")
        assert len(chain(store)) == n
        with store._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 100000")
        append(store, n, last_digest(store))
        assert len(chain(store)) == n + 1


def test_a_limit_of_the_size_of_files_loses_nothing(path: Path, tmp_path: Path) -> None:
    filled(path, 2)

    def write() -> None:
        with Store.open(path) as store:
            append(store, 2, last_digest(store))
            size = path.with_name(f"{path.name}-wal").stat().st_size + 40_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            try:
                for n in range(3, 500):
                    append(store, n, last_digest(store))
            except StoreError as error:
                (tmp_path / "told").write_text(f"{n}\n{error}")
            os._exit(0)

    assert ended(in_a_child(write)) == 0
    n, told = (tmp_path / "told").read_text().split("\n")
    assert "its disk refuses to read or write" in told or "its disk is full" in told
    with Store.open(path) as store:
        assert len(chain(store)) == int(n) > 3
        append(store, int(n), last_digest(store))


def without_rights(work: Callable[[], None], said: Path) -> str:
    """What somebody says who may write only where everybody may."""
    said.touch()
    said.chmod(0o666)

    def do() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            work()
        except StoreError as error:
            said.write_text(str(error))

    assert ended(in_a_child(do)) == 0
    return said.read_text()


def test_what_is_read_only_can_be_read_and_says_that_it_cannot_be_written(open_to_all: Path) -> None:
    home, said = open_to_all / "home", open_to_all / "said"
    home.mkdir()
    path = home / "runs.db"
    filled(path, 3)
    path.chmod(0o644)

    def read_and_write() -> None:
        with Store.open(path, create=False) as store:
            assert [run.events for run in store.runs()] == [3]
            append(store, 3, last_digest(store))

    def make() -> None:
        Store.open(home / "new.db")

    os.chown(home, 0, 0) if os.geteuid() == 0 else None
    home.chmod(0o555)
    path.chmod(0o444)
    told = without_rights(read_and_write, said)
    assert told.startswith(
        f"{path}: storing line 3 of run run-1 failed: the file or its folder is read-only"
    )
    assert "make both writable" in told
    said.unlink()
    told = without_rights(make, said)
    assert told == (
        f"{home / 'new.db'}: opening the store failed: Permission denied; make the place usable, or name "
        "another store with --store"
    )
    with Store.open(path) as store:
        assert len(chain(store)) == 3
