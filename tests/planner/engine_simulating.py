"""Drives the engine through a whole run, all facts of which come from a seeded source of chance.

The driver performs what it is asked for, sooner or later, and meanwhile makes every mistake that a driver
can make: it loses what it was asked for and begins anew, says things twice, late, or of the wrong todo,
lets the clock jump, and leaves work lying. In the end it is earnest: it answers everything, and the people
whom it asks give up rather than try again. So each run has to end within a bound that its limits allow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Protocol

from engine_inventing import (
    MAX_LEVELS,
    Mood,
    invent_mood,
    invent_outcome,
    invent_sub_plan,
    with_all_checks,
)
from engine_mistaking import mistake
from engine_remembering import invent_submission

from planner.engine import start, step
from planner.errors import RefusedEvent
from planner.model.actions import (
    AskHuman,
    Cancel,
    Finish,
    Halt,
    Implement,
    LoadSubPlan,
    QuestionKind,
    Verify,
)
from planner.model.events import (
    ApprovalGiven,
    BranchChanges,
    ClockTicked,
    Decision,
    QuestionAnswered,
    RunResumed,
    RunStarted,
    SubPlanLoaded,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.taxonomy import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.engine import State
    from planner.model.actions import Action
    from planner.model.events import Event, PlanSubmitted

_LAST_YEAR = 9000


class Watcher(Protocol):
    """Looks at every step, and raises ``AssertionError`` where one is not as it should be."""

    def began(self, event: PlanSubmitted, after: State, actions: Sequence[Action]) -> None: ...

    def stepped(self, before: State, event: Event, after: State, actions: Sequence[Action]) -> None: ...

    def refused(self, state: State, event: Event, refusal: RefusedEvent) -> None: ...

    def rested(self, simulation: Simulation) -> None:
        """The driver has taken in what it was asked for."""
        ...


@dataclass(slots=True)
class Simulation:
    """One run, and what its driver knows: nothing but the actions that it was told."""

    random: Random
    mood: Mood
    state: State
    watchers: Sequence[Watcher] = ()
    now: datetime = datetime.min
    earnest: bool = False
    patience: int = 0
    """So many turns the driver makes mistakes."""
    turns: int = 0
    refusals: int = 0
    mistakes: int = 0
    history: list[tuple[Event, tuple[Action, ...]]] = field(
        default_factory=list["tuple[Event, tuple[Action, ...]]"]
    )
    work: dict[str, Implement] = field(default_factory=dict[str, Implement])
    """Asked for and not yet answered; the same of what follows."""
    checks: dict[str, Verify] = field(default_factory=dict[str, Verify])
    """By todo."""
    loads: dict[str, LoadSubPlan] = field(default_factory=dict[str, LoadSubPlan])
    asked: dict[str, AskHuman] = field(default_factory=dict[str, AskHuman])
    cancelled: set[str] = field(default_factory=set[str])
    """Todos of which something was cancelled: of them, an answer has to say what it answers."""
    lying: set[str] = field(default_factory=set[str])
    """Todos whose work or verification is left lying for now."""

    @classmethod
    def begin(cls, seed: int, *watchers: Watcher) -> Simulation:
        """A run that is all its own, and always the same for the same seed."""
        return cls.of(Random(seed), *watchers)

    @classmethod
    def of(cls, random: Random, *watchers: Watcher) -> Simulation:
        """A run whose chances come from there."""
        submission = invent_submission(random)
        state, actions = start(submission)
        begun = cls(random, invent_mood(random), state, watchers, submission.at)
        begun.patience = random.choice((20, 60, 60 + 20 * len(submission.plan.items)))
        for watcher in watchers:
            watcher.began(submission, state, actions)
        begun.history.append((submission, actions))
        if not state.plan_state.is_final:
            begun.tell(RunStarted(at=begun.later()), due=True)
        return begun

    @property
    def is_over(self) -> bool:
        return self.state.plan_state.is_final

    def run(self) -> Simulation:
        """To the end."""
        while not self.is_over:
            self.turn()
            assert self.turns <= self.patience + bound(self.state), f"{self.turns} turns, and no end"
        return self

    def turn(self) -> None:
        """Tell the engine one thing."""
        self.turns += 1
        if self.turns > self.patience:
            self.earnest = True
            self.lying.clear()
        if not self.earnest and self.random.random() < self.mood.faults:
            self.mistakes += 1
            mistake(self)
        else:
            self.answer()

    def answer(self) -> None:
        """Do one of the things that were asked for, or let time pass where all of them are left lying."""
        due = [(self._work, name) for name in self.work if name not in self.lying]
        due += [(self._check, name) for name in self.checks if name not in self.lying]
        due += [(self._load, name) for name in self.loads]
        due += [(self._reply, name) for name in self.asked]
        if due:
            perform, name = self.random.choice(due)
            perform(name)
            return
        assert self.lying, f"nothing is asked for, and the plan is {self.state.plan_state}"
        self.tell(ClockTicked(at=self.later(self.random.choice((1, 60, 700, 100_000)))), due=True)

    def tell(self, event: Event, *, due: bool = False) -> bool:
        """Tell it, and take in what it calls for. What is ``due`` must not be refused."""
        before = self.state
        try:
            self.state, actions = step(before, event)
        except RefusedEvent as refusal:
            if due and self._was_too_late(event):
                return False
            if due:
                said = f"{event!r} was asked for, and is refused: {refusal.rule}: {refusal}"
                raise AssertionError(said) from refusal
            self.refusals += 1
            for watcher in self.watchers:
                watcher.refused(before, event, refusal)
            return False
        for watcher in self.watchers:
            watcher.stepped(before, event, self.state, actions)
        self.history.append((event, actions))
        self._take(event, actions)
        for watcher in self.watchers:
            watcher.rested(self)
        return True

    def _was_too_late(self, event: Event) -> bool:
        """Whether what was asked for had come to its end by then: the clock alone brings that about."""
        tick = ClockTicked(at=event.at)
        return bool(step(self.state, tick)[1]) and self.tell(tick)

    def later(self, seconds: float | None = None) -> datetime:
        """The clock, which goes on by a little with every look at it."""
        passed = self.random.choice((0, 0.5, 3, 20)) if seconds is None else seconds
        if self.now.year < _LAST_YEAR:
            self.now += timedelta(seconds=passed)
        return self.now

    def forget(self, after_seconds: float | None = None) -> None:
        """The driver dies, and begins anew."""
        for known in (self.work, self.checks, self.loads, self.asked, self.lying):
            known.clear()
        self.tell(RunResumed(at=self.later(after_seconds)), due=True)

    def _work(self, name: str) -> None:
        roll = self.random.random
        answers = self.work[name].seq if roll() < 0.5 or name in self.cancelled else None
        if roll() < 0.2 and not self.tell(WorkStarted(at=self.later(), todo_id=name, answers=answers)):
            return
        if name not in self.work:  # its time was up already
            return
        new = self.random.choice((0,) * 12 + (1, 1, 8))
        self.tell(
            WorkFinished(
                at=self.later(),
                todo_id=name,
                answers=answers,
                success=roll() < self.mood.working,
                tokens=self.random.choice((None, 10, 2_000)),
                cycles=self.random.choice((None, 1, 2)),
                touched_files=("src/a/x.py",),
                new_files=tuple(f"src/new{at}.py" for at in range(new)),
            ),
            due=True,
        )

    def _check(self, name: str) -> None:
        outcome = with_all_checks(
            invent_outcome(self.random, name, self.mood), self.state.records[name].todo
        )
        asked = self.checks[name]
        digest = asked.plan_digest if self.random.random() < 0.7 else None
        answers = asked.seq if self.random.random() < 0.5 or name in self.cancelled else None
        event = Verified(at=self.later(), outcome=outcome, plan_digest=digest, answers=answers)
        self.tell(event, due=True)

    def _load(self, name: str) -> None:
        level = name.count("/")
        if self.random.random() < 0.1 or level >= MAX_LEVELS:
            problems = ("there is no such file",)
            self.tell(SubPlanLoaded(at=self.later(), todo_id=name, problems=problems), due=True)
            return
        plan = invent_sub_plan(self.random, level)
        self.tell(
            SubPlanLoaded(at=self.later(), todo_id=name, plan=plan, digest=f"sha256:{name}"), due=True
        )

    def _reply(self, name: str) -> None:
        asked = self.asked[name]
        if not asked.kind.is_approval:
            self.tell(
                QuestionAnswered(at=self.later(), question_id=name, answer=self._answer_to(asked)), due=True
            )
            return
        agrees = self.random.random() < self.mood.agreeing
        yes = (Decision.APPROVE, Decision.MODIFY, Decision.APPROVE_SIMILAR)
        decision = self.random.choice(yes) if agrees else Decision.REJECT
        if decision not in asked.options:
            decision = Decision.APPROVE if agrees else Decision.REJECT
        changes = self._changes(asked) if decision is Decision.MODIFY else BranchChanges()
        plain = changes.dependencies is None and changes.allowed_files is None
        self.tell(
            ApprovalGiven(
                at=self.later(),
                approval_id=name,
                decision=decision,
                digest=asked.digest,
                changes=changes,
            ),
            due=plain,  # of the others, some ask for what cannot be
        )

    def _changes(self, asked: AskHuman) -> BranchChanges:
        """What a person wants otherwise; of what begins, only some of it can be had."""
        if self.earnest or asked.kind is QuestionKind.APPROVE_START:
            return BranchChanges(instructions="Look again.")
        within, roll = asked.todo_id.rpartition("/")[0], self.random.random
        siblings = [name for name in sorted(self.state.todos) if name.rpartition("/")[0] == within]
        waits_for = self.random.choice(siblings).rpartition("/")[2]
        return BranchChanges(
            role=self.random.choice((None, Role.DEBUGGER)),
            instructions="Look again." if roll() < 0.5 else None,
            allowed_files=("src/a/x.py",) if roll() < 0.2 else None,
            dependencies=(waits_for,) if roll() < 0.3 else None,
            max_debug_attempts=1 if roll() < 0.3 else None,
            max_lifetime_seconds=1.0 if roll() < 0.1 else None,
        )

    def _answer_to(self, asked: AskHuman) -> str:
        options = [each for each in asked.options if each != "stop"] or list(asked.options)
        if self.earnest and "give_up" in options:
            return "give_up"
        if self.random.random() < 0.05 and "stop" in asked.options:
            return "stop"
        again = [each for each in options if each != "give_up"]
        return self.random.choice(again if again and self.random.random() < 0.7 else options)

    def _take(self, event: Event, actions: Sequence[Action]) -> None:
        """What was told is answered; what is asked for is due."""
        match event:
            case WorkFinished():
                self.work.pop(event.todo_id, None)
            case Verified():
                self.checks.pop(event.outcome.todo_id, None)
            case SubPlanLoaded():
                self.loads.pop(event.todo_id, None)
            case ApprovalGiven():
                self.asked.pop(event.approval_id, None)
            case QuestionAnswered():
                self.asked.pop(event.question_id, None)
            case _:
                pass
        for action in actions:
            self._note(action)
        for name in [name for name in self.asked if name not in self.state.questions]:
            del self.asked[name]  # the question has settled itself

    def _note(self, action: Action) -> None:
        match action:
            case Implement():
                self.work[action.todo_id] = action
            case Verify():
                self.checks |= dict.fromkeys(action.todo_ids, action)
            case Cancel():
                self.cancelled.add(action.todo_id)
                self.work.pop(action.todo_id, None)
                self.checks.pop(action.todo_id, None)
                self.loads.pop(action.todo_id, None)
            case AskHuman():
                self.asked[action.question_id] = action
            case LoadSubPlan():
                self.loads[action.todo_id] = action
            case Halt() | Finish():
                for due in (self.work, self.checks, self.loads, self.asked):
                    due.clear()
            case _:
                pass


def bound(state: State) -> int:
    """So many turns an earnest driver can need at most, by the limits of what there is to do."""
    again = state.policy.environment_retries + 3
    total = 100
    for record in state.todos.values():
        policy = state.parts[record.within].plan.metadata
        if record.is_branch:
            attempts = record.todo.max_debug_attempts
            total += 2 + (1 + again) * (1 + (policy.max_debug_attempts if attempts is None else attempts))
        else:
            branches = policy.max_branch_depth + 1
            repair = 3 + again + (1 + again) * (1 + max(policy.max_debug_attempts, 3))
            total += 10 + (1 + again) * (2 + record.todo.max_retries) + branches * repair
    return total
