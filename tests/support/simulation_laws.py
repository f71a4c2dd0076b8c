"""Laws that must hold after every step of a run with any driver, each checked separately."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING

from simulation import Watcher

from planner.engine import ENGINE_RULES
from planner.model.actions import Finish, Halt, Implement
from planner.model.events import PlanSubmitted, SubPlanLoaded, Verified, WorkFinished
from planner.model.plan import TodoStatus
from planner.model.verdicts import PlanState, TodoLife, TodoState
from planner.policy.lifecycle import PLAN_MOVES, TODO_MOVES
from planner.policy.outcomes import state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simulation import Simulation

    from planner.engine import State, TodoRecord
    from planner.errors import RefusedEvent
    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.model.plan import Plan

_UNBEGUN = (TodoLife.PENDING, TodoLife.BLOCKED)
FILES: Mapping[str, tuple[str, ...]] = {
    "src/a/**": ("src/a/x.py", "src/a/y.py", "src/a/deep/z.py"),
    "src/a/*.py": ("src/a/x.py", "src/a/y.py"),
    "src/b/**": ("src/b/x.py",),
    "docs/**": ("docs/index.md",),
    "src/**": ("src/a/x.py", "src/a/y.py", "src/a/deep/z.py", "src/b/x.py"),
}
"""Files that each pattern matches."""
_GONE = (TodoLife.FAILED, TodoLife.SKIPPED, TodoLife.HALTED)


class Laws(Watcher):
    """Checks one run. Raises ``AssertionError`` at the first step that violates a law."""

    def __init__(self) -> None:
        self.plans: dict[str, Plan] = {}
        """Plans as submitted or loaded, by the parent of the sub-plan."""
        self.branches_seen: set[str] = set()

    def began(self, event: PlanSubmitted, after: State, actions: Sequence[Action]) -> None:
        self.plans[""] = event.plan
        _actions_are_sound(0, after, actions)
        assert after.plan_state is (PlanState.REJECTED if event.problems else PlanState.READY)
        assert all(record.life is TodoLife.PENDING for record in after.todos.values()), (
            "a todo starts early"
        )
        admitted = set() if event.problems else {todo.id for todo in event.plan.items}
        assert after.todos.keys() == admitted
        assert not actions or event.problems, "something is asked for before the run starts"

    def stepped(self, before: State, event: Event, after: State, actions: Sequence[Action]) -> None:
        if isinstance(event, SubPlanLoaded) and event.plan is not None:
            self.plans[event.todo_id] = event.plan
        assert not before.plan_state.is_final, "an event is taken in after the end"
        assert after.now >= before.now, "time goes back"
        _plan_moves_by_the_table(before, after)
        _actions_are_sound(before.seq, after, actions)
        _end_is_said(after, actions)
        for name, record in after.todos.items():
            earlier = before.todos.get(name)
            if earlier is record:
                continue
            _todo_moves_by_the_table(earlier, record, name)
            if record.life is TodoLife.DONE and (earlier is None or earlier.life is not TodoLife.DONE):
                self._done_is_earned(name, record, before, event, after)
            self._limits_of_one(name, record)
        assert all(name in after.todos for name in before.todos), "a todo has vanished"
        if not after.plan_state.is_final:
            self._limits_of_all(after)
            _dependencies_hold(before, after)
            _budget_holds(before, after, actions, self.plans[""])

    def refused(self, state: State, event: Event, refusal: RefusedEvent) -> None:
        assert refusal.rule, "a refusal names no rule"
        assert "\n" not in str(refusal), f"{refusal!s} has more than one line"
        if state.plan_state.is_final:
            assert refusal.rule == "run-is-over"

    def rested(self, simulation: Simulation) -> None:
        state = simulation.state
        if state.plan_state.is_final:
            return
        unknown = set(state.questions) - simulation.asked.keys()
        assert not unknown, f"nobody was asked {sorted(unknown)}, and the engine waits for an answer"
        due = simulation.work.keys() | simulation.checks.keys() | simulation.loads.keys()
        for name, record in state.todos.items():
            if not record.life.is_live or name in due or record.question in simulation.asked:
                continue
            if not record.is_parent and record.next_step is None:
                raise AssertionError(f"{name} is {record.life}, and nobody was asked to do anything")
        for name in simulation.work:
            assert state.todos[name].life is TodoLife.ACTIVE, f"work on {name} was not cancelled"
        for name in simulation.checks:
            assert state.todos[name].life is TodoLife.TESTING, f"verifying {name} was not cancelled"
        jobs = state.policy.jobs
        assert jobs is None or len(simulation.work) <= jobs, "more is worked on than policy.jobs allows"
        _files_are_apart(state, simulation.work)

    def _done_is_earned(
        self, name: str, record: TodoRecord, before: State, event: Event, after: State
    ) -> None:
        if record.verified:
            assert isinstance(event, Verified), f"{name} is done by {event.event}, and called verified"
            assert event.outcome.todo_id == name, f"{name} is done by {event.outcome.todo_id}"
            assert state_of(event.outcome) is TodoState.DONE, f"{name} is done by {event.outcome}"
            assert record.todo == before.todos[name].todo, f"the criteria of {name} change with its pass"
        elif isinstance(event, Verified) and event.outcome.todo_id == name:
            assert not event.outcome.checks, f"{name} is done, verified by checks and not called so"
            assert after.policy.allow_unproved, f"{name} is done by an outcome without checks"
        elif record.parent_id is not None and after.todos[record.parent_id].verified:
            pass  # an unrequested pass of the todo ends its branch
        elif record.todo.has_sub_plan:
            children = [after.todos[child] for child in record.children]
            assert all(child.life is TodoLife.DONE for child in children if not child.is_branch), name
        elif not record.turns and _is_claimed(after, record):
            assert not record.todo.requires_testing, f"{name} is done, and was to be verified"
        else:
            assert isinstance(event, WorkFinished), f"{name} is done by {event.event}"
            assert event.todo_id == name
            assert event.success, f"{name} is done by work that failed"
            assert not record.todo.requires_testing, f"{name} is done, and was to be verified"

    def _limits_of_one(self, name: str, record: TodoRecord) -> None:
        policy = self.plans[record.within].metadata
        if record.is_branch:
            assert record.depth <= policy.max_branch_depth, f"{name} is deeper than max_branch_depth"
            allowed = record.todo.max_debug_attempts
            allowed = policy.max_debug_attempts if allowed is None else allowed
            assert record.attempts <= allowed, f"{name} has had {record.attempts} of {allowed} attempts"
            self.branches_seen.add(name)
        else:
            most = record.todo.max_retries
            assert record.retries <= most, f"{name} has had {record.retries} of {most} retries"

    def _limits_of_all(self, state: State) -> None:
        limit = self.plans[""].metadata.max_concurrent_branches
        open_ = [name for name in self.branches_seen if not state.records[name].life.is_final]
        assert len(open_) <= limit, f"{open_} are open, and max_concurrent_branches is {limit}"


def _closure(steps: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the states that can be reached from each state in one or more steps of the table."""
    reached: dict[str, set[str]] = {}
    for before, after in steps:
        reached.setdefault(before, set()).add(after)
    for _ in tuple(reached):  # a path has at most as many steps as there are states
        for found in reached.values():
            found.update(*(reached.get(each, ()) for each in tuple(found)))
    return reached


