"""The pool of servers by group: modules learned from workers, and replacement of failed servers."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_planverify.observe.spec import CannotServe, Level, Start
from pytest_planverify.session import fork_server
from pytest_planverify.session.fork_server import ForkServer, ForkServerDied
from pytest_planverify.session.workers import MOST_SERVERS, WarmPool

START = Start(root="/r", options=("-q",))


class Server:
    """A fake server that is ready, or fails with an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.closed = error, False

    def wait_until_ready(self) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed = True


class Base:
    """A fake base process that makes servers as ordered and records each request."""

    def __init__(self, *orders: Exception | None) -> None:
        self.orders = list(orders)
        self.requests: list[tuple[int, tuple[str, ...]]] = []
        self.made: list[Server] = []

    def server(self, start: Start, level: int) -> Server:
        order = self.orders.pop(0) if self.orders else None
        self.requests.append((level, start.modules))
        made = Server(order)
        self.made.append(made)
        return made


def pool_of(base: Base, home: Path) -> WarmPool:
    return WarmPool(cast("Any", base), home)


def test_commands_with_equal_start_options_share_a_server(tmp_path: Path):
    base = Base()
    pool = pool_of(base, tmp_path)

    first = pool.server(START, Level.STARTED)

    assert pool.server(Start(root="/r", options=("-q",), probe=("b.py",)), Level.STARTED) is first
    pool.server(Start(root="/r", options=("-v",)), Level.PARSED)
    assert [level for level, _ in base.requests] == [Level.STARTED, Level.PARSED]


def test_servers_of_the_groups_used_least_recently_are_given_up(tmp_path: Path):
    base = Base()
    pool = pool_of(base, tmp_path)
    starts = [Start(root="/r", options=(str(number),)) for number in range(MOST_SERVERS + 1)]
    servers = [pool.server(start, Level.STARTED) for start in starts[:-1]]
    assert pool.server(starts[0], Level.STARTED) is servers[0]

    pool.server(starts[-1], Level.STARTED)

    assert pool.server(starts[0], Level.STARTED) is servers[0]
    assert pool.server(starts[1], Level.STARTED) is not servers[1]


def test_a_new_server_imports_what_was_learned_once_workers_miss_more_than_the_present_one_has(
    tmp_path: Path,
):
    base = Base()
    pool = pool_of(base, tmp_path)
    pool.server(START, Level.STARTED)

    for modules in (["of_no_known_effects", "numpy", "yaml"], ["yaml"], ["pandas"], ["pandas", "PIL"]):
        pool.learn(START, modules)
        pool.server(START, Level.STARTED)

    learned = ((), ("numpy", "yaml"), ("numpy", "yaml", "pandas", "PIL"))
    assert base.requests == [(Level.STARTED, modules) for modules in learned]


def test_module_unfit_for_preloading_excludes_its_package(tmp_path: Path):
    base = Base(None, CannotServe(Level.STARTED, "scipy.stats: it starts a thread", "scipy.stats"))
    pool = pool_of(base, tmp_path)
    pool.server(START, Level.STARTED)
    pool.learn(START, ["scipy", "scipy.stats", "yaml"])

    pool.server(START, Level.STARTED)
    pool.learn(START, ["scipy"])
    pool.server(START, Level.STARTED)

    assert base.requests[-1] == (Level.STARTED, ("yaml",))
    assert len(base.requests) == 3


@pytest.mark.parametrize(
    ("failed_at", "next_level"),
    [(Level.PARSED, Level.PARSED), (Level.IMPORTED, Level.IMPORTED), (Level.STARTED, Level.PARSED)],
)
def test_server_that_cannot_reach_its_level_is_replaced_by_an_earlier_level(
    failed_at: Level, next_level: Level, tmp_path: Path
):
    base = Base(CannotServe(failed_at, "a plugin has started a thread"))

    pool_of(base, tmp_path).server(START, Level.STARTED)

    assert [level for level, _ in base.requests] == [Level.STARTED, next_level]


def test_server_that_cannot_start_is_not_retried_endlessly(tmp_path: Path):
    base = Base(*[CannotServe(Level.IMPORTED, "the root is gone")] * 9)

    with pytest.raises(ForkServerDied, match="the root is gone"):
        pool_of(base, tmp_path).server(START, Level.PARSED)
    assert len(base.requests) == 2


