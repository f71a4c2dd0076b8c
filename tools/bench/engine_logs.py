"""Event logs of simulated runs of any size: most todos pass, some fail and are repaired.

``python tools/bench/engine_logs.py EVENTS`` replays so many events, which are generated on the way and read
as text, and prints their number and the peak of the used memory, in MiB.
"""

from __future__ import annotations

import resource
import sys
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from planner.engine import State, fold, start, step
from planner.model.actions import Action, AskHuman, Cancel, Implement, LoadSubPlan, Verify
from planner.model.events import (
    ApprovalGiven,
    BudgetSpent,
    Decision,
    Event,
    PlanSubmitted,
    QuestionAnswered,
    RunStarted,
    Verified,
    WorkFinished,
    WorkStarted,
)
from planner.model.outcome import Check, Failure, Location, Outcome, OutcomeMetrics, TestResult
from planner.model.plan import Plan, Todo
from planner.model.taxonomy import Category, Owner, Repeatability
from planner.model.verdicts import CheckKind, Isolation, Since, TestOutcome, TodoState, Verdict
from planner.policy.criteria import criterion_ids
from planner.store.chain import GENESIS, chained, check_link
from planner.store.run_log import action_text, body, event_text, logged_actions, parse_event, parse_line

START = datetime(2026, 1, 1, tzinfo=UTC)
RED_EVERY = 7
"""One of this many verifications fails."""
JOBS = 20
EVENTS_OF_A_TODO = 8
"""Least number of events of a todo if all kinds of events occur."""

_CATEGORIES = (
    Category.TEST_REGRESSION,
    Category.SPEC_MISMATCH,
    Category.IMPORT_ERROR,
    Category.TYPE_ERROR,
    Category.TEST_TIMEOUT,
)


def plan_of(todos: int) -> Plan:
    """Return a plan with so many todos, in chains of five."""
    return Plan.model_validate(
        {
            "todo_list_id": "large",
            "metadata": {
                "auto_fix_mode": True,
                "notify_after_n_failures": 1_000_000,
                "halt": {"consecutive_failures": None, "identical_failures": None},
            },
            "items": [_todo(number) for number in range(todos)],
        }
    )


def run_of(
    todos: int, *, chatty: bool = False, as_text: bool = False
) -> Iterator[tuple[Event, tuple[Action, ...], State]]:
    """Yield every event of a run, its actions, and the state after it.

    ``chatty`` has more events for each todo; ``as_text`` parses each event from its text.
    """
    submitted = PlanSubmitted.model_validate(
        {"at": START, "plan": plan_of(todos), "digest": "sha256:1", "policy": {"jobs": JOBS}}
    )
    state, actions = start(submitted)
    yield submitted, actions, state
    driver = _Driver(chatty)
    event: Event | None = RunStarted(at=START)
    while event is not None:
        told = parse_event(event_text(event)) if as_text else event
        state, actions = step(state, told)
        yield event, actions, state
        driver.take(actions, state)
        event = None if state.plan_state.is_final else driver.next()


def log_of(todos: int) -> list[str]:
    """Return the lines of the log of a run."""
    lines: list[str] = []
    digest = GENESIS
    for number, (event, actions, _) in enumerate(run_of(todos)):
        line, digest = chained(body(number, event, actions), digest)
        lines.append(line)
    return lines


def folded(lines: list[str]) -> State:
    """Return the state after the lines of a log, whose digests are verified."""
    return fold(_events(lines))


def replayed(lines: list[str]) -> int:
    """Decide each action of a log again, compare it with the recorded one, and return their number."""
    state: State | None = None
    count = 0
    for text, event in zip(lines, _events(lines), strict=True):
        if state is None:
            assert isinstance(event, PlanSubmitted)
            state, actions = start(event)
        else:
            state, actions = step(state, event)
        assert logged_actions(text) == list(map(action_text, actions))
        count += len(actions)
    return count


def _events(lines: list[str]) -> Iterator[Event]:
    digest = GENESIS
    for number, text in enumerate(lines):
        digest = check_link(text, number, digest)
        yield parse_line(text, number)


class _Driver:
    """A driver that performs actions in the order of the requests; its results depend on a count only."""

    def __init__(self, chatty: bool) -> None:
        self._due: deque[Event] = deque()
        self._now = START
        self._checks = 0
        self._chatty = chatty

    def take(self, actions: tuple[Action, ...], state: State) -> None:
        for action in actions:
            match action:
                case Implement():
                    self._due += self._work(action.todo_id)
                case Verify():
                    todos = [state.records[name].todo for name in action.todo_ids]
                    self._due += (self._verified(todo, action) for todo in todos)
                case AskHuman():
                    self._due.appendleft(self._answer(action))
                case Cancel():
                    self._due = deque(each for each in self._due if _whose(each) != action.todo_id)
                case LoadSubPlan():
                    raise AssertionError("there are no sub-plans")
                case _:
                    pass

    def next(self) -> Event | None:
        return self._due.popleft() if self._due else None

    def _answer(self, asked: AskHuman) -> Event:
        if not asked.kind.is_approval:
            return QuestionAnswered(at=self._later(), question_id=asked.question_id, answer="give_up")
        return ApprovalGiven(
            at=self._later(),
            approval_id=asked.question_id,
            decision=Decision.APPROVE,
            digest=asked.digest,
        )

    def _later(self) -> datetime:
        self._now += timedelta(milliseconds=10)
        return self._now

    def _work(self, name: str) -> Iterator[Event]:
        yield WorkStarted(at=self._later(), todo_id=name)
        for tokens in (120, 300, 210, 75, 640) if self._chatty else ():
            yield BudgetSpent(at=self._later(), tokens=tokens, todo_id=name)
        yield WorkFinished(
            at=self._later(),
            todo_id=name,
            tokens=1200,
            cycles=2,
            duration_ms=8500,
            touched_files=(f"src/{name}.py", f"tests/test_{name}.py"),
            new_files=(f"src/{name}.py",),
            message="The rows are read and checked; the columns are in the order that the contract names.",
        )

    def _verified(self, todo: Todo, asked: Verify) -> Event:
        self._checks += 1
        red = self._checks % RED_EVERY == 0
        return Verified(
            at=self._later(),
            outcome=_outcome(todo, self._checks, red),
            answers=asked.seq,
        )


