"""The legal transitions of todos and of plans, as two tables. Everything else is refused.

The diagrams of the documentation are drawn from these tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.errors import IllegalTransition
from planner.model.verdicts import PlanState, TodoLife

if TYPE_CHECKING:
    from collections.abc import Mapping


class TodoStep(NamedTuple):
    """One legal transition of a todo."""

    before: TodoLife
    after: TodoLife
    trigger: str
    """What brings it about, in words."""


class PlanStep(NamedTuple):
    """One legal transition of a plan."""

    before: PlanState
    after: PlanState
    trigger: str


_T = TodoLife
TODO_STEPS: tuple[TodoStep, ...] = (
    TodoStep(_T.PENDING, _T.ACTIVE, "its turn of work is asked for"),
    TodoStep(_T.PENDING, _T.TESTING, "it is said to be done already, and is verified"),
    TodoStep(_T.PENDING, _T.BLOCKED, "something that it depends on has failed"),
    TodoStep(_T.PENDING, _T.SKIPPED, "something that it depends on has failed for good"),
    TodoStep(_T.PENDING, _T.FAILED, "its turn of work is refused, or it can have none"),
    TodoStep(_T.BLOCKED, _T.PENDING, "what it depends on is repaired"),
    TodoStep(_T.BLOCKED, _T.SKIPPED, "something that it depends on has failed for good"),
    TodoStep(_T.ACTIVE, _T.ACTIVE, "the turn of work failed, and there is another"),
    TodoStep(_T.ACTIVE, _T.TESTING, "the turn of work is over"),
    TodoStep(_T.ACTIVE, _T.DONE, "its work is over and needs no test, or its sub-plan is done"),
    TodoStep(_T.ACTIVE, _T.FAILED, "the turn of work failed, and nothing is left to try"),
    TodoStep(_T.TESTING, _T.TESTING, "it could not be told, and is verified again"),
    TodoStep(_T.TESTING, _T.DONE, "its criteria hold"),
    TodoStep(_T.TESTING, _T.TEST_FAILED, "its criteria do not hold"),
    TodoStep(_T.TESTING, _T.FAILED, "its time is up, or a person gives it up"),
    TodoStep(_T.TEST_FAILED, _T.ACTIVE, "it is repaired by whoever made it, or its branch is worked on"),
    TodoStep(_T.TEST_FAILED, _T.TESTING, "a branch has repaired it, and it is verified again"),
    TodoStep(_T.TEST_FAILED, _T.FAILED, "repairs are used up, or a person gives it up"),
    TodoStep(_T.FAILED, _T.HALTED, "it has brought everything to a stop"),
    TodoStep(_T.ACTIVE, _T.HALTED, "everything was stopped while it was worked on"),
    TodoStep(_T.TESTING, _T.HALTED, "everything was stopped while it was verified"),
)
"""Every legal transition of a todo, in the order of its life."""

_P = PlanState
PLAN_STEPS: tuple[PlanStep, ...] = (
    PlanStep(_P.CREATED, _P.VALIDATING, "the plan is submitted"),
    PlanStep(_P.VALIDATING, _P.REJECTED, "it is not fit to be carried out"),
    PlanStep(_P.VALIDATING, _P.READY, "it is fit to be carried out"),
    PlanStep(_P.READY, _P.EXECUTING, "the run is started"),
    PlanStep(_P.EXECUTING, _P.EXECUTING, "a todo is done, and others are worked on"),
    PlanStep(_P.EXECUTING, _P.REVISING, "a todo has failed, and the plan has to be revised"),
    PlanStep(_P.EXECUTING, _P.AWAITING_REVIEW, "nothing goes on until a person has answered"),
    PlanStep(_P.EXECUTING, _P.COMPLETED, "all todos are done"),
    PlanStep(_P.EXECUTING, _P.HALTED, "a halt condition is met"),
    PlanStep(_P.REVISING, _P.EXECUTING, "the plan is revised"),
    PlanStep(_P.REVISING, _P.AWAITING_REVIEW, "the revision waits for a person, and nothing else goes on"),
    PlanStep(_P.REVISING, _P.HALTED, "a halt condition is met, or the plan cannot be revised"),
    PlanStep(_P.AWAITING_REVIEW, _P.EXECUTING, "a person has answered"),
    PlanStep(_P.AWAITING_REVIEW, _P.REVISING, "a person has answered, and another revision waits"),
    PlanStep(_P.AWAITING_REVIEW, _P.HALTED, "a halt condition is met, or nothing can go on"),
)
"""Every legal transition of a plan, in the order of its life."""

TODO_MOVES: Mapping[tuple[TodoLife, TodoLife], str] = {(b, a): trigger for b, a, trigger in TODO_STEPS}
PLAN_MOVES: Mapping[tuple[PlanState, PlanState], str] = {(b, a): trigger for b, a, trigger in PLAN_STEPS}


def check_move(whose: str, before: TodoLife | PlanState, after: TodoLife | PlanState, trigger: str) -> None:
    """Raise :class:`planner.errors.IllegalTransition` for a transition that is in no table.

    ``trigger`` is what the transition would be made for: the name of an event, or a rule.
    """
    moves = TODO_MOVES if isinstance(before, TodoLife) else PLAN_MOVES
    if (before, after) not in moves:
        ways = [each.value for each in type(before) if (before, each) in moves]
        raise IllegalTransition(whose, before, after, trigger, ways)
