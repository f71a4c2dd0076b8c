"""From a failure that was there before the work began to a todo of its own."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Protocol

from planner.model.edits import AddDependency, AddTodoBefore
from planner.model.plan import (
    DEFAULT_CRITERION_SECONDS,
    MAX_SECONDS,
    AcceptanceCriteria,
    CommandSpec,
    Todo,
)
from planner.model.verdicts import CheckKind
from planner.policy.branches import role_for
from planner.revise.situation import parsed
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.edits import Edit
    from planner.model.outcome import Failure, Outcome

RULE = "pre-existing-failure"
MOST_TESTS = 20
"""So many tests are named one by one; of more, their files are."""

_LONGEST_NAME = 100
_LONGEST_HEAD = 100
"""So many characters of the failure's own words stand in the title."""


class FailedTodo(Protocol):
    """A failed todo of a plan or of a sub-plan, and what the run found about it."""

    @property
    def todo(self) -> Todo: ...
    @property
    def within(self) -> str:
        """The qualified id of the parent whose sub-plan holds it."""
        ...

    @property
    def outcome(self) -> Outcome | None: ...


def set_apart(entry: FailedTodo, failures: Iterable[Failure], known: set[tuple[str, str]]) -> list[Edit]:
    """Return edits that give each failure a todo of its own, which the failed todo waits for.

    ``known`` holds the sub-plan and id of each such todo that is there already; what is added joins it.
    """
    edits: list[Edit] = []
    waits_for = set(entry.todo.dependencies)
    for failure in failures:
        todo = _todo_of(entry, failure)
        if todo.id in waits_for:
            continue
        waits_for.add(todo.id)
        because = f"{failure.category} of {entry.todo.id} was there before the work began"
        place = (entry.within, todo.id)
        if place in known:
            edits.append(AddDependency(rule=RULE, because=because, todo_id=entry.todo.id, on=todo.id))
        else:
            known.add(place)
            edits.append(AddTodoBefore(rule=RULE, because=because, todo_id=entry.todo.id, todo=todo))
    return edits


def _todo_of(entry: FailedTodo, failure: Failure) -> Todo:
    name = failure.signature or f"{entry.todo.id}_{failure.category.value.lower()}"
    said = clean(failure.stack_trace_head or failure.category.value, limit=_LONGEST_HEAD)
    fields: dict[str, Any] = {
        "id": f"pre_existing_{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:_LONGEST_NAME]}",
        "title": f"Fix what failed before: {' '.join(said.split())}",
        "intent": f"It failed before the work on {entry.todo.id} began, and is not that todo's fault.",
        "agent_role": role_for(failure, entry.todo),
        "priority": entry.todo.priority,
        **_proof(entry.todo, entry.outcome, failure),
    }
    if entry.todo.failure_routing:
        fields["failure_routing"] = entry.todo.failure_routing
    return Todo.model_validate(fields)


def _proof(todo: Todo, outcome: Outcome | None, failure: Failure) -> dict[str, Any]:
    """Return what proves that just this failure is fixed, the whole todo's criteria at worst."""
    checks = () if outcome is None else outcome.checks
    check = next((check for check in checks if check.id == failure.check_id), None)
    cmd = _command(failure.tests or failure.top_failing_tests) or (check.cmd if check else None)
    if cmd is not None and parsed(cmd) is not None:
        limit = (check.timeout_seconds if check else None) or DEFAULT_CRITERION_SECONDS
        limit = limit if 0 < limit <= MAX_SECONDS else DEFAULT_CRITERION_SECONDS
        tests = (CommandSpec(cmd=cmd, timeout_seconds=limit),)
        return {"acceptance_criteria": AcceptanceCriteria(tests=tests)}
    for index, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        if failure.check_id == f"expected_artifacts[{index}]":
            return {"acceptance_criteria": AcceptanceCriteria(expected_artifacts=(artifact,))}
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
