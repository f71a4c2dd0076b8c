"""Turns under way are ended before what they may have written is looked at."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_planverify.harness import turn_pool
from pytest_planverify.harness.turn_pool import SentTurn, TurnPool


def sent(todo_id: str) -> SentTurn:
    turn = SimpleNamespace(action=SimpleNamespace(todo_id=todo_id))
    return SentTurn(cast("Any", SimpleNamespace(turn=turn)), merges=0)


def test_a_dropped_turn_has_ended_and_one_that_had_not_begun_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    begun, written = threading.Event(), list[str]()

    def perform(job: Any, on_output: object, watch: Any) -> None:
        begun.set()
        try:
            while True:
                watch()
        finally:
            written.append(job.turn.action.todo_id)

    monkeypatch.setattr(turn_pool, "perform_turn", perform)
    pool = TurnPool(1, turn_pool.THREADS, lambda text: None)
    at_work, waiting = sent("a"), sent("b")
    pool.send(at_work)
    pool.send(waiting)
    assert begun.wait(60)

    assert not pool.drop("b")
    assert pool.is_busy
    assert pool.drop("a")
    assert written == ["a"]
    assert not pool.is_busy
    pool.close()
