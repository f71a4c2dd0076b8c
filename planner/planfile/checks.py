"""Consistency checks of a plan: between its parts, and against the folder that it refers to.

Each check yields the location, by the names of the model, with the problem and, after a semicolon, the
remedy. :mod:`.loader` adds the positions in the file.
"""

from __future__ import annotations

import re
import shlex
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from planner.catalog import RECIPES, fault_of_tool
from planner.catalog.test_paths import is_test_module
from planner.errors import CommandSyntaxError
from planner.model.plan import MAX_TODOS
from planner.planfile.document import Loc
from planner.planfile.project_files import Confinement, RootedFiles, source_files
from planner.policy.criteria import (
    Criterion,
    command_criterion,
    commands_of,
    conventional_command,
    criteria_of,
    criterion_place,
    pytest_command,
    wants_convention,
)
from planner.policy.dependencies import find_cycle
from planner.policy.limits import is_stricter_tool
from planner.text.display import did_you_mean
from planner.text.glob_patterns import is_glob

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from planner.model.plan import Plan, Policy, Todo, ToolSpec

Found: TypeAlias = tuple[Loc, str]
"""A location in the plan, and the problem there."""

_MAX_GUESSES = 20
"""Limit of unknown ids that get a suggestion; matching is slow among many ids."""

# A rule of a Makefile, with all of its targets; not an assignment such as ``name := value``.
_TARGET = re.compile(r"^([A-Za-z0-9_.][^:=#\t\n]*):(?![=:]?=)", re.MULTILINE)


def judge_plan(
    plan: Plan,
    root: Path | None,
    tools: tuple[ToolSpec, ...] = (),
    tools_above: tuple[ToolSpec, ...] | None = None,
) -> tuple[list[Found], dict[str, tuple[Criterion, ...]]]:
    """Check a whole plan; return its faults, and its criteria by todo id.

    Without ``root`` the checks of files are skipped, and no tests are searched. Commands may name the
    ``tools`` besides the catalog's. ``tools_above`` are the tools of the plan above, to which a sub-plan is
    limited; ``None`` for a top plan.
    """
    # Branches do not count, so that a plan at the limit can still be repaired.
    lasting = [index for index, todo in enumerate(plan.items) if not todo.is_temporary]
    if len(lasting) > MAX_TODOS:
        problem = (
            f"the plan has {len(lasting):,} todos, more than {MAX_TODOS:,}; split it into several plans"
        )
        return [(("items", lasting[MAX_TODOS]), problem)], {}
    faults: list[Found] = []
    criteria: dict[str, tuple[Criterion, ...]] = {}
    confinement = Confinement(root) if root else None
    conventions = Conventions(root, {todo.id: todo for todo in plan.items}) if root else None
    if not plan.items:
        faults.append((("items",), "the plan has no todos; add at least one item"))
    faults += _references(plan.items)
    faults += _policy(plan.metadata, confinement, tools_above)
    for index, todo in enumerate(plan.items):
        conventional = conventions.command(todo) if conventions and wants_convention(todo) else None
        found, criteria[todo.id] = judge_todo(todo, confinement, tools, conventional)
        faults += ((("items", index, *place), problem) for place, problem in found)
    return faults, criteria


def judge_todo(
    todo: Todo,
    confinement: Confinement | None,
    tools: tuple[ToolSpec, ...] = (),
    conventional: str | None = None,
) -> tuple[list[Found], tuple[Criterion, ...]]:
    """Check one todo without its dependencies; return its faults, located within it, and its criteria.

    ``conventional`` is the command by convention of a todo without criteria.
    """
    faults: list[Found] = []
    try:
        criteria = criteria_of(todo, conventional, tools)
    except CommandSyntaxError:
        # Each command on its own, to report the faults of all.
        found: list[Criterion] = []
        for where, spec in commands_of(todo):
            try:
                found.append(command_criterion(where, spec, tools))
            except CommandSyntaxError as error:
                remedy = error.remedy
                if where == "verify" and " " not in spec.cmd.strip():
                    remedy += f"; verify may also name a recipe: {', '.join(RECIPES)}"
                faults.append((criterion_place(where), f"{error.problem}; {remedy}"))
        criteria = tuple(found)
    faults += _statements(todo)
    if confinement is not None:
        faults += _paths(todo, criteria, confinement)
    return faults, criteria


