"""The project as far as the rules need it, and the tests that a pytest command selects in it.

The implementation of :class:`Project` reads files; the rules do not. Test modules are parsed, never
imported, so only tests that are written out are found; a module that may have others is ``open_ended``, and
no test of it is reported as missing.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Protocol

from planner.catalog.impure_calls import GENERATORS, IMPURE_CALLS
from planner.model.findings import PathKind
from planner.text.glob_patterns import matches, plain
from planner.text.python_text import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.catalog import PytestInvocation

_CHANGES_SELECTION = frozenset({"--pyargs", "--doctest-modules", "--doctest-glob", "-c", "--rootdir"})
"""Options with which the selections of a command are not the test files of this root."""

_TEST_FILES = ("test_*.py", "*_test.py")
"""pytest's default of ``python_files``."""

_RULES = {"chance": "unseeded-random", "clock": "wall-clock", "network": "network-access"}
_GUARDS = re.compile(
    r"seed|patch|mock|freez|travel|cassette|vcr|responses|stub|fake|server|transport", re.IGNORECASE
)
"""Matches names which indicate that randomness, clock or network are replaced.

A module with such a name has no finding about impure calls.
"""

_LOCAL = re.compile(r"localhost|127\.\d|\[?::1\b|0\.0\.0\.0")
"""Matches addresses of this machine, whose use is no network access."""

_GENERATES_TESTS = frozenset(
    {"pytest_generate_tests", "pytest_collect_file", "load_tests", "__getattr__", "globals", "exec"}
)
"""Names in a module that may generate tests."""


class Project(Protocol):
    """The files of one root. Paths are relative to it, with ``/``."""

    def kind(self, path: str) -> PathKind: ...

    def text(self, path: str) -> str | None:
        """Return the text of a file, or ``None`` if it is no text file, or too large to be read."""
        ...

    def files(self, folder: str) -> tuple[str, ...]:
        """Return the Python files in a folder and below it."""
        ...

    def pytest_setting(self, name: str) -> tuple[str, ...]:
        """Return the words of a pytest setting in the root; empty if it is not set."""
        ...

    def glob_holds(self, pattern: str) -> bool:
        """Return whether a glob matches an existing file."""
        ...

    def near(self, path: str) -> str | None:
        """Return an existing path that is similar to a missing one, or ``None``."""
        ...


