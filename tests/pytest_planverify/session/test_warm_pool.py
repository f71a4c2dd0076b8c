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
    """A fake base process that makes servers as ordered and records each request, with a pool of them."""

    def __init__(self, home: Path) -> None:
        self.orders: list[Exception | None] = []
        self.requests: list[tuple[int, tuple[str, ...]]] = []
        self.made: list[Server] = []
        self.pool = WarmPool(cast("Any", self), home)

    def server(self, start: Start, level: int) -> Server:
        self.requests.append((level, start.modules))
        self.made.append(Server(self.orders.pop(0) if self.orders else None))
        return self.made[-1]

    def serve(self, start: Start = START, level: Level = Level.STARTED) -> Server:
        """Return the server of the pool for a worker."""
        return cast("Any", self.pool.server(start, level))


@pytest.fixture
def base(tmp_path: Path) -> Base:
    return Base(tmp_path)


def test_commands_with_equal_start_options_share_a_server(base: Base):
    first = base.serve()
    assert base.serve(Start(root="/r", options=("-q",), probe=("b.py",))) is first
    base.serve(Start(root="/r", options=("-v",)), Level.PARSED)
    assert [level for level, _ in base.requests] == [Level.STARTED, Level.PARSED]


def test_servers_of_the_groups_used_least_recently_are_given_up(base: Base):
    starts = [Start(root="/r", options=(str(number),)) for number in range(MOST_SERVERS + 1)]
    servers = [base.serve(start) for start in starts[:-1]]
    assert base.serve(starts[0]) is servers[0]
    base.serve(starts[-1])
    assert base.serve(starts[0]) is servers[0]
    assert base.serve(starts[1]) is not servers[1]


def test_a_new_server_imports_what_was_learned_once_workers_miss_more_than_the_present_one_has(
    base: Base,
):
    base.serve()
    for modules in (["of_no_known_effects", "numpy", "yaml"], ["yaml"], ["pandas"], ["pandas", "PIL"]):
        base.pool.learn(START, modules)
        base.serve()
    learned = ((), ("numpy", "yaml"), ("numpy", "yaml", "pandas", "PIL"))
    assert base.requests == [(Level.STARTED, modules) for modules in learned]


def test_module_unfit_for_preloading_excludes_its_package(base: Base):
    base.orders = [None, CannotServe(Level.STARTED, "scipy.stats: it starts a thread", "scipy.stats")]
    base.serve()
    base.pool.learn(START, ["scipy", "scipy.stats", "yaml"])

    base.serve()
    base.pool.learn(START, ["scipy"])
    base.serve()

    assert base.requests[-1] == (Level.STARTED, ("yaml",))
    assert len(base.requests) == 3


@pytest.mark.parametrize(
    ("failed_at", "next_level"),
    [(Level.PARSED, Level.PARSED), (Level.IMPORTED, Level.IMPORTED), (Level.STARTED, Level.PARSED)],
)
def test_server_that_cannot_reach_its_level_is_replaced_by_an_earlier_level(
    failed_at: Level, next_level: Level, base: Base
):
    base.orders = [CannotServe(failed_at, "a plugin has started a thread")]
    base.serve()
    assert [level for level, _ in base.requests] == [Level.STARTED, next_level]


def test_server_that_cannot_start_is_not_retried_endlessly(base: Base):
    base.orders = [CannotServe(Level.IMPORTED, "the root is gone")] * 9
    with pytest.raises(ForkServerDied, match="the root is gone"):
        base.serve(START, Level.PARSED)
    assert len(base.requests) == 2


def test_a_process_that_does_not_answer_counts_as_dead(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fork_server, "_ANSWER_SECONDS", 0.1)
    with closing(ForkServer()) as base:
        os.kill(base.pid, signal.SIGSTOP)
        with pytest.raises(ForkServerDied, match="does not answer"):
            base.server(START, Level.IMPORTED).wait_until_ready()
        os.kill(base.pid, signal.SIGCONT)


def test_a_dead_server_is_reported_and_renewal_starts_another_that_still_learns(base: Base):
    base.orders = [ForkServerDied("gone")]

    with pytest.raises(ForkServerDied):
        base.serve()
    base.pool.renew(START)
    assert base.serve() is base.made[-1]

    base.pool.learn(START, ["numpy"])
    base.serve()
    assert base.requests[-1] == (Level.STARTED, ("numpy",))


def test_modules_are_not_preloaded_again_after_a_server_died_while_it_imported_them(base: Base):
    base.orders = [None, ForkServerDied("gone")]
    base.serve()
    base.pool.learn(START, ["numpy"])

    with pytest.raises(ForkServerDied):
        base.serve()
    base.pool.renew(START)
    base.serve()
    base.pool.learn(START, ["numpy"])

    assert base.requests == [(Level.STARTED, modules) for modules in ((), ("numpy",), ())]


def test_worker_gets_a_server_of_an_earlier_level_or_without_modules_on_request(base: Base):
    base.serve()
    base.pool.learn(START, ["numpy"])
    base.serve()

    base.pool.replace(START, Level.PARSED)
    base.serve()
    base.pool.replace(START, Level.STARTED)  # from a worker forked earlier: no effect
    base.serve()
    base.pool.replace(START, None)
    base.serve()
    base.pool.learn(START, ["pandas"])

    assert base.requests[2:] == [(Level.PARSED, ("numpy",)), (Level.PARSED, ("numpy",)), (Level.PARSED, ())]


def test_learned_modules_and_levels_persist_to_the_next_run(base: Base, tmp_path: Path):
    base.orders = [None, None, CannotServe(Level.STARTED, "it warns", "lxml")]
    base.serve()
    base.pool.replace(START, Level.PARSED)
    base.pool.learn(START, ["numpy"])
    base.serve()
    base.pool.learn(START, ["lxml", "lxml.etree"])
    base.serve()
    base.pool.remember()

    again = Base(tmp_path)
    again.serve()
    assert again.requests == [(Level.PARSED, ("numpy",))]
    assert json.loads((tmp_path / "warm.json").read_text())["refused"] == ["lxml"]


OTHER_VALUES = '{"version": 1, "groups": {"x": 3}}'


@pytest.mark.parametrize("text", ["", '{"version": 99, "groups": {}}', OTHER_VALUES, "[" * 100_000, None])
def test_invalid_warm_file_or_a_pipe_in_its_place_is_ignored(text: str | None, tmp_path: Path):
    if text is None:
        os.mkfifo(tmp_path / "warm.json")
    else:
        (tmp_path / "warm.json").write_text(text)
    base = Base(tmp_path)

    base.serve()

    assert base.requests == [(Level.STARTED, ())]


def test_close_closes_all_servers(base: Base):
    base.serve()
    base.serve(Start(root="/other"))
    base.pool.close()
    assert [each.closed for each in base.made] == [True, True]
