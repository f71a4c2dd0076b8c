"""The state of a run: a value that every event replaces by another. It is never stored; the events are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.model.base import qualified
from planner.model.events import RunPolicy
from planner.model.plan import TodoStatus
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.limits import Spent, inherited

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.memory import Memory
    from planner.model.actions import AskHuman, Finish, Halt
    from planner.model.outcome import Failure, FailureContext, Outcome
    from planner.model.plan import Plan, Policy, Todo


class PendingStep(NamedTuple):
    """A step that a todo takes when its turn comes, and the rule that queued it."""

    kind: str
    """``start``, ``implement``, ``verify``, ``branch``, ``children`` or ``load``."""
    rule: str
    because: str
    proposal: AskHuman | None = None
    """The branch that a person has agreed to."""


class TodoRecord(NamedTuple):
    """One todo and how it stands."""

    id: str
    """Qualified by the parents."""
    todo: Todo
    """As it is now."""
    within: str
    """The parent whose sub-plan holds it, by its qualified id."""
    rank: tuple[int, ...]
    """Its place among all: of a todo of a sub-plan behind its parent's, of a branch behind its todo's."""
    life: TodoLife = TodoLife.PENDING
    """In the records of a state, what is blocked is ``pending``: see :meth:`State.todos`."""
    next_step: PendingStep | None = None
    turns: int = 0
    """The number of turns of work that were asked for."""
    retries: int = 0
    """The number of them that were retries by the same role."""
    waited: int = 0
    """How often in a row it was verified again because nothing could be told."""
    deadline: float | None = None
    """When the turn of work is over, epoch seconds."""
    asked: int = 0
    """The number of the action that is outstanding."""
    asked_by: tuple[str, str] = ("", "")
    """The rule that made it, and why."""
    outcome: Outcome | None = None
    """The last that was red."""
    context: FailureContext | None = None
    failure: Failure | None = None
    """The one that decided then."""
    signature: str | None = None
    """Of that failure, or ``passed``; nothing before the first verification."""
    diff_hash: str | None = None
    """Of the product at that time."""
    same: int = 0
    """How often in a row the same failure was found in the same product."""
    flaky: int = 0
    """How many verifications in a row had both answers for the same code."""
    set_apart: int = 0
    """How often failures that are older than the work were given todos of their own."""
    question: str | None = None
    """What a person is asked about it."""
    allowed_start: bool = False
    """A person has agreed that it is begun."""
    by_person: bool = False
    """A person has said that it is to be tried once more: then they are asked again."""
    judged_since: int = 1
    """The version of its plan since which it is judged by what judges it now."""
    must_say_which: bool = False
    """An earlier verification was cancelled: the result has to say which one it is of."""
    told: bool = False
    """Whoever worked has said what the turn has cost."""
    verified: bool = False
    """It is done, and by a verification that passed."""
    files: tuple[str, ...] = ()
    """The globs that it may write."""
    children: tuple[str, ...] = ()
    is_parent: bool = False
    """Its state comes from the todos of another plan; when they have ended it is a todo like any other."""
    run_id: str | None = None
    """The run that the last verification was of."""
    cause: frozenset[str] = frozenset()
    """The signatures of the cause of its failure."""
    behind: str | None = None
    """The todo whose repair mends the same cause: it waits for that."""
    exhausted: bool = False
    """Its repairs were used up once, and it was counted."""
    branches: tuple[str, ...] = ()
    """All that were made for it."""
    parent_id: str | None = None
    """The todo that it repairs, of a branch."""
    depth: int = 0
    attempts: int = 0
    """Of a branch, the number that have failed."""
    opened: float | None = None
    """When a branch was made."""
    expires: float | None = None
    """When the lifetime of a branch is over; nothing while nobody has begun to work on it."""
    instructions: str | None = None
    """What a person wants whoever works to know."""

    @property
    def is_branch(self) -> bool:
        """Return whether it was made to repair another todo."""
        return self.parent_id is not None


class PlanPart(NamedTuple):
    """One plan file of a run, as it was loaded, with its version."""

    plan: Plan
    """As it was loaded; only its policy is kept up to date. Its todos stand in the records."""
    version: int
    digest: str
    base: str
    """Where its root lies, seen from the root of the plan at the top."""
    versions: dict[str, int]
    """The number of each version by its digest."""
    repaired: frozenset[str] = frozenset()
    """The todos for which an earlier planning has made branches."""


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that the engine knows of a run after some events. Only a transaction changes its copy."""

    plan_id: str
    path: str
    plan_state: PlanState = PlanState.CREATED
    policy: RunPolicy = field(default_factory=RunPolicy)
    memory: Memory | None = None
    events: int = 0
    """The number that was taken in, the submission of the plan included."""
    seq: int = 0
    """The number of the last action."""
    now: float = 0.0
    """The time of the latest event, epoch seconds."""
    started: float | None = None
    parts: dict[str, PlanPart] = field(default_factory=dict[str, PlanPart])
    """By the qualified id of the parent; the top plan by the empty text."""
    records: dict[str, TodoRecord] = field(default_factory=dict[str, TodoRecord])
    """Every todo by its qualified id; that one is blocked is worked out when it is asked for."""
    reds: dict[str, None] = field(default_factory=dict[str, None])
    """The todos that have failed and can still be repaired."""
    dependents: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By id, the todos that wait for it."""
    questions: dict[str, AskHuman] = field(default_factory=dict[str, "AskHuman"])
    live: dict[str, None] = field(default_factory=dict[str, None])
    """The todos that the driver is at, parents too, in the order in which they began."""
    claims: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The texts with which the files of the live todos begin, each with its todo, sorted."""
    ready: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """A heap of keys ``(kind, priority, bias, rank, id)`` of todos that have a step."""
    unopened: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """Such a heap of todos that wait for a branch: apart, for it may hold hundreds that nothing moves."""
    held: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By the id of a live todo, those that wait for its files."""
    timers: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """A heap of times and todos; one that the todo no longer has is passed over."""
    open_branches: int = 0
    failed_branches: int = 0
    last_failed_branches: tuple[str, ...] = ()
    """At most ten of them, the last last."""
    consecutive: int = 0
    """How many todos in a row have used up their repairs."""
    approved: frozenset[str] = frozenset()
    """The classes of failures whose branches a person has agreed to."""
    spent: Spent = field(default_factory=Spent)
    overspent: bool = False
    """A person has agreed that it goes on though a budget is used up."""
    asked_questions: int = 0
    """How many questions were asked that have a number."""
    stopped: Halt | Finish | None = None

    @property
    def todos(self) -> dict[str, TodoRecord]:
        """Every todo by its qualified id, as it stands."""
        blocked = {name: self.records[name]._replace(life=TodoLife.BLOCKED) for name in self.blocked()}
        return {**self.records, **blocked}

    def blocked(self) -> dict[str, str]:
        """Return the todos that wait for something red, each with the red todo that was found first."""
        found: dict[str, str] = {}
        for red in sorted(self.reds):
            pending = [red]
            while pending:
                record = self.records[pending.pop()]
                for name in self.dependents.get(record.id, ()):
                    if name not in found and self.records[name].life is TodoLife.PENDING:
                        found[name] = red
                        pending.append(name)
                # What waits for a parent waits for its todos.
                if record.within and record.within not in found and not record.is_branch:
                    pending.append(record.within)
        return found

    def dependencies(self, record: TodoRecord) -> Iterator[TodoRecord]:
        """Yield what a todo depends on; only a branch waits for branches."""
        for each in record.todo.dependencies:
            before = self.records.get(qualified(record.within, each))
            if before is not None and (record.is_branch or not before.is_branch):
                yield before

    def waits(self, record: TodoRecord) -> bool:
        """Return whether something that a todo depends on has not come to its end."""
        return any(not each.life.is_final for each in self.dependencies(record))

    def last_branch(self, record: TodoRecord) -> TodoRecord | None:
        """Return the last branch that was made for a todo."""
        return self.records[record.branches[-1]] if record.branches else None


def is_claimed(state: State, record: TodoRecord) -> bool:
    """Return whether a todo, the one that it repairs, or a parent of it is said to be done."""
    if record.todo.status is TodoStatus.CLAIMED:
        return True
    above = record.parent_id or record.within
    return bool(above) and is_claimed(state, state.records[above])


def current_plan(state: State, within: str = "") -> Plan:
    """Return a plan of a run with every edit that was applied, without what was temporary and has ended.

    ``within`` is the qualified id of the parent whose sub-plan is meant. Branches stand behind their todo,
    steps in front of what waits for them.
    """

    def is_useless(record: TodoRecord) -> bool:
        if record.parent_id is not None:
            return state.records[record.parent_id].life.is_final
        waiting = (state.records[name] for name in state.dependents.get(record.id, ()))
        return record.life.is_final and all(each.life.is_final for each in waiting)

    records = (each for each in state.records.values() if each.within == within)
    items = tuple(
        each.todo
        for each in sorted(records, key=lambda record: record.rank)
        if not (each.todo.is_temporary and is_useless(each))
    )
    return state.parts[within].plan.model_copy(update={"items": items})


def revised_plans(state: State, own: Mapping[str, Policy]) -> dict[str, Plan]:
    """Return the plans of a run that were edited, by the qualified ids of their parents.

    ``own`` holds the policies of the sub-plans as their files have them: what a sub-plan has from the
    policy of the plan above it is not written into its file.
    """
    plans = {
        within: current_plan(state, within) for within, part in state.parts.items() if part.version > 1
    }
    for within, policy in own.items():
        if within in plans:
            above = state.parts[state.records[within].within].plan.metadata
            if inherited(policy, above) == plans[within].metadata:
                plans[within] = plans[within].model_copy(update={"metadata": policy})
    return plans


def is_plan_of(state: State, plan: Plan, within: str = "") -> bool:
    """Return whether a plan file is what a run has begun with, or what it has made of it.

    Temporary todos of the run may be in it or not.
    """
    part = state.parts.get(within)
    if part is None:
        return True  # it is not loaded yet
    before = {todo.id: todo for todo in part.plan.items}
    now = {each.todo.id: each.todo for each in state.records.values() if each.within == within}
    for todo in plan.items:
        if todo.id not in now:
            return False
        if not todo.is_temporary and todo not in (before.get(todo.id), now[todo.id]):
            return False
    seen = {todo.id for todo in plan.items}
    if any(name not in seen and not todo.is_temporary for name, todo in before.items()):
        return False
    # The policy of a sub-plan is kept as it is under that of the plan above it.
    return within != "" or plan.metadata == part.plan.metadata
