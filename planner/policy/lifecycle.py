"""Life cycles: the legal transitions of todos and of plans, as two tables. All others are refused.

The diagrams of the documentation are generated from these tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import IllegalTransition
from planner.model.verdicts import PlanState, TodoLife

if TYPE_CHECKING:
    from collections.abc import Mapping


_T = TodoLife
TODO_MOVES: Mapping[tuple[TodoLife, TodoLife], str] = {
    (_T.PENDING, _T.ACTIVE): "its turn of work is requested",
    (_T.PENDING, _T.TESTING): "it is claimed to be done, and is verified",
    (_T.PENDING, _T.BLOCKED): "a dependency has failed",
    (_T.PENDING, _T.SKIPPED): "a dependency has failed for good, or nobody needs it any more",
    (_T.PENDING, _T.FAILED): "its turn of work is refused or impossible",
    (_T.BLOCKED, _T.PENDING): "its dependency is repaired",
    (_T.BLOCKED, _T.SKIPPED): "a dependency has failed for good, or nobody needs it any more",
    (_T.ACTIVE, _T.ACTIVE): "the turn of work failed, and another is left",
    (_T.ACTIVE, _T.TESTING): "the turn of work is finished",
    (_T.ACTIVE, _T.DONE): "its work is finished and needs no test, or its sub-plan is done",
    (_T.ACTIVE, _T.FAILED): "the turn of work failed, and no retry is left",
    (_T.TESTING, _T.TESTING): "the verdict was inconclusive, and it is verified again",
    (_T.TESTING, _T.DONE): "its criteria passed",
    (_T.TESTING, _T.TEST_FAILED): "its criteria failed",
    (_T.TESTING, _T.FAILED): "its lifetime has ended, or a person gives it up",
    (_T.TEST_FAILED, _T.ACTIVE): "the same role retries it, or its branch is worked on",
    (_T.TEST_FAILED, _T.TESTING): "a branch has repaired it, and it is verified again",
    (_T.TEST_FAILED, _T.FAILED): "repairs are used up, or a person gives it up",
    (_T.FAILED, _T.HALTED): "it halted the run",
    (_T.ACTIVE, _T.HALTED): "the run was halted while it was worked on",
    (_T.TESTING, _T.HALTED): "the run was halted while it was verified",
}
"""Every legal transition of a todo with its cause, in the order of its life."""

_P = PlanState
PLAN_MOVES: Mapping[tuple[PlanState, PlanState], str] = {
    (_P.CREATED, _P.VALIDATING): "the plan is submitted",
    (_P.VALIDATING, _P.REJECTED): "it failed validation",
    (_P.VALIDATING, _P.READY): "it passed validation",
    (_P.READY, _P.EXECUTING): "the run is started",
    (_P.EXECUTING, _P.EXECUTING): "a todo is done, and others are worked on",
    (_P.EXECUTING, _P.REVISING): "a todo has failed, and the plan must be revised",
    (_P.EXECUTING, _P.AWAITING_REVIEW): "nothing can continue until a person has answered",
    (_P.EXECUTING, _P.COMPLETED): "all todos are done",
    (_P.EXECUTING, _P.HALTED): "a halt condition is met",
    (_P.REVISING, _P.EXECUTING): "the plan is revised",
    (_P.REVISING, _P.AWAITING_REVIEW): "the revision waits for a person, and nothing else can continue",
    (_P.REVISING, _P.HALTED): "a halt condition is met, or the plan cannot be revised",
    (_P.AWAITING_REVIEW, _P.EXECUTING): "a person has answered",
    (_P.AWAITING_REVIEW, _P.REVISING): "a person has answered, and another revision waits",
    (_P.AWAITING_REVIEW, _P.HALTED): "a halt condition is met, or nothing can continue",
}
"""Every legal transition of a plan with its cause, in the order of its life."""


def check_move(whose: str, before: TodoLife | PlanState, after: TodoLife | PlanState, trigger: str) -> None:
    """Raise :class:`planner.errors.IllegalTransition` for a transition that is not in its table.

    ``whose`` names the todo or the plan in the message, ``trigger`` the event or rule that requires the
    transition.
    """
    moves = TODO_MOVES if isinstance(before, TodoLife) else PLAN_MOVES
    if (before, after) not in moves:
        legal = [each.value for each in type(before) if (before, each) in moves]
        raise IllegalTransition(whose, before, after, trigger, legal)
