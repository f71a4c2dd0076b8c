"""Input of every rule: the plan, its criteria, and facts about the project that several rules need.

The implementation of :class:`Project` reads files; the rules do not. Test modules are never imported.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from planner.catalog.impure_calls import GENERATORS, IMPURE_CALLS
from planner.model.findings import PathKind
from planner.model.taxonomy import Role
from planner.policy.dependencies import reachable
from planner.text.glob_patterns import is_glob, matches, plain
from planner.text.python_text import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.catalog import PytestInvocation
    from planner.model.plan import Plan, Todo
    from planner.policy.criteria import Criterion

Loc: TypeAlias = tuple[str | int, ...]
"""A location in the plan, by field names of the model and indices: ``("items", 2, "title")``."""


class Project(Protocol):
    """The files of one root. Paths are relative to it, with ``/``."""

    def kind(self, path: str) -> PathKind: ...

    def text(self, path: str) -> str | None:
        """Return the text of a file, or ``None`` if it is no text file, or too large to be read."""
        ...

    def files(self, folder: str) -> tuple[str, ...]:
        """Return the Python files in a folder and below it."""
        ...

    def glob_holds(self, pattern: str) -> bool:
        """Return whether a glob matches an existing file."""
        ...

    def near(self, path: str) -> str | None:
        """Return an existing path that is similar to a missing one, or ``None``."""
        ...


# -- the selected tests --------------------------------------------------------------------------------

_CHANGES_SELECTION = frozenset({"--pyargs", "--doctest-modules", "--doctest-glob", "-c", "--rootdir"})
"""Options with which the selections of a command are not the test files of this root."""

_TEST_FILES = ("test_*.py", "*_test.py")

_GUARDS = re.compile(
    r"seed|patch|mock|freez|travel|cassette|vcr|responses|stub|fake|server|transport", re.IGNORECASE
)
"""Matches names which indicate that randomness, clock or network are replaced.

A module with such a name has no finding about impure calls.
"""

_LOCAL = re.compile(r"localhost|127\.\d|\[?::1\b|0\.0\.0\.0")
"""Matches addresses of this machine, whose use is no network access."""


class ImpureCall(NamedTuple):
    """A call by which a verdict depends on more than the code."""

    kind: str
    """``chance``, ``clock`` or ``network``."""
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class TestModule:
    """Facts about a Python file of tests."""

    __test__ = False

    impure: tuple[ImpureCall, ...] = ()
    is_guarded: bool = False
    """It seems to replace randomness, clock or network."""
    scopes: tuple[tuple[str, range], ...] = ()
    """Names of functions and classes, outer ones first, with their lines without decorators."""
    imports: tuple[tuple[str, int], ...] = ()
    """Modules of packages that it needs, with the line of the import."""

    @classmethod
    def parse(cls, source: str) -> TestModule:
        """Return the facts about any text; there are none about one that is not valid Python."""
        try:
            # Of invalid escapes in the project's strings, which Python would print.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                nodes = list(ast.walk(ast.parse(source)))
        # For deeply nested source, the parser raises one of the last two, by the kind of nesting.
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return cls()
        keys = ("name", "id", "attr", "arg")
        names = {str(getattr(node, key)) for node in nodes for key in keys if getattr(node, key, None)}
        return cls(
            impure=tuple(_impure_calls(nodes)),
            is_guarded=any(map(_GUARDS.search, names)),
            scopes=tuple(
                (node.name, range(node.lineno, (node.end_lineno or 0) + 1))
                for node in nodes
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            ),
            imports=tuple(_imports(nodes[0])),
        )

    def is_in_test(self, line: int, name: str) -> bool:
        """Return whether a line is in a test that a node id selects; in any test if the id is empty."""
        around = [scope for scope, lines in self.scopes if line in lines]
        wanted = name.partition("[")[0].split("::") if name else []
        return around[: len(wanted)] == wanted and any(scope.startswith("test") for scope in around)


class Selected(NamedTuple):
    """The files that one command selects."""

    files: tuple[tuple[str, str], ...]
    """The Python files that exist, each with the node id of the test in it; empty if all are selected."""
    missing: tuple[str, ...]


def _imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the dotted names of imported modules.

    Without imports that may be left out, or whose failure is expected: below ``if``, ``try`` and ``with``.
    """
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if "." in alias.name)
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level and "." in node.module:
                yield node.module, node.lineno
        elif not isinstance(node, ast.If | ast.Try | ast.With | ast.AsyncWith | ast.expr):
            nodes += reversed([*ast.iter_child_nodes(node)])


def _impure_calls(nodes: list[ast.AST]) -> Iterator[ImpureCall]:
    """Yield the calls by which a verdict depends on randomness, clock or network."""
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                aliases[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            aliases |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    # A parameter of the same name (a fixture, a mock) hides the imported module.
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Call):
            # Of random.Random().random(), the inner call is the impure one.
            head, dot, rest = (dotted_name(node.func) or "").partition(".")
            name = f"{aliases.get(head, head)}{dot}{rest}"
            is_bare = name in GENERATORS and not node.args and not node.keywords
            # Without a seed, a generator takes one from the system.
            kind = "chance" if is_bare else IMPURE_CALLS.get(name)
            first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            is_local = isinstance(first, str) and _LOCAL.search(first)
            if kind is not None and not is_local and name.partition(".")[0] not in parameters:
                yield ImpureCall(kind, f"{name}()", node.lineno)


