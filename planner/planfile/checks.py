"""Check the parts of a plan against each other, and against the folder that they name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from planner.catalog import RECIPES, fault_of_tool, parse_command
from planner.errors import CommandSyntaxError
from planner.planfile.document import Loc
from planner.policy.criteria import Criterion, command_criterion, commands_of, criteria_of, wants_convention
from planner.policy.dependencies import find_cycle
from planner.policy.limits import is_stricter_tool, tools_under

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.model.plan import NegativeControl, Plan, Policy, Todo, ToolSpec
    from planner.planfile.confinement import Confinement
    from planner.planfile.conventions import Conventions

Found: TypeAlias = tuple[Loc, str]
"""A place and what is wrong there."""

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
    tools, faults = judgement.tools, judgement.faults
    try:
        conventional = conventions.command(todo) if conventions and wants_convention(todo) else None
        criteria = criteria_of(todo, conventional, tools)
    except CommandSyntaxError:
        found: list[Criterion] = []
        for where, spec in commands_of(todo):
            try:
                found.append(command_criterion(where, spec, tools))
            except CommandSyntaxError as error:
                remedy = error.remedy
                if where == "verify" and " " not in spec.cmd.strip():
                    remedy += f"; verify may also name a recipe: {', '.join(RECIPES)}"
                faults.append(((*loc, *_place_of(where)), f"{error.problem}; {remedy}"))
        criteria = tuple(found)
    faults.extend(((*loc, *place), problem) for place, problem in _statements(todo, tools))
    if confinement is not None:
        found_paths = _paths(todo, criteria, confinement)
        faults.extend(((*loc, *place), problem) for place, problem in found_paths)
    return criteria


def _statements(todo: Todo, tools: tuple[ToolSpec, ...]) -> Iterator[Found]:
    """Yield what a todo says that cannot be meant, whatever the plan and the folder hold."""
    if "acceptance_criteria" in todo.model_fields_set and wants_convention(todo):
        yield (
            ("acceptance_criteria",),
            "the acceptance criteria are empty, so nothing would be proved; add a test, "
            "or leave the key out to have the tests found by convention",
        )
    for where, control in _negative_controls(todo):
        if (control.patch is None) == (control.cmd is None):
            yield where, "a negative control is a patch or a command; give one of patch and cmd"
        if control.cmd is not None:
            try:
                parse_command(control.cmd, tools)
            except CommandSyntaxError as error:
                yield (*where, "cmd"), f"{error.problem}; {error.remedy}"
    if todo.is_parent and todo.sub_plan is None and todo.sub_project_id is None:
        yield (
            ("is_parent",),
            "a parent has its todos in another plan, and none is named; add sub_plan: path/to/plan.yaml or "
            "a sub_project_id",
        )
    for index, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        if artifact.max_bytes is not None and artifact.min_bytes > artifact.max_bytes:
            yield (
                ("acceptance_criteria", "expected_artifacts", index, "max_bytes"),
                f"max_bytes {artifact.max_bytes} is less than min_bytes {artifact.min_bytes}, "
                "which nothing can be; exchange them",
            )


def _negative_controls(todo: Todo) -> Iterator[tuple[Loc, NegativeControl]]:
    if todo.negative_control is not None:
        yield ("negative_control",), todo.negative_control
    for index, spec in enumerate(todo.acceptance_criteria.tests):
        if spec.negative_control is not None:
            yield ("acceptance_criteria", "tests", index, "negative_control"), spec.negative_control


def _paths(todo: Todo, criteria: Iterable[Criterion], confinement: Confinement) -> Iterator[Found]:
    """Yield the paths and globs of a todo, and those in its commands, that leave the root."""
    allowed = todo.allowed_files or ()
    artifacts = [*enumerate(todo.acceptance_criteria.expected_artifacts)]
    tests = enumerate(todo.acceptance_criteria.tests)
    task = todo.controller_task_spec
    paths: list[tuple[Loc, str | None]] = [
        *((("acceptance_criteria", "tests", at, "fixture"), each.fixture) for at, each in tests),
        *(
            (("acceptance_criteria", "expected_artifacts", at, "json_schema"), each.json_schema)
            for at, each in artifacts
        ),
        *(((*where, "patch"), control.patch) for where, control in _negative_controls(todo)),
        *(((name,), getattr(todo, name)) for name in ("contract_path", "sub_plan", "test_file")),
        (("controller_task_spec", "target_file"), task.target_file if task is not None else None),
    ]
    globs: list[tuple[Loc, str]] = [
        *((("acceptance_criteria", "expected_artifacts", at, "path"), each.path) for at, each in artifacts),
        *((("allowed_files", at), glob.removeprefix("!")) for at, glob in enumerate(allowed)),
    ]
    found = [(place, confinement.fault(path)) for place, path in paths if path is not None]
    found += [(place, confinement.glob_fault(pattern)) for place, pattern in globs]
    yield from ((place, problem) for place, problem in found if problem is not None)
    for criterion in criteria:
        if criterion.command is None or criterion.command.pytest is None:
            continue
        for selection in criterion.command.pytest.selections:
            problem = confinement.fault(selection.partition("::")[0])
            if problem is not None and criterion.id != "test_file":
                yield _place_of(criterion.id), f"the command selects outside: {problem}"
        for option, path in criterion.command.pytest.option_paths:
            problem = confinement.fault(path)
            if problem is not None:
                yield _place_of(criterion.id), f"the command's {option} leads outside: {problem}"


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
    guesses_left = _MAX_GUESSES
    for index, todo in enumerate(items):
        for position, dependency in enumerate(todo.dependencies):
            loc = ("items", index, "dependencies", position)
            if dependency and dependency == todo.id:
                yield loc, f"'{dependency}' depends on itself; remove it"
            elif dependency not in first:
                # Guessing takes long among many ids, so only the first are guessed.
                near = get_close_matches(dependency, first, n=1) if guesses_left > 0 else []
                guesses_left -= 1
                remedy = f"did you mean '{near[0]}'?" if near else "name the id of a todo of this plan"
                yield loc, f"there is no todo '{dependency}'; {remedy}"
    yield from _cycles(items, first)


def _cycles(items: tuple[Todo, ...], index_of: dict[str, int]) -> Iterator[Found]:
    """Yield some of the cycles: each is reported where it closes, then cut there to find the next."""
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
        try:
            date.fromisoformat(quarantine.expires)
        except ValueError:
            loc = ("metadata", "flaky_retry", "quarantine", index, "expires")
            yield loc, f"'{quarantine.expires}' is no date of the calendar; write it as YYYY-MM-DD"
    for index, pattern in enumerate(policy.protected_files):
        problem = confinement.glob_fault(pattern) if confinement is not None else None
        if problem is not None:
            yield ("metadata", "protected_files", index), problem


def _tools(tools: tuple[ToolSpec, ...], above: tuple[ToolSpec, ...] | None) -> Iterator[Found]:
    """Yield tools that are refused, share a name, or are not allowed by the plan above."""
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