class TestModule:
    """The tests of one file, by its source; ``None`` for a file that cannot be read as text.

    Any text is accepted: a syntax error is the ``problem``, other source that cannot be parsed makes the
    module ``open_ended``.
    """

    __test__ = False

    def __init__(self, source: str | None, *, open_ended: bool = False) -> None:
        """Parse the source; ``open_ended`` if settings of pytest give its tests other names."""
        self.tests: dict[str, range] = {}
        """Lines of each test, by its name as in a node id: ``TestA::test_b``."""
        self.impure: list[tuple[str, str, int]] = []
        """Calls by which a verdict depends on more than the code: rule, name and line of each."""
        self.is_guarded = False
        """It seems to replace randomness, clock or network."""
        self.open_ended = open_ended or source is None
        """It may have tests that its source does not show: inherited, imported or generated ones."""
        self.problem: str | None = None
        """Why it cannot be parsed, as ``line: reason``."""
        try:
            # Of invalid escapes in the project's strings, which Python would print.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source or "")
            nodes = list(ast.walk(tree))
            keys = ("name", "id", "attr", "arg")
            names = {str(getattr(node, key)) for node in nodes for key in keys if getattr(node, key, None)}
            self.impure += _impure_calls(nodes)
            self.is_guarded = any(map(_GUARDS.search, names))
            self.open_ended |= not _GENERATES_TESTS.isdisjoint(names)
            self._add_tests(tree.body, "")
        except SyntaxError as error:
            self.problem = f"{error.lineno or 1}: it cannot be parsed: {error.msg}"
        # For deeply nested source, the parser raises one of the last two, by the kind of nesting.
        except (ValueError, RecursionError, MemoryError):
            self.open_ended = True

    def _add_tests(self, body: Iterable[ast.AST], owner: str) -> None:
        """Add the tests of the module, or of a class, whose name with ``::`` is ``owner`` then."""
        for node in body:
            if isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
                self._add_tests(ast.iter_child_nodes(node), owner)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # pytest collects no fixture as a test, whatever its name.
                is_fixture = any(_full_name(each, {}).endswith("fixture") for each in node.decorator_list)
                if node.name.startswith("test") and not is_fixture:
                    self.tests[f"{owner}{node.name}"] = range(node.lineno, (node.end_lineno or 0) + 1)
            elif isinstance(node, ast.ClassDef):
                bases = [_full_name(base, {}) for base in node.bases if _full_name(base, {}) != "object"]
                of_unittest = any(base.endswith("TestCase") for base in bases)
                if of_unittest or node.name.startswith("Test"):
                    # Other base classes may have tests.
                    self.open_ended |= not all(base.endswith("TestCase") for base in bases)
                    self._add_tests(node.body, f"{owner}{node.name}::")
            elif isinstance(node, ast.ImportFrom | ast.Assign) and not owner:
                # Tests may be imported, or created by an assignment.
                names = [alias.asname or alias.name for alias in getattr(node, "names", ())]
                names += [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
                self.open_ended |= any(name.startswith(("test", "Test", "*")) for name in names)


@dataclass(slots=True)
class Selected:
    """The files and tests that one command selects."""

    files: list[str] = field(default_factory=list[str])
    """The selected Python files that exist, even if no test in them is selected."""
    missing_files: list[str] = field(default_factory=list[str])
    missing_tests: list[tuple[str, str, str | None]] = field(
        default_factory=list["tuple[str, str, str | None]"]
    )
    """File, name, and the existing name that was probably meant; an empty name stands for any test."""
    broken: list[str] = field(default_factory=list[str])
    """Files that cannot be parsed, each with the line and the reason."""
    impure: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Calls in the selected tests that are not repeatable, by rule."""


class TestSelector:
    """Finds the tests that the commands of one plan select; results and parsed modules are cached."""

    def __init__(self, project: Project) -> None:
        self.project = project
        # Per object, as a cache on a method would keep every object alive.
        self._select = cache(self._selected)
        self._module = cache(self._parsed)

    def of(self, command: PytestInvocation) -> Selected:
        """Return the tests that a pytest command selects by its paths and node ids."""
        # Only pytest itself can apply -k and -m, so these are ignored.
        is_uncertain = command.guessed or any(
            word.partition("=")[0] in _CHANGES_SELECTION for word in command.args
        )
        return self._select(command.selections, is_uncertain)

    def _selected(self, selections: tuple[str, ...], is_uncertain: bool) -> Selected:
        """Evaluate the selections of a command, which are ``testpaths`` or the root if it names none."""
        selected = Selected()
        if not selections:
            # Testpaths may be globs. pytest ignores those that match nothing, and searches the root if none
            # is left.
            files, testpaths = self._test_files("."), self.project.pytest_setting("testpaths")
            inside = [each for each in files if any(matches(each, path) for path in testpaths)]
            for file in inside or files:
                self._add_file(file, "", selected)
        for place in selections:
            path, _, name = place.partition("::")
            path = plain(path)
            kind = self.project.kind(path)
            if kind is PathKind.FILE:
                self._add_file(path, name.partition("[")[0], selected)
            elif kind is PathKind.FOLDER:
                for file in self._test_files(path):
                    self._add_file(file, "", selected)
            elif kind is PathKind.MISSING:
                selected.missing_files.append(path)
        if is_uncertain:
            # What looks like a path may be an option's value, a package, or relative to another folder.
            selected.missing_files, selected.missing_tests = [], []
        return selected

    def _test_files(self, folder: str) -> list[str]:
        names = self.project.pytest_setting("python_files") or _TEST_FILES
        return [file for file in self.project.files(folder) if any(matches(file, each) for each in names)]

    def _add_file(self, path: str, name: str, selected: Selected) -> None:
        """Add a file and its tests below ``name`` to ``selected``; all of its tests if that is empty."""
        # Such as a doctest in a text file, whose tests are not known here.
        if not path.endswith(".py"):
            return
        selected.files.append(path)
        module = self._module(path)
        folders = path.split("/")[:-1]
        conftests = ["/".join((*folders[:depth], "conftest.py")) for depth in range(len(folders) + 1)]
        lines = [
            lines
            for test, lines in module.tests.items()
            if not name or test == name or test.startswith(f"{name}::")
        ]
        # Randomness, clock or network may also be replaced by a fixture of a conftest above.
        if not any(self._module(each).is_guarded for each in (path, *conftests)):
            for rule, call, line in module.impure:
                if any(line in each for each in lines):
                    selected.impure.setdefault(rule, []).append(f"{path}:{line} {call}()")
        if module.problem is not None:
            selected.broken.append(f"{path}:{module.problem}")
        elif not module.open_ended and not lines:
            near = get_close_matches(name, module.tests, n=1)
            selected.missing_tests.append((path, name, near[0] if near else None))

    def _parsed(self, path: str) -> TestModule:
        is_renamed = any(map(self.project.pytest_setting, ("python_functions", "python_classes")))
        return TestModule(self.project.text(path), open_ended=is_renamed)


def _full_name(node: ast.AST, aliases: Mapping[str, str]) -> str:
    """Return the dotted name that an expression names or calls: ``numpy.random.rand``.

    ``aliases`` maps imported names to their full names. Empty for an expression of another kind.
    """
    head, dot, rest = (dotted_name(node.func if isinstance(node, ast.Call) else node) or "").partition(".")
    return f"{aliases.get(head, head)}{dot}{rest}"


def _impure_calls(nodes: list[ast.AST]) -> Iterator[tuple[str, str, int]]:
    """Yield rule, name and line of calls by which a verdict depends on randomness, clock or network."""
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
            name = _full_name(node, aliases)
            is_bare = name in GENERATORS and not node.args and not node.keywords
            # Without a seed, a generator takes one from the system.
            rule = _RULES.get("chance" if is_bare else IMPURE_CALLS.get(name, ""))
            first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            is_local = isinstance(first, str) and _LOCAL.search(first)
            if rule is not None and not is_local and name.partition(".")[0] not in parameters:
                yield rule, name, node.lineno
