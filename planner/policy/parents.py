"""What a parent has from the todos of its sub-plan: its check ``sub_plan``, and its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import TodoState, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.outcome import Outcome

CHECK_ID = "sub_plan"
MOST_NAMED = 5
"""So many todos are named in a reason, the rest counted."""

_OF_STATE = {
    TodoState.DONE: Verdict.PASSED,
    TodoState.TEST_FAILED: Verdict.FAILED,
    TodoState.BLOCKED: Verdict.BLOCKED,
    TodoState.PENDING: Verdict.NOT_RUN,
}
_SEVERITY = (
    Verdict.FAILED,
    Verdict.INCONCLUSIVE,
    Verdict.STALE,
    Verdict.NEEDS_HUMAN,
    Verdict.BLOCKED,
    Verdict.NOT_RUN,
    Verdict.PASSED,
)
"""The first that a todo of the sub-plan has is the verdict of all of them."""

_REASONS = {
    Verdict.FAILED: "failed",
    Verdict.INCONCLUSIVE: "could not be decided",
    Verdict.STALE: "must be answered anew",
    Verdict.NEEDS_HUMAN: "must be answered by a person",
    Verdict.BLOCKED: "blocked",
    Verdict.NOT_RUN: "not done yet",
}


def verdict_of(outcome: Outcome) -> Verdict:
    """What a todo of a sub-plan says to its parent. A parent whose own todos failed has failed."""
    state = outcome.state or (TodoState.DONE if outcome.success else TodoState.TEST_FAILED)
    if state in _OF_STATE:
        return _OF_STATE[state]
    found = {Verdict.FAILED if check.counts_as.is_red else check.counts_as for check in outcome.checks}
    return next((each for each in _SEVERITY[:-1] if each in found), Verdict.NOT_RUN)


def sub_plan_verdict(children: Iterable[Verdict]) -> Verdict:
    """The verdict of the check ``sub_plan``: passed when all are, else the most serious.

    Where one failed, what is blocked by it is its failure too; blocked is only what is so altogether.
    """
    found = set(children)
    return next((each for each in _SEVERITY if each in found), Verdict.NOT_RUN)


def sub_plan_reason(children: Sequence[Outcome], verdict: Verdict) -> str | None:
    """Which todos give the check its verdict: ``phase-2/buffer-impl failed``."""
    if verdict is Verdict.PASSED:
        return None
    names = [child.todo_id for child in children if verdict_of(child) is verdict]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more} {_REASONS[verdict]}"


def parent_verdicts(own: Iterable[Verdict], children: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts from which a parent's state follows.

    Its own criteria count as any todo's do. The failure of a todo of its sub-plan is that todo's: the
    parent is not ``test_failed`` by it, it is not through.
    """
    return [*own, *(Verdict.INCONCLUSIVE if verdict.is_red else verdict for verdict in children)]
