"""One repair for one cause: todos that fail by the same cause wait for the branch that mends it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.decision import Move
from planner.text.glob_patterns import allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.outcome import Cause
    from planner.rules.triage import Ruling

RULE = "shared-cause"
_REPAIRING = (Move.BRANCH, Move.RETRY)
_UNDER_WAY = "branch-under-way"


def behind_shared_causes(rulings: Sequence[Ruling], causes: Iterable[Cause]) -> list[Ruling]:
    """The rulings, with a wait for each first branch whose whole reason another repair is to mend.

    The todo that leads is the first that is repaired already, else the first that may change the file
    where the cause is, else the first. One that fails by more than the cause gets its branch, and its
    reason says what it shares.
    """
    found = list(rulings)
    for cause in causes:
        shared = [place for place, each in enumerate(found) if _fails_by(each, cause)]
        if len(shared) < 2:
            continue
        leading = _leading([(place, found[place]) for place in shared], cause)
        for place in shared:
            if place != leading:
                found[place] = _behind(found[place], found[leading].entry.id, cause)
    return found


def _behind(ruling: Ruling, leader: str, cause: Cause) -> Ruling:
    if ruling.move is not Move.BRANCH or ruling.branch is not None:
        return ruling
    outcome = ruling.entry.outcome
    signatures = {each.signature for each in outcome.failures} if outcome is not None else set[str | None]()
    if signatures <= set(cause.signatures):
        because = f"it fails by the same cause as '{leader}', whose repair goes first"
        return replace(ruling, move=Move.WAIT, rule=RULE, because=because)
    because = f"{ruling.because}; what decides has the same cause as the failure of '{leader}'"
    return replace(ruling, because=because)


def _fails_by(ruling: Ruling, cause: Cause) -> bool:
    """Whether the failure of a todo that is repaired, the one that decides, is by this cause."""
    outcome, failure = ruling.entry.outcome, ruling.failure
    if outcome is None or failure is None or failure.signature not in cause.signatures:
        return False
    if not (ruling.move in _REPAIRING or ruling.rule == _UNDER_WAY):
        return False
    return any(
        todo.todo_id == ruling.entry.id and todo.plan in (None, outcome.plan) for todo in cause.todos
    )


def _leading(shared: Sequence[tuple[int, Ruling]], cause: Cause) -> int:
    def reluctance(place: int, ruling: Ruling) -> tuple[bool, bool, int]:
        return ruling.branch is None, not _may_mend(ruling, cause), place

    return min(reluctance(place, ruling) for place, ruling in shared)[-1]


def _may_mend(ruling: Ruling, cause: Cause) -> bool:
    files = ruling.entry.todo.allowed_files
    return files is None or cause.location is None or allowed(cause.location.path, files)