def test_a_process_that_does_not_answer_counts_as_dead(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fork_server, "_ANSWER_SECONDS", 0.1)
    with closing(ForkServer()) as base:
        os.kill(base.pid, signal.SIGSTOP)
        with pytest.raises(ForkServerDied, match="does not answer"):
            base.server(START, Level.IMPORTED).wait_until_ready()
        os.kill(base.pid, signal.SIGCONT)


def test_a_dead_server_is_reported_and_renewal_starts_another_that_still_learns(tmp_path: Path):
    base = Base(ForkServerDied("gone"))
    pool = pool_of(base, tmp_path)

    with pytest.raises(ForkServerDied):
        pool.server(START, Level.STARTED)
    pool.renew(START)
    assert pool.server(START, Level.STARTED) is base.made[-1]

    pool.learn(START, ["numpy"])
    pool.server(START, Level.STARTED)
    assert base.requests[-1] == (Level.STARTED, ("numpy",))


def test_modules_are_not_preloaded_again_after_a_server_died_while_it_imported_them(tmp_path: Path):
    base = Base(None, ForkServerDied("gone"))
    pool = pool_of(base, tmp_path)
    pool.server(START, Level.STARTED)
    pool.learn(START, ["numpy"])

    with pytest.raises(ForkServerDied):
        pool.server(START, Level.STARTED)
    pool.renew(START)
    pool.server(START, Level.STARTED)
    pool.learn(START, ["numpy"])

    assert base.requests == [(Level.STARTED, modules) for modules in ((), ("numpy",), ())]


def test_worker_gets_a_server_of_an_earlier_level_or_without_modules_on_request(tmp_path: Path):
    base = Base()
    pool = pool_of(base, tmp_path)
    pool.server(START, Level.STARTED)
    pool.learn(START, ["numpy"])
    pool.server(START, Level.STARTED)

    pool.replace(START, Level.PARSED)
    pool.server(START, Level.STARTED)
    pool.replace(START, Level.STARTED)  # from a worker forked earlier: no effect
    pool.server(START, Level.STARTED)
    pool.replace(START, None)
    pool.server(START, Level.STARTED)
    pool.learn(START, ["pandas"])

    assert base.requests[2:] == [(Level.PARSED, ("numpy",)), (Level.PARSED, ("numpy",)), (Level.PARSED, ())]


def test_learned_modules_and_levels_persist_to_the_next_run(tmp_path: Path):
    base = Base(None, None, CannotServe(Level.STARTED, "it warns", "lxml"))
    pool = pool_of(base, tmp_path)
    pool.server(START, Level.STARTED)
    pool.replace(START, Level.PARSED)
    pool.learn(START, ["numpy"])
    pool.server(START, Level.STARTED)
    pool.learn(START, ["lxml", "lxml.etree"])
    pool.server(START, Level.STARTED)
    pool.remember()

    again = Base()
    pool_of(again, tmp_path).server(START, Level.STARTED)
    assert again.requests == [(Level.PARSED, ("numpy",))]
    assert json.loads((tmp_path / "warm.json").read_text())["refused"] == ["lxml"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no pipes with names")
def test_pipe_in_place_of_the_warm_file_blocks_no_run(tmp_path: Path):
    os.mkfifo(tmp_path / "warm.json")
    assert pool_of(Base(), tmp_path).server(START, Level.STARTED)


@pytest.mark.parametrize(
    "text",
    ["", '{"version": 99, "groups": {}}', '{"version": 1, "groups": {"x": 3}}', "[" * 100_000],
    ids=["empty", "newer", "other values", "deep"],
)
def test_invalid_warm_file_is_ignored(text: str, tmp_path: Path):
    (tmp_path / "warm.json").write_text(text)
    base = Base()

    pool_of(base, tmp_path).server(START, Level.STARTED)

    assert base.requests == [(Level.STARTED, ())]


def test_close_closes_all_servers(tmp_path: Path):
    base = Base()
    pool = pool_of(base, tmp_path)
    pool.server(START, Level.STARTED)
    pool.server(Start(root="/other"), Level.STARTED)

    pool.close()

    assert [each.closed for each in base.made] == [True, True]
