"""Input of every rule: the plan, its criteria, and facts about the project that several rules need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.lint.selection import TestSelector
from planner.model.plan import CommandSpec, Todo
from planner.model.taxonomy import Role
from planner.policy.dependencies import reachable
from planner.text.glob_patterns import is_glob, matches, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.catalog import PytestInvocation
    from planner.lint.selection import Project
    from planner.model.plan import Plan
    from planner.policy.criteria import Criterion

Loc: TypeAlias = tuple[str | int, ...]
"""A location in the plan, by field names of the model and indices: ``("items", 2, "title")``."""


class LintFinding(NamedTuple):
    """One finding, without its severity and its position in the file, which are added later."""

    rule: str
    loc: Loc
    todo_id: str | None
    message: str
    fix: str = ""
    """The specific remedy; if empty, the one of the table of rules applies."""


@dataclass
class LintFacts:
    """The plan and the project, and values that several rules derive from them."""

    plan: Plan
    criteria: Mapping[str, tuple[Criterion, ...]]
    """The criteria of each todo, by its id."""
    project: Project
    made_before: frozenset[str] = frozenset()
    """Files that todos of other plans create before this sub-plan starts."""

    def __post_init__(self) -> None:
        self.selector = TestSelector(self.project)
        self.by_id = {todo.id: todo for todo in self.plan.items}
        self.at = {todo.id: index for index, todo in enumerate(self.plan.items)}
        # A branch borrows its criteria from the todo that it repairs, and is temporary.
        self.primaries = tuple(todo for todo in self.plan.items if not is_branch(todo))

    def criteria_of(self, todo: Todo) -> tuple[Criterion, ...]:
        """Return the criteria of a todo."""
        return self.criteria.get(todo.id, ())

    def has_command(self, todo: Todo) -> bool:
        """Return whether a test or another command is among the criteria of a todo."""
        return any(each.command is not None for each in self.criteria_of(todo))

    def finding(self, rule: str, todo: Todo, place: Loc, message: str, fix: str = "") -> LintFinding:
        """Return a finding about a todo; ``place`` is its location in the todo."""
        return LintFinding(rule, ("items", self.at[todo.id], *place), todo.id, message, fix)

    def waits_for(self, todo_id: str, other: str) -> bool:
        """Return whether a todo depends on another one, directly or indirectly."""
        # The search ends at the other todo, which is mostly near.
        return todo_id != other and other in reachable(
            (todo_id,), lambda name: self.by_id[name].dependencies if name in self.by_id else ()
        )

    @cached_property
    def _makers(self) -> dict[str, list[str]]:
        """Ids of the todos that create a file, by its path, by each of its folders, and by glob."""
        makers: dict[str, list[str]] = {}
        for todo in self.plan.items:
            for made in made_by(todo):
                path = made
                # Whoever makes a file makes its folders; above one that is listed already, all are.
                while path and todo.id not in makers.setdefault(path, []):
                    makers[path].append(todo.id)
                    path = "" if is_glob(made) else path.rpartition("/")[0]
        return makers

    @cached_property
    def _globs(self) -> list[str]:
        # Asked once for all paths: asked for each, 2,000 todos took nine seconds instead of two.
        return list(filter(is_glob, self._makers))

    def makers_of(self, path: str) -> list[str]:
        """Return the ids of the todos that create a file, or a file in a folder."""
        globs = (each for each in self._globs if matches(path, each))
        # A path that a todo names is more certain than one that only matches its glob.
        return self._makers.get(path) or [owner for each in globs for owner in self._makers[each]]

    def comes_first(self, todo: Todo, maker: str) -> bool:
        """Return whether the files that ``maker`` creates exist when the todo is verified."""
        # A branch begins when its parent has been worked on.
        return maker == todo.id or self.waits_for(todo.id, maker) or maker == todo.parent_id

    def is_made(self, todo: Todo, path: str) -> bool:
        """Return whether a file is created by the todo itself or by one before it."""
        makers = self.makers_of(path)
        return path in self.made_before or any(self.comes_first(todo, maker) for maker in makers)

    def or_near(self, path: str, fix: str) -> str:
        """Return the remedy for a missing file; first the question about an existing one like it."""
        near = self.project.near(path)
        return f"did you mean {near}? else {fix}" if near else fix

    def unawaited(self, todo: Todo, path: str, place: Loc) -> LintFinding:
        """Return the finding that a missing file is created by a todo for which this one does not wait."""
        maker = self.makers_of(path)[0]
        message = f"{path} does not exist; '{maker}' makes it, but '{todo.id}' does not depend on that todo"
        fix = f"add '{maker}' to the dependencies of '{todo.id}'"
        return self.finding("dependency-missing", todo, place, message, fix)


def is_branch(todo: Todo) -> bool:
    """Return whether a todo is a branch, or a temporary step of a repair."""
    return todo.parent_id is not None or todo.is_temporary


def made_by(todo: Todo) -> Iterator[str]:
    """Yield the files that a todo creates according to the plan: artifacts, and an architect's contract."""
    for artifact in todo.acceptance_criteria.expected_artifacts:
        yield plain(artifact.path)
    if todo.contract_path is not None and todo.agent_role is Role.ARCHITECT:
        yield plain(todo.contract_path)


def command_spec(criterion: Criterion) -> CommandSpec | None:
    """Return the command's specification in the plan; ``None`` for criteria that are no commands."""
    return criterion.spec if isinstance(criterion.spec, CommandSpec) else None


def pytest_of(criterion: Criterion) -> PytestInvocation | None:
    """Return the parsed pytest command of a criterion; ``None`` if it runs something else."""
    return None if criterion.command is None else criterion.command.pytest


def shown_seconds(seconds: float) -> str:
    """Format a duration: ``90 s``, or ``2 h`` for whole hours from two on."""
    return f"{seconds / 3600:g} h" if seconds >= 7200 and seconds % 3600 == 0 else f"{seconds:g} s"
