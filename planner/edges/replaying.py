"""Folds a recorded log anew, and compares what is decided now with what the log says was decided then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Self, cast

from planner.edges.log_lines import action_text, actions_text, calls_for
from planner.edges.run_log import RunLog
from planner.engine import start, step
from planner.errors import RefusedEvent
from planner.model.events import PlanSubmitted
from planner.planfile.loader import collector_paused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planner.edges.run_log import Entry
    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
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
        """In which keys the two actions differ."""
        if self.logged is None or self.now is None:
            return ()
        one, other = _plainly(self.logged), _plainly(self.now)
        return tuple(key for key in {**one, **other} if one.get(key) != other.get(key))


@dataclass(slots=True)
class Replay:
    """A log that was folded anew, as far as was wanted."""

    events: int = 0
    actions: int = 0
    state: State | None = None
    last: Entry | None = None
    last_actions: tuple[Action, ...] = ()
    difference: Difference | None = None
    """The first; nothing was compared after it."""
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        path: Path,
        *,
        until: int | None = None,
        watch: Callable[[Event, tuple[Action, ...]], None] | None = None,
    ) -> Self:
        """Fold a log to its end, or to its first difference; with ``until``, to that line whatever differs.

        ``watch`` is told each event and what is decided now. Nothing is kept of a line when the next is
        read. Raises :class:`planner.errors.LogError` where the log is damaged before that.
        """
        replay = cls()
        log = RunLog.read(path)
        try:
            with collector_paused():
                for entry in log.news():
                    if not replay._take(entry, watch) or entry.n == until:
                        break
                    if replay.difference is not None and until is None:
                        break
        finally:
            log.close()
        replay.remarks = tuple(log.remarks)
        return replay

    def _take(self, entry: Entry, watch: Callable[[Event, tuple[Action, ...]], None] | None) -> bool:
        """Fold one line; whether the fold can go on."""
        try:
            if self.state is None:
                assert isinstance(entry.event, PlanSubmitted)  # the log refuses any other first line
                state, actions = start(entry.event)
            else:
                state, actions = step(self.state, entry.event)
        except RefusedEvent as error:
            self._differs(entry, (), str(error))
            return False
        if self.difference is None and not calls_for(entry.text, actions):
            self._differs(entry, actions, None)
        self.state = state
        self.events += 1
        self.actions += len(actions)
        self.last, self.last_actions = entry, actions
        if watch is not None:
            watch(entry.event, actions)
        return True

    def _differs(self, entry: Entry, actions: tuple[Action, ...], refusal: str | None) -> None:
        if self.difference is not None:
            return
        now = map(action_text, actions)
        pairs = zip_longest(_logged(entry.text), now)
        logged, made = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
        self.difference = Difference(n=entry.n, event=entry.event, logged=logged, now=made, refusal=refusal)


def _logged(text: str) -> list[str]:
    """Each action of a line as it is written."""
    written = actions_text(text)
    decoder, at, found = json.JSONDecoder(), 1, list[str]()
    while at < len(written) - 1:
        end = decoder.raw_decode(written, at)[1]
        found.append(written[at:end])
        at = end + 1
    return found


def _plainly(text: str) -> dict[str, Any]:
    held: Any = json.loads(text)
    return cast("dict[str, Any]", held) if isinstance(held, dict) else {}
