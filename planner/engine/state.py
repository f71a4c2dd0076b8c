"""State of a run, a value that each event replaces by a new one.

Only events are stored, never the state: it is rebuilt by applying them again. Functions at the end derive
the current plans from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.model.base import qualified
from planner.model.events import RunPolicy
from planner.model.plan import TodoStatus
from planner.model.verdicts import PlanState, TodoLife
from planner.policy.limits import Spent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.memory import Memory
    from planner.model.actions import AskHuman, Finish, Halt
    from planner.model.outcome import Failure, FailureContext, Outcome
    from planner.model.plan import Plan, Policy, Todo


class PendingStep(NamedTuple):
    """The queued next step of a todo, with the rule that queued it."""

    kind: str
    """``start``, ``implement``, ``verify``, ``branch``, ``children`` (evaluate a parent) or ``load``."""
    rule: str
    because: str
    proposal: AskHuman | None = None
    """For ``branch``, the proposal that a person approved."""
    behind: str = ""
    """Id of the live todo that may write the same files; the step is not considered before that rests."""


class TodoRecord(NamedTuple):
    """One todo and its progress in the run."""

    id: str
    """Qualified id: ``parent/todo`` in a sub-plan."""
    todo: Todo
    """Its definition in the current version of the plan."""
    within: str
    """Qualified id of the parent whose sub-plan holds it; empty in the top plan."""
    rank: tuple[int, ...]
    """Sort key of plan order: todos of a sub-plan follow their parent, branches the todo they repair."""
    life: TodoLife = TodoLife.PENDING
    """Blocked todos are stored as ``pending``; :meth:`State.todos` derives ``blocked``."""
    next_step: PendingStep | None = None
    turns: int = 0
    """Number of turns of work requested so far."""
    retries: int = 0
    """Number of those that were retries by the same role."""
    waited: int = 0
    """Consecutive re-verifications after inconclusive outcomes."""
    deadline: float | None = None
    """End of the current turn of work, epoch seconds."""
    asked: int = 0
    """``seq`` of the outstanding action, 0 if there is none."""
    asked_by: tuple[str, str] = ("", "")
    """Rule and reason of that action, or of the failed turn that ended a branch."""
    outcome: Outcome | None = None
    """The latest failing outcome."""
    context: FailureContext | None = None
    failure: Failure | None = None
    """The failure of that outcome that decided the repair."""
    signature: str | None = None
    """Signature of that failure, or ``passed``; ``None`` before the first decided verification."""
    diff_hash: str | None = None
    """Digest of the product's diff in that verification."""
    same: int = 0
    """Consecutive verifications with the same failure in an unchanged product."""
    flaky: int = 0
    """Consecutive flaky verifications: different results for the same code."""
    set_apart: int = 0
    """How often its pre-existing failures were moved to todos of their own."""
    question: str | None = None
    """Id of the open question about it."""
    allowed_start: bool = False
    """A person approved its start."""
    by_person: bool = False
    """A person granted the current turn of work; if it fails, a person is asked again instead of
    retrying.
    """
    must_say_which: bool = False
    """A verification was cancelled, so the next outcome must name the action that it answers."""
    cost_reported: bool = False
    """The cost of the current turn of work was reported."""
    verified: bool = False
    """Done by a passing verification that has proof, not by a claim only."""
    files: tuple[str, ...] = ()
    """Globs of the files that it may write, relative to the root of the top plan."""
    children: tuple[str, ...] = ()
    is_parent: bool = False
    """The todos of its sub-plan decide its state; once they are final it is treated as an ordinary todo."""
    run_id: str | None = None
    """Id of the run of its latest verification."""
    cause: frozenset[str] = frozenset()
    """Signatures of all failures that share the root cause of its failure, its own included."""
    behind: str | None = None
    """Id of the todo under repair that fails by the same root cause; this todo waits for that repair."""
    exhausted: bool = False
    """It was counted in :attr:`State.consecutive` already."""
    branches: tuple[str, ...] = ()
    """Ids of all branches created for it, oldest first."""
    parent_id: str | None = None
    """For a branch, the id of the todo that it repairs."""
    depth: int = 0
    granted: tuple[str, ...] | None = None
    """For a branch, the files that it may change whatever the cause; that of its failure narrows them."""
    attempts: int = 0
    """For a branch, the number of failed attempts."""
    opened: float | None = None
    """For a branch that the run has made, its creation time, epoch seconds."""
    expires: float | None = None
    """For a branch, the end of its lifetime; ``None`` until the first work on it."""
    instructions: str | None = None
    """A person's message to whoever works on it next."""

    @property
    def is_branch(self) -> bool:
        """Return whether this is a repair todo."""
        return self.parent_id is not None


class PlanPart(NamedTuple):
    """One loaded plan file of a run and its current version."""

    plan: Plan
    """The plan as loaded. Current todos are in :attr:`State.records`."""
    version: int
    digest: str
    base: str
    """Its root, relative to the root of the top plan."""


