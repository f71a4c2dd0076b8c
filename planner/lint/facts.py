"""Input of every rule: the plan, its criteria, and facts of the project."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.lint.selection import TestSelector
from planner.model.plan import CommandSpec, Todo
from planner.model.taxonomy import Role
from planner.policy.dependencies import dependency_order
from planner.text.glob_patterns import is_glob, matches, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.lint.selection import Project
    from planner.model.plan import Plan
    from planner.model.qualification import Qualification
    from planner.policy.criteria import Criterion

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the plan by the names of the model: ``("items", 2, "title")``."""


class LintFinding(NamedTuple):
    """One finding, before its severity and its position are looked up."""

    rule: str
    loc: Loc
    todo_id: str | None
    message: str
    fix: str = ""
    """What to do here; without it, what the table of rules says."""
    change: tuple[str, str | int] | None = None
    """Where that is safe to do: the key of the todo, and what it is set to, or has added to its list."""


class LintFacts:
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
        made_before: frozenset[str] = frozenset(),
    ) -> None:
        """Dates are judged against ``today`` (``YYYY-MM-DD``) and nothing else; ``qualified_prefix`` stands
        before the ids of the plan's todos in the qualification; ``made_before`` are files that the todos of
        other plans make, for which this sub-plan waits.
        """
        self.plan = plan
        self.criteria = criteria
        self.project = project
        self.today = today
        self.qualification = qualification
        self.qualified_prefix = qualified_prefix
        self.made_before = made_before
        self.selector = TestSelector(project)
        self.by_id = {todo.id: todo for todo in plan.items}
        self.todos = tuple(enumerate(plan.items))
        # A branch borrows its criteria, and lives only for a while.
        self.primaries = tuple((index, todo) for index, todo in self.todos if not is_branch(todo))

    @cached_property
    def _before(self) -> tuple[dict[str, int], dict[str, int]]:
        """By todo, a bit of its own and the bits of all that it waits for: a closure in 2,000 integers."""
        bit: dict[str, int] = {}
        before: dict[str, int] = {}
        for todo in dependency_order(self.plan.items):
            before[todo.id] = 0
            for each in todo.dependencies:
                before[todo.id] |= before.get(each, 0) | bit.get(each, 0)
            bit[todo.id] = 1 << len(bit)
        return bit, before

    def waits_for(self, todo_id: str, other: str) -> bool:
        """Return whether a todo depends on another, directly or not."""
        bit, before = self._before
        return bool(before.get(todo_id, 0) & bit.get(other, 0))

    @cached_property
    def _makers(self) -> dict[str, list[str]]:
        """By file, by folder that holds one, and by glob, the todos that make it."""
        makers: dict[str, list[str]] = {}
        for todo in self.plan.items:
            for made in made_by(todo):
                path = made
                while path and todo.id not in makers.setdefault(path, []):
                    makers[path].append(todo.id)
                    path = "" if is_glob(made) else path.rpartition("/")[0]
        return makers

    @cached_property
    def _globs(self) -> list[str]:
        return list(filter(is_glob, self._makers))

    def makers_of(self, path: str) -> list[str]:
        """Return the todos that make a file, or a file of that folder."""
        globs = (each for each in self._globs if matches(path, each))
        return self._makers.get(path) or [owner for each in globs for owner in self._makers[each]]

    def comes_first(self, todo: Todo, maker: str) -> bool:
        """Return whether what ``maker`` makes is there when the todo is judged."""
        return maker == todo.id or self.waits_for(todo.id, maker) or maker == todo.parent_id

    def is_made(self, todo: Todo, path: str) -> bool:
        """Return whether the todo makes a file, or one that comes before it does."""
        makers = self.makers_of(path)
        return path in self.made_before or any(self.comes_first(todo, maker) for maker in makers)

    def unawaited(self, todo: Todo, path: str, loc: Loc) -> LintFinding:
        """Return that another todo makes a missing file, for which this one does not wait."""
        maker = self.makers_of(path)[0]
        message = f"{path} does not exist; '{maker}' makes it, and '{todo.id}' does not wait for that"
        fix = f"add '{maker}' to the dependencies of '{todo.id}'"
        return LintFinding("dependency-missing", loc, todo.id, message, fix, ("dependencies", maker))


def is_branch(todo: Todo) -> bool:
    """Return whether a todo repairs another one."""
    return todo.parent_id is not None or todo.is_temporary


def made_by(todo: Todo) -> Iterator[str]:
    """Yield the files that a todo makes, as far as it says so."""
    for artifact in todo.acceptance_criteria.expected_artifacts:
        yield plain(artifact.path)
    if todo.contract_path is not None and todo.agent_role is Role.ARCHITECT:
        yield plain(todo.contract_path)


def criterion_loc(index: int, criterion_id: str) -> Loc:
    """Return where in the plan a criterion of the todo at an index stands."""
    name, _, number = criterion_id.removesuffix("]").partition("[")
    if name == "convention":
        return ("items", index)
    if name in ("tests", "expected_artifacts", "metrics", "manual"):
        last = {"tests": ("cmd",), "expected_artifacts": ("path",)}.get(name, ())
        return ("items", index, "acceptance_criteria", name, int(number), *last)
    return ("items", index, name)


def command_spec(criterion: Criterion) -> CommandSpec | None:
    """Return what the plan says of a command; ``None`` for other criteria."""
    return criterion.spec if isinstance(criterion.spec, CommandSpec) else None


def shown_seconds(seconds: float) -> str:
    """Return ``90 s``, ``2 h``."""
    return f"{seconds / 3600:g} h" if seconds >= 7200 and seconds % 3600 == 0 else f"{seconds:g} s"
