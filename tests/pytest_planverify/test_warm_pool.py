"""Servers by group: what they learn from workers, and what becomes of one that cannot go so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.planfile.file_writer import replace_file
from pytest_planverify.observe.spec import Start
from pytest_planverify.session.fork_server import CannotFork, ForkServerDied
from pytest_planverify.session.workers import IMPORTED, PARSED, STARTED, WarmPool

START = Start(root="/r", options=("-q",))


class Lane:
    """Is ready, or says why it is not."""

    def __init__(self, error: Exception | None = None, *, late: bool = False) -> None:
        self.error, self.late, self.closed = error, late, False

    def is_ready(self, seconds: float | None = None) -> bool:
        if self.error is not None:
            raise self.error
        return seconds is None or not self.late

    def close(self) -> None:
        self.closed = True


class Server:
    """Makes lanes that behave as they were ordered to, and remembers what it was asked for."""

    def __init__(self, *orders: Exception | str | None) -> None:
        self.orders = list(orders)
        self.asked: list[tuple[int, tuple[str, ...]]] = []
        self.made: list[Lane] = []

    def lanes(self, start: Start, level: int, count: int) -> list[Lane]:
        order = self.orders.pop(0) if self.orders else None
        self.asked.append((level, start.modules))
        error = order if isinstance(order, Exception) else None
        made = [Lane(error, late=order == "late") for _ in range(count)]
        self.made += made
        return made


def pool_of(server: Any, home: Path, count: int = 1) -> WarmPool:
    return WarmPool(server, count, home)


def test_commands_that_start_alike_share_a_server(tmp_path: Path):
    server = Server()
    pool = pool_of(server, tmp_path, 2)

    first = pool.lane(0, START, STARTED)

    assert pool.lane(0, Start(root="/r", options=("-q",), probe=("b.py",)), STARTED) is first
    assert pool.lane(1, START, STARTED) is not first
    pool.lane(0, Start(root="/r", options=("-v",)), PARSED)
    assert [level for level, _ in server.asked] == [STARTED, PARSED]


def test_the_next_server_imports_what_workers_had_to_import_and_takes_over_when_it_is_ready(tmp_path: Path):
    server = Server(None, "late")
    pool = pool_of(server, tmp_path)
    first = pool.lane(0, START, STARTED)

    pool.learn(START, ["numpy", "yaml"])
    pool.learn(START, ["pandas"])

    assert pool.lane(0, START, STARTED) is first
    server.made[-1].late = False
    assert pool.lane(0, START, STARTED) is server.made[-1]
    assert server.asked == [(STARTED, ()), (STARTED, ("numpy", "yaml"))]
    pool.learn(START, ["yaml"])
    assert len(server.asked) == 2


def test_a_module_that_must_not_be_imported_ahead_is_refused_with_all_below_its_package(tmp_path: Path):
    server = Server(None, CannotFork(STARTED, "heavy.part: it starts a thread", "heavy.part"))
    pool = pool_of(server, tmp_path)
    first = pool.lane(0, START, STARTED)
    pool.learn(START, ["heavy", "heavy.part", "yaml"])

    assert pool.lane(0, START, STARTED) is first
    pool.learn(START, ["heavy", "yaml"])
    assert server.asked[-1] == (STARTED, ("yaml",))


@pytest.mark.parametrize(
    ("failures", "levels"),
    [
        ([CannotFork(PARSED, "a plugin has started a thread", None)], [STARTED, PARSED]),
        ([CannotFork(IMPORTED, "the session measures coverage", None)], [STARTED, IMPORTED]),
        ([CannotFork(STARTED, "it did not come so far", None)], [STARTED, PARSED]),
    ],
)
def test_a_server_that_cannot_go_so_far_is_replaced_by_one_that_stops_earlier(
    failures: list[Exception], levels: list[int], tmp_path: Path
):
    server = Server(*failures)

    pool_of(server, tmp_path).lane(0, START, STARTED)

    assert [level for level, _ in server.asked] == levels


def test_a_server_that_cannot_even_begin_is_not_tried_for_ever(tmp_path: Path):
    server = Server(*[CannotFork(IMPORTED, "the root is gone", None)] * 9)

    with pytest.raises(ForkServerDied, match="the root is gone"):
        pool_of(server, tmp_path).lane(0, START, PARSED)
    assert len(server.asked) == 2


def test_a_server_that_died_is_made_once_more(tmp_path: Path):
    server = Server(ForkServerDied("gone"))
    pool = pool_of(server, tmp_path)

    assert pool.lane(0, START, STARTED) is server.made[-1]
    server.orders = [ForkServerDied("gone"), ForkServerDied("gone")]
    pool.renew(START)
    with pytest.raises(ForkServerDied):
        pool.lane(0, START, STARTED)


def test_a_worker_that_asks_to_start_earlier_or_without_modules_gets_a_server_that_does(tmp_path: Path):
    server = Server()
    pool = pool_of(server, tmp_path)
    pool.lane(0, START, STARTED)
    pool.learn(START, ["numpy"])
    pool.lane(0, START, STARTED)

    pool.replace(START, PARSED)
    pool.lane(0, START, STARTED)
    pool.replace(START, STARTED)  # of a worker that was forked before: nothing is taken back
    pool.lane(0, START, STARTED)
    pool.replace(START, None)
    pool.lane(0, START, STARTED)
    pool.learn(START, ["pandas"])

    assert server.asked[2:] == [(PARSED, ("numpy",)), (PARSED, ("numpy",)), (PARSED, ())]


def test_the_next_run_begins_with_what_this_one_has_learned(tmp_path: Path):
    server = Server(None, None, CannotFork(STARTED, "it warns", "old"))
    pool = pool_of(server, tmp_path)
    pool.lane(0, START, STARTED)
    pool.replace(START, PARSED)
    pool.learn(START, ["numpy"])
    pool.lane(0, START, STARTED)
    pool.learn(START, ["old"])
    pool.lane(0, START, STARTED)
    pool.remember(replace_file)

    again = Server()
    pool_of(again, tmp_path).lane(0, START, STARTED)
    assert again.asked == [(PARSED, ("numpy",))]
    assert json.loads((tmp_path / "warm.json").read_text())["refused"] == ["old"]


def test_nothing_is_written_again_where_nothing_was_learned(tmp_path: Path):
    written: list[Path] = []
    for _ in range(2):
        pool = pool_of(Server(), tmp_path)
        pool.lane(0, START, STARTED)
        pool.remember(lambda path, text: (written.append(path), replace_file(path, text)))

    assert written == [tmp_path / "warm.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        '{"version": 99, "groups": {}, "refused": []}',
        '{"version": 1, "groups": {"x": 3}, "refused": []}',
        '{"version": 1, "groups": [], "refused": []}',
        '{"version": 1, "groups": {}, "refused": null}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_a_file_in_disorder_is_as_good_as_none(text: str, tmp_path: Path):
    (tmp_path / "warm.json").write_text(text)
    server = Server()

    pool_of(server, tmp_path).lane(0, START, STARTED)

    assert server.asked == [(STARTED, ())]


def test_closing_lets_go_of_all_lanes(tmp_path: Path):
    server = Server(None, "late")
    pool = pool_of(server, tmp_path, 2)
    pool.lane(0, START, STARTED)
    pool.learn(START, ["numpy"])

    pool.close()

    assert [lane.closed for lane in server.made] == [True] * 4
