"""The actions that ask for work and for verification, with what whoever acts needs to know."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from planner.engine.proposals import Failed, instructions_for
from planner.engine.transaction import rfc3339
from planner.model.actions import Brief, Implement, LoadSubPlan, Verify
from planner.model.life import TodoLife
from planner.policy.criteria import commands_of, pytest_command, wants_convention
from planner.policy.risk import bounds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.engine.state import State, TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.actions import Fact
    from planner.model.plan import Plan, Todo

MOST_RESULTS = 200
"""So many done todos are named to whoever plans a phase."""


def implement(tx: Transaction, record: TodoRecord, rule: str, because: str, **facts: Fact) -> None:
    """Ask for a turn of work."""
    todo = record.todo
    number = tx.number()
    limit = todo.timeout_seconds if tx.policy.driven else None
    deadline = None if limit is None else tx.now + limit
    record = tx.move(
        record,
        TodoLife.ACTIVE,
        turns=record.turns + 1,
        asked=number,
        asked_by=(rule, because),
        deadline=deadline,
        told=False,
        next_step=None,
        waited=0,
    )
    tx.remind(deadline, record.id)
    tx.actions.append(_implement(tx, record, number, rule, because, facts))


def verify(tx: Transaction, record: TodoRecord, rule: str, because: str, **facts: Fact) -> None:
    """Ask for the verification of a todo."""
    number = tx.number()
    record = tx.move(
        record, TodoLife.TESTING, asked=number, asked_by=(rule, because), deadline=None, next_step=None
    )
    tx.actions.append(_verify(tx, record, number, rule, because, None, facts))


def verify_again(tx: Transaction, record: TodoRecord, rule: str, because: str, delay: float) -> None:
    """Ask for it once more, after some seconds."""
    number = tx.number()
    record = tx.move(
        record, TodoLife.TESTING, asked=number, asked_by=(rule, because), waited=record.waited + 1
    )
    at = None if delay <= 0 else tx.now + delay
    facts: dict[str, Fact] = {"waited": record.waited, "delay_seconds": delay}
    tx.actions.append(_verify(tx, record, number, rule, because, at, facts))


def load_sub_plan(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Ask for the plan of a parent's todos."""
    number = tx.number()
    record = tx.move(record, TodoLife.ACTIVE, asked=number, asked_by=(rule, because), next_step=None)
    tx.actions.append(_load(tx, record, number, rule, because))


def repeat(tx: Transaction, record: TodoRecord) -> None:
    """Ask again for what is outstanding."""
    number = tx.number()
    rule, because = "resumed", "the driver has begun anew, and this was not answered"
    if record.life is TodoLife.TESTING:
        record = tx.put(record._replace(asked=number))
        tx.actions.append(_verify(tx, record, number, rule, because, None, {}))
    elif record.is_parent:
        record = tx.put(record._replace(asked=number))
        tx.actions.append(_load(tx, record, number, rule, because))
    else:
        limit = record.todo.timeout_seconds if tx.policy.driven else None
        deadline = None if limit is None else tx.now + limit
        record = tx.put(record._replace(asked=number, deadline=deadline))
        tx.remind(deadline, record.id)
        tx.actions.append(_implement(tx, record, number, rule, because, {}))


def failed_of(tx: Transaction, record: TodoRecord) -> Failed | None:
    """A todo's last failure and all that is known of it."""
    return _Work.of(tx, record).failed_of(record)


def brief_of(state: State, todo_id: str) -> str:
    """Return what whoever works on a todo needs to know, in Markdown."""
    record = state.records[todo_id]
    work = _Work.of(state, record)
    brief = work.brief()
    if brief.instructions is not None:
        return brief.instructions.rstrip("\n")
    bounds = bounds_of(record.todo, work.plan.metadata)
    lines = [f"# {brief.title}", ""]
    lines += [brief.intent, ""] if brief.intent else []
    lines += ["It is done when all of this holds:", "", *(f"- {each}" for each in brief.criteria), ""]
    lines += (
        [f"Begin with {brief.target_file}: {brief.hint or ''}".rstrip(": "), ""]
        if brief.target_file
        else []
    )
    if bounds.allowed_files is not None:
        lines += [f"Write only {', '.join(bounds.allowed_files)}.", ""]
    if bounds.protected_files:
        lines += [f"Never write {', '.join(bounds.protected_files)}.", ""]
    return "\n".join([*lines, f"Check: pytest --planverify {quote(f'{state.path}::{todo_id}')}"])


