"""Requests to the driver for work, verification and sub-plans, with the brief for whoever acts.

:func:`request` remembers rule and reason of a request, so that it can be repeated after a restart of the
driver.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from planner.brief.page import PAGE_TOKENS, write_brief, write_task
from planner.engine.transaction import rfc3339
from planner.model.actions import Brief, Implement, LoadSubPlan, Verify
from planner.model.verdicts import TodoLife
from planner.policy.criteria import commands_of, conventional_command, wants_convention
from planner.policy.dependencies import reachable
from planner.policy.limits import bounds_of
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.engine.state import State, TodoRecord
    from planner.engine.transaction import Transaction
    from planner.model.actions import Action
    from planner.model.plan import Todo


def implement(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Request a turn of work on a todo, with the reason ``because``."""
    turns = record.turns + 1
    tx.move(record, TodoLife.ACTIVE, turns=turns, cost_reported=False, next_step=None, waited=0)
    request(tx, record, rule, because)


def verify(tx: Transaction, record: TodoRecord, rule: str, because: str) -> None:
    """Request the verification of a todo, with the reason ``because``."""
    tx.move(record, TodoLife.TESTING, deadline=None, next_step=None)
    request(tx, record, rule, because)


def request(tx: Transaction, record: TodoRecord, rule: str, because: str, at: float | None = None) -> None:
    """Emit the request that corresponds to a todo's state: verification, sub-plan, or turn of work.

    ``at`` is the earliest time of a verification, epoch seconds.
    """
    record = tx.records[record.id]
    # A repetition keeps the first reason, which people are shown.
    asked_by = record.asked_by if rule == "resumed" else (rule, because)
    action: Action
    if record.life is TodoLife.TESTING:
        advice = None if tx.memory is None else tx.memory.recipe(record.todo, tx.now)
        failure = record.failure
        action = Verify(
            rule=rule,
            because=because if advice is None else f"{because}; {advice.value} first: {advice.because}",
            todo_ids=(record.id,),
            recipe=None if advice is None else advice.value,
            isolate=failure is not None and failure.category.facts.routing_key == "flaky_test",
            not_before=None if at is None else rfc3339(at),
        )
    elif record.is_parent:
        todo = record.todo
        action = LoadSubPlan(
            rule=rule,
            because=because,
            todo_id=record.id,
            sub_plan=todo.sub_plan,
            sub_project_id=todo.sub_project_id,
            results=tuple(reachable(tx.ids_before(record.id), tx.ids_before)),
        )
    else:
        # Without a driver no event reports that work has begun.
        if tx.policy.driven:
            start_clock(tx, record)
        else:
            tx.update(record, deadline=None)
        action = Implement(
            rule=rule,
            because=because,
            todo_id=record.id,
            role=record.todo.agent_role,
            attempt=record.attempts + 1 if record.is_branch else record.turns,
            parent_id=record.parent_id,
            bounds=bounds_of(record.todo, tx.policy_of(record)),
            brief=_brief(tx, record),
        )
    tx.update(record, asked=tx.emit(action).seq, asked_by=asked_by)


def start_clock(tx: Transaction, record: TodoRecord) -> None:
    """Start the time limit of a turn of work, and the lifetime of a branch, now."""
    tx.begin_lifetime(record, tx.now)
    limit = record.todo.timeout_seconds
    tx.update(record, deadline=None if limit is None else tx.now + limit)
    if limit is not None:
        tx.timed.setdefault(record.id)


def instructions_for(
    state: State,
    primary: TodoRecord,
    red: TodoRecord,
    worker: Todo,
    tried: tuple[str, ...] = (),
    *,
    max_tokens: int = PAGE_TOKENS,
) -> str:
    """Return the instructions in Markdown for whoever repairs a todo.

    ``red`` holds the failure to describe, which may be that of a branch, and must have an outcome;
    ``worker`` is the todo or branch that will be worked on; ``tried`` lists failed attempts.
    """
    assert red.outcome is not None
    return write_brief(
        state.parts[primary.within].plan,
        primary.todo,
        red.outcome,
        red.context,
        rerun=(primary.failure and primary.failure.rerun) or _verify_command(state, primary.id),
        worker=worker,
        tried=tried,
        max_tokens=max_tokens,
    )


