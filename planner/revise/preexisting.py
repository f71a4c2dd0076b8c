"""From a failure that was there before the work began to a todo of its own."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from planner.model.edits import AddDependency, AddTodoBefore
from planner.model.plan import (
    DEFAULT_CRITERION_SECONDS,
    MAX_SECONDS,
    Todo,
)
from planner.model.verdicts import CheckKind
from planner.policy.branches import role_for
from planner.revise.situation import parsed
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.outcome import Failure, Outcome

RULE = "pre-existing-failure"
MOST_TESTS = 20
"""So many tests are named one by one; of more, their files are."""

_LONGEST_NAME = 100
_LONGEST_HEAD = 100
"""So many characters of the failure's own words stand in the title."""


def set_apart(
    todo: Todo, outcome: Outcome, failures: Iterable[Failure], known: set[str]
) -> list[AddTodoBefore | AddDependency]:
    """Return edits that give each failure a todo of its own, which the failed todo waits for.

    ``known`` holds the ids of those that are there already.
    """
    edits: dict[str, AddTodoBefore | AddDependency] = {}
    for failure in failures:
        name = failure.signature or f"{todo.id}_{failure.category.value.lower()}"
        name = f"pre_existing_{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:_LONGEST_NAME]}"
        said = clean(failure.stack_trace_head or failure.category.value, limit=_LONGEST_HEAD)
        because = f"{failure.category} of {todo.id} was there before the work began"
        if name in todo.dependencies or name in edits:
            continue
        if name in known:
            edits[name] = AddDependency(rule=RULE, because=because, todo_id=todo.id, on=name)
            continue
        fields: dict[str, Any] = {
            "id": name,
            "title": f"Fix what failed before: {' '.join(said.split())}",
            "intent": f"It failed before the work on {todo.id} began, and is not that todo's fault.",
            "agent_role": role_for(failure, todo),
            "priority": todo.priority,
            **({"failure_routing": todo.failure_routing} if todo.failure_routing else {}),
            **_proof(todo, outcome, failure),
        }
        new = Todo.model_validate(fields)
        edits[name] = AddTodoBefore(rule=RULE, because=because, todo_id=todo.id, todo=new)
    return list(edits.values())


def _proof(todo: Todo, outcome: Outcome, failure: Failure) -> dict[str, Any]:
    """Return what proves that just this failure is fixed, the whole todo's criteria at worst."""
    check = next((check for check in outcome.checks if check.id == failure.check_id), None)
    cmd = _command(failure.tests or failure.top_failing_tests) or (check.cmd if check else None)
    if cmd is not None and parsed(cmd) is not None:
        limit = (check.timeout_seconds if check else None) or DEFAULT_CRITERION_SECONDS
        limit = limit if 0 < limit <= MAX_SECONDS else DEFAULT_CRITERION_SECONDS
        return {"acceptance_criteria": {"tests": [{"cmd": cmd, "timeout_seconds": limit}]}}
    if check is not None and check.kind is CheckKind.CONTRACT and todo.contract_path:
        return {"contract_path": todo.contract_path}
    names = ("acceptance_criteria", "verify", "test_command", "test_file")
    return {name: getattr(todo, name) for name in names}


def _command(tests: tuple[str, ...]) -> str | None:
    """Return the command that runs these tests, if that is lawful: an outcome file may name anything."""
    many = len(tests) > MOST_TESTS
    names = tuple(dict.fromkeys(test.partition("::")[0] for test in tests)) if many else tests
    command = shlex.join(["pytest", *names])
    is_lawful = bool(names) and all(_stays_inside(name.partition("::")[0]) for name in names)
    return command if is_lawful and parsed(command) is not None else None


def _stays_inside(path: str) -> bool:
    return path.isprintable() and not path.startswith(("/", "\\", "~", "-")) and ".." not in path.split("/")