def _whose(event: Event) -> str | None:
    """Return the todo of an event."""
    if isinstance(event, Verified):
        return event.outcome.todo_id
    return event.todo_id if isinstance(event, WorkStarted | WorkFinished) else None


def _outcome(todo: Todo, count: int, red: bool) -> Outcome:
    name = todo.id
    failure = _failure(name, count) if red else None
    return Outcome(
        todo_id=name,
        plan="large",
        title=f"The part {name} does its part",
        state=TodoState.TEST_FAILED if red else TodoState.DONE,
        verified=True,
        success=not red,
        tests_passed=not red,
        # Of each criterion, as without one the todo is not done; a branch has others than its parent.
        checks=tuple(
            _check(name, criterion, red and criterion == "tests[0]")
            for criterion in sorted(criterion_ids(todo))
        ),
        touched_files=(f"src/{name}.py",),
        diff_hash=f"sha256:{count:064x}",
        metrics=OutcomeMetrics(duration_ms=812),
        recorded={"rows_min": (250.0,)},
        failure_evidence=failure,
        failures=() if failure is None else (failure,),
    )


def _check(name: str, criterion: str, red: bool) -> Check:
    if not criterion.startswith("tests"):
        return Check(id=criterion, kind=CheckKind.ARTIFACT, verdict=Verdict.PASSED, duration_ms=1)
    tests = tuple(
        TestResult(
            nodeid=f"tests/test_{name}.py::test_values_{each}",
            outcome=TestOutcome.FAILED if red and each == 0 else TestOutcome.PASSED,
            since=Since.UNKNOWN,
            duration_ms=40,
        )
        for each in range(4)
    )
    return Check(
        id=criterion,
        kind=CheckKind.TEST,
        verdict=Verdict.FAILED if red else Verdict.PASSED,
        duration_ms=160,
        cmd=f"pytest tests/test_{name}.py -k values -q --json-report",
        isolation=Isolation.WORKER,
        timeout_seconds=20.0,
        exit_code=1 if red else 0,
        tests=tests,
    )


def _failure(name: str, count: int) -> Failure:
    category = _CATEGORIES[count % len(_CATEGORIES)]
    test = f"tests/test_{name}.py::test_values_0"
    return Failure(
        category=category,
        owner=Owner.PRODUCT,
        repeatability=Repeatability.DETERMINISTIC,
        confidence=0.95,
        rule="assertion-in-test",
        because="An assertion of a test does not hold.",
        signature=f"{count:012x}",
        routing_key=category.facts.routing_key,
        target_agent=category.facts.default_role,
        check_id="tests[0]",
        top_failing_tests=(test,),
        tests=(test,),
        stack_trace_head="AssertionError: assert 32.1 == 28.5 ± 0.1",
        location=Location(path=f"src/{name}.py", line=31, function="compute"),
        suggestion=f"compute (src/{name}.py:31) returned 32.1 where the test expects 28.5.",
        rerun=f"pytest --planverify plan.yaml::{name}",
    )


def _todo(number: int) -> dict[str, Any]:
    tests = [
        {
            "cmd": f"pytest tests/test_t{number}.py -k values_{each} -q --json-report",
            "timeout_seconds": 20,
        }
        for each in range(3)
    ]
    return {
        "id": f"t{number}",
        "title": f"Module {number} does its part",
        "intent": "Read the rows of the table, check them and hand them on without losing any.",
        "acceptance_criteria": {"tests": tests, "expected_artifacts": [f"src/t{number}.py"]},
        "allowed_files": [f"src/t{number}.py", f"tests/test_t{number}.py"],
        "failure_routing": {"implementation_bug": "coder", "spec_mismatch": "architect"},
        "dependencies": [f"t{number - 1}"] if number % 5 else [],
        "max_retries": number % 3,
        "priority": number % 10,
    }


def _main(wanted: int) -> None:
    run = run_of(wanted // EVENTS_OF_A_TODO, chatty=True, as_text=True)
    count = todos = 0
    for _, _, state in islice(run, wanted):
        count, todos = count + 1, len(state.todos)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} events, {todos} todos, peak {peak:.0f} MiB")


if __name__ == "__main__":
    _main(int(sys.argv[1]))