def brief_of(state: State, todo_id: str, *, max_tokens: int = PAGE_TOKENS) -> str:
    """Return the Markdown brief for whoever works on a todo; without a failure, it describes the task.

    ``todo_id`` may also name a branch that waits for its approval, so that a person can read it before.
    """
    proposed = state.questions.get(todo_id)
    if proposed is not None and proposed.branch is not None:
        return redact(clean(proposed.branch.debug_instructions or "")).rstrip("\n")
    record = state.records[todo_id]
    brief = _brief(state, record, max_tokens)
    text = brief.instructions
    # These already say how the todo is verified; other instructions need the task after them.
    if text is None or brief.failure is None:
        bounds = bounds_of(record.todo, state.parts[record.within].plan.metadata)
        task = write_task(brief, bounds, _how_verified(state, record, brief), max_tokens=max_tokens)
        text = task if text is None else f"{text}\n\n{task}"
    # The plan and a person's message may have control sequences and secrets, too.
    return redact(clean(text)).rstrip("\n")


def _how_verified(state: State, record: TodoRecord, brief: Brief) -> str:
    """Return the line of a brief that says how the todo is verified."""
    if brief.criteria or record.is_parent:
        return f"Check: {_verify_command(state, record.id)}"
    # A step before a branch has no criteria: those of the todo that the branch repairs show its result.
    after = (each for each in state.records.values() if each.parent_id and each.within == record.within)
    branch = next((each for each in after if record.todo.id in each.todo.dependencies), None)
    if branch is not None:
        return f"Check: {_verify_command(state, _primary(state, branch).id)}"
    if state.policy.driven:
        return "It has no criteria: report when it is done."
    return "It has no criteria: when it is done, set its status to claimed in the plan."


def _primary(state: State, record: TodoRecord) -> TodoRecord:
    """Return the todo that a branch repairs, or the todo itself."""
    return record if record.parent_id is None else state.records[record.parent_id]


def _verify_command(state: State, todo_id: str) -> str:
    """Return the command that verifies one todo."""
    return f"pytest --planverify {quote(f'{state.path}::{todo_id}')}"


def _brief(state: State, record: TodoRecord, max_tokens: int = PAGE_TOKENS) -> Brief:
    """Return the brief of a todo as it is sent in an ``implement`` request."""
    todo = record.todo
    task = todo.controller_task_spec
    return Brief(
        title=todo.title,
        intent=todo.intent,
        instructions=_instructions(state, record, max_tokens),
        criteria=_criteria(todo),
        target_file=None if task is None else task.target_file,
        hint=None if task is None else task.hint,
        contract_path=todo.contract_path,
        failure=record.failure,
    )


def _instructions(state: State, record: TodoRecord, max_tokens: int) -> str | None:
    """Return a person's message followed by the description of the failure.

    Without a recorded failure the todo's own ``debug_instructions`` take its place. Returns ``None`` if
    there is neither.
    """
    primary = _primary(state, record)
    described = record.todo.debug_instructions
    # Written anew: the outcome may be newer than the instructions in the plan.
    if all(each.outcome is not None and each.failure is not None for each in (record, primary)):
        described = instructions_for(
            state, primary, record, record.todo, _tried(record), max_tokens=max_tokens
        )
    return "\n\n".join(each for each in (record.instructions, described) if each is not None) or None


def _tried(record: TodoRecord) -> tuple[str, ...]:
    """Return a line on the latest failed attempt of a branch; empty if there is none."""
    if record.outcome is None or not (record.parent_id and record.attempts):
        return ()
    touched = ", ".join(record.outcome.touched_files[:5]) or "nothing"
    return (f"attempt {record.attempts}, which changed {touched}",)


def _criteria(todo: Todo) -> tuple[str, ...]:
    """Return one line for each criterion of a todo."""
    wanted = todo.acceptance_criteria
    return (
        *(spec.cmd for _, spec in commands_of(todo)),
        *((f"by convention: {conventional_command(todo)}",) if wants_convention(todo) else ()),
        *(f"artifact: {artifact.path}" for artifact in wanted.expected_artifacts),
        *(f"metric: {each.name} {each.operator} {each.value:g}" for each in wanted.metrics),
        *(f"question: {each.question}" for each in wanted.manual),
        *(() if todo.contract_path is None else (f"contract: {todo.contract_path}",)),
    )
