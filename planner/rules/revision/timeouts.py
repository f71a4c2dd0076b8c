"""After a passed limit: run the test alone; with approval give it more time, or split the todo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.edits import RaiseLimit, SplitTodo
from planner.model.kinds import Side
from planner.model.plan import MAX_SECONDS, AcceptanceCriteria, Todo
from planner.rules.revision.facts import check_ids, exceptions, is_free, listed, observed
from planner.rules.revision.isolating import isolate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.model.plan import CommandSpec
    from planner.rules.revision.situation import Situation

SPLIT_AT = 6
"""A todo with so many commands is split rather than given more time."""

_WAITING = frozenset(
    {"threading", "queue", "socket", "select", "selectors", "subprocess", "multiprocessing", "ssl"}
    | {"concurrent", "signal", "asyncio"}
)
"""Modules of the standard library in which a process waits for another."""
_ENDLESS = re.compile(r"while\s*\(?\s*(?:True|1)\b")


def after_timeout(situation: Situation) -> Iterator[Edit]:
    """Isolates; proposes a split where there are many commands, else more time where nothing hangs."""
    yield from isolate(
        situation, rule="timeout-isolates", why="what passed its limit is run without company"
    )
    if _hangs(situation):
        return
    split = tuple(_split(situation))
    yield from split or _raise_limits(situation)


def _hangs(situation: Situation) -> bool:
    """Whether it was ended in an endless loop, or while it waited for somebody else."""
    if any(run.passed for each in observed(situation) for run in each.confirmations):
        return False
    for exception in exceptions(situation):
        for frame in exception.frames:
            if frame.source and _ENDLESS.search(frame.source):
                return True
        last = exception.frames[-1] if exception.frames else None
        if last is not None and last.side is Side.STDLIB and _top(last.module, last.path) in _WAITING:
            return True
    return False


def _top(module: str | None, path: str) -> str:
    return (module or path.rpartition("/")[2].removesuffix(".py")).partition(".")[0]


def _raise_limits(situation: Situation) -> Iterator[RaiseLimit]:
    policy, todo = situation.plan.metadata, situation.todo
    bounds = [
        each for each in (policy.max_todo_seconds, todo.timeout_seconds, MAX_SECONDS) if each is not None
    ]
    for index, spec in enumerate(todo.acceptance_criteria.tests):
        check_id = f"tests[{index}]"
        limit = min(2 * spec.timeout_seconds, *bounds)
        if check_id in check_ids(situation) and limit > spec.timeout_seconds:
            yield RaiseLimit(
                rule="timeout-raises-limit",
                because=f"{check_id} passed its limit of {spec.timeout_seconds:g} s{_how_long(situation)}",
                requires_approval=True,
                todo_id=todo.id,
                check_id=check_id,
                from_seconds=spec.timeout_seconds,
                to_seconds=limit,
            )


def _how_long(situation: Situation) -> str:
    passed = [run for each in observed(situation) for run in each.confirmations if run.passed]
    if passed:
        return f" and passes within {max(run.duration_ms for run in passed) / 1000:g} s in another run"
    return "; whether it would ever have ended is not known"


def _split(situation: Situation) -> Iterator[SplitTodo]:
    """The slow commands stay with the todo; the others become a part of their own."""
    todo = situation.todo
    tests = todo.acceptance_criteria.tests
    slow = [spec for index, spec in enumerate(tests) if f"tests[{index}]" in check_ids(situation)]
    others = tuple(spec for spec in tests if spec not in slow)
    # A metric needs the tests that record it in its own todo, and which those are is not known.
    if (
        len(tests) < SPLIT_AT
        or todo.has_sub_plan
        or not slow
        or not others
        or todo.acceptance_criteria.metrics
    ):
        return
    name = f"{todo.id[:180]}_part_01"
    if not is_free(situation, name):
        return
    criteria = todo.acceptance_criteria
    rest = {
        "acceptance_criteria": criteria.model_copy(update={"tests": tuple(slow)}),
        "dependencies": (*todo.dependencies, name),
    }
    yield SplitTodo(
        rule="timeout-splits-todo",
        because=f"{len(tests)} commands in one todo, and {listed(check_ids(situation))} passed its limit",
        requires_approval=True,
        todo_id=todo.id,
        parts=(_part(todo, name, others), todo.model_copy(update=rest)),
    )


def _part(todo: Todo, name: str, tests: tuple[CommandSpec, ...]) -> Todo:
    """A todo of the same kind that is proved by these commands alone."""
    same = {each: getattr(todo, each) for each in _SHARED if each in todo.model_fields_set}
    criteria = AcceptanceCriteria(tests=tests)
    return Todo(id=name, title=f"{todo.title[:9_900]} (part 1 of 2)", acceptance_criteria=criteria, **same)


_SHARED = (
    "intent",
    "status",
    "agent_role",
    "allowed_files",
    "risk_level",
    "failure_routing",
    "dependencies",
    "max_retries",
    "timeout_seconds",
    "priority",
)
"""What the parts of a todo have in common."""
