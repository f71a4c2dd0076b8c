"""Tells pages that something has changed: a stream of server-sent events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from planner.planfile.plan_folder import HOME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECONDS = 0.5
"""How often the files are looked at."""
QUIET = 30
"""After so many looks without a change the connection is kept open by a comment."""
_PATTERNS = ("outcomes.json", "logs/*.jsonl", "plans/*/outcomes.json", "plans/*/logs/*.jsonl")


async def changes(root: Path, plan: Path) -> AsyncIterator[str]:
    """Yield an event ``changed`` whenever a run or a person has added something, until nobody listens."""
    before = state_of(root, plan)
    yield ": open\n\n"
    quiet = 0
    while True:
        await asyncio.sleep(SECONDS)
        now, quiet = state_of(root, plan), quiet + 1
        if now != before:
            before, quiet = now, 0
            yield "event: changed\ndata: \n\n"
        elif quiet >= QUIET:
            quiet = 0
            yield ": quiet\n\n"


def state_of(root: Path, plan: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what tells a state of the files from others: their times and sizes."""
    found: list[tuple[str, int, int]] = []
    for path in (plan, *(each for pattern in _PATTERNS for each in sorted((root / HOME).glob(pattern)))):
        try:
            facts = path.stat()
        except OSError:
            continue
        found.append((str(path), facts.st_mtime_ns, facts.st_size))
    return tuple(found)
