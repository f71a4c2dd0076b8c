"""Workers of interpreters of their own, one of which may stand by for the next confirmation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from worker_bench import Bench

RED = {"test_x.py": "def test_it(): assert 0\n", "sub/test_y.py": "def test_it(): assert 0\n"}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    bench = Bench(tmp_path, forks=False)
    bench.write(RED)
    yield bench
    if bench.workers is not None:
        bench.workers.forget_ahead()
    bench.close()


def standing_by() -> set[int]:
    """The interpreters that this process has started and that wait for a worker."""
    return {each.pid for each in psutil.Process().children() if "cold_worker" in " ".join(each.cmdline())}


def stands_by() -> set[int]:
    """Those that stand by once there is one: it is told from others when its program has begun."""
    deadline = time.monotonic() + 20
    while not (found := standing_by()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def confirmed(bench: Bench, command: str = "pytest test_x.py") -> list[str]:
    record = bench.run(command, cold=True)
    return [result.outcome for result in record.results.values()]


def test_after_a_confirmation_an_interpreter_stands_by_and_is_the_next_one(bench: Bench):
    assert confirmed(bench) == ["failed"]
    first = stands_by()
    assert len(first) == 1

    assert confirmed(bench, "pytest sub/test_y.py") == ["failed"]
    assert bench.workers is not None
    assert bench.workers._cold[0].pid in first

    bench.workers.forget_ahead()
    assert standing_by() == set()


def test_one_that_stands_by_is_not_taken_for_a_command_with_another_environment(bench: Bench):
    confirmed(bench)
    first = stands_by()

    assert confirmed(bench, "SHOP=1 pytest test_x.py") == ["failed"]
    assert bench.workers is not None
    assert bench.workers._cold[0].pid not in first
    assert not first & standing_by()


def test_one_that_has_died_is_no_worker(bench: Bench):
    confirmed(bench)
    (first,) = stands_by()
    for each in [*psutil.Process(first).children(), psutil.Process(first)]:
        each.kill()

    assert confirmed(bench) == ["failed"]