_TODO_REACHES = _closure(TODO_MOVES)
_PLAN_REACHES = _closure(PLAN_MOVES)


def _plan_moves_by_the_table(before: State, after: State) -> None:
    one, other = before.plan_state, after.plan_state
    assert one is other or other in _PLAN_REACHES[one], f"the plan cannot go from {one} to {other}"


def _todo_moves_by_the_table(earlier: TodoRecord | None, record: TodoRecord, name: str) -> None:
    one, other = TodoLife.PENDING if earlier is None else earlier.life, record.life
    reached = _TODO_REACHES.get(one, set())
    assert one is other or other in reached, f"{name} cannot go from {one} to {other}"


def _actions_are_sound(seq: int, after: State, actions: Sequence[Action]) -> None:
    for action in actions:
        seq += 1
        assert action.seq == seq, f"{action} has the number {action.seq}, and {seq} is next"
        assert action.rule in ENGINE_RULES, f"{action.rule} is no rule"
        assert action.because.strip(), f"{action} has no reason"
    assert after.seq == seq


def _end_is_said(after: State, actions: Sequence[Action]) -> None:
    """Check that the last action reports the end of the run, and no other action does."""
    ends = [at for at, action in enumerate(actions) if isinstance(action, Halt | Finish)]
    if after.plan_state.is_final:
        assert ends == [len(actions) - 1], "the last action does not tell the end"
        assert isinstance(actions[-1], Halt) is (after.plan_state is PlanState.HALTED)
        if after.plan_state is PlanState.COMPLETED:
            primary = [record for record in after.todos.values() if not record.is_branch]
            assert all(record.life is TodoLife.DONE for record in primary), "not all todos are done"
            assert not any(record.life.is_live for record in after.todos.values()), "something still lives"
    else:
        assert not ends, "the end is told, and the run goes on"