def _statements(todo: Todo) -> Iterator[Found]:
    """Yield contradictions within a todo, which are faults whatever the plan and the folder contain."""
    if "acceptance_criteria" in todo.model_fields_set and wants_convention(todo):
        yield (
            ("acceptance_criteria",),
            "the acceptance criteria are empty and would prove nothing; add a test, "
            "or remove the key to find the tests by convention",
        )
    if todo.is_parent and todo.sub_plan is None and todo.sub_project_id is None:
        yield (
            ("is_parent",),
            "a parent has its todos in another plan, but none is named; add sub_plan: path/to/plan.yaml or "
            "a sub_project_id",
        )
    for index, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        if artifact.max_bytes is not None and artifact.min_bytes > artifact.max_bytes:
            yield (
                ("acceptance_criteria", "expected_artifacts", index, "max_bytes"),
                f"max_bytes {artifact.max_bytes} is less than min_bytes {artifact.min_bytes}; "
                "exchange them",
            )


def _paths(todo: Todo, criteria: tuple[Criterion, ...], confinement: Confinement) -> Iterator[Found]:
    """Yield paths and globs of a todo, and of its commands, that leave the root."""
    paths: list[tuple[Loc, str | None]] = [
        ((name,), getattr(todo, name)) for name in ("contract_path", "sub_plan", "test_file")
    ]
    if (task := todo.controller_task_spec) is not None:
        paths.append((("controller_task_spec", "target_file"), task.target_file))
    globs: list[tuple[Loc, str]] = [
        (("allowed_files", at), glob.removeprefix("!")) for at, glob in enumerate(todo.allowed_files or ())
    ]
    for at, spec in enumerate(todo.acceptance_criteria.tests):
        paths.append((("acceptance_criteria", "tests", at, "fixture"), spec.fixture))
    for at, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
        where = ("acceptance_criteria", "expected_artifacts", at)
        paths.append(((*where, "json_schema"), artifact.json_schema))
        globs.append(((*where, "path"), artifact.path))
    found = [(place, confinement.fault(path)) for place, path in paths if path is not None]
    found += [(place, confinement.glob_fault(pattern)) for place, pattern in globs]
    yield from ((place, problem) for place, problem in found if problem is not None)
    for criterion in criteria:
        if criterion.command is None or criterion.command.pytest is None:
            continue
        for selection in criterion.command.pytest.selections:
            problem = confinement.fault(selection.partition("::")[0])
            # The path of ``test_file`` was checked above, as one of the paths.
            if problem is not None and criterion.id != "test_file":
                yield criterion_place(criterion.id), f"the command selects outside: {problem}"
        for option, path in criterion.command.pytest.option_paths:
            problem = confinement.fault(path)
            if problem is not None:
                yield criterion_place(criterion.id), f"{option} of the command leads outside: {problem}"


def _references(items: tuple[Todo, ...]) -> Iterator[Found]:
    """Yield duplicate ids, unknown dependencies, dependencies on oneself, and dependency cycles."""
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
                guessed = first if guesses_left > 0 else ()
                remedy = did_you_mean(dependency, guessed, "name the id of a todo of this plan")
                guesses_left -= 1
                yield loc, f"there is no todo '{dependency}'; {remedy}"
    # Reversed, so that of todos with one id the first counts, whose index is in `first`.
    left = {todo.id: todo for todo in reversed(items) if todo.id and todo.id not in todo.dependencies}
    # In the order of the file again, which decides where a cycle begins.
    while cycle := find_cycle(left[each] for each in sorted(left, key=first.__getitem__)):
        last, closing = first[cycle[-2]], cycle[-1]
        shown = " -> ".join(cycle if len(cycle) <= 12 else (*cycle[:6], "…", *cycle[-5:]))
        yield (
            ("items", last, "dependencies", items[last].dependencies.index(closing)),
            f"the dependencies go in a circle: {shown}; remove one of them",
        )
        for each in cycle[1:]:  # remove the todos of this cycle to find the next one
            del left[each]


