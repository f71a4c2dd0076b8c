"""Static selection: the tests that a pytest command selects, and what those import."""

from __future__ import annotations

import ast
import fnmatch
import re
import warnings
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.catalog.impure_calls import CHANCE, CLOCK, GENERATORS, NETWORK
from planner.model.findings import PathKind
from planner.text.glob_patterns import matches, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.catalog import PytestInvocation
    from planner.lint.project import Project

_READS_OTHERWISE = frozenset({"--pyargs", "--doctest-modules", "--doctest-glob", "-c", "--rootdir"})
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_IMPURE: Mapping[str, str] = {
    f"{module}.{name}": kind
    for kind, table in (("unseeded-random", CHANCE), ("wall-clock", CLOCK), ("network-access", NETWORK))
    for module, names in table.items()
    for name in names.split()
}
_GUARDS = re.compile(
    r"seed|patch|mock|freez|travel|cassette|vcr|responses|stub|fake|server|transport", re.IGNORECASE
)
"""Names that speak of keeping chance, clock or network out: then nothing is said of the module."""
_LOCAL = re.compile(r"localhost|127\.\d|\[?::1\b|0\.0\.0\.0")
_MAKES_TESTS = frozenset({"pytest_generate_tests", "pytest_collect_file", "load_tests", "__getattr__"})


class PytestSettings(NamedTuple):
    """The project's pytest settings, as far as rules need them."""

    python_functions: tuple[str, ...] = ("test",)
    python_classes: tuple[str, ...] = ("Test",)
    python_files: tuple[str, ...] = ("test_*.py", "*_test.py")
    testpaths: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class TestModule:
    """Facts read from the source of a test module or a conftest."""

    __test__ = False

    tests: dict[str, range] = field(default_factory=dict[str, range])
    """By the name as in a node id, ``TestA::test_b``, the lines of each."""
    imports: tuple[tuple[str, int], ...] = ()
    """The modules that it cannot be imported without, each with the line."""
    impure: tuple[tuple[str, str, int], ...] = ()
    """Calls by which its verdict depends on more than the code: the rule, the name, the line."""
    guarded: bool = False
    """It seems to keep chance, clock or network out."""
    open_ended: bool = False
    """It may hold tests that reading does not see: inherited, imported or generated ones."""
    problem: str | None = None
    """``line: why it cannot be parsed``."""


@dataclass(slots=True)
class Selected:
    """The files and tests that one command selects."""

    certain: bool = True
    """Whether what is named here is all, and no option leaves any of it out."""
    files: list[str] = field(default_factory=list[str])
    """The test files that exist, whether or not something is selected in them."""
    missing_files: list[str] = field(default_factory=list[str])
    missing_tests: list[tuple[str, str, str | None]] = field(
        default_factory=list["tuple[str, str, str | None]"]
    )
    """File, name, and the name that was probably meant."""
    broken: list[str] = field(default_factory=list[str])
    """Files that cannot be parsed, each with the line and what is wrong there."""
    impure: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By rule, the calls in the selected tests that are not repeatable."""


class TestSelector:
    """Answers for the commands of one plan; equal selections are worked out once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._selected: dict[tuple[object, ...], Selected] = {}
        self._modules: dict[str, TestModule] = {}

    @cached_property
    def settings(self) -> PytestSettings:
        """The project's pytest settings."""
        said = {name: self.project.pytest_setting(name) for name in PytestSettings._fields}
        return PytestSettings(**{name: words for name, words in said.items() if words})

    def module(self, path: str) -> TestModule:
        """Return what reading a Python file tells; nothing for sure where it cannot be read."""
        if path not in self._modules:
            text = self.project.text(path)
            self._modules[path] = (
                TestModule(open_ended=True) if text is None else read_module(text, self.settings)
            )
        return self._modules[path]

    def conftests(self, path: str) -> list[str]:
        """Return the conftests that hold for a file, the nearest first."""
        folders = path.split("/")[:-1]
        places = ["/".join((*folders[:depth], "conftest.py")) for depth in range(len(folders), -1, -1)]
        return [place for place in places if self.project.kind(place) is PathKind.FILE]

    def of(self, command: PytestInvocation) -> Selected:
        """Return what a pytest command selects. What ``-k`` and ``-m`` leave of it only pytest knows."""
        narrowed = bool(command.keyword or command.markexpr or command.deselect)
        otherwise = command.guessed or any(
            word.partition("=")[0] in _READS_OTHERWISE for word in command.args
        )
        key = (command.selections, narrowed, otherwise)
        if key not in self._selected:
            selected = self._selected[key] = self._select(command)
            if otherwise:
                # What looks like a path may be the value of an option, a package, or relative to elsewhere.
                selected.missing_files, selected.missing_tests = [], []
            selected.certain = selected.certain and not (narrowed or otherwise)
        return self._selected[key]

    def _select(self, command: PytestInvocation) -> Selected:
        selected = Selected()
        for place in command.selections or self.settings.testpaths or (".",):
            path, _, name = place.partition("::")
            path = plain(path)
            kind = self.project.kind(path)
            if kind is PathKind.FILE:
                self._add_file(path, name.partition("[")[0], selected)
            elif kind is PathKind.FOLDER:
                files, complete = self.project.files(path)
                selected.certain = selected.certain and complete
                for file in files:
                    if any(matches(file, each) for each in self.settings.python_files):
                        self._add_file(file, "", selected)
            elif kind is PathKind.MISSING:
                selected.missing_files.append(path)
            else:
                selected.certain = False
        return selected

    def _add_file(self, path: str, name: str, selected: Selected) -> None:
        if not path.endswith(".py"):
            selected.certain = False
            return
        module = self.module(path)
        selected.files.append(path)
        for file in (path, *self.conftests(path)):
            problem = self.module(file).problem
            if problem is not None and f"{file}:{problem}" not in selected.broken:
                selected.broken.append(f"{file}:{problem}")
        lines = [
            lines
            for test, lines in module.tests.items()
            if not name or test == name or test.startswith(f"{name}::")
        ]
        if not any(self.module(file).guarded for file in (path, *self.conftests(path))):
            for rule, call, line in module.impure:
                if any(line in each for each in lines):
                    selected.impure.setdefault(rule, []).append(f"{path}:{line} {call}()")
        if module.open_ended:
            selected.certain = False
        elif module.problem is None and not lines:
            near = get_close_matches(name, module.tests, n=1)
            selected.missing_tests.append((path, name, near[0] if near else None))


