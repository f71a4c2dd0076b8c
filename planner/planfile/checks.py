"""Check the parts of a plan against each other, and against the folder that they name."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from planner.catalog import RECIPES, fault_of_tool, parse_command
from planner.errors import CommandSyntaxError
from planner.model.plan import ID_PATTERN
from planner.planfile.document import Loc
from planner.policy.criteria import Criterion, command_criterion, commands_of, criteria_of, wants_convention
from planner.policy.dependencies import find_cycle
from planner.policy.limits import is_stricter_tool, tools_under

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from planner.model.plan import NegativeControl, Plan, Policy, Todo, ToolSpec
    from planner.planfile.confinement import Confinement
    from planner.planfile.conventions import Conventions

Found: TypeAlias = tuple[Loc, str]
"""A place and what is wrong there."""

_ID = re.compile(ID_PATTERN)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_CYCLES = 10
_MAX_GUESSES = 20


@dataclass(slots=True)
class Judgement:
    """Result of the checks: faults, the criteria of each todo, and the tools that its commands may name."""

    tools: tuple[ToolSpec, ...] = ()
    faults: list[Found] = field(default_factory=list[Found])
    criteria: dict[str, tuple[Criterion, ...]] = field(default_factory=dict[str, tuple[Criterion, ...]])


def judge_plan(
    plan: Plan,
    confinement: Confinement | None,
    conventions: Conventions | None,
    tools_above: tuple[ToolSpec, ...] | None = None,
) -> Judgement:
    """Check a whole plan. Without a root to look at, what depends on it is left out.

    ``tools_above`` are the tools that the plan above names, of which a sub-plan may have no more.
    """
    judgement = Judgement(tools=tools_under(plan.metadata, tools_above))
    if not plan.items:
        judgement.faults.append((("items",), "the plan has no todos; add at least one item"))
    judgement.faults.extend(_references(plan.items))
    judgement.faults.extend(_policy(plan.metadata, confinement))
    judgement.faults.extend(_tools(plan.metadata.tools, tools_above))
    for index, todo in enumerate(plan.items):
        loc = ("items", index)
        judgement.criteria[todo.id] = _judge_todo(todo, loc, confinement, conventions, judgement)
    return judgement


def judge_todo(todo: Todo, confinement: Confinement) -> list[Found]:
    """Check a todo that stands alone; what it depends on is not known."""
    judgement = Judgement()
    _judge_todo(todo, (), confinement, None, judgement)
    return judgement.faults


def _judge_todo(
    todo: Todo,
    loc: Loc,
    confinement: Confinement | None,
    conventions: Conventions | None,
    judgement: Judgement,
) -> tuple[Criterion, ...]:
    criteria: tuple[Criterion, ...] = ()
    faults, tools = judgement.faults, judgement.tools
    try:
        conventional = conventions.command(todo) if conventions and wants_convention(todo) else None
        criteria = criteria_of(todo, conventional, tools)
    except CommandSyntaxError:
        criteria = tuple(_runnable(todo, tools))
        faults.extend(_commands(todo, loc, tools))
    faults.extend(_emptiness(todo, loc))
    faults.extend(_controls(todo, loc, tools))
    faults.extend(_parentage(todo, loc))
    faults.extend(_sizes(todo, loc))
    if confinement is not None:
        faults.extend(_paths(todo, loc, criteria, confinement))
    return criteria


def _commands(todo: Todo, loc: Loc, tools: tuple[ToolSpec, ...]) -> Iterator[Found]:
    """Every command that cannot be run. Asked only when one of them cannot."""
    for where, spec in commands_of(todo):
        if not spec.cmd:
            continue
        try:
            parse_command(spec.cmd, tools)
        except CommandSyntaxError as error:
            remedy = error.remedy
            if where == "verify" and " " not in spec.cmd.strip():
                remedy += f"; verify may also name a recipe: {', '.join(RECIPES)}"
            yield (*loc, *_place_of(where)), f"{error.problem}; {remedy}"


def _runnable(todo: Todo, tools: tuple[ToolSpec, ...]) -> Iterator[Criterion]:
    for where, spec in commands_of(todo):
        with suppress(CommandSyntaxError):
            yield command_criterion(where, spec, tools)


def _controls(todo: Todo, loc: Loc, tools: tuple[ToolSpec, ...]) -> Iterator[Found]:
    """A negative control is one of two things, and a command of it is one that can be run."""
    for where, control in _negative_controls(todo):
        if (control.patch is None) == (control.cmd is None):
            yield (
                (*loc, *where),
                "a negative control is a patch or a command; give one of patch and cmd",
            )
        if control.cmd is not None:
            try:
                parse_command(control.cmd, tools)
            except CommandSyntaxError as error:
                yield (*loc, *where, "cmd"), f"{error.problem}; {error.remedy}"


def _negative_controls(todo: Todo) -> Iterator[tuple[Loc, NegativeControl]]:
    if todo.negative_control is not None:
        yield ("negative_control",), todo.negative_control
    for index, spec in enumerate(todo.acceptance_criteria.tests):
        if spec.negative_control is not None:
            yield ("acceptance_criteria", "tests", index, "negative_control"), spec.negative_control


def _emptiness(todo: Todo, loc: Loc) -> Iterator[Found]:
    if "acceptance_criteria" in todo.model_fields_set and wants_convention(todo):
        yield (
            (*loc, "acceptance_criteria"),
            "the acceptance criteria are empty, so nothing would be proved; add a test, "
            "or leave the key out to have the tests found by convention",
        )


def _parentage(todo: Todo, loc: Loc) -> Iterator[Found]:
    if todo.is_parent and todo.sub_plan is None and todo.sub_project_id is None:
        yield (
            (*loc, "is_parent"),
            "a parent has its todos in another plan, and none is named; add sub_plan: path/to/plan.yaml or "
            "a sub_project_id",
        )


def _sizes(todo: Todo, loc: Loc) -> Iterator[Found]:
    for index, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        if artifact.max_bytes is not None and artifact.min_bytes > artifact.max_bytes:
            yield (
                (*loc, "acceptance_criteria", "expected_artifacts", index, "max_bytes"),
                f"max_bytes {artifact.max_bytes} is less than min_bytes {artifact.min_bytes}, "
                "which nothing can be; exchange them",
            )


def _paths(
    todo: Todo, loc: Loc, criteria: Iterable[Criterion], confinement: Confinement
) -> Iterator[Found]:
    for below, path in _named_paths(todo):
        problem = confinement.fault(path)
        if problem is not None:
            yield (*loc, *below), problem
    for index, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        problem = confinement.glob_fault(artifact.path)
        if problem is not None:
            yield (*loc, "acceptance_criteria", "expected_artifacts", index, "path"), problem
    for index, pattern in enumerate(todo.allowed_files or ()):
        problem = confinement.glob_fault(pattern.removeprefix("!"))
        if problem is not None:
            yield (*loc, "allowed_files", index), problem
    for criterion in criteria:
        if criterion.command is None or criterion.command.pytest is None:
            continue
        for selection in criterion.command.pytest.selections:
            problem = confinement.fault(selection.partition("::")[0])
            if problem is not None and criterion.id != "test_file":
                yield (*loc, *_place_of(criterion.id)), f"the command selects outside: {problem}"
        for option, path in criterion.command.pytest.option_paths:
            problem = confinement.fault(path)
            if problem is not None:
                yield (*loc, *_place_of(criterion.id)), f"the command's {option} leads outside: {problem}"


def _named_paths(todo: Todo) -> Iterator[tuple[Loc, str]]:
    wanted = todo.acceptance_criteria
    for index, spec in enumerate(wanted.tests):
        if spec.fixture is not None:
            yield ("acceptance_criteria", "tests", index, "fixture"), spec.fixture
    for index, artifact in enumerate(wanted.expected_artifacts):
        if artifact.json_schema is not None:
            yield ("acceptance_criteria", "expected_artifacts", index, "json_schema"), artifact.json_schema
    for where, control in _negative_controls(todo):
        if control.patch is not None:
            yield (*where, "patch"), control.patch
    if todo.contract_path is not None:
        yield ("contract_path",), todo.contract_path
    if todo.sub_plan is not None:
        yield ("sub_plan",), todo.sub_plan
    if todo.test_file is not None:
        yield ("test_file",), todo.test_file
    task = todo.controller_task_spec
    if task is not None and task.target_file is not None:
        yield ("controller_task_spec", "target_file"), task.target_file


def _place_of(criterion_id: str) -> Loc:
    """Return the place in a todo at which the command of a criterion stands."""
    name, _, index = criterion_id.removesuffix("]").partition("[")
    return ("acceptance_criteria", "tests", int(index), "cmd") if name == "tests" else (name,)


def _references(items: tuple[Todo, ...]) -> Iterator[Found]:
    first: dict[str, int] = {}
    for index, todo in enumerate(items):
        if todo.id and todo.id in first:
            problem = f"the id '{todo.id}' is taken by items[{first[todo.id]}]; give this todo another"
            yield ("items", index, "id"), problem
        first.setdefault(todo.id, index)
    guess = _guesser(first)
    for index, todo in enumerate(items):
        for position, dependency in enumerate(todo.dependencies):
            loc = ("items", index, "dependencies", position)
            if dependency and dependency == todo.id:
                yield loc, f"'{dependency}' depends on itself; remove it"
            elif dependency not in first and _ID.match(dependency):
                yield loc, f"there is no todo '{dependency}'; {guess(dependency)}"
    yield from _cycles(items, first)


def _guesser(ids: Iterable[str]) -> Callable[[str], str]:
    """Names the todo that was probably meant. Guessing costs time, so only the first are guessed."""
    known = [each for each in ids if each]
    left = _MAX_GUESSES

    def guess(word: str) -> str:
        nonlocal left
        left -= 1
        near = get_close_matches(word, known, n=1) if left >= 0 else []
        return f"did you mean '{near[0]}'?" if near else "name the id of a todo of this plan"

    return guess


def _cycles(items: tuple[Todo, ...], index_of: dict[str, int]) -> Iterator[Found]:
    """Some of the cycles: each is reported where it closes, then cut there to find the next."""
    todos = {
        todo.id: todo if todo.id not in todo.dependencies else _without(todo, todo.id)
        for todo in reversed(items)
        if todo.id
    }
    for _ in range(_MAX_CYCLES):
        cycle = find_cycle(todos[todo_id] for todo_id in sorted(todos, key=index_of.__getitem__))
        if not cycle:
            return
        last, closing = cycle[-2], cycle[-1]
        index = index_of[last]
        place = items[index].dependencies.index(closing)
        shown = " -> ".join(cycle if len(cycle) <= 12 else (*cycle[:6], "…", *cycle[-5:]))
        yield (
            ("items", index, "dependencies", place),
            f"the dependencies go in a circle: {shown}; remove one of them",
        )
        todos[last] = _without(todos[last], closing)


def _without(todo: Todo, dependency: str) -> Todo:
    left = tuple(each for each in todo.dependencies if each != dependency)
    return todo.model_copy(update={"dependencies": left})


def _policy(policy: Policy, confinement: Confinement | None) -> Iterator[Found]:
    for index, quarantine in enumerate(policy.flaky_retry.quarantine):
        if _DATE.fullmatch(quarantine.expires) and not _is_date(quarantine.expires):
            loc = ("metadata", "flaky_retry", "quarantine", index, "expires")
            yield loc, f"'{quarantine.expires}' is no date of the calendar; write it as YYYY-MM-DD"
    for index, pattern in enumerate(policy.protected_files):
        problem = confinement.glob_fault(pattern) if confinement is not None else None
        if problem is not None:
            yield ("metadata", "protected_files", index), problem


def _tools(tools: tuple[ToolSpec, ...], above: tuple[ToolSpec, ...] | None) -> Iterator[Found]:
    """A tool has a name of its own, is nothing that is refused, and the plan above allows it."""
    names: set[str] = set()
    for index, spec in enumerate(tools):
        loc = ("metadata", "tools", index)
        fault = fault_of_tool(spec)
        if fault is not None:
            yield loc, fault
        if spec.name in names:
            yield (*loc, "name"), f"the tool '{spec.name}' is named twice; give this one another name"
        names.add(spec.name)
        if above is not None and not any(is_stricter_tool(spec, each) for each in above):
            yield (
                loc,
                f"the plan above does not allow the tool '{spec.name}' with these words; "
                "name it in metadata.tools of that plan too, or leave it out here",
            )


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
