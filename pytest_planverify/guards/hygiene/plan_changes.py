"""Changes of the plan that demand less or permit more.

A plan is reduced to named demands and permissions, which are compared by name. A demand is a number of
which more is stricter (limits are negated), or a text that has to stay the same.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TypeAlias

from planner.model.plan import Operator
from planner.policy.allowed_files import widened_by
from pytest_planverify.guards.hygiene.changes import file_signal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from planner.model.plan import Plan, Todo

    Demands: TypeAlias = Iterator[tuple[str, float | str]]
    """Pairs of a demand's name and its value."""

_MORE_IS_STRICTER = {Operator.GE: 1, Operator.GT: 1, Operator.LE: -1, Operator.LT: -1}
_COMMANDS = ("verify", "test_command", "test_file")
_SINGLE = (*_COMMANDS, "contract_path", "sub_plan", "sub_project_id")
_POLICIES = ("network", "processes", "writes")


def plan_findings(before: Plan, now: Plan, path: str) -> Iterator[HygieneSignal]:
    """Yield removed or loosened criteria, and widened allowlists and policies."""

    def loose(message: str, old: object = None, new: object = None) -> HygieneSignal:
        texts = ["" if each is None else str(each) for each in (old, new)]
        return file_signal("plan-loosened", message, path, before=texts[0], after=texts[1])

    todos = {todo.id: todo for todo in now.items}
    # Criteria that moved to another todo weaken nothing.
    elsewhere = {each for todo in now.items for each in _commands(todo)}
    for todo in before.items:
        twin = todos.get(todo.id)  # the same todo in the current plan
        commands = {*_commands(todo)}
        if twin is None:
            # A removed todo weakens nothing if others took over all of its commands.
            if not commands or not commands <= elsewhere:
                yield loose(f"The todo {todo.id} is gone from the plan", todo.title)
            continue
        current = dict(_demands(twin))
        for name, value in _demands(todo):
            # The name of a command's demand ends with the command itself.
            is_moved = name not in current and name.partition(": ")[2] in elsewhere
            if not is_moved and _is_lost(name, value, current):
                yield loose(f"The todo {todo.id} requires less ({name})", value, current.get(name))
        old, new = todo.allowed_files, twin.allowed_files
        if old is not None and (new is None or widened_by(old, new) is not None):
            yield loose(f"The todo {todo.id} may change more files", old, new)
    current = dict(_policy(now))
    for name, value in _policy(before):
        if _is_lost(name, value, current):
            yield loose(f"The plan requires less ({name})", value, current.get(name))
    known = dict(_permits(before))
    for name, value in _permits(now):
        if name not in known or value > known[name]:
            yield loose(f"The plan permits more ({name})", known.get(name), value)


def _is_lost(name: str, value: float | str, current: Mapping[str, float | str]) -> bool:
    """Return whether a demand is missing in the current ones, or weaker there."""
    if name.startswith("must_") and f"{name.partition(': ')[0]}: all" in current:
        return False  # "all" includes the test that was named before
    now = current.get(name)
    if isinstance(value, str) or isinstance(now, str) or now is None:
        return now is None or (value != "" and value != now)
    return now < value


def _demands(todo: Todo) -> Demands:
    """Yield the demands of a todo; an empty text demands only that the name stays."""
    criteria = todo.acceptance_criteria
    for each in _commands(todo):
        yield f"command: {each}", ""
    for spec in criteria.expected_artifacts:
        yield f"artifact {spec.path}: min_bytes", spec.min_bytes
        if spec.max_bytes is not None:
            yield f"artifact {spec.path}: max_bytes", -spec.max_bytes
        for name, value in (("sha256", spec.sha256), ("schema", spec.json_schema)):
            if value is not None:
                yield f"artifact {spec.path}: {name}", value
    for spec in criteria.metrics:
        sign = _MORE_IS_STRICTER.get(spec.operator)
        value = f"{spec.value:g}" if sign is None else sign * spec.value
        yield f"metric {spec.name} {spec.operator}", value
    yield "questions", len(criteria.manual)
    for name in _SINGLE:
        if (value := getattr(todo, name)) is not None:
            text = _command(str(value))
            yield (f"{name}: {text}", "") if name in _COMMANDS else (name, text)
    for name in ("must_turn_green", "must_stay_green"):
        nodeids = getattr(todo, name)
        for each in ["all"] if nodeids == "all" else nodeids:
            yield f"{name}: {each}", ""
    if todo.requires_testing:
        yield "requires_testing", ""


def _policy(plan: Plan) -> Demands:
    """Yield the demands that a plan makes on all todos: restrictions, protected files and budget."""
    yield "root", plan.root
    policy = plan.metadata
    for name in _POLICIES:
        if getattr(policy, name) != "record":
            yield f"{name} is limited", ""
    for glob in policy.protected_files:
        yield f"protected: {glob}", ""
    for tool in policy.tools:
        yield f"another tool {tool.name}", tool.model_dump_json()
    for name in ("wall_seconds", "memory_mb", "new_files"):
        if (limit := getattr(policy.budget, name)) is not None:
            yield f"budget {name}", -limit


def _permits(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what a plan permits: granted accesses, tools, and tests in quarantine with their last day."""
    for name in _POLICIES:
        value: str | tuple[str, ...] = getattr(plan.metadata, name)
        for each in () if isinstance(value, str) else value:
            yield f"{name}: {each}", ""
    for tool in plan.metadata.tools:
        yield f"the tool {tool.name}", ""
    for each in plan.metadata.flaky_retry.quarantine:
        yield f"{each.nodeid} is flaky", each.expires


def _commands(todo: Todo) -> Iterator[str]:
    """Yield each command of a todo, and again with the name of its fixture: it may have several."""
    for spec in todo.acceptance_criteria.tests:
        yield _command(spec.cmd)
        if spec.fixture is not None:
            yield f"{_command(spec.cmd)} with the fixture {spec.fixture}"


def _command(cmd: str) -> str:
    """Return a command without differences in quoting, to compare it."""
    # Tools that rewrite a plan, such as the planner, may quote differently.
    try:
        return " ".join(shlex.split(cmd))
    except ValueError:
        return cmd
