"""Everything beside the log can be made from the log anew, and comes out equal."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_samples import Carried, append, at_random, began, everything, last_digest, shop, tick, todo

from planner.edges.log_lines import GENESIS
from planner.edges.store import Store, StoreError, sqlite


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")  # no test here is about what a power failure leaves


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.db") as opened:
        yield opened


def test_all_beside_the_log_can_be_made_from_it_anew(tmp_path: Path) -> None:
    kept = dict.fromkeys(("planner_branches", "planner_approvals", "planner_past_repairs"), 0)
    for seed in range(8):
        path = tmp_path / f"{seed}.db"
        with Store.open(path) as store:
            at_random(
                Carried(store, shop(auto_fix_mode=seed % 3 > 0, max_debug_attempts=2)), random.Random(seed)
            )
            before = everything(path)
            store.rebuild("run-1")
            assert everything(path) == before
            for name in kept:
                kept[name] += len(before[name])
    assert all(kept.values()), "the runs have to have something to remake"


def test_a_log_that_does_not_fold_is_kept_as_it_is(store: Store, tmp_path: Path) -> None:
    append(store, 1, began(store))  # time may pass before the start, and so it folds
    store.rebuild("run-1")
    began(store, "over", shop(items=[todo("a", "nowhere")]))
    append(store, 1, last_digest(store, "over"), run_id="over")
    line, digest = tick(0, GENESIS)
    store.open_run("headless", shop(), line, digest)
    before = everything(tmp_path / "runs.db")

    for run_id, problem in [
        ("over", r"run over cannot be made anew .*: the run is over.*; the events are kept"),
        ("headless", r"run headless cannot be made anew .*: line 0 submits no plan"),
        ("nobody", r"there is no run nobody"),
    ]:
        with pytest.raises(StoreError, match=problem):
            store.rebuild(run_id)

    assert everything(tmp_path / "runs.db") == before
