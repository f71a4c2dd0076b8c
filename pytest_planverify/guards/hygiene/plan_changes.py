"""The plan of before against the plan as it is: what it asks for less, and what it grants more."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from planner.model.plan import Operator
from planner.text.glob_patterns import EVERYTHING
from pytest_planverify.guards.hygiene.signals import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import ArtifactSpec, MetricSpec, Plan, Todo, ToolSpec

_LOWER_IS_LOOSER = frozenset({Operator.GE, Operator.GT})
_HIGHER_IS_LOOSER = frozenset({Operator.LE, Operator.LT})
_SINGLE = ("verify", "test_command", "test_file", "contract_path", "sub_plan", "sub_project_id")


def plan_findings(before: Plan, now: Plan, path: str) -> Iterator[Finding]:
    """Criteria that are gone or looser, allowlists and policies that are wider.

    What is new, claimed, or moved to another todo takes nothing away.
    """
    todos = {todo.id: todo for todo in now.items}
    elsewhere = Counter(_command(spec.cmd) for todo in now.items for spec in todo.acceptance_criteria.tests)
    for todo in before.items:
        twin = todos.get(todo.id)
        if twin is None:
            if not all(elsewhere[_command(spec.cmd)] for spec in todo.acceptance_criteria.tests) or not (
                todo.acceptance_criteria.tests
            ):
                yield _loose(path, todo, "is gone from the plan", None, None)
            continue
        for said, old, new in (*_criteria(todo, twin, elsewhere), *_reach(todo, twin)):
            yield _loose(path, todo, said, old, new)
    for said, old, new in _policy(before, now):
        yield Finding(sign="plan-loosened", message=f"The plan {said}", path=path, before=old, after=new)


def _criteria(
    todo: Todo, now: Todo, elsewhere: Counter[str]
) -> Iterator[tuple[str, str | None, str | None]]:
    own = Counter(_command(spec.cmd) for spec in now.acceptance_criteria.tests)
    new = [spec.cmd for spec in now.acceptance_criteria.tests]
    for at, spec in enumerate(todo.acceptance_criteria.tests):
        if own[_command(spec.cmd)] > 0:
            own[_command(spec.cmd)] -= 1
            twin = next(
                each for each in now.acceptance_criteria.tests if _command(each.cmd) == _command(spec.cmd)
            )
            if spec.fixture is not None and twin.fixture != spec.fixture:
                yield "reads another fixture", spec.fixture, twin.fixture
        elif not elsewhere[_command(spec.cmd)]:
            came = new[at] if at < len(new) and own[_command(new[at])] > 0 else None
            yield ("has another command" if came else "has lost a command"), spec.cmd, came
    yield from _artifacts(todo, now)
    yield from _metrics(todo, now)
    if len(now.acceptance_criteria.manual) < len(todo.acceptance_criteria.manual):
        yield "asks people less", todo.acceptance_criteria.manual[-1].question, None
    for name in _SINGLE:
        old, value = getattr(todo, name), getattr(now, name)
        if old is not None and old != value and not elsewhere[_command(str(old))]:
            yield f"has another {name}" if value else f"has lost its {name}", str(old), value and str(value)
    for name in ("must_turn_green", "must_stay_green"):
        old, value = getattr(todo, name), getattr(now, name)
        if old and value != "all" and (old == "all" or not set(old) <= set(value)):
            yield f"asks for less in {name}", str(old), str(value)
    if todo.requires_testing and not now.requires_testing:
        yield "requires no testing any more", "requires_testing: true", "requires_testing: false"


def _artifacts(todo: Todo, now: Todo) -> Iterator[tuple[str, str | None, str | None]]:
    twins = {spec.path: spec for spec in now.acceptance_criteria.expected_artifacts}
    for spec in todo.acceptance_criteria.expected_artifacts:
        twin = twins.get(spec.path)
        if twin is None:
            yield "expects an artifact less", spec.path, None
        elif _is_looser(spec, twin):
            yield f"asks less of {spec.path}", _shown(spec), _shown(twin)


def _is_looser(spec: ArtifactSpec, twin: ArtifactSpec) -> bool:
    return (
        twin.min_bytes < spec.min_bytes
        or (spec.max_bytes is not None and (twin.max_bytes is None or twin.max_bytes > spec.max_bytes))
        or (spec.sha256 is not None and twin.sha256 != spec.sha256)
        or (spec.json_schema is not None and twin.json_schema != spec.json_schema)
    )


def _metrics(todo: Todo, now: Todo) -> Iterator[tuple[str, str | None, str | None]]:
    twins: dict[str, list[MetricSpec]] = {}
    for spec in now.acceptance_criteria.metrics:
        twins.setdefault(spec.name, []).append(spec)
    for spec in todo.acceptance_criteria.metrics:
        old = f"{spec.name} {spec.operator} {spec.value:g}"
        same = [each for each in twins.get(spec.name, ()) if each.operator == spec.operator]
        if not same:
            came = next(iter(twins.get(spec.name, ())), None)
            yield "measures less", old, came and f"{came.name} {came.operator} {came.value:g}"
            continue
        twin = same[0]
        looser = (
            (spec.operator in _LOWER_IS_LOOSER and twin.value < spec.value)
            or (spec.operator in _HIGHER_IS_LOOSER and twin.value > spec.value)
            or (spec.operator in (Operator.EQ, Operator.NE) and twin.value != spec.value)
        )
        if looser:
            yield "has a lower threshold", old, f"{twin.name} {twin.operator} {twin.value:g}"


def _reach(todo: Todo, now: Todo) -> Iterator[tuple[str, str | None, str | None]]:
    if todo.allowed_files is not None:
        if now.allowed_files is None:
            yield "has lost its allowed_files", ", ".join(todo.allowed_files), None
        elif not _is_within(
            [glob for glob in now.allowed_files if glob not in todo.allowed_files], todo.allowed_files
        ):
            yield "may change more files", ", ".join(todo.allowed_files), ", ".join(now.allowed_files)
        if any(
            glob.startswith("!") and glob not in (now.allowed_files or ()) for glob in todo.allowed_files
        ):
            yield "may change files that it might not", ", ".join(todo.allowed_files), None
    if todo.negative_control is not None and now.negative_control != todo.negative_control:
        yield (
            "has another negative control",
            str(todo.negative_control.patch or todo.negative_control.cmd),
            None,
        )


def _is_within(globs: list[str], granted: tuple[str, ...]) -> bool:
    """Whether plain paths were granted all along."""
    from planner.text.glob_patterns import allowed, is_glob

    return all(
        glob.startswith("!") or (not is_glob(glob) and glob not in EVERYTHING and allowed(glob, granted))
        for glob in globs
    )


def _policy(before: Plan, now: Plan) -> Iterator[tuple[str, str | None, str | None]]:
    if before.root != now.root:
        yield "has another root", before.root, now.root
    old, new = before.metadata, now.metadata
    for name in ("network", "processes", "writes"):
        was, value = getattr(old, name), getattr(new, name)
        if (
            was != value
            and was != "record"
            and (value == "record" or (was == "deny") or not set(value) <= set(was))
        ):
            yield f"denies less ({name})", str(was), str(value)
    if not set(old.protected_files) <= set(new.protected_files):
        yield "protects fewer files", ", ".join(old.protected_files), ", ".join(new.protected_files)
    commands = {spec.name: spec for spec in new.tools}
    for spec in old.tools:
        if spec.name not in commands:
            yield "has lost a tool", _shown_tool(spec), None
        elif commands[spec.name] != spec:
            yield "has another tool", _shown_tool(spec), _shown_tool(commands[spec.name])
    for spec in new.tools:
        if all(spec.name != each.name for each in old.tools):
            yield "allows another tool", None, _shown_tool(spec)
    known = {each.nodeid: each for each in old.flaky_retry.quarantine}
    for each in new.flaky_retry.quarantine:
        if each.nodeid not in known or each.expires > known[each.nodeid].expires:
            yield "bears another flaky test", None, f"{each.nodeid} until {each.expires}"
    for name in ("wall_seconds", "memory_mb", "new_files"):
        limit, value = getattr(old.budget, name), getattr(new.budget, name)
        if limit is not None and (value is None or value > limit):
            yield f"has a wider budget ({name})", str(limit), str(value)


def _command(cmd: str) -> str:
    """A command, however it is quoted."""
    try:
        return " ".join(shlex.split(cmd))
    except ValueError:
        return cmd


def _shown(spec: ArtifactSpec) -> str:
    return ", ".join(f"{name}: {value}" for name, value in spec.model_dump(exclude_defaults=True).items())


def _shown_tool(spec: ToolSpec) -> str:
    return f"{spec.name} ({spec.kind}): {' '.join(spec.argv or (spec.name,))}"


def _loose(path: str, todo: Todo, said: str, old: str | None, new: str | None) -> Finding:
    return Finding(
        sign="plan-loosened",
        message=f"The todo {todo.id} {said}",
        path=path,
        before=old,
        after=new,
    )
