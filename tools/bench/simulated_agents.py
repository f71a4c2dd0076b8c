"""Simulate workflows with agents of many kinds: ``python -m tools.bench.simulated_agents``.

The engine decides as for ``planverify run``. The project is a table of the faults of each todo, so that
the truth is known whatever an agent claims. Every kind of agent carries out the same random plans.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zlib import crc32

from planner.engine import State, start, step
from planner.errors import RefusedEvent
from planner.model.actions import Action, Implement, Verify
from planner.model.events import (
    ClockTicked,
    Event,
    PlanSubmitted,
    RunPolicy,
    RunStarted,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.outcome import Check, Failure, Outcome
from planner.model.plan import AcceptanceCriteria, Budget, CommandSpec, HaltPolicy, Plan, Policy, Todo
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import CheckKind, TodoLife, TodoState, Verdict

START = datetime(2026, 1, 1, tzinfo=UTC)
TURN_SECONDS = 600.0
MOST_EVENTS = 5_000
"""A workflow with more events is considered endless."""

MOST_ROUNDS = 3
"""Most times that the final verification may send the plan back to work, as in ``planverify run``."""


@dataclass(slots=True)
class Turn:
    """The effect of an agent's turn, and its claims."""

    says_done: bool = True
    seconds: float = 60.0
    tokens: int = 1_000
    repairs: bool = False
    breaks: bool = False
    """Breaks something in another todo."""
    other_fault: bool = False
    """Replaces one fault by another."""
    leaves_limits: bool = False
    """Edits forbidden files; the harness restores them."""
    new_files: int = 0
    touches: bool = True


def _honest(random: Random, turn: int) -> Turn:
    return Turn(repairs=random.random() < (0.4 if turn == 0 else 0.8))


def _sloppy(random: Random, turn: int) -> Turn:
    return Turn(repairs=random.random() < 0.5, breaks=random.random() < 0.15)


def _slow(random: Random, turn: int) -> Turn:
    seconds = random.choice((60.0, 500.0, 900.0))
    return Turn(repairs=seconds < TURN_SECONDS and random.random() < 0.8, seconds=seconds)


def _hanging(random: Random, turn: int) -> Turn:
    return Turn(says_done=False, seconds=TURN_SECONDS, touches=False)


def _crashing(random: Random, turn: int) -> Turn:
    return Turn(says_done=False, repairs=random.random() < 0.4, touches=random.random() < 0.6)


def _lying(random: Random, turn: int) -> Turn:
    return Turn(touches=False)


def _never_repairing(random: Random, turn: int) -> Turn:
    return Turn()


def _oscillating(random: Random, turn: int) -> Turn:
    return Turn(other_fault=True)


def _cheating(random: Random, turn: int) -> Turn:
    return Turn(leaves_limits=random.random() < 0.5, repairs=random.random() < 0.1)


def _creeping(random: Random, turn: int) -> Turn:
    return Turn(repairs=random.random() < 0.7, new_files=random.choice((0, 1, 5, 30)))


def _spending(random: Random, turn: int) -> Turn:
    return Turn(repairs=random.random() < 0.7, tokens=random.choice((1_000, 50_000, 400_000)))


def _destroying(random: Random, turn: int) -> Turn:
    return Turn(breaks=True, repairs=random.random() < 0.3)


AGENTS: dict[str, Callable[[Random, int], Turn]] = {
    "honest": _honest,
    "sloppy": _sloppy,
    "slow": _slow,
    "crashing": _crashing,
    "creeping scope": _creeping,
    "spending": _spending,
    "cheating": _cheating,
    "destroying": _destroying,
    "oscillating": _oscillating,
    "never repairing": _never_repairing,
    "lying": _lying,
    "hanging": _hanging,
}
"""Behaviour of each kind of agent, as a function of the turn, counted from 0."""


@dataclass(slots=True)
class Told:
    """The end of a workflow."""

    ending: str = "endless"
    """``completed``, ``halted``, or ``waiting`` for a person; ``endless`` and ``stuck`` are errors."""
    todos: int = 0
    red_at_first: int = 0
    recovered: int = 0
    turns: int = 0
    is_green: bool = False
    """Whether everything was really in order at the end."""
    over_limit: list[str] = field(default_factory=list[str])
    wrongly_done: list[str] = field(default_factory=list[str])
    """Todos that were called done while something in them was broken."""


def invent_plan(random: Random) -> Plan:
    """Return a plan of one to twelve todos, with ordinary limits."""
    size = random.choice((1, 2, 3, 4, 5, 6, 8, 12))
    items: list[Todo] = []
    for number in range(size):
        before = [f"t{each}" for each in range(max(0, number - 3), number) if random.random() < 0.4]
        test = CommandSpec(cmd=f"pytest tests/test_t{number}.py")
        todo = Todo(
            id=f"t{number}",
            title=f"Part {number}",
            acceptance_criteria=AcceptanceCriteria(tests=(test,)),
            dependencies=tuple(before),
            allowed_files=(f"src/t{number}.py",),
            max_retries=random.choice((0, 0, 1, 2)),
            timeout_seconds=TURN_SECONDS,
        )
        items.append(todo)
    tokens, cycles, new = (random.choice((None, None, most)) for most in (500_000, 40, 40))
    policy = Policy(
        max_debug_attempts=random.choice((1, 3, 3, 5)),
        max_branch_depth=random.choice((1, 2, 2, 3)),
        max_concurrent_branches=random.choice((1, 5)),
        budget=Budget(tokens=tokens, cycles=cycles, new_files=new),
        halt=HaltPolicy(consecutive_failures=random.choice((3, 5, 10))),
    )
    return Plan(todo_list_id="simulated", metadata=policy, items=tuple(items))


