"""Time limits that fit their work, and retries that are neither none nor too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.todo_parts import propose_split, worded_split
from planner.rules.validation.facts import (
    Facts,
    Found,
    command_loc,
    is_branch,
    seconds_of,
    shown_seconds,
    states_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion

LONG_SECONDS = 3600.0
SHORT_SECONDS = 1.0
USUAL_SECONDS = 30
MANY_RETRIES = 10


def check(facts: Facts) -> Iterator[Found]:
    """Rules about time limits and retries."""
    for index, todo in facts.todos:
        criteria = facts.criteria.get(todo.id, ())
        for criterion in criteria:
            yield from _criterion(index, todo, criterion)
        yield from _todo(facts, index, todo, criteria)
        if not is_branch(todo) and not todo.has_sub_plan:
            yield from _retries(index, todo)


def _criterion(index: int, todo: Todo, criterion: Criterion) -> Iterator[Found]:
    seconds = seconds_of(criterion)
    if seconds is None or not states_seconds(criterion):
        return
    loc = (*command_loc(index, criterion.id)[:-1], "timeout_seconds")
    assert criterion.command is not None
    if seconds > LONG_SECONDS:
        yield Found(
            "timeout-long",
            loc,
            todo.id,
            f"{criterion.id} of '{todo.id}' may take {shown_seconds(seconds)}",
            f"give the check less data, or split it into parts of {shown_seconds(LONG_SECONDS)} at most",
        )
    if seconds < SHORT_SECONDS and criterion.command.pytest is not None:
        yield Found(
            "timeout-short",
            loc,
            todo.id,
            f"{criterion.id} of '{todo.id}' has {shown_seconds(seconds)}, less than pytest needs to start",
            f"write timeout_seconds: {USUAL_SECONDS}",
        )
    if todo.timeout_seconds is not None and seconds > todo.timeout_seconds:
        yield Found(
            "timeout-above-todo",
            loc,
            todo.id,
            f"{criterion.id} may take {shown_seconds(seconds)}, a whole turn of work on '{todo.id}' "
            f"only {shown_seconds(todo.timeout_seconds)}",
            f"lower it to {shown_seconds(todo.timeout_seconds)}, or set timeout_seconds of '{todo.id}' "
            f"to {seconds:g} or more",
        )


def _todo(facts: Facts, index: int, todo: Todo, criteria: tuple[Criterion, ...]) -> Iterator[Found]:
    most = facts.plan.metadata.max_todo_seconds
    if most is None:
        return
    if todo.timeout_seconds is not None and todo.timeout_seconds > most:
        yield Found(
            "todo-seconds-exceeded",
            ("items", index, "timeout_seconds"),
            todo.id,
            f"'{todo.id}' asks for {shown_seconds(todo.timeout_seconds)}, the plan allows a todo "
            f"{shown_seconds(most)} (max_todo_seconds)",
            f"lower timeout_seconds to {most:g}, or split the todo",
        )
    limits = {each.id: seconds for each in criteria if (seconds := seconds_of(each)) is not None}
    total = sum(limits.values())
    if total > most:
        parts = propose_split(todo, criteria, most_seconds=most)
        slowest = max(limits, key=limits.__getitem__)
        yield Found(
            "todo-seconds-exceeded",
            ("items", index, "acceptance_criteria") if todo.acceptance_criteria else ("items", index),
            todo.id,
            f"the criteria of '{todo.id}' may take {shown_seconds(total)} together, the plan allows a todo "
            f"{shown_seconds(most)} (max_todo_seconds)",
            f"split it: {worded_split(parts)}"
            if len(parts) > 1
            else f"lower the limits, first that of {slowest} ({shown_seconds(limits[slowest])})",
        )


def _retries(index: int, todo: Todo) -> Iterator[Found]:
    loc = ("items", index, "max_retries")
    if todo.max_retries == 0:
        yield Found(
            "retries-none",
            loc,
            todo.id,
            f"'{todo.id}' has no retries, so its first failure makes a branch",
            "write max_retries: 2",
        )
    elif todo.max_retries > MANY_RETRIES:
        yield Found(
            "retries-many",
            loc,
            todo.id,
            f"'{todo.id}' may be retried {todo.max_retries} times before a branch is made",
            "write max_retries: 2, or at most 3",
        )
