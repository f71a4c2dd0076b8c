"""Criteria of a todo: every check that it names, in one list, with the ids that outcomes use.

Several keys of a todo state criteria (``acceptance_criteria``, ``verify``, ``test_command`` and others);
this module brings them into one form.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from planner.catalog import RECIPES, Command, parse_command
from planner.model.base import report_path
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec, Todo
from planner.model.verdicts import CheckKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import ToolSpec

TURN_GREEN = "must_turn_green"
STAY_GREEN = "must_stay_green"

CriterionSpec: TypeAlias = CommandSpec | ArtifactSpec | MetricSpec | ManualSpec | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One executable check of a todo."""

    id: str
    """Its key in the plan: ``tests[0]``, ``verify``, ``verify[1]``, ``test_command``, ``test_file``,
    ``convention``, ``must_turn_green``, ``must_stay_green``, ``expected_artifacts[0]``, ``metrics[0]``,
    ``manual[0]`` or ``contract_path``.
    """
    kind: CheckKind
    spec: CriterionSpec
    """Its specification in the plan; for a contract, the path."""
    command: Command | None = None
    """The parsed command of tests and commands, else ``None``."""


def criteria_of(
    todo: Todo, conventional: str | None = None, tools: tuple[ToolSpec, ...] = ()
) -> tuple[Criterion, ...]:
    """Return all criteria of a todo, commands first.

    ``conventional`` is the test command by convention, used if the todo states no criteria; ``tools`` are
    those that the plan defines. Raises :class:`planner.errors.CommandSyntaxError` for a command that
    cannot be run.
    """
    criteria = [command_criterion(where, spec, tools) for where, spec in commands_of(todo)]
    criteria += [Criterion(id=where, kind=kind, spec=spec) for where, kind, spec in _facts_of(todo)]
    if not criteria and conventional is not None:
        criteria.append(command_criterion("convention", CommandSpec(cmd=conventional)))
    return tuple(criteria)


def criterion_ids(todo: Todo) -> set[str]:
    """Return the ids of the criteria that a todo states itself, without a conventional one."""
    return {where for where, _ in commands_of(todo)} | {where for where, _, _ in _facts_of(todo)}


def criterion_place(criterion_id: str) -> tuple[str | int, ...]:
    """Return the location of a criterion in its todo, by names of the model."""
    name, _, number = criterion_id.removesuffix("]").partition("[")
    if name == "convention":
        return ()
    if name in ("tests", "expected_artifacts", "metrics", "manual"):
        last = {"tests": ("cmd",), "expected_artifacts": ("path",)}.get(name, ())
        return ("acceptance_criteria", name, int(number), *last)
    return (name,)


def _facts_of(todo: Todo) -> Iterator[tuple[str, CheckKind, CriterionSpec]]:
    """Yield id, kind and specification of the criteria that are not commands."""
    wanted = todo.acceptance_criteria
    # A branch lists the failure report of its parent for the worker; that it exists proves nothing.
    report = None if todo.parent_id is None else report_path(todo.parent_id)
    for name, kind, specs in (
        ("expected_artifacts", CheckKind.ARTIFACT, wanted.expected_artifacts),
        ("metrics", CheckKind.METRIC, wanted.metrics),
        ("manual", CheckKind.MANUAL, wanted.manual),
    ):
        for index, spec in enumerate(specs):
            if not isinstance(spec, ArtifactSpec) or spec.path.removeprefix("./") != report:
                yield f"{name}[{index}]", kind, spec
    if todo.contract_path is not None:
        yield "contract_path", CheckKind.CONTRACT, todo.contract_path


def commands_of(todo: Todo) -> Iterator[tuple[str, CommandSpec]]:
    """Yield the criterion ids and commands of a todo, including those of a recipe named by ``verify``."""
    for index, spec in enumerate(todo.acceptance_criteria.tests):
        yield f"tests[{index}]", spec
    if todo.verify is not None:
        recipe = RECIPES.get(todo.verify)
        if recipe is None:
            yield "verify", _command(todo.verify)
        else:
            for index, command in enumerate(recipe):
                yield f"verify[{index}]", CommandSpec(cmd=command)
    if todo.test_command is not None:
        yield "test_command", _command(todo.test_command)
    if todo.test_file is not None:
        yield "test_file", _command(pytest_command(todo.test_file))
    for name, tests in ((TURN_GREEN, todo.must_turn_green), (STAY_GREEN, todo.must_stay_green)):
        if tests == "all":  # one file that fails to import must not prevent the verdict on all others
            yield name, _command("pytest --continue-on-collection-errors")
        elif tests:
            yield name, _command(pytest_command(*tests))


def command_criterion(where: str, spec: CommandSpec, tools: tuple[ToolSpec, ...] = ()) -> Criterion:
    """Return the criterion of one command. Raises :class:`planner.errors.CommandSyntaxError`."""
    command = parse_command(spec.cmd, tools)
    kind = CheckKind.COMMAND if command.pytest is None else CheckKind.TEST
    return Criterion(id=where, kind=kind, spec=spec, command=command)


def pytest_command(*tests: str) -> str:
    """Return the pytest command for test files or node ids."""
    # pytest would parse a path with a leading dash as an option.
    paths = (f"./{each}" if each.startswith("-") else each for each in tests)
    return f"pytest {shlex.join(paths)}"


def conventional_command(todo: Todo) -> str:
    """Return the test command by convention, which follows from the todo's id."""
    return pytest_command(f"tests/test_{todo.id.replace('-', '_')}.py")


def wants_convention(todo: Todo) -> bool:
    """Return whether a todo requires testing but states no criterion."""
    return (
        todo.requires_testing
        and not todo.has_sub_plan
        and not todo.acceptance_criteria
        and todo.contract_path is None
        and next(commands_of(todo), None) is None
    )


def _command(cmd: str) -> CommandSpec:
    # Without validation: that of the todo has accepted or reported the command already.
    return CommandSpec.model_construct(cmd=cmd)
