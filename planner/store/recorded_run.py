"""Folds recorded logs step by step, and compares what is decided now with what was decided then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from planner.errors import LogError, RefusedEvent
from planner.planfile.loader import collector_paused, shown_path
from planner.store.lines import action_text, calls_for, logged_actions
from planner.store.run_log import RunLog, Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.store.chain import LogEntry


class RecordedRun(NamedTuple):
    """One run that can be gone through once. ``remarks`` is complete when that is over."""

    name: str
    """How messages call it."""
    steps: Iterator[Step]
    """Raises :class:`planner.errors.LogError` where the log cannot be read or folded any further."""
    remarks: list[str]


def run_of_log(path: Path) -> RecordedRun:
    """Return the run whose log that file is. What is wrong with it is raised when it is gone through."""
    name, remarks = shown_path(path), list[str]()
    return RecordedRun(name, _steps(path, name, remarks), remarks)


def _steps(path: Path, name: str, remarks: list[str]) -> Iterator[Step]:
    state: State | None = None
    with RunLog.read(path) as log:
        for entry in log.entries():
            try:
                step = Step.take(state, entry.event)
            except RefusedEvent as error:
                raise LogError(
                    f"{name}: line {entry.n} holds an event that this version refuses: {error.problem}; "
                    "read it with the version that wrote the log"
                ) from None
            if not remarks and not calls_for(entry.text, step.actions):
                remarks.append(
                    f"{name}: line {entry.n} holds other actions than this version decides; what is told "
                    "from there on is what it decides, and planner replay shows the difference"
                )
            state = step.after
            yield step
        remarks += log.remarks
    if state is None:
        raise LogError(f"{name}: there is nothing in it; name the log of a run")


class ReplayDifference(NamedTuple):
    """The first place where a log and the engine do not agree."""

    n: int
    event: Event
    logged: str | None
    """The action as the log has it, as JSON; ``None``: there was none."""
    now: str | None
    """The action that is made now."""
    refusal: str | None = None
    """Why the event is refused now, where it is."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys in which the two actions differ."""
        if self.logged is None or self.now is None:
            return ()
        one, other = (cast("dict[str, Any]", json.loads(text)) for text in (self.logged, self.now))
        return tuple(key for key in {**one, **other} if one.get(key) != other.get(key))


@dataclass(slots=True)
class Replay:
    """A log that was folded again, as far as was wanted."""

    events: int = 0
    actions: int = 0
    state: State | None = None
    last: LogEntry | None = None
    last_actions: tuple[Action, ...] = ()
    difference: ReplayDifference | None = None
    """The first; nothing was compared after it."""
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path, *, until: int | None = None) -> Self:
        """Fold a log to its end, or to its first difference; with ``until``, to that line whatever differs.

        Nothing is kept of a line when the next is read. Raises :class:`planner.errors.LogError` where the
        log is damaged before that.
        """
        replay = cls()
        with RunLog.read(path) as log, collector_paused():
            for entry in log.entries():
                try:
                    taken = Step.take(replay.state, entry.event)
                except RefusedEvent as error:
                    replay._compare(entry, (), str(error))
                    break
                replay._compare(entry, taken.actions, None)
                replay.events += 1
                replay.actions += len(taken.actions)
                replay.state, replay.last, replay.last_actions = taken.after, entry, taken.actions
                if entry.n == until or (replay.difference is not None and until is None):
                    break
            replay.remarks = tuple(log.remarks)
        return replay

    def _compare(self, entry: LogEntry, actions: tuple[Action, ...], refusal: str | None) -> None:
        if self.difference is None and (refusal is not None or not calls_for(entry.text, actions)):
            pairs = zip_longest(logged_actions(entry.text), map(action_text, actions))
            logged, now = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
            self.difference = ReplayDifference(
                n=entry.n, event=entry.event, logged=logged, now=now, refusal=refusal
            )