class Workflow:
    """One plan, one agent, and the truth about the project."""

    def __init__(self, plan: Plan, agent: Callable[[Random, int], Turn], random: Random) -> None:
        self._plan, self._agent, self._random = plan, agent, random
        self._faults = {todo.id: 1 if random.random() < 0.8 else 0 for todo in plan.items}
        """Number of faults by todo."""
        self._worked: Counter[str] = Counter()
        self._violations: set[str] = set()
        self._edits = 0
        self._told = Told(todos=len(plan.items))
        self._red: set[str] = set()
        self._now = START
        self._state: State
        self._pending: deque[Action] = deque()

    def carry_out(self) -> Told:
        """Carry out the plan as the harness does; return how it ended."""
        for _ in range(MOST_ROUNDS):
            self._told.ending = self._round()
            self._told.is_green = not any(self._faults.values())
            if self._told.ending != "completed" or self._told.is_green:
                break
            self._told.ending = "halted"  # the verification of all at the end found something red
        self._told.red_at_first = len(self._red)
        self._told.recovered = sum(not self._faults[name] for name in self._red)
        return self._told

    def _round(self) -> str:
        events = 0
        policy = RunPolicy(jobs=1)
        submitted = PlanSubmitted(at=self._now, plan=self._plan, digest="sha256:0", policy=policy)
        self._state, actions = start(submitted)
        self._pending = deque(actions)
        self._tell(RunStarted(at=self._now))
        while not self._state.plan_state.is_final:
            events += 1
            if events > MOST_EVENTS:
                return "endless"
            action = self._next()
            if isinstance(action, Implement):
                self._work(action)
            elif isinstance(action, Verify):
                for name in action.todo_ids:
                    self._tell(Verified(at=self._now, outcome=self._verify(name), answers=action.seq))
            elif action is None:
                if self._pending:
                    self._now += timedelta(seconds=30)
                    self._tell(ClockTicked(at=self._now))
                else:
                    return "waiting" if self._state.questions else "stuck"
        return self._state.plan_state.value

    def _next(self) -> Action | None:
        now = self._now.isoformat()
        for action in list(self._pending):
            if isinstance(action, Implement | Verify):
                names = action.todo_ids if isinstance(action, Verify) else (action.todo_id,)
                lives = (TodoLife.TESTING,) if isinstance(action, Verify) else (TodoLife.ACTIVE,)
                asked = [self._state.records.get(name) for name in names]
                if not any(each and each.asked == action.seq and each.life in lives for each in asked):
                    self._pending.remove(action)
                elif (getattr(action, "not_before", None) or "") <= now:
                    self._pending.remove(action)
                    return action
            else:
                self._pending.remove(action)  # the state says so, too
        return None

    def _work(self, action: Implement) -> None:
        name = action.parent_id or action.todo_id
        name = self._primary(name)
        turn = self._agent(self._random, self._worked[name])
        self._worked[name] += 1
        self._told.turns += 1
        self._tell(WorkStarted(at=self._now, todo_id=action.todo_id, answers=action.seq))
        limit = action.bounds.timeout_seconds or TURN_SECONDS
        was_cut = turn.seconds >= limit
        self._now += timedelta(seconds=min(turn.seconds, limit))
        if not turn.leaves_limits:
            self._edits += turn.touches
            self._change(name, turn)
        touched = (f"src/{name}.py",) if turn.touches and not turn.leaves_limits else ()
        new = tuple(f"src/new_{self._edits}_{each}.py" for each in range(turn.new_files))
        self._tell(
            WorkFinished(
                at=self._now,
                todo_id=action.todo_id,
                success=(turn.says_done and not was_cut) or bool(touched),
                tokens=turn.tokens,
                touched_files=(*touched, *new),
                new_files=new,
                answers=action.seq,
            )
        )
        if turn.leaves_limits:
            self._tell(Verified(at=self._now, outcome=self._violation(action.todo_id)))

    def _change(self, name: str, turn: Turn) -> None:
        if turn.repairs:
            self._faults[name] = 0
        elif turn.other_fault and self._faults[name]:
            self._faults[name] = 3 - self._faults[name]
        if turn.breaks:
            others = [each for each in self._faults if each != name and not self._faults[each]]
            if others:
                self._faults[self._random.choice(others)] = 2

    def _primary(self, name: str) -> str:
        while (record := self._state.records[name]).parent_id is not None:
            name = record.parent_id
        return name

    def _verify(self, todo_id: str) -> Outcome:
        name = self._primary(todo_id)
        self._now += timedelta(seconds=5)
        fault = self._faults[name]
        if not fault:
            return _outcome(todo_id, TodoState.DONE, Verdict.PASSED, self._edits)
        self._red.add(name)
        failure = Failure(
            category=Category.TEST_REGRESSION,
            owner=Owner.PRODUCT,
            repeatability=Repeatability.DETERMINISTIC,
            confidence=0.9,
            rule="simulated",
            because="It is broken.",
            signature=f"{crc32(f'{name} {fault}'.encode()):012x}",
            check_id="tests[0]",
            stack_trace_head=f"AssertionError: {name} is {fault}",
        )
        more: dict[str, Any] = {"failure_evidence": failure, "failures": (failure,)}
        return _outcome(todo_id, TodoState.TEST_FAILED, Verdict.FAILED, self._edits, **more)

    def _violation(self, todo_id: str) -> Outcome:
        failure = Failure(
            category=Category.ALLOWLIST_VIOLATION,
            owner=Owner.PRODUCT,
            confidence=1.0,
            rule="turn-outside-allowlist",
            because="It changed a test.",
            check_id="allowlist",
        )
        more: dict[str, Any] = {"failure_evidence": failure, "failures": (failure,)}
        return _outcome(todo_id, TodoState.TEST_FAILED, Verdict.FAILED, self._edits, **more)

    def _tell(self, event: Event) -> None:
        before = self._state
        try:
            self._state, actions = step(self._state, event)
        except RefusedEvent:
            return
        self._pending.extend(actions)
        self._told.over_limit += self._over_limit()
        for name, fault in self._faults.items():
            was, now = before.records[name].life, self._state.records[name].life
            if fault and now is TodoLife.DONE and was is not TodoLife.DONE:
                self._told.wrongly_done.append(name)

    def _over_limit(self) -> list[str]:
        policy = self._plan.metadata
        found: list[str] = []
        for record in self._state.records.values():
            if record.is_branch and record.attempts > policy.max_debug_attempts:
                found.append(f"{record.id}: {record.attempts} attempts")
            if record.is_branch and record.depth > policy.max_branch_depth:
                found.append(f"{record.id}: depth {record.depth}")
            if not record.is_branch and record.retries > record.todo.max_retries:
                found.append(f"{record.id}: {record.retries} retries")
        branches = [
            each for each in self._state.records.values() if each.is_branch and not each.life.is_final
        ]
        if len(branches) > policy.max_concurrent_branches:
            found.append(f"{len(branches)} branches at once")
        budget, spent = policy.budget, self._state.spent
        pairs = (
            (budget.tokens, spent.tokens),
            (budget.cycles, spent.cycles),
            (budget.new_files, spent.new_files),
        )
        is_over = any(limit is not None and used > limit for limit, used in pairs)
        if is_over and not self._state.plan_state.is_final and not self._state.questions:
            found.append(f"the budget is spent, and work goes on: {spent}")
        return found