@dataclass(slots=True, kw_only=True)
class State:
    """All that the engine knows after some events.

    Immutable by convention: only a transaction changes its own copy.
    """

    plan_id: str
    path: str
    plan_state: PlanState = PlanState.CREATED
    policy: RunPolicy = field(default_factory=RunPolicy)
    memory: Memory | None = None
    events: int = 0
    """Number of events applied, including ``plan_submitted``."""
    seq: int = 0
    """``seq`` of the last action."""
    now: float = 0.0
    """Time of the latest event, epoch seconds; never decreases."""
    started: float | None = None
    parts: dict[str, PlanPart] = field(default_factory=dict[str, PlanPart])
    """By qualified id of the parent; the top plan under ``""``."""
    records: dict[str, TodoRecord] = field(default_factory=dict[str, TodoRecord])
    """All todos by qualified id. Use :attr:`todos` to see which are blocked."""
    reds: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of failing todos that may still be repaired (an ordered set)."""
    dependents: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Reverse dependencies: for each todo id, the ids of the todos that depend on it."""
    questions: dict[str, AskHuman] = field(default_factory=dict[str, "AskHuman"])
    live: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of todos that are being worked on or verified, parents included, in order of start. No other todo
    that may write one of their files starts meanwhile.
    """
    timed: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of todos whose turn of work, or life as a branch, has been limited; until they are final."""
    queue: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """Sorted keys ``(kind, priority, bias, rank, id)`` of todos with a pending step. Keys of steps that
    were replaced stay until they are found.
    """
    open_branches: int = 0
    failed_branches: int = 0
    consecutive: int = 0
    """Number of todos whose repairs were exhausted since a todo was last done."""
    approved: frozenset[str] = frozenset()
    """Failure classes for which a person approved all branches."""
    spent: Spent = field(default_factory=Spent)
    overspent: bool = False
    """A person allowed the run to continue beyond its budget."""
    asked_questions: int = 0
    """Number of numbered questions asked so far."""
    stopped: Halt | Finish | None = None

    @property
    def todos(self) -> dict[str, TodoRecord]:
        """Every todo by its qualified id, with ``blocked`` derived."""
        blocked = {name: self.records[name]._replace(life=TodoLife.BLOCKED) for name in self.blocked()}
        return {**self.records, **blocked}

    def blocked(self) -> dict[str, str]:
        """Return the ids of blocked todos in order of rank, each with the failing todo that blocks it.

        If several do, it is the first in order of id.
        """
        found: dict[str, str] = {}
        # Sorted, so that of several failing todos always the same one is named.
        for red in sorted(self.reds):
            pending = [red]
            while pending:
                record = self.records[pending.pop()]
                for name in self.dependents.get(record.id, ()):
                    if name not in found and self.records[name].life is TodoLife.PENDING:
                        found[name] = red
                        pending.append(name)
                # A failing todo of a sub-plan also blocks what depends on its parent.
                if record.within and record.within not in found and not record.is_branch:
                    pending.append(record.within)
        return dict(sorted(found.items(), key=lambda each: self.records[each[0]].rank))

    def dependencies(self, record: TodoRecord) -> Iterator[TodoRecord]:
        """Yield the dependencies of a todo, for a primary todo without branches."""
        for each in record.todo.dependencies:
            before = self.records[qualified(record.within, each)]
            # A primary todo that waited for a branch would wait for a repair that may never be needed.
            if record.is_branch or not before.is_branch:
                yield before

    def ids_before(self, todo_id: str) -> Iterator[str]:
        """Yield the ids of the dependencies of a todo."""
        return (each.id for each in self.dependencies(self.records[todo_id]))

    def waits(self, record: TodoRecord) -> bool:
        """Return whether a dependency of the todo is not final yet."""
        return any(not each.life.is_final for each in self.dependencies(record))

    def last_branch(self, record: TodoRecord) -> TodoRecord | None:
        """Return the newest branch of a todo, if any."""
        return self.records[record.branches[-1]] if record.branches else None


def is_claimed(state: State, record: TodoRecord) -> bool:
    """Return whether a todo, the todo that it repairs, or one of its parents has the status ``claimed``."""
    if record.todo.status is TodoStatus.CLAIMED:
        return True
    # A branch is claimed with the todo that it repairs, which is verified by the same criteria.
    above = record.parent_id or record.within
    return bool(above) and is_claimed(state, state.records[above])


def current_plan(state: State, within: str = "") -> Plan:
    """Return a plan with all applied edits, without temporary todos that are no longer needed.

    ``within`` is the qualified id of the parent of a sub-plan, empty for the top plan. Todos are in order
    of rank: branches follow the todo that they repair, inserted steps precede the todo that needs them.
    """

    def is_useless(record: TodoRecord) -> bool:
        # A branch serves the todo that it repairs, an inserted step the todos that wait for it.
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
    """Return the plans that the run has edited, by the qualified ids of their parents.

    ``own`` maps the same ids to the policies of sub-plans as their files state them: values that a
    sub-plan inherits from the plan above must not be written into its file.
    """
    plans = {
        within: current_plan(state, within) for within, part in state.parts.items() if part.version > 1
    }
    for within, policy in own.items():
        if within in plans:
            plans[within] = plans[within].model_copy(update={"metadata": policy})
    return plans


def is_plan_of(state: State, plan: Plan, within: str = "") -> bool:
    """Return whether a plan file is what the run began with or a version that the run itself produced.

    Each todo may be in its original or its current version; temporary todos may be absent. A plan that the
    run has not loaded yet counts as equal.
    """
    part = state.parts.get(within)
    if part is None:
        return True  # not loaded yet, so nothing to compare
    before = {todo.id: todo for todo in part.plan.items}
    # The file may lag behind the run: each todo may be in its first or in its current version.
    now = {each.todo.id: each.todo for each in state.records.values() if each.within == within}
    for todo in plan.items:
        if todo.id not in now:
            return False
        if not todo.is_temporary and todo not in (before.get(todo.id), now[todo.id]):
            return False
    seen = {todo.id for todo in plan.items}
    if any(name not in seen and not todo.is_temporary for name, todo in before.items()):
        return False
    # A sub-plan's stored policy includes inherited values, so it is not comparable with its file.
    return within != "" or plan.metadata == part.plan.metadata
