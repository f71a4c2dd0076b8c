"""The board: every todo of a plan and its sub-plans, what the run says of it, and what is in its way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.model.plan import TodoStatus
from planner.model.verdicts import TodoState, Verdict
from planner.rules.dependencies import dependency_order
from planner.rules.inheriting import inherited

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.outcome import Outcome, OutcomeDocument
    from planner.model.plan import Plan, Todo

MOST_BLOCKERS = 20
"""So many of the failed todos in the way of one todo are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One todo, what was found of it, and what it waits for."""

    id: str
    """Qualified by the parents: ``phase-2/buffer-impl``."""
    todo: Todo
    plan: Plan
    """The plan, or sub-plan, that holds it."""
    within: str
    """The qualified id of the parent whose sub-plan holds it; empty at the top."""
    outcome: Outcome | None
    waits_for: tuple[str, ...]
    """Qualified ids of its own dependencies and of those of its parents."""
    counts: bool
    """Whether the run's scope lets it decide."""

    @property
    def state(self) -> TodoState | None:
        """What the run says of it; ``None`` where the run says nothing."""
        return None if self.outcome is None else state_of(self.outcome)

    @property
    def is_branch(self) -> bool:
        """Whether it was made to repair another todo of its plan."""
        return self.todo.parent_id is not None

    @property
    def failed(self) -> bool:
        """Whether it was found red, and somebody has worked on it or is expected to have."""
        return self.state is TodoState.TEST_FAILED and self.counts and not self._is_unbegun_step

    @property
    def is_red_work(self) -> bool:
        """Whether it is red because nobody has begun it."""
        open_ = self.todo.status is TodoStatus.OPEN
        return open_ and self.state is TodoState.TEST_FAILED and not self.failed

    @property
    def _is_unbegun_step(self) -> bool:
        """A step that a revision added is red until somebody claims that it is done."""
        todo = self.todo
        return todo.is_temporary and todo.parent_id is None and todo.status is TodoStatus.OPEN

    def sibling(self, todo_id: str) -> str:
        """The qualified id of a todo of the same plan."""
        return qualified(self.within, todo_id)


@dataclass(slots=True)
class Board:
    """All entries by qualified id, in the order of the files; a sub-plan's after their parent."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    blocked: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By id, the failed todos in the way, the nearest first."""
    rank: dict[str, int] = field(default_factory=dict[str, int])
    """The order in which todos should be taken up: dependencies first, then by priority."""

    def branches_of(self, entry: Entry) -> list[Entry]:
        """The branches that were made for a todo, the first first."""
        return self._branches.get(entry.id, [])

    def blocks(self, todo_id: str) -> tuple[str, ...]:
        """The todos that this one stands in the way of."""
        return tuple(self._blocks.get(todo_id, ()))

    def primaries(self) -> Iterator[Entry]:
        """All entries but the branches; a branch of a todo that the plan lacks stands for itself."""
        return (entry for entry in self.entries.values() if not self._has_parent(entry))

    def _has_parent(self, entry: Entry) -> bool:
        parent = entry.todo.parent_id
        return parent is not None and entry.sibling(parent) in self.entries

    _branches: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    _blocks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def lay_out(plan: Plan, document: OutcomeDocument, subs: Mapping[str, Plan]) -> Board:
    """The board of a plan. ``subs`` holds the loaded sub-plans by the qualified id of their parent."""
    outcomes = {
        outcome.todo_id: outcome
        for outcome in document.outcomes
        if outcome.plan in (None, plan.todo_list_id)
    }
    board = Board()
    pending: deque[tuple[Plan, str, tuple[str, ...], bool]] = deque([(plan, "", (), False)])
    while pending:
        current, within, inherited, claimed_above = pending.popleft()
        claimed = {todo.id for todo in current.items if todo.status is TodoStatus.CLAIMED}
        for todo in current.items:
            name = qualified(within, todo.id)
            is_claimed = claimed_above or todo.id in claimed or todo.parent_id in claimed
            waits_for = (*(qualified(within, each) for each in todo.dependencies), *inherited)
            board.entries[name] = Entry(
                id=name,
                todo=todo,
                plan=current,
                within=within,
                outcome=outcomes.get(name),
                waits_for=waits_for,
                counts=document.run.scope != "claimed" or is_claimed,
            )
            if name in subs:
                pending.append((_under(current, subs[name]), name, waits_for, is_claimed))
    _relate(board)
    return board


