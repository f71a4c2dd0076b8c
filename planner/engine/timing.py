"""Ends what has lasted too long: turns of work, and the lives of branches."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

from planner.engine.consequences import fail
from planner.engine.working import turn_failed
from planner.model.life import TodoLife

if TYPE_CHECKING:
    from planner.engine.transaction import Transaction


def is_due(tx: Transaction) -> bool:
    """Whether a limit has passed."""
    return bool(tx.timers) and tx.timers[0][0] < tx.now


def expire(tx: Transaction) -> None:
    """Look at every limit that has passed."""
    while is_due(tx):
        time, name = heappop(tx.timers)
        record = tx.records[name]
        if record.life.is_final:
            continue
        if record.expires == time:
            lifetime = record.todo.max_lifetime_seconds
            because = f"{name} is not done within its lifetime"
            if lifetime is not None:
                because += f" of {lifetime:g} s"
            if record.id in tx.live:
                tx.cancel(record, "branch-lifetime", because)
            tx.expired = tx.expired | {name}
            fail(tx, tx.records[name])
        elif record.deadline == time and record.life is TodoLife.ACTIVE and not _begins_anew(tx):
            limit = record.todo.timeout_seconds
            because = f"the turn of work on {name} took longer than {limit:g} s" if limit else ""
            tx.cancel(record, "turn-timed-out", because)
            tx.expired = tx.expired | {name}
            turn_failed(tx, record, "turn-timed-out", because)


def _begins_anew(tx: Transaction) -> bool:
    """Whether the driver was away: the turns of work that it has lost are asked for again."""
    return tx.trigger == "run_resumed"