# -- one module ----------------------------------------------------------------------------------------


def read_module(text: str, settings: PytestSettings) -> TestModule:
    """Read the source of a test module. Never raises; what cannot be parsed has a ``problem``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        names = {
            getattr(node, "name", None) or getattr(node, "id", None) or getattr(node, "attr", None)
            for node in nodes
        } | {node.arg for node in nodes if isinstance(node, ast.arg | ast.keyword)}
        words = [name for name in names if isinstance(name, str)]
        module = TestModule(
            imports=tuple(
                found
                for node in tree.body
                if isinstance(node, ast.Import | ast.ImportFrom)
                for found in _imported(node)
            ),
            impure=tuple(_impure_calls(nodes)),
            guarded=any(_GUARDS.search(name) for name in words),
            open_ended=not {*_MAKES_TESTS, "globals", "exec"}.isdisjoint(words),
        )
        _add_tests(module, tree.body, "", settings)
    except SyntaxError as error:
        return TestModule(problem=f"{error.lineno or 1}: it cannot be parsed: {error.msg}")
    except (ValueError, RecursionError, MemoryError):
        return TestModule(open_ended=True)
    return module


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, node.lineno) for alias in node.names)
    elif node.module and not node.level:
        yield node.module, node.lineno


def _add_tests(module: TestModule, body: Iterable[ast.stmt], owner: str, settings: PytestSettings) -> None:
    """Add the tests of a module, or of the class that is their ``owner``."""
    functions, classes = settings.python_functions, settings.python_classes
    for node in _flat(body):
        if isinstance(node, _Function):
            is_fixture = any(_dotted(each, {}).endswith("fixture") for each in node.decorator_list)
            if _is_named(node.name, functions) and not is_fixture:
                module.tests[f"{owner}{node.name}"] = range(
                    node.lineno, (node.end_lineno or node.lineno) + 1
                )
        elif isinstance(node, ast.ClassDef):
            bases = [_dotted(base, {}) for base in node.bases]
            of_unittest = any(base.endswith("TestCase") for base in bases)
            if of_unittest or _is_named(node.name, classes):
                module.open_ended |= any(
                    base != "object" and not base.endswith("TestCase") for base in bases
                )
                own = settings._replace(python_functions=("test",)) if of_unittest else settings
                _add_tests(module, node.body, f"{owner}{node.name}::", own)
        elif isinstance(node, ast.ImportFrom | ast.Assign) and not owner:
            # Tests that are imported or made by a call.
            names = [alias.asname or alias.name for alias in getattr(node, "names", ())]
            names += [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
            module.open_ended |= any(_is_named(name, (*functions, *classes, "[*]")) for name in names)


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements, and the definitions in the branches of conditions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from (each for each in ast.walk(statement) if isinstance(each, _Function | ast.ClassDef))


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether pytest would take the name: a pattern is a beginning, or a glob."""
    return any(name.startswith(each) or fnmatch.fnmatch(name, each) for each in patterns)


def _dotted(node: ast.AST | None, aliases: Mapping[str, str]) -> str:
    """Return the full name of what an expression names or calls: ``numpy.random.rand``."""
    node = node.func if isinstance(node, ast.Call) else node
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = node.id if isinstance(node, ast.Name) else ""
    return ".".join([aliases.get(root, root), *reversed(parts)])


def _impure_calls(nodes: list[ast.AST]) -> Iterator[tuple[str, str, int]]:
    """Yield what makes a verdict depend on chance, the clock or another machine."""
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                aliases[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            aliases |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    given = {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _dotted(node, aliases)
            is_bare = name in GENERATORS and not node.args and not node.keywords
            rule = "unseeded-random" if is_bare else _IMPURE.get(name)
            first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            is_local = isinstance(first, str) and _LOCAL.search(first)
            if rule is not None and not is_local and name.partition(".")[0] not in given:
                yield rule, name, node.lineno
