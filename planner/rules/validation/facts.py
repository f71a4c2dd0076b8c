"""What every rule of validation is given: the plan, its criteria, the project, what follows from them."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.model.plan import CommandSpec
from planner.model.taxonomy import Role
from planner.rules.ancestry import Ancestry
from planner.rules.validation.selecting import Selector
from planner.text.glob_patterns import is_glob, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.plan import Plan, Todo
    from planner.model.qualification import Qualification
    from planner.rules.criteria import Criterion
    from planner.rules.validation.project import Project

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the plan by the names of the model: ``("items", 2, "title")``."""


class Found(NamedTuple):
    """One finding, before its severity and its position are looked up."""

    rule: str
    loc: Loc
    todo_id: str | None
    message: str
    fix: str


class Facts:
    """The plan and the project, and what several rules work out of them."""

    def __init__(
        self,
        plan: Plan,
        criteria: Mapping[str, tuple[Criterion, ...]],
        project: Project,
        *,
        today: str | None = None,
        qualification: Qualification | None = None,
        qualified_prefix: str = "",
    ) -> None:
        """``qualified_prefix`` stands before the ids of the plan's todos in the qualification."""
        self.plan = plan
        self.criteria = criteria
        self.project = project
        self.qualification = qualification
        self.qualified_prefix = qualified_prefix
        self.today = today
        """``YYYY-MM-DD``; dates are judged against nothing else."""

    @cached_property
    def todos(self) -> tuple[tuple[int, Todo], ...]:
        """Every todo with its index."""
        return tuple(enumerate(self.plan.items))

    @cached_property
    def primaries(self) -> tuple[tuple[int, Todo], ...]:
        """Those that are no branches: a branch borrows its criteria, and lives only for a while."""
        return tuple((index, todo) for index, todo in self.todos if not is_branch(todo))

    @cached_property
    def by_id(self) -> Mapping[str, Todo]:
        return {todo.id: todo for todo in self.plan.items}

    @cached_property
    def ancestry(self) -> Ancestry:
        return Ancestry(self.plan.items)

    @cached_property
    def selector(self) -> Selector:
        return Selector(self.project)

    @cached_property
    def makers(self) -> Mapping[str, tuple[str, ...]]:
        """By the path of a file, the todos whose artifact it is, or whose contract as an architect's."""
        found: dict[str, list[str]] = defaultdict(list)
        for todo in self.plan.items:
            for path in made_by(todo):
                found[path].append(todo.id)
        return {path: tuple(ids) for path, ids in found.items()}

    @cached_property
    def _makers_by_folder(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for path, ids in self.makers.items():
            folder = path
            while "/" in folder:
                folder = folder.rpartition("/")[0]
                found[folder].update(dict.fromkeys(ids))
        return {folder: tuple(ids) for folder, ids in found.items()}

    def makers_below(self, folder: str) -> tuple[str, ...]:
        """The todos that make a file of a folder."""
        return self._makers_by_folder.get(folder, ())

    @cached_property
    def glob_makers(self) -> tuple[tuple[str, str], ...]:
        """Artifacts that are globs, each with its todo."""
        return tuple(
            (artifact.path, todo.id)
            for todo in self.plan.items
            for artifact in todo.acceptance_criteria.expected_artifacts
            if is_glob(artifact.path)
        )


def is_branch(todo: Todo) -> bool:
    """Whether a todo repairs another one."""
    return todo.parent_id is not None or todo.is_temporary


def made_by(todo: Todo) -> Iterator[str]:
    """The files that a todo makes, as far as it says so."""
    for artifact in todo.acceptance_criteria.expected_artifacts:
        if not is_glob(artifact.path):
            yield plain(artifact.path)
    if todo.contract_path is not None and todo.agent_role is Role.ARCHITECT:
        yield plain(todo.contract_path)


def command_loc(index: int, criterion_id: str) -> Loc:
    """Where in the plan a criterion of the todo at an index stands."""
    name, _, number = criterion_id.removesuffix("]").partition("[")
    if name == "convention":
        return ("items", index)
    if name in ("tests", "expected_artifacts", "metrics", "manual"):
        last = {"tests": ("cmd",), "expected_artifacts": ("path",)}.get(name, ())
        return ("items", index, "acceptance_criteria", name, int(number), *last)
    return ("items", index, name)


def named_fixture(criterion: Criterion) -> str | None:
    """The data file that a criterion names."""
    spec = criterion.spec
    return getattr(spec, "fixture", None)


def seconds_of(criterion: Criterion) -> float | None:
    """The time limit of a command."""
    return None if criterion.command is None else _spec(criterion).timeout_seconds


def states_seconds(criterion: Criterion) -> bool:
    """Whether the plan itself says that limit."""
    return criterion.command is not None and "timeout_seconds" in _spec(criterion).model_fields_set


def _spec(criterion: Criterion) -> CommandSpec:
    assert isinstance(criterion.spec, CommandSpec)
    return criterion.spec


def counted(number: int, noun: str) -> str:
    """``1 test``, ``3 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(words: tuple[str, ...] | list[str], most: int = 5) -> str:
    """``a, b and 3 more``."""
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def shown_seconds(seconds: float) -> str:
    """``90 s``, ``2 h``."""
    if seconds >= 7200 and seconds % 3600 == 0:
        return f"{seconds / 3600:g} h"
    return f"{seconds:g} s"