def _policy(
    policy: Policy, confinement: Confinement | None, tools_above: tuple[ToolSpec, ...] | None
) -> Iterator[Found]:
    """Yield faults of the plan's policy: dates, protected files that leave the root, and tools."""
    for index, quarantine in enumerate(policy.flaky_retry.quarantine):
        try:
            date.fromisoformat(quarantine.expires)
        except ValueError:
            loc = ("metadata", "flaky_retry", "quarantine", index, "expires")
            yield loc, f"'{quarantine.expires}' is not a valid date; write it as YYYY-MM-DD"
    for index, pattern in enumerate(policy.protected_files):
        problem = confinement.glob_fault(pattern) if confinement is not None else None
        if problem is not None:
            yield ("metadata", "protected_files", index), problem
    names: set[str] = set()
    for index, spec in enumerate(policy.tools):
        loc = ("metadata", "tools", index)
        fault = fault_of_tool(spec)
        if fault is not None:
            yield loc, fault
        if spec.name in names:
            yield (*loc, "name"), f"the tool '{spec.name}' is named twice; give this one another name"
        names.add(spec.name)
        if tools_above is not None and not any(is_stricter_tool(spec, each) for each in tools_above):
            yield (
                loc,
                f"the parent plan does not allow the tool '{spec.name}' with this argv; "
                "name it in metadata.tools of that plan too, or remove it here",
            )


# -- conventions ---------------------------------------------------------------------------------------


class Conventions:
    """Finds tests by convention below one root; reads the file system on first use."""

    def __init__(self, root: Path, todos: Mapping[str, Todo]) -> None:
        self._root = root
        self._todos = todos

    def command(self, todo: Todo) -> str:
        """Return the test command of a todo without criteria.

        The first match of: the test file of a dependency with the same stem (``buffer-impl`` after
        ``buffer-tests``); ``tests/test_{id}.py``; the Makefile target ``test-{id}``; ``{id}_test.py``
        or ``test_{id}.py`` anywhere below the root; else ``tests/test_{id}.py`` although missing.
        """
        found = self._of_dependency(todo) or self._find("tests/test_{}.py", todo.id)
        if found is None and _folded(todo.id) in self._targets:
            return f"make {shlex.quote(self._targets[_folded(todo.id)])}"
        found = found or self._anywhere(todo.id)
        return conventional_command(todo) if found is None else pytest_command(found)

    def _of_dependency(self, todo: Todo) -> str | None:
        """Return the test file of a dependency ``{stem}-test`` or ``{stem}-tests``, if there is one."""
        stem, _, _ = _folded(todo.id).rpartition("_")
        for dependency in todo.dependencies:
            if stem and _folded(dependency) in (f"{stem}_test", f"{stem}_tests"):
                tests = self._todos.get(dependency)
                declared = next(_declared_test_files(tests), None) if tests is not None else None
                in_tests = (self._find("tests/test_{}.py", name) for name in (stem, dependency))
                found = declared or next(filter(None, in_tests), None) or self._anywhere(stem)
                if found is not None:
                    return found
        return None

    def _anywhere(self, name: str) -> str | None:
        return self._find("{}_test.py", name) or self._find("test_{}.py", name)

    def _find(self, pattern: str, name: str) -> str | None:
        return self._files.get(pattern.format(_folded(name)))

    @cached_property
    def _files(self) -> dict[str, str]:
        """Paths of Python files by folded path, and of the shallowest file by folded name."""
        found: dict[str, str] = {}
        for path in source_files(self._root):
            found.setdefault(_folded(path), path)
            found.setdefault(_folded(path.rpartition("/")[2]), path)
        return found

    @cached_property
    def _targets(self) -> dict[str, str]:
        """Makefile targets ``test-{id}`` by folded id."""
        files = RootedFiles(self._root)
        # The names that GNU make tries, in its order.
        found = next(filter(None, map(files.read, ("GNUmakefile", "makefile", "Makefile"))), None)
        words = " ".join(_TARGET.findall(found.text if found else "")).split()
        return {_folded(word[5:]): word for word in words if _folded(word).startswith("test_")}


def _folded(name: str) -> str:
    """Return a name with ``-`` as ``_``: ids may have dashes, names of modules may not."""
    return name.replace("-", "_")


def _declared_test_files(todo: Todo) -> Iterator[str]:
    """Yield the test files that a todo names: its ``test_file``, artifacts, and words of its commands."""
    if todo.test_file is not None:
        yield todo.test_file
    for artifact in todo.acceptance_criteria.expected_artifacts:
        if is_test_module(artifact.path) and not is_glob(artifact.path):
            yield artifact.path
    for spec in todo.acceptance_criteria.tests:
        for word in spec.cmd.split():
            file = word.partition("::")[0]
            if file.endswith(".py") and not file.startswith("-"):
                yield file
