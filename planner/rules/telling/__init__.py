"""The story of a run in plain sentences: each is made from one event, its actions and the states around it.

One table tells of each event (:mod:`.of_events`), one of each action (:mod:`.of_actions`), one of what has
come of them (:mod:`.of_moves`); :mod:`.standing` tells where it has come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.telling.of_actions import tell_action
from planner.rules.telling.of_events import tell_event
from planner.rules.telling.of_moves import tell_moves
from planner.rules.telling.sentences import EVERYBODY, Sentence
from planner.rules.telling.standing import run_stands, todo_stands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.rules.run_view import RunView

__all__ = ["EVERYBODY", "Sentence", "run_stands", "tell", "todo_stands"]


def tell(
    event: Event,
    actions: Sequence[Action],
    before: RunView | None,
    after: RunView,
    only: str | None = None,
) -> tuple[Sentence, ...]:
    """What happened, what came of it, and what was asked for then. The same facts give the same sentences.

    ``before`` is absent for the first event. With ``only``, the qualified id of a todo, what concerns
    neither it nor its branches is left out; what concerns everybody stays.
    """
    told = [found] if (found := tell_event(event, before, after)) is not None else []
    if before is not None:
        told += tell_moves(event, actions, before, after, only)
    told += (tell_action(action, before, after) for action in actions)
    if only is None:
        return tuple(told)
    family = _family(only, before, after)
    return tuple(each for each in told if not family.isdisjoint(each.about))


def _family(todo_id: str, before: RunView | None, after: RunView) -> frozenset[str]:
    """The todo, its branches, and everybody."""
    held = [
        run.records[todo_id].branches
        for run in (before, after)
        if run is not None and todo_id in run.records
    ]
    return frozenset((todo_id, *EVERYBODY)).union(*held)
