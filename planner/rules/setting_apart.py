"""From a failure that was there before the work began to a todo of its own."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Protocol

from planner.catalog import parse_command
from planner.errors import CommandSyntaxError
from planner.model.edits import AddDependency, AddTodoBefore
from planner.model.plan import (
    DEFAULT_CRITERION_SECONDS,
    MAX_SECONDS,
    AcceptanceCriteria,
    CommandSpec,
    Todo,
)
from planner.model.verdicts import CheckKind
from planner.rules.routing import role_for
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.edits import Edit
    from planner.model.outcome import Check, Failure, Outcome

    class RedTodo(Protocol):
        """A todo, and the outcome by which it is red."""

        @property
        def todo(self) -> Todo: ...
        @property
        def within(self) -> str: ...
        @property
        def outcome(self) -> Outcome | None: ...


RULE = "pre-existing-failure"
MOST_TESTS = 20
"""So many tests are named one by one; of more, their files are."""

_LONGEST_NAME = 100

_HEAD = 100
"""So many characters of the failure's own words stand in the title."""


def set_apart(entry: RedTodo, failures: Iterable[Failure], known: set[tuple[str, str]]) -> list[Edit]:
    """Edits that give each failure a todo of its own, which the failed todo waits for.

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
        if place not in known:
            known.add(place)
            edits.append(AddTodoBefore(rule=RULE, because=because, todo_id=entry.todo.id, todo=todo))
        else:
            edits.append(AddDependency(rule=RULE, because=because, todo_id=entry.todo.id, on=todo.id))
    return edits


def _todo_of(entry: RedTodo, failure: Failure) -> Todo:
    name = failure.signature or f"{entry.todo.id}_{failure.category.value.lower()}"
    said = clean(failure.stack_trace_head or failure.category.value, limit=_HEAD)
    role = role_for(failure, entry.todo)
    fields: dict[str, Any] = {
        "id": f"pre_existing_{_as_id(name)[:_LONGEST_NAME]}",
        "title": f"Mend what failed before: {' '.join(said.split())}",
        "intent": f"It failed before the work on {entry.todo.id} began, and is not that todo's fault.",
        "agent_role": role,
        "priority": entry.todo.priority,
        **_criteria(entry, failure),
    }
    if entry.todo.failure_routing:
        fields["failure_routing"] = entry.todo.failure_routing
    return Todo.model_validate(fields)


def _criteria(entry: RedTodo, failure: Failure) -> dict[str, Any]:
    """What proves that just this failure is mended."""
    check = _check_of(entry.outcome, failure)
    said = None if check is None else check.timeout_seconds
    limit = said if said is not None and 0 < said <= MAX_SECONDS else DEFAULT_CRITERION_SECONDS
    tests = _command(failure.tests or failure.top_failing_tests)
    if tests is not None:
        command = CommandSpec(cmd=tests, timeout_seconds=limit)
        return {"acceptance_criteria": AcceptanceCriteria(tests=(command,))}
    if check is not None and check.cmd is not None and _is_runnable(check.cmd):
        command = CommandSpec(cmd=check.cmd, timeout_seconds=limit)
        return {"acceptance_criteria": AcceptanceCriteria(tests=(command,))}
    artifacts = entry.todo.acceptance_criteria.expected_artifacts
    for index, artifact in enumerate(artifacts):
        if failure.check_id == f"expected_artifacts[{index}]":
            return {"acceptance_criteria": AcceptanceCriteria(expected_artifacts=(artifact,))}
    if check is not None and check.kind is CheckKind.CONTRACT and entry.todo.contract_path:
        return {"contract_path": entry.todo.contract_path}
    return {
        "acceptance_criteria": entry.todo.acceptance_criteria,
        "verify": entry.todo.verify,
        "test_command": entry.todo.test_command,
        "test_file": entry.todo.test_file,
    }


def _check_of(outcome: Outcome | None, failure: Failure) -> Check | None:
    checks = () if outcome is None else outcome.checks
    return next((check for check in checks if check.id == failure.check_id), None)


def _command(tests: tuple[str, ...]) -> str | None:
    """The command that runs these tests, else nothing: an outcome file may name anything."""
    names = tests
    if len(tests) > MOST_TESTS:
        names = tuple(dict.fromkeys(test.partition("::")[0] for test in tests))
    command = " ".join(["pytest", *(shlex.quote(name) for name in names)])
    lawful = bool(names) and all(_stays_inside(name.partition("::")[0]) for name in names)
    return command if lawful and _is_runnable(command) else None


def _stays_inside(path: str) -> bool:
    return path.isprintable() and not path.startswith(("/", "\\", "~", "-")) and ".." not in path.split("/")


def _is_runnable(cmd: str) -> bool:
    try:
        parse_command(cmd)
    except CommandSyntaxError:
        return False
    return True


def _as_id(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)
