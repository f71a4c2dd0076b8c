"""What a run adds up to: branches and how long they took, turns of work, verdicts, halts, and its tally."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from planner.model.actions import Halt, Implement, PublishPlan
from planner.model.edits import AddBranch
from planner.model.events import PlanSubmitted, Verified
from planner.model.ids import qualified
from planner.model.life import TodoLife
from planner.rules.reviewing import Reviewing, Tally
from planner.rules.run_view import said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.rules.run_view import RunView

    Step: TypeAlias = tuple[Event, Sequence[Action], RunView | None, RunView]
    """An event, what it called for, and the run before and after it."""

NO_CATEGORY = "none"
"""Of a verification that no failure decides."""


@dataclass(slots=True)
class RunCounts:
    """What one run, or several runs of one plan, add up to."""

    branches: int = 0
    turns: Counter[str] = field(default_factory=Counter[str])
    """By role."""
    retries: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By verdict and category."""
    halts: Counter[str] = field(default_factory=Counter[str])
    """By the rule that halted."""
    repairs: list[tuple[bool, float]] = field(default_factory=list[tuple[bool, float]])
    """Whether a branch passed, and how many seconds it took."""
    tally: Tally = field(default_factory=Tally)

    def add(self, other: RunCounts) -> None:
        """Count the other, too."""
        self.branches += other.branches
        self.turns += other.turns
        self.retries += other.retries
        self.verdicts += other.verdicts
        self.halts += other.halts
        self.repairs += other.repairs
        self.tally += other.tally


def counted(steps: Iterable[Step]) -> tuple[PlanSubmitted, RunView, RunCounts]:
    """How a run began, the state that it has come to, and what it adds up to."""
    counts, reviewing, opened = RunCounts(), Reviewing(), dict[str, float]()
    submitted, state = None, None
    for event, actions, before, state in steps:
        reviewing.see(event, actions, before, state)
        if isinstance(event, PlanSubmitted):
            submitted = event
        elif isinstance(event, Verified):
            verdict, failure = said(event.outcome)
            category = NO_CATEGORY if failure is None else failure.category.value
            counts.verdicts[verdict.value, category] += 1
        for action in actions:
            if isinstance(action, Implement):
                counts.turns[action.role.value] += _is_new(action, before, state)
            elif isinstance(action, PublishPlan):
                for branch in _made(action):
                    counts.branches += 1
                    opened[branch] = state.now
            elif isinstance(action, Halt):
                counts.halts[action.rule] += 1
        _settle(opened, state, counts)
    assert submitted is not None  # steps raises where there is no such event
    assert state is not None
    counts.retries = sum(record.retries for record in state.records.values())
    counts.tally = reviewing.tally(state)
    return submitted, state, counts


def _is_new(action: Implement, before: RunView | None, after: RunView) -> bool:
    """Whether a turn of work begins, and is not asked for again because the driver began anew."""
    earlier = None if before is None else before.records.get(action.todo_id)
    return earlier is None or after.records[action.todo_id].turns > earlier.turns


def _made(action: PublishPlan) -> Iterator[str]:
    """The branches that a new version of the plan has, and the one before it had not."""
    for edit in action.edits:
        if isinstance(edit, AddBranch):
            yield qualified(action.within, edit.todo.id)


def _settle(opened: dict[str, float], state: RunView, counts: RunCounts) -> None:
    """Take the time of the branches that have come to their ends."""
    for name in list(opened):
        record = state.records.get(name)
        if record is not None and record.life.is_final:
            counts.repairs.append((record.life is TodoLife.DONE, state.now - opened.pop(name)))