def _outcome(todo_id: str, state: TodoState, verdict: Verdict, edits: int, **more: Any) -> Outcome:
    is_done = state is TodoState.DONE
    return Outcome(
        todo_id=todo_id,
        state=state,
        verified=True,
        success=is_done,
        tests_passed=is_done,
        checks=(Check(id="tests[0]", kind=CheckKind.TEST, verdict=verdict),),
        diff_hash=f"sha256:{edits:064x}",
        **more,
    )


def carry_out(kind: str, seed: int) -> Told:
    """Carry out the plan of a seed with an agent of that kind."""
    random = Random(seed)
    return Workflow(invent_plan(random), AGENTS[kind], random).carry_out()


def table(count: int) -> tuple[list[str], int]:
    """Return the lines of a table over ``count`` workflows, and how many of them broke an invariant."""
    lines = [
        "| agent | workflows | completed | halted | waiting | red todos | recovered | turns a todo |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    broken = 0
    each = -(-count // len(AGENTS))
    for kind in AGENTS:
        told = [carry_out(kind, seed) for seed in range(each)]
        ends = Counter(one.ending for one in told)
        red, recovered = sum(one.red_at_first for one in told), sum(one.recovered for one in told)
        turns = sum(one.turns for one in told) / sum(one.todos for one in told)
        broken += sum(is_broken(one) for one in told)
        lines.append(
            f"| {kind} | {each} | {ends['completed']} | {ends['halted']} | {ends['waiting']} | {red} | "
            f"{recovered / max(red, 1):.0%} | {turns:.1f} |"
        )
    return lines, broken


def is_broken(told: Told) -> bool:
    """Return whether a workflow never ended, exceeded a limit, or was called done with a fault."""
    is_wrong = told.ending == "completed" and not told.is_green
    return (
        is_wrong
        or bool(told.over_limit or told.wrongly_done)
        or told.ending not in ("completed", "halted", "waiting")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="how many workflows (default: 10,000)")
    lines, broken = table(parser.parse_args().count)
    print("\n".join(lines))
    print(f"\nended done with something red, over a limit, or not at all: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
