"""Runs of the engine with every step kept: as steps, as sentences, and as a log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from engine_telling import START, Told, todo

from planner.cli.explain import tell
from planner.cli.figures import Figures, count_run
from planner.engine import start
from planner.store.chain import GENESIS
from planner.store.lines import encode
from planner.store.run_log import Step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event, PlanSubmitted

__all__ = ["START", "Kept", "Story", "todo", "write_log"]

PAUSE = timedelta(seconds=10)
"""Time between two events."""


class Kept:
    """Keeps every step; also watches simulated runs."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def began(self, event: PlanSubmitted, after: State, actions: Sequence[Action]) -> None:
        self.steps.append(Step(event, tuple(actions), None, after))

    def stepped(self, before: State, event: Event, after: State, actions: Sequence[Action]) -> None:
        self.steps.append(Step(event, tuple(actions), before, after))

    def refused(self, state: object, event: object, refusal: object) -> None: ...

    def rested(self, simulation: object) -> None: ...

    @property
    def figures(self) -> Figures:
        """Figures of the run."""
        return count_run(self.steps)[0]


class Story(Told):
    """A run that keeps every step; its events are ten seconds apart."""

    now: datetime

    def __init__(self, *todos: Any, run: dict[str, Any] | None = None, **policy: Any) -> None:
        self.kept: Kept | None = None
        super().__init__(*todos, run=run, **policy)

    def tell(self, event: Event) -> tuple[Action, ...]:
        if self.kept is None:
            self.kept = Kept()
            state, actions = start(self.submission)
            self.kept.began(self.submission, state, actions)
        self.now += PAUSE
        event = event.model_copy(update={"at": self.now})
        before = self.state
        actions = super().tell(event)
        self.kept.stepped(before, event, self.state, actions)
        return actions

    @property
    def steps(self) -> list[Step]:
        assert self.kept is not None
        return self.kept.steps

    @property
    def figures(self) -> Figures:
        assert self.kept is not None
        return self.kept.figures

    def told(self, only: str | None = None) -> list[str]:
        """Return the description of the last step."""
        return [line.text for line in tell(self.steps[-1], only)]

    def whole(self, only: str | None = None) -> list[str]:
        """Return the descriptions of all steps."""
        return [line.text for taken in self.steps for line in tell(taken, only)]


def write_log(steps: Sequence[Step], path: Path, run_id: str | None = None) -> Path:
    """Write the log of these steps as a driver would, and return its path."""
    digest, lines = GENESIS, list[str]()
    for n, (event, actions, _, _) in enumerate(steps):
        if n == 0 and run_id is not None:
            event = event.model_copy(update={"run_id": run_id})
        line, digest = encode(n, event, actions, digest)
        lines.append(line)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return path
