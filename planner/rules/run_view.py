"""What tellers and counters may know of a run: the state of the engine as they see it, and a step of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from planner.model.taxonomy import Category
from planner.model.verdicts import TodoState, Verdict
from planner.policy.outcomes import UNDECIDED, failures_of, is_unowned, state_of
from planner.rules.budget import left

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.actions import Finish, Halt, QuestionKind
    from planner.model.life import PlanState, TodoLife
    from planner.model.outcome import Failure, Outcome
    from planner.model.plan import Plan, Todo
    from planner.rules.budget import Spent


class TodoView(Protocol):
    """A todo of a run as it stands."""

    @property
    def rank(self) -> tuple[int, ...]: ...
    @property
    def life(self) -> TodoLife: ...
    @property
    def todo(self) -> Todo: ...
    @property
    def turns(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def attempts(self) -> int: ...
    @property
    def parent_id(self) -> str | None: ...
    @property
    def within(self) -> str: ...
    @property
    def verified(self) -> bool: ...
    @property
    def is_branch(self) -> bool: ...
    @property
    def children(self) -> tuple[str, ...]: ...
    @property
    def signature(self) -> str | None: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def question(self) -> str | None: ...
    @property
    def branches(self) -> tuple[str, ...]: ...


class PartView(Protocol):
    """One plan file of a run, as it was loaded."""

    @property
    def plan(self) -> Plan: ...


class QuestionView(Protocol):
    """A question that is open."""

    @property
    def kind(self) -> QuestionKind: ...
    @property
    def todo_id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def options(self) -> tuple[str, ...]: ...
    @property
    def asked(self) -> int: ...


class RunView(Protocol):
    """A run as it stands after an event."""

    @property
    def plan_state(self) -> PlanState: ...
    @property
    def records(self) -> Mapping[str, TodoView]:
        """Every todo by its qualified id; what is blocked is ``pending`` here."""
        ...

    @property
    def todos(self) -> Mapping[str, TodoView]:
        """The same, and what is blocked is ``blocked``: this takes time."""
        ...

    @property
    def reds(self) -> Mapping[str, None]:
        """The todos that have failed and can still be repaired."""
        ...

    def blocked(self) -> Mapping[str, str]:
        """The todos that wait for something red, each with one of those."""
        ...

    @property
    def dependents(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def parts(self) -> Mapping[str, PartView]: ...
    @property
    def questions(self) -> Mapping[str, QuestionView]: ...
    @property
    def spent(self) -> Spent: ...
    @property
    def held(self) -> Mapping[str, tuple[str, ...]]:
        """By the id of a todo that the driver is at, those that wait for its files."""
        ...

    @property
    def stopped(self) -> Halt | Finish | None: ...
    @property
    def started(self) -> float | None: ...
    @property
    def now(self) -> float: ...
    @property
    def unfinished(self) -> int:
        """So many todos, branches not counted, have not come to their end."""
        ...


def said(outcome: Outcome) -> tuple[Verdict, Failure | None]:
    """What a verification said of a todo, and the failure that decides.

    ``passed``, ``failed``, ``flaky``, ``needs_human`` or ``inconclusive``. Where only the environment or
    the verifier failed, or where the outcome contradicts itself, it is inconclusive.
    """
    state = state_of(outcome)
    if state is TodoState.DONE:
        return Verdict.PASSED, None
    failure = next(failures_of(outcome), None)
    if failure is not None and is_unowned(failure):
        return Verdict.INCONCLUSIVE, failure
    if state is TodoState.TEST_FAILED:
        flaky = failure is not None and failure.category is Category.FLAKY_TEST
        return (Verdict.FLAKY if flaky else Verdict.FAILED), failure
    verdicts = {check.counts_as for check in outcome.checks}
    if Verdict.NEEDS_HUMAN in verdicts and not verdicts & UNDECIDED:
        return Verdict.NEEDS_HUMAN, None
    return Verdict.INCONCLUSIVE, None


def primary(run: RunView, todo_id: str) -> str:
    """The todo that a branch repairs; of any other, itself."""
    record = run.records.get(todo_id)
    return todo_id if record is None or record.parent_id is None else record.parent_id


def budget_left(run: RunView) -> dict[str, tuple[float, float]]:
    """What is left of each budget that the plan sets, and how much it was, by its kind."""
    wall_seconds = 0.0 if run.started is None else run.now - run.started
    return left(run.parts[""].plan.metadata.budget, run.spent, wall_seconds)
