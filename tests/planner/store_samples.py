"""Runs for the store's tests: a small plan, and the lines of its log."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy
from pydantic import TypeAdapter

from planner.edges.store import Rows, Store, project
from planner.edges.store.rows import RunRow
from planner.edges.store.tables import METADATA
from planner.edges.store.times import moment
from planner.engine import start, step
from planner.model.actions import Action
from planner.model.events import ClockTicked, Event, PlanSubmitted
from planner.model.life import TodoLife
from planner.model.plan import Plan
from planner.model.run_policy import RunPolicy
from planner.store.chain import GENESIS
from planner.store.lines import decode, encode

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def plan(plan_id: str = "shop", **keys: Any) -> Plan:
    """A plan of one todo."""
    items = [
        {"id": "a", "title": "Prices", "acceptance_criteria": {"tests": [{"cmd": "pytest test_a.py"}]}}
    ]
    return Plan.model_validate({"todo_list_id": plan_id, "items": items, **keys})


def submitted(plan_id: str = "shop", *, at: datetime = START, **keys: Any) -> PlanSubmitted:
    policy = RunPolicy(fingerprint="here")
    held: dict[str, Any] = {"plan": plan(plan_id), "digest": f"sha256:{'1' * 64}", "policy": policy}
    return PlanSubmitted(at=at, **{**held, **keys})


def began(store: Store, run_id: str = "run-1", event: PlanSubmitted | None = None) -> str:
    """Begin a run; returns the digest of its line 0."""
    event = event or submitted()
    line, digest = encode(0, event, (), GENESIS)
    store.open_run(run_id, event, line, digest)
    return digest


def tick(n: int, previous: str) -> tuple[str, str]:
    """A line that says that time has passed."""
    return encode(n, ClockTicked(at=START + timedelta(seconds=n)), (), previous)


def plain_rows(n: int, *, state: str = "executing", closed: bool = False, **more: Any) -> Rows:
    """Rows of an event that changes nothing but the time; ``run`` and others may be given."""
    held: dict[str, Any] = {"run": RunRow(state=state, closed=closed), **more}
    return Rows(kind="clock_ticked", at=moment(START + timedelta(seconds=n)), **held)


def append(store: Store, n: int, previous: str, rows: Rows | None = None, run_id: str = "run-1") -> str:
    """Append a line that says that time has passed; returns its digest."""
    line, digest = tick(n, previous)
    store.append(run_id, n, line, digest, rows or plain_rows(n))
    return digest


def chain(store: Store, run_id: str = "run-1") -> list[str]:
    """The lines of a run, after each was read and held against the one before."""
    lines = list(store.lines(run_id))
    previous = GENESIS
    for n, line in enumerate(lines):
        previous = decode(line, n, previous).digest
    return lines


def last_digest(store: Store, run_id: str = "run-1") -> str:
    previous = GENESIS
    for n, line in enumerate(store.lines(run_id)):
        previous = decode(line, n, previous).digest
    return previous


def everything(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        found = {
            table.name: sorted(map(tuple, connection.execute(sqlalchemy.select(table))), key=repr)
            for table in METADATA.sorted_tables
        }
    engine.dispose()
    return found


def one_line(error: BaseException, name: str | Path) -> str:
    text = str(error)
    assert "\n" not in text
    assert str(name) in text
    assert ";" in text, "after what happened comes what to do"
    return text


def filled(path: Path, lines: int) -> None:
    with Store.open(path) as store:
        digest = began(store)
        for n in range(1, lines):
            digest = append(store, n, digest)


def in_a_child(work: Callable[[], None]) -> int:
    """Begin something in a process of its own, a copy of this one, and return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        work()
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
    finally:
        os._exit(status)


