"""Reading a test module without importing it: its tests, what each of them proves, uses and asks for."""

from __future__ import annotations

import ast
import fnmatch
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from planner.rules.reading.data_files import data_files
from planner.rules.reading.determinism import Found, look, names_of, outside_functions
from planner.rules.reading.hollow_code import hollow_body, is_skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_SETUPS = frozenset(
    [
        "setup_method",
        "teardown_method",
        "setup_class",
        "teardown_class",
        "setUp",
        "tearDown",
        "setUpClass",
        "tearDownClass",
        "setup",
        "teardown",
        "asyncSetUp",
        "asyncTearDown",
    ]
)
_MODULE_SETUPS = frozenset(["setup_module", "teardown_module", "setup_function", "teardown_function"])
_MAKES_TESTS = frozenset({"pytest_generate_tests", "pytest_collect_file", "load_tests", "__getattr__"})
_MAX_MARKS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What the project calls its tests."""

    functions: tuple[str, ...] = ("test",)
    classes: tuple[str, ...] = ("Test",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One function, or the statements of a module or class outside of functions."""

    name: str
    """As in a node id: ``test_a``, ``TestA::test_b``; empty for the module."""
    line: int = 1
    requests: tuple[str, ...] = ()
    """The fixtures that it asks for."""
    uses: frozenset[str] = frozenset()
    """Names of units of the same module."""
    found: Found = field(default_factory=Found)
    files: tuple[str, ...] = ()
    """Texts that may name data files."""
    marks: frozenset[str] = frozenset()
    hollow: str | None = None
    """Why it proves nothing although it passes."""
    skipped: bool = False
    """It never runs, or is expected to fail."""
    is_fixture: bool = False
    parametrized: bool = False
    """There are more of it than one, under names that only running tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestModule:
    """What reading a test module, or a conftest, tells."""

    __test__ = False

    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    tests: tuple[str, ...] = ()
    """The units that are tests, in order."""
    fixtures: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the name of a fixture, its unit."""
    autouse: tuple[str, ...] = ()
    """The fixtures that every test below gets, by unit."""
    imports: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its names mean elsewhere: ``{"draw": "helpers.draw"}``."""
    open_ended: bool = False
    """It may hold tests that reading does not see: inherited, imported or generated ones."""
    problem: str | None = None
    """Why it could not be read."""
    line: int | None = None
    """Where that shows."""
    unexamined: bool = False
    """It was left alone, though nothing may be wrong with it."""


def read_tests(source: str, naming: Naming = Naming()) -> TestModule:
    """Read the source of a test module. Never raises; what cannot be parsed has a ``problem``."""
    try:
        tree = ast.parse(source)
        return _Reader(tree, naming).module()
    except SyntaxError as error:
        return TestModule(problem=f"it cannot be parsed: {error.msg}", line=error.lineno)
    except ValueError as error:
        return TestModule(problem=f"it cannot be parsed: {error}")
    except (RecursionError, MemoryError):
        return TestModule(problem="it is nested too deeply to be read", unexamined=True)


class _Reader:
    """One pass over a tree; :meth:`module` may be called once."""

    def __init__(self, tree: ast.Module, naming: Naming) -> None:
        self.tree = tree
        self.naming = naming
        self.names = names_of(tree.body)
        self.units: dict[str, Unit] = {}
        self.tests: list[str] = []
        self.fixtures: dict[str, str] = {}
        self.autouse: list[str] = []
        self.classes: dict[str, ast.ClassDef] = {}
        self.open_ended = False
        self.data: dict[str, tuple[str, ...]] = {}

    def module(self) -> TestModule:
        statements = list(_flat(self.tree.body))
        loose = [each for each in statements if not isinstance(each, _Function | ast.ClassDef)]
        self._learn_data(loose)
        module_marks, module_skipped = self._module_marks(loose)
        requests = tuple(self._used_fixtures(loose))
        self._add_loose("", loose, 1, requests)
        for statement in statements:
            if isinstance(statement, _Function):
                self._function(statement, "", module_marks, module_skipped)
            elif isinstance(statement, ast.ClassDef):
                self._class(statement, "", module_marks, module_skipped)
            elif isinstance(statement, ast.ImportFrom) and any(
                alias.name == "*"
                or _named(alias.asname or alias.name, self.naming.functions)
                or _named(alias.asname or alias.name, self.naming.classes)
                for alias in statement.names
            ):
                self.open_ended = True
            elif isinstance(statement, ast.Assign):
                self._assigned_tests(statement)
        self.open_ended = self.open_ended or any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("globals", "exec")
            for node in outside_functions(loose)
        )
        return TestModule(
            units=self.units,
            tests=tuple(self.tests),
            fixtures=self.fixtures,
            autouse=tuple(self.autouse),
            imports=self.names.aliases,
            open_ended=self.open_ended,
        )

    def _assigned_tests(self, statement: ast.Assign) -> None:
        """``test_a = make_test(...)`` and ``TestMachine = Machine.TestCase`` are tests as well."""
        for target in statement.targets:
            if isinstance(target, ast.Name) and (
                _named(target.id, self.naming.functions) or _named(target.id, self.naming.classes)
            ):
                self.open_ended = True

    def _learn_data(self, loose: Iterable[ast.stmt]) -> None:
        """What data files the names of the module stand for."""
        for statement in loose:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                nodes = list(ast.walk(statement.value))
                texts = data_files(nodes) + self._data_of(_loaded(nodes))
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for target in targets:
                    if isinstance(target, ast.Name) and texts:
                        self.data[target.id] = texts

    def _data_of(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(text for name in sorted(names) for text in self.data.get(name, ()))

    def _add_loose(self, name: str, loose: list[ast.stmt], line: int, requests: tuple[str, ...]) -> None:
        nodes = list(outside_functions(loose))
        self.units[name] = Unit(
            name=name,
            line=line,
            requests=requests,
            uses=frozenset(_loaded(nodes)),
            found=look(nodes, self.names, requests),
        )

    def _module_marks(self, loose: Iterable[ast.stmt]) -> tuple[frozenset[str], bool]:
        values = [
            each.value
            for each in loose
            if isinstance(each, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in each.targets)
        ]
        decorators = [
            mark
            for value in values
            for mark in (value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
        ]
        skips = any(
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Call)
            and self.names.dotted(each.value.func) == "pytest.skip"
            for each in self.tree.body
        )
        return frozenset(self._marks(decorators)), skips or is_skipped(decorators, self.names)

    def _marks(self, decorators: Iterable[ast.expr]) -> Iterator[str]:
        for decorator in list(decorators)[:_MAX_MARKS]:
            node = decorator.func if isinstance(decorator, ast.Call) else decorator
            before, _, name = (self.names.dotted(node) or "").rpartition(".")
            if before.endswith("mark"):
                yield name

    def _class(self, node: ast.ClassDef, outer: str, marks: frozenset[str], skipped: bool) -> None:
        name = f"{outer}{node.name}"
        self.classes[name] = node
        bases = [self.names.dotted(base) or "" for base in node.bases]
        is_unittest = any(base.endswith("TestCase") for base in bases)
        collected = is_unittest or _named(node.name, self.naming.classes)
        statements = list(_flat(node.body))
        loose = [each for each in statements if not isinstance(each, _Function | ast.ClassDef)]
        own_marks = marks | frozenset(self._marks(node.decorator_list))
        own_skipped = skipped or is_skipped(node.decorator_list, self.names)
        collected = collected and not _says_no_test(loose)
        if (
            collected
            and not is_unittest
            and any(
                isinstance(each, _Function) and each.name in ("__init__", "__new__") for each in statements
            )
        ):
            collected = False
        if collected and any(
            base not in ("object", "") and not base.endswith("TestCase") for base in bases
        ):
            self.open_ended = True
        requests = tuple(self._used_fixtures([node, *loose]))
        self._add_loose(name, loose, node.lineno, requests)
        for statement in statements:
            if isinstance(statement, _Function):
                self._function(
                    statement,
                    f"{name}::",
                    own_marks,
                    own_skipped,
                    collected=collected,
                    unittest=is_unittest,
                )
            elif isinstance(statement, ast.ClassDef):
                self._class(statement, f"{name}::", own_marks, own_skipped)

    def _function(
        self,
        node: _Function,
        owner: str,
        marks: frozenset[str],
        skipped: bool,
        *,
        collected: bool = True,
        unittest: bool = False,
    ) -> None:
        name = f"{owner}{node.name}"
        fixture = self._fixture(node)
        prefixes = ("test",) if unittest else self.naming.functions
        is_test = collected and fixture is None and _named(node.name, prefixes)
        nodes = list(ast.walk(node))
        loaded = _loaded(nodes)
        own = [each for each in _parameters(node) if each not in ("self", "cls")]
        requests = (*own, *self._used_fixtures([node]))
        uses = (loaded - set(own)) | {f"{owner}{each}" for each in _own_methods(nodes)} | {"", owner[:-2]}
        if is_test:
            uses |= {f"{owner}{each}" for each in _SETUPS} | (_MODULE_SETUPS if not owner else set())
        own_marks = marks | frozenset(self._marks(node.decorator_list))
        self.units[name] = Unit(
            name=name,
            line=node.lineno,
            requests=requests if not unittest else tuple(self._used_fixtures([node])),
            uses=frozenset(uses),
            found=look(nodes, self.names.inside(nodes), requests),
            files=data_files(nodes) + self._data_of(loaded),
            marks=own_marks,
            hollow=hollow_body(node.body, self.names) if is_test else None,
            skipped=skipped or is_skipped(node.decorator_list, self.names, node.body),
            is_fixture=fixture is not None,
            parametrized="parametrize" in own_marks,
        )
        if fixture is not None:
            self.fixtures[fixture[0]] = name
            if fixture[1]:
                self.autouse.append(name)
        elif is_test and name not in self.tests:
            self.tests.append(name)
        if node.name in _MAKES_TESTS and not owner:
            self.open_ended = True

    def _fixture(self, node: _Function) -> tuple[str, bool] | None:
        """The name of the fixture that a function is, and whether every test gets it."""
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = self.names.dotted(call.func if call else decorator) or ""
            if name in ("pytest.fixture", "pytest.yield_fixture", "pytest_asyncio.fixture"):
                given = {each.arg: each.value for each in call.keywords} if call else {}
                called, auto = given.get("name"), given.get("autouse")
                fixture = called.value if isinstance(called, ast.Constant) else node.name
                return str(fixture), isinstance(auto, ast.Constant) and auto.value is True
        return None

    def _used_fixtures(self, owners: Iterable[ast.AST]) -> Iterator[str]:
        """What ``usefixtures`` names, as a decorator or in ``pytestmark``."""
        for owner in owners:
            marked = owner.decorator_list if isinstance(owner, _Function | ast.ClassDef) else [owner]
            for node in (each for mark in marked for each in ast.walk(mark)):
                if isinstance(node, ast.Call) and (self.names.dotted(node.func) or "").endswith(
                    "usefixtures"
                ):
                    for argument in node.args:
                        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                            yield argument.value


def _named(name: str, patterns: Iterable[str]) -> bool:
    """As pytest has it: a pattern is a beginning, or a glob."""
    return any(
        name.startswith(pattern)
        or (any(sign in pattern for sign in "*?[") and fnmatch.fnmatch(name, pattern))
        for pattern in patterns
    )


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, and those in the branches of conditions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            nested = [
                *statement.body,
                *getattr(statement, "orelse", ()),
                *getattr(statement, "finalbody", ()),
            ]
            for handler in getattr(statement, "handlers", ()):
                nested += handler.body
            yield from (each for each in _flat(nested) if isinstance(each, _Function | ast.ClassDef))


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _own_methods(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    }


def _parameters(node: _Function) -> Iterator[str]:
    """The parameters without a default, which are fixtures in a test."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    plain = arguments[: len(arguments) - len(node.args.defaults)] if node.args.defaults else arguments
    yield from (each.arg for each in plain)
    for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is None:
            yield each.arg


def _says_no_test(loose: Iterable[ast.stmt]) -> bool:
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Constant)
        and each.value.value is False
        and any(isinstance(target, ast.Name) and target.id == "__test__" for target in each.targets)
        for each in loose
    )