class _Work(NamedTuple):
    """What a turn of work rests on: values that no longer change when the event goes on."""

    record: TodoRecord
    primary: TodoRecord | None
    """The todo that is repaired, of a branch."""
    plan: Plan
    path: str
    now: float
    tools: tuple[str, ...]

    @classmethod
    def of(cls, tx: Transaction | State, record: TodoRecord) -> _Work:
        primary = None if record.parent_id is None else tx.records[record.parent_id]
        return cls(record, primary, tx.parts[record.within].plan, tx.path, tx.now, tx.policy.tools)

    def failed_of(self, record: TodoRecord) -> Failed | None:
        if record.outcome is None or record.failure is None:
            return None
        return Failed(
            plan=self.plan,
            todo=record.todo,
            outcome=record.outcome,
            failure=record.failure,
            context=record.context,
            at=rfc3339(self.now),
            rerun=record.failure.rerun or f"pytest --planverify {quote(f'{self.path}::{record.id}')}",
            tools=frozenset(self.tools),
        )

    def brief(self) -> Brief:
        todo = self.record.todo
        task = todo.controller_task_spec
        return Brief(
            title=todo.title,
            intent=todo.intent,
            instructions=self._instructions(),
            criteria=_criteria(todo),
            target_file=None if task is None else task.target_file,
            hint=None if task is None else task.hint,
            contract_path=todo.contract_path,
            failure=self.record.failure,
        )

    def _instructions(self) -> str | None:
        """What was seen, and before it what a person has said about it."""
        record = self.record
        told = record.todo.debug_instructions
        failed = self._failed()
        if failed is not None:
            told = instructions_for(
                failed, record.todo.id, record.todo.allowed_files, record.todo.agent_role
            )
        if record.instructions is None:
            return told
        return record.instructions if told is None else f"{record.instructions}\n\n{told}"

    def _failed(self) -> Failed | None:
        """What is to be mended, where the todo itself does not say so: of a branch, after an attempt."""
        record = self.record
        if self.primary is None:
            return self.failed_of(record)
        failed = self.failed_of(self.primary)
        if failed is None or record.outcome is None or record.failure is None:
            return None
        touched = ", ".join(record.outcome.touched_files[:5]) or "nothing"
        return replace(
            failed,
            outcome=record.outcome,
            failure=record.failure,
            context=record.context,
            tried=(f"attempt {record.attempts}, which changed {touched}",),
        )


def _implement(
    tx: Transaction, record: TodoRecord, number: int, rule: str, because: str, facts: dict[str, Fact]
) -> Callable[[], Implement]:
    work = _Work.of(tx, record)

    def make() -> Implement:
        return Implement(
            seq=number,
            rule=rule,
            because=because,
            facts=facts,
            todo_id=record.id,
            role=record.todo.agent_role,
            attempt=record.attempts + 1 if record.is_branch else record.turns,
            parent_id=record.parent_id,
            bounds=bounds_of(record.todo, work.plan.metadata),
            brief=work.brief(),
        )

    return make


def _criteria(todo: Todo) -> tuple[str, ...]:
    wanted = todo.acceptance_criteria
    return (
        *(spec.cmd for _, spec in commands_of(todo)),
        *((f"by convention: {pytest_command(_conventional(todo))}",) if wants_convention(todo) else ()),
        *(f"artifact: {artifact.path}" for artifact in wanted.expected_artifacts),
        *(f"metric: {each.name} {each.operator} {each.value:g}" for each in wanted.metrics),
        *(f"question: {each.question}" for each in wanted.manual),
        *(() if todo.contract_path is None else (f"contract: {todo.contract_path}",)),
    )


def _conventional(todo: Todo) -> str:
    """The file in which the tests of a todo without criteria are looked for first."""
    return f"tests/test_{todo.id.replace('-', '_')}.py"


def _verify(
    tx: Transaction,
    record: TodoRecord,
    number: int,
    rule: str,
    because: str,
    at: float | None,
    facts: dict[str, Fact],
) -> Callable[[], Verify]:
    memory, now, digest = tx.memory, tx.now, tx.parts[record.within].digest

    def make() -> Verify:
        advice = None if memory is None else memory.recipe(record.todo, now)
        failure = record.failure
        return Verify(
            seq=number,
            rule=rule,
            because=because,
            facts=facts if advice is None else facts | {"recipe_because": advice.because},
            todo_ids=(record.id,),
            plan_digest=digest,
            recipe=None if advice is None else advice.value,
            isolate=failure is not None and failure.category.facts.routing_key == "flaky_test",
            not_before=None if at is None else rfc3339(at),
        )

    return make


def _load(tx: Transaction, record: TodoRecord, number: int, rule: str, because: str) -> LoadSubPlan:
    return LoadSubPlan(
        seq=number,
        rule=rule,
        because=because,
        todo_id=record.id,
        sub_plan=record.todo.sub_plan,
        sub_project_id=record.todo.sub_project_id,
        results=_results(tx, record),
    )


def _results(tx: Transaction, record: TodoRecord) -> tuple[str, ...]:
    """What a parent depends on, the nearest first."""
    prefix = f"{record.within}/" if record.within else ""
    found: dict[str, None] = {}
    pending = [prefix + name for name in record.todo.dependencies]
    for name in pending:
        before = tx.records.get(name)
        if before is None or name in found:
            continue
        found[name] = None
        if len(found) >= MOST_RESULTS:
            break
        pending.extend(prefix + each for each in before.todo.dependencies)
    return tuple(found)
