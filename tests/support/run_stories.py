"""Runs of the engine with every step kept: as steps, as sentences, and as a log."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from engine_telling import START, Told, todo
from simulation import Watcher

from planner.cli.explain import tell
from planner.store.chain import GENESIS, chained
from planner.store.run_log import Step, body

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event, PlanSubmitted

__all__ = ["START", "Kept", "Story", "todo", "write_log"]

PAUSE = timedelta(seconds=10)
"""Time between two events."""


class Kept(Watcher):
    """Keeps every step of a simulated run."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def began(self, event: PlanSubmitted, after: State, actions: Sequence[Action]) -> None:
        self.steps.append(Step(event, tuple(actions), None, after))

    def stepped(self, before: State, event: Event, after: State, actions: Sequence[Action]) -> None:
        self.steps.append(Step(event, tuple(actions), before, after))


class Story(Told):
    """A run whose events are ten seconds apart."""

    def tell(self, event: Event) -> tuple[Action, ...]:
        self.now += PAUSE
        return super().tell(event.model_copy(update={"at": self.now}))

    def told(self) -> list[str]:
        """Return the description of the last step."""
        return [*tell(self.steps[-1])]


def write_log(steps: Sequence[Step], path: Path, run_id: str | None = None) -> Path:
    """Write the log of these steps as a driver would, and return its path."""
    digest, lines = GENESIS, list[str]()
    for n, (event, actions, _, _) in enumerate(steps):
        if n == 0 and run_id is not None:
            event = event.model_copy(update={"run_id": run_id})
        line, digest = chained(body(n, event, actions), digest)
        lines.append(line)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return path
