"""Runs of the engine with every step kept: as steps, as sentences, and as a log."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from engine_telling import START, Told, todo

from planner.cli.explain import tell
from planner.store.chain import GENESIS, chained
from planner.store.run_log import Step, body

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simulation import Simulation

    from planner.model.actions import Action
    from planner.model.events import Event

__all__ = ["START", "Story", "steps_of", "todo", "write_log"]

PAUSE = timedelta(seconds=10)
"""Time between two events."""


class Story(Told):
    """A run whose events are ten seconds apart."""

    def tell(self, event: Event) -> tuple[Action, ...]:
        self.now += PAUSE
        return super().tell(event.model_copy(update={"at": self.now}))

    def told(self) -> list[str]:
        """Return the description of the last step."""
        return [*tell(self.steps[-1])]


def steps_of(run: Simulation) -> list[Step]:
    """Return the steps of a simulated run, which keeps only its events."""
    steps: list[Step] = []
    for event, _ in run.history:
        steps.append(Step.take(steps[-1].after if steps else None, event))
    return steps


def write_log(steps: Iterable[Step], path: Path, run_id: str | None = None) -> Path:
    """Write the log of these steps as a driver would, and return its path."""
    digest, lines = GENESIS, list[str]()
    for n, (event, actions, _, _) in enumerate(steps):
        if n == 0 and run_id is not None:
            event = event.model_copy(update={"run_id": run_id})
        line, digest = chained(body(n, event, actions), digest)
        lines.append(line)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return path