def ended(pid: int) -> int:
    """How that process ended."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Carried:
    """A plan that is carried out by the real engine, every event into a store."""

    def __init__(self, store: Store, event: PlanSubmitted, run_id: str = "run-1") -> None:
        self.store = store
        self.run_id = run_id
        self.state, self.actions = start(event)
        self.count = 0
        self.now = event.at
        line, self._digest = encode(0, event, self.actions, GENESIS)
        store.open_run(run_id, event, line, self._digest)

    def tell(self, event: str, *, after: float = 60, **facts: Any) -> tuple[Action, ...]:
        """Tell the engine an event that many seconds later, and store it."""
        self.now += timedelta(seconds=after)
        told = _EVENTS.validate_python({"event": event, "at": self.now, **facts})
        before = self.state
        self.state, self.actions = step(before, told)
        self.count += 1
        line, self._digest = encode(self.count, told, self.actions, self._digest)
        rows = project(told, self.actions, before, self.state)
        self.store.append(self.run_id, self.count, line, self._digest, rows)
        return self.actions

    def worked(self, todo_id: str, **facts: Any) -> tuple[Action, ...]:
        return self.tell(
            "work_finished", todo_id=todo_id, **{"touched_files": ("shop/prices.py",), **facts}
        )

    def passed(self, todo_id: str, **facts: Any) -> tuple[Action, ...]:
        outcome = {"todo_id": todo_id, "success": True, "tests_passed": True, "diff_hash": "sha256:aa"}
        return self.tell("verified", outcome={**outcome, **facts})

    def failed(
        self, todo_id: str, category: str = "TEST_REGRESSION", signature: str = "a1b2c3d4e5f6", **facts: Any
    ) -> tuple[Action, ...]:
        failure = {
            "category": category,
            "owner": "product",
            "confidence": 0.9,
            "rule": "assertion-in-test",
            "because": "an assertion of the test failed",
            "signature": signature,
            "stack_trace_head": "AssertionError: assert 110 == 119",
            "top_failing_tests": ["tests/test_prices.py::test_tax"],
            "tests": ["tests/test_prices.py::test_tax"],
        }
        outcome = {"todo_id": todo_id, "success": False, "tests_passed": False}
        found = {"failure_evidence": failure, "failures": [failure], "diff_hash": f"sha256:{self.count}"}
        return self.tell("verified", outcome={**outcome, **found, **facts})


def todo(todo_id: str, *after: str, **keys: Any) -> dict[str, Any]:
    """A todo with one test, as a plan file has it."""
    criteria = {"tests": [{"cmd": f"pytest tests/test_{todo_id}.py"}]}
    return {
        "id": todo_id,
        "title": f"Todo {todo_id}",
        "acceptance_criteria": criteria,
        "dependencies": after,
        **keys,
    }


def shop(*, items: Sequence[dict[str, Any]] = (), at: datetime = START, **metadata: Any) -> PlanSubmitted:
    """A plan that repairs by itself, submitted."""
    held = [dict(each) for each in items or (todo("tax"), todo("bill", "tax"), todo("mail", "bill"))]
    halts = {"identical_failures": None, "consecutive_failures": None, "flaky_streak": None}
    policy = {"auto_fix_mode": True, "halt": halts, **metadata}
    made = Plan.model_validate({"todo_list_id": "shop", "metadata": policy, "items": held})
    return submitted(at=at, plan=made)


def at_random(carried: Carried, chance: random.Random, most: int = 120) -> None:
    """Do what the engine asks for, well or badly, until the run is over or that many events were told."""
    carried.tell("run_started")
    while not carried.state.plan_state.is_final and carried.count < most:
        _some_event(carried, chance)


def _some_event(carried: Carried, chance: random.Random) -> None:
    state = carried.state
    working = [
        each.id for each in state.todos.values() if each.life is TodoLife.ACTIVE and not each.is_parent
    ]
    testing = [each.id for each in state.todos.values() if each.life is TodoLife.TESTING]
    dice = chance.random()
    if dice < 0.05:
        carried.tell("run_resumed")
    elif dice < 0.15:
        carried.tell("clock_ticked", after=chance.choice((1, 700)))
    elif working and dice < 0.6:
        name = chance.choice(working)
        carried.worked(name, success=chance.random() < 0.9, new_files=chance.choice(((), ("new.py",))))
    elif state.questions and dice < 0.7:
        _answer(carried, chance.choice(sorted(state.questions)), chance)
    elif testing:
        name = chance.choice(testing)
        if state.todos[name].question is not None:
            return _answer(carried, state.todos[name].question or "", chance)
        if chance.random() < 0.4:
            carried.passed(name)
        else:
            carried.failed(
                name,
                chance.choice(("TEST_REGRESSION", "IMPORT_ERROR", "LINT_ERROR", "ENVIRONMENT_ERROR")),
                chance.choice(("a1b2c3d4e5f6", "b1b2c3d4e5f6")),
            )
    elif state.questions:
        _answer(carried, chance.choice(sorted(state.questions)), chance)
    else:
        carried.tell("clock_ticked", after=700)
    return None


def _answer(carried: Carried, name: str, chance: random.Random) -> None:
    question = carried.state.questions[name]
    if question.kind.is_approval:
        decision = chance.choice([each for each in question.options if each != "modify"])
        carried.tell(
            "approval_given", approval_id=name, decision=decision, digest=question.digest, by="ann"
        )
    else:
        answer = chance.choice([each for each in question.options if each != "stop"])
        carried.tell("question_answered", question_id=name, answer=answer, by="ann", because="it is late")