def _is_claimed(state: State, record: TodoRecord) -> bool:
    """Return whether the todo, or a parent of it, is claimed to be done."""
    if record.todo.status is TodoStatus.CLAIMED:
        return True
    return bool(record.within) and _is_claimed(state, state.todos[record.within])


def _dependencies_hold(before: State, state: State) -> None:
    """Check that started todos have done dependencies, and that waiting or skipped ones have a cause."""
    for name, record in state.todos.items():
        if record.life is TodoLife.PENDING and not record.todo.dependencies:
            continue
        waits_for = [state.todos[each] for each in _waits_for(state, record)]
        lives = {each.life for each in waits_for}
        red = [each.id for each in waits_for if each.life is TodoLife.TEST_FAILED and each.failure]
        if record.life in (TodoLife.ACTIVE, TodoLife.TESTING) and not record.is_branch:
            earlier = before.todos.get(name)
            if earlier is not None and earlier.life not in _UNBEGUN:
                continue  # it may have a new dependency since
            assert lives <= {TodoLife.DONE}, f"{name} is {record.life}, and waits for what is not done"
        elif record.life is TodoLife.PENDING:
            assert not lives & set(_GONE), f"{name} is pending, and what it waits for is gone"
            assert not red, f"{name} is not blocked, and {red} are red"
            assert TodoLife.BLOCKED not in lives, f"{name} is not blocked"
        elif record.life is TodoLife.BLOCKED:
            assert not lives & set(_GONE), f"{name} is blocked, and what it waits for is gone"
            assert lives - {TodoLife.DONE}, f"{name} is blocked by what is done"
        elif record.life is TodoLife.SKIPPED:
            assert lives & set(_GONE), f"{name} is skipped, and nothing that it waits for is gone"


def _waits_for(state: State, record: TodoRecord) -> Iterable[str]:
    """Yield the dependencies of a todo and of its parents."""
    within = record.within
    prefix = f"{within}/" if within else ""
    yield from (prefix + each for each in record.todo.dependencies if prefix + each in state.todos)
    if within:
        yield from _waits_for(state, state.todos[within])


def _budget_holds(before: State, state: State, actions: Sequence[Action], plan: Plan) -> None:
    """Check that no run continues over its budget, and that no work starts on an exhausted one."""
    if state.overspent:
        return
    used = _used(plan, state)
    asked = plan.metadata.halt.budget == "ask" and "budget" in state.questions
    over = [name for name, (limit, spent) in used.items() if spent > limit]
    assert not over or asked, f"{over} are used up, and the run goes on"
    if any(each.rule == "turn-timed-out" for each in actions):  # another turn started before this event
        used = _used(plan, before)
    none_left = [name for name, (limit, spent) in used.items() if spent >= limit and name != "new_files"]
    begun = [each for each in actions if isinstance(each, Implement) and each.rule != "resumed"]
    assert not begun or not none_left, f"{none_left} leave nothing for {begun}"


def _used(plan: Plan, state: State) -> dict[str, tuple[float, float]]:
    """Return the limit and the usage of each budget that is set."""
    budget, spent = plan.metadata.budget, state.spent
    wall = 0.0 if state.started is None else state.now - state.started
    lines = {
        "tokens": (budget.tokens, spent.tokens),
        "cycles": (budget.cycles, spent.cycles),
        "wall_seconds": (budget.wall_seconds, wall),
        "new_files": (budget.new_files, spent.new_files),
    }
    return {name: (limit, used) for name, (limit, used) in lines.items() if limit is not None}


def _files_are_apart(state: State, work: Mapping[str, Implement]) -> None:
    """Check that no two todos in work may change the same file."""
    taken: dict[str, str] = {}
    for name, action in work.items():
        base = state.parts[state.records[name].within].base
        patterns = action.bounds.allowed_files or ()
        for file in {file for each in patterns for file in FILES.get(each, (each,))}:
            path = normpath(f"{base}/{file}")
            assert path not in taken, f"{name} and {taken[path]} may both change {path}"
            taken[path] = name