# -- the plan ------------------------------------------------------------------------------------------


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
    """The plan and the project, and values that several rules derive from them; look-ups are cached."""

    plan: Plan
    criteria: Mapping[str, tuple[Criterion, ...]]
    """The criteria of each todo, by its id."""
    project: Project
    made_before: frozenset[str] = frozenset()
    """Files that todos of other plans create before this sub-plan starts."""
    is_sub_plan: bool = False
    """Todos of the plans around it may write what its tests import."""

    def __post_init__(self) -> None:
        # Per object, as a cache on a method would keep every object alive.
        self._select = cache(self._selected)
        self._module = cache(self._parsed)
        self.impure_calls = cache(self._impure_calls_of)
        self.imports = cache(self._imports_of)
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

    # -- the selected tests ----------------------------------------------------------------------------

    def selected_by(self, command: PytestInvocation) -> Selected:
        """Return the tests that a pytest command selects by its paths and node ids."""
        # Only pytest itself can apply -k and -m, so these are ignored.
        is_uncertain = command.guessed or any(
            word.partition("=")[0] in _CHANGES_SELECTION for word in command.args
        )
        # What looks like a path may be an option's value, a package, or relative to another folder.
        selected = self._select(command.selections)
        return selected._replace(missing=()) if is_uncertain else selected

    def _selected(self, selections: tuple[str, ...]) -> Selected:
        """Evaluate the selections of a command; without any, it selects all test files of the root."""
        files, missing = list[tuple[str, str]](), list[str]()
        for place in selections or (".",):
            path, _, name = place.partition("::")
            path = plain(path) or "."
            kind = self.project.kind(path)
            if kind is PathKind.FILE and path.endswith(".py"):
                files.append((path, name))
            elif kind is PathKind.FOLDER:
                below = self.project.files(path)
                files += [(file, "") for file in below if any(matches(file, each) for each in _TEST_FILES)]
            elif kind is PathKind.MISSING:
                missing.append(path)
        return Selected(tuple(files), tuple(missing))

    def _impure_calls_of(self, selected: Selected) -> dict[str, list[str]]:
        """Return the calls in the selected tests that are not repeatable, by kind, with their places."""
        found: dict[str, list[str]] = {}
        for path, name in selected.files:
            module, folders = self._module(path), path.split("/")[:-1]
            conftests = ["/".join((*folders[:depth], "conftest.py")) for depth in range(len(folders) + 1)]
            # Randomness, clock or network may also be replaced by a fixture of a conftest above.
            if not any(self._module(each).is_guarded for each in (path, *conftests)):
                for call in module.impure:
                    if module.is_in_test(call.line, name):
                        found.setdefault(call.kind, []).append(f"{path}:{call.line} {call.name}")
        return found

    def _imports_of(self, selected: Selected) -> dict[str, str]:
        """Return the modules of packages that the selected files import, with the place of an import."""
        return {
            name: f"{path}:{line}"
            for path, _ in reversed(selected.files)
            for name, line in reversed(self._module(path).imports)
        }

    def missing_module(self, name: str) -> str | None:
        """Return the path of a module that is missing in a package of the project; ``None`` for others."""
        first, *inner = name.split(".")
        for base in (first, f"src/{first}"):
            # A folder without Python files of its own, such as one of data, is no package.
            if not self.project.glob_holds(f"{base}/*.py"):
                continue
            place = "/".join((base, *inner))
            is_there = self.project.kind(place) is PathKind.FOLDER or self.project.glob_holds(f"{place}.*")
            return None if is_there else f"{place}.py"
        return None

    def _parsed(self, path: str) -> TestModule:
        return TestModule.parse(self.project.text(path) or "")

    # -- findings, and the todos that make files -------------------------------------------------------

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

    def is_made(self, todo: Todo, path: str) -> bool:
        """Return whether a file is created by the todo itself or by one before it."""
        # A branch begins when its parent has been worked on. A step of a repair always comes first: the
        # todo waits for its branch, which waits for the step.
        return path in self.made_before or any(
            maker in (todo.id, todo.parent_id)
            or is_branch(self.by_id[maker])
            or self.waits_for(todo.id, maker)
            for maker in self.makers_of(path)
        )

    def absent(self, rule: str, todo: Todo, place: Loc, path: str, message: str, fix: str) -> LintFinding:
        """Return the finding about a missing file: a todo that makes it is not awaited, else ``rule``."""
        if makers := self.makers_of(path):
            maker = makers[0]
            message = (
                f"{path} does not exist; '{maker}' makes it, but '{todo.id}' does not depend on that todo"
            )
            fix = f"add '{maker}' to the dependencies of '{todo.id}'"
            return self.finding("dependency-missing", todo, place, message, fix)
        near = self.project.near(path)
        return self.finding(rule, todo, place, message, f"did you mean {near}? else {fix}" if near else fix)


def is_branch(todo: Todo) -> bool:
    """Return whether a todo is a branch, or a temporary step of a repair."""
    return todo.parent_id is not None or todo.is_temporary


def made_by(todo: Todo) -> Iterator[str]:
    """Yield the files that a todo creates according to the plan: artifacts, and an architect's contract."""
    for artifact in todo.acceptance_criteria.expected_artifacts:
        yield plain(artifact.path)
    if todo.contract_path is not None and todo.agent_role is Role.ARCHITECT:
        yield plain(todo.contract_path)


def pytest_of(criterion: Criterion) -> PytestInvocation | None:
    """Return the parsed pytest command of a criterion; ``None`` if it runs something else."""
    return None if criterion.command is None else criterion.command.pytest