def _under(above: Plan, sub: Plan) -> Plan:
    """A sub-plan with the policy that it has under the plan above it."""
    policy = inherited(sub.metadata, above.metadata)
    return sub if policy is sub.metadata else sub.model_copy(update={"metadata": policy})


def state_of(outcome: Outcome) -> TodoState:
    """What an outcome says, whoever wrote it. What contradicts itself is no pass and no failure."""
    state = outcome.state
    if state is None:
        state = TodoState.DONE if outcome.success else TodoState.TEST_FAILED
    return TodoState.TESTING if _contradicts_itself(outcome, state) else state


def _contradicts_itself(outcome: Outcome, state: TodoState) -> bool:
    """Whether it calls itself a success and a failure at once, or one that a check does not bear out."""
    if state is TodoState.TEST_FAILED:
        return outcome.success
    if state is not TodoState.DONE:
        return False
    # Without a state, success is all that is said; with one, a todo without commands is done, too.
    untested = outcome.state is None and not outcome.tests_passed
    unproved = any(check.counts_as is not Verdict.PASSED for check in outcome.checks)
    return not outcome.success or untested or unproved or outcome.failure_evidence is not None


def qualified(within: str, todo_id: str) -> str:
    """The id of a todo as the top plan names it."""
    return f"{within}/{todo_id}" if within else todo_id


def _relate(board: Board) -> None:
    for entry in board.entries.values():
        parent = entry.todo.parent_id
        if parent is not None:
            board._branches.setdefault(entry.sibling(parent), []).append(entry)
    in_the_way: dict[str, tuple[str, ...]] = {}
    for position, entry in enumerate(_in_order(board)):
        board.rank[entry.id] = position
        found: dict[str, None] = {}
        for dependency in entry.waits_for:
            before = board.entries.get(dependency)
            if before is None:
                continue
            if stands_in_the_way(before):
                found[dependency] = None
            for blocker in in_the_way.get(dependency, ()):
                found.setdefault(blocker)
        said = entry.outcome.blocked_by if entry.outcome is not None else ()
        by = tuple(found)[:MOST_BLOCKERS] or (said if entry.state is TodoState.BLOCKED else ())
        in_the_way[entry.id] = by
        if entry.state is TodoState.DONE:  # it holds, whatever was found of what it rests on
            continue
        if by or entry.state is TodoState.BLOCKED:
            board.blocked[entry.id] = by
        for blocker in by:
            board._blocks.setdefault(blocker, []).append(entry.id)


def stands_in_the_way(entry: Entry) -> bool:
    """Whether what depends on a todo has to wait for its repair: it failed, or a todo below it did."""
    if entry.failed:
        return True
    outcome = entry.outcome
    return (
        entry.todo.has_sub_plan
        and outcome is not None
        and not outcome.success
        and any(check.kind == "sub_plan" and check.counts_as.is_red for check in outcome.checks)
    )


def _in_order(board: Board) -> Iterator[Entry]:
    """Every entry after those that it depends on; those of a sub-plan after what their parent waits for."""
    by_plan: dict[str, list[Entry]] = {}
    for entry in board.entries.values():
        by_plan.setdefault(entry.within, []).append(entry)
    for entries in by_plan.values():
        by_id = {entry.todo.id: entry for entry in entries}
        try:
            order = dependency_order(entry.todo for entry in entries)
        except ValueError:  # a circle that only a hand-made plan can have: as the file has it
            order = tuple(by_id[todo_id].todo for todo_id in by_id)
        for todo in order:
            yield by_id[todo.id]
