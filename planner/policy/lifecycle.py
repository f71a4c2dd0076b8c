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
    (_T.PENDING, _T.ACTIVE): "its turn of work is asked for",
    (_T.PENDING, _T.TESTING): "it is said to be done already, and is verified",
    (_T.PENDING, _T.BLOCKED): "something that it depends on has failed",
    (_T.PENDING, _T.SKIPPED): "something that it depends on has failed for good",
    (_T.PENDING, _T.FAILED): "its turn of work is refused, or it can have none",
    (_T.BLOCKED, _T.PENDING): "what it depends on is repaired",
    (_T.BLOCKED, _T.SKIPPED): "something that it depends on has failed for good",
    (_T.ACTIVE, _T.ACTIVE): "the turn of work failed, and there is another",
    (_T.ACTIVE, _T.TESTING): "the turn of work is over",
    (_T.ACTIVE, _T.DONE): "its work is over and needs no test, or its sub-plan is done",
    (_T.ACTIVE, _T.FAILED): "the turn of work failed, and nothing is left to try",
    (_T.TESTING, _T.TESTING): "it could not be told, and is verified again",
    (_T.TESTING, _T.DONE): "its criteria hold",
    (_T.TESTING, _T.TEST_FAILED): "its criteria do not hold",
    (_T.TESTING, _T.FAILED): "its time is up, or a person gives it up",
    (_T.TEST_FAILED, _T.ACTIVE): "it is repaired by whoever made it, or its branch is worked on",
    (_T.TEST_FAILED, _T.TESTING): "a branch has repaired it, and it is verified again",
    (_T.TEST_FAILED, _T.FAILED): "repairs are used up, or a person gives it up",
    (_T.FAILED, _T.HALTED): "it has brought everything to a stop",
    (_T.ACTIVE, _T.HALTED): "everything was stopped while it was worked on",
    (_T.TESTING, _T.HALTED): "everything was stopped while it was verified",
}
"""Every legal transition of a todo with its cause, in the order of its life."""

_P = PlanState
PLAN_MOVES: Mapping[tuple[PlanState, PlanState], str] = {
    (_P.CREATED, _P.VALIDATING): "the plan is submitted",
    (_P.VALIDATING, _P.REJECTED): "it is not fit to be carried out",
    (_P.VALIDATING, _P.READY): "it is fit to be carried out",
    (_P.READY, _P.EXECUTING): "the run is started",
    (_P.EXECUTING, _P.EXECUTING): "a todo is done, and others are worked on",
    (_P.EXECUTING, _P.REVISING): "a todo has failed, and the plan has to be revised",
    (_P.EXECUTING, _P.AWAITING_REVIEW): "nothing goes on until a person has answered",
    (_P.EXECUTING, _P.COMPLETED): "all todos are done",
    (_P.EXECUTING, _P.HALTED): "a halt condition is met",
    (_P.REVISING, _P.EXECUTING): "the plan is revised",
    (_P.REVISING, _P.AWAITING_REVIEW): "the revision waits for a person, and nothing else goes on",
    (_P.REVISING, _P.HALTED): "a halt condition is met, or the plan cannot be revised",
    (_P.AWAITING_REVIEW, _P.EXECUTING): "a person has answered",
    (_P.AWAITING_REVIEW, _P.REVISING): "a person has answered, and another revision waits",
    (_P.AWAITING_REVIEW, _P.HALTED): "a halt condition is met, or nothing can go on",
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
