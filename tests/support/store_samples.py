"""Runs for the tests of the index: a small plan, executed by the real engine, with every event in a log."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sample_documents import run_info
from simulation import Mood, Simulation, Watcher
from sqlalchemy import select

from planner.engine import State, start, step
from planner.model.actions import Action
from planner.model.events import Event, PlanSubmitted, RunPolicy, RunStarted
from planner.model.outcome import Failure, Outcome, OutcomeDocument, PlanRef, Summary
from planner.model.past import PastRecords
from planner.model.plan import Plan
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import TodoState
from planner.store.index import TABLES, Index, open_index
from planner.store.run_log import FOLDER, RunLog, Step

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def submitted(plan_id: str = "shop", *, at: datetime = START, **keys: Any) -> PlanSubmitted:
    policy = RunPolicy.model_validate({"fingerprint": "here", "allow_unproved": True})
    plan = Plan.model_validate({"todo_list_id": plan_id, "items": [todo("a")]})
    return PlanSubmitted(at=at, **{"plan": plan, "digest": f"sha256:{'1' * 64}", "policy": policy, **keys})


class Project:
    """A folder with logs, and its index."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / FOLDER).mkdir(parents=True, exist_ok=True)

    def log(self, run_id: str) -> Path:
        return self.root / FOLDER / f"{run_id}.jsonl"

    @contextmanager
    def index(self) -> Generator[Index]:
        """Yield the updated index."""
        with open_index(self.root) as index:
            assert index.remarks == []
            yield index

    def runs(self, plan_id: str | None = None) -> list[dict[str, Any]]:
        with self.index() as index:
            return index.runs(plan_id)

    def past(self, fingerprint: str, now: datetime, limit: int) -> PastRecords:
        with self.index() as index:
            return index.past_records(fingerprint, now, limit)


def everything(index: Index) -> dict[str, list[str]]:
    """Return every row of every source table, without the ids of the database."""
    with index.connection() as connection:
        return {
            table.name: sorted(
                repr({name: value for name, value in row._mapping.items() if name != "id"})
                for row in connection.execute(select(table))
            )
            for key, table in TABLES.items()
            if key != "sources"
        }


class Carried(Watcher):
    """A plan executed by the real engine, with every event in the log of a project."""

    def __init__(self, project: Project, event: PlanSubmitted, run_id: str = "run-1") -> None:
        self.now = event.at
        self.count = 0
        self.path = project.log(run_id)
        event = event.model_copy(update={"run_id": run_id})
        self.state, self.actions = start(event)
        self._write(Step(event, self.actions, None, self.state))

    def tell(self, event: str, *, after: float = 60, **facts: Any) -> tuple[Action, ...]:
        """Submit an event ``after`` seconds later, and log it."""
        self.now += timedelta(seconds=after)
        told = _EVENTS.validate_python({"event": event, "at": self.now, **facts})
        after_it, actions = step(self.state, told)
        self.stepped(self.state, told, after_it, actions)
        return actions

    def stepped(self, before: State, event: Event, after: State, actions: Sequence[Action]) -> None:
        """Log an accepted event."""
        self.now, self.state, self.actions = event.at, after, tuple(actions)
        self.count += 1
        self._write(Step(event, self.actions, before, after))

    def _write(self, taken: Step) -> None:
        with closing(RunLog.append_to(self.path)) as log, log.hold():
            log.skip()
            log.append(taken)

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
    """Return a todo with one test, as in a plan file."""
    criteria = {"tests": [{"cmd": f"pytest tests/test_{todo_id}.py"}]}
    return {
        "id": todo_id,
        "title": f"Todo {todo_id}",
        "acceptance_criteria": criteria,
        "dependencies": after,
        "max_retries": 2,
        **keys,
    }


def shop(*, items: Sequence[dict[str, Any]] = (), at: datetime = START, **metadata: Any) -> PlanSubmitted:
    """Return the submission of a plan with automatic repair."""
    held = [dict(each) for each in items or (todo("tax"), todo("bill", "tax"), todo("mail", "bill"))]
    halts = {"identical_failures": None, "consecutive_failures": None, "flaky_streak": None}
    policy = {"auto_fix_mode": True, "halt": halts, **metadata}
    made = Plan.model_validate({"todo_list_id": "shop", "metadata": policy, "items": held})
    return submitted(at=at, plan=made)


def at_random(carried: Carried, chance: random.Random, most: int | None = None) -> None:
    """Let a simulated driver answer the engine until the run is over or has ``most`` events."""
    mood = Mood(passing=0.4, odd=0.2, faults=0.1, agreeing=0.8, working=0.9)
    driver = Simulation(chance, mood, carried.state, [carried], carried.now, patience=60)
    driver.tell(RunStarted(at=driver.later()), due=True)
    while not driver.is_over and (most is None or carried.count < most):
        driver.turn()


def failure(signature: str, category: Category = Category.TYPE_ERROR, **facts: Any) -> Failure:
    return Failure(category=category, owner=Owner.PRODUCT, signature=signature, **facts)


def verified(root: Path, run_id: str, *failures: Failure) -> Path:
    """Write the outcome file of a `pytest --planverify` run."""
    state = TodoState.TEST_FAILED if failures else TodoState.DONE
    outcome = Outcome(
        todo_id="tax",
        plan="shop",
        state=state,
        success=not failures,
        tests_passed=not failures,
        failure_evidence=failures[0] if failures else None,
        failures=failures,
    )
    at = f"2026-11-21T{run_id[9:11] if run_id[8:9] == 'T' else '10'}:00:00.000Z"
    run = run_info(run_id=run_id, started_at=at, finished_at=at, exit_status=int(bool(failures)))
    reference = PlanRef(todo_list_id="shop", path="plan.yaml", digest="sha256:1")
    document = OutcomeDocument(plans=(reference,), run=run, summary=Summary(), outcomes=(outcome,))
    target = root / f".planverify/runs/{run_id}/outcomes.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(document.model_dump_json())
    return target
