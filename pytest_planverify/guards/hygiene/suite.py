"""The tests of a module as values: what each asserts, whether it is collected, run and expected to pass."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.checks import Check, checks_in
from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.marks import (
    Mark,
    calls_that_leave,
    marks_assigned,
    marks_of,
    module_marks,
)
from pytest_planverify.guards.hygiene.reading import (
    Function,
    definitions,
    dotted,
    is_main_guard,
    shape,
    without_docstring,
)
from pytest_planverify.guards.hygiene.swallowing import swallowers_of
from pytest_planverify.guards.hygiene.truths import is_always_false

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_planverify.guards.hygiene.reading import Module

_DEEPEST_HELPERS = 3


@dataclass(frozen=True, eq=False)
class TestUnit:
    """One test function."""

    __test__ = False

    module: Module
    node: Function
    owner: str = ""
    """The class that it stands in."""
    collected: bool = True
    inherited: tuple[Mark, ...] = ()
    """Marks of its class and its module."""
    helpers: dict[str, Function] = field(default_factory=dict[str, Function], repr=False)
    """Functions of the module and its conftests that it may call."""
    swallowers: frozenset[str] = frozenset()
    """Context managers and decorators that take failures away."""

    @property
    def name(self) -> str:
        """The bare name."""
        return self.node.name

    @property
    def nodeid(self) -> str:
        """As pytest would call it, without parameters."""
        return "::".join(part for part in (self.module.path, self.owner, self.name) if part)

    @cached_property
    def body(self) -> list[ast.stmt]:
        """What it does, without docstring."""
        return without_docstring(self.node.body)

    @cached_property
    def text(self) -> str:
        """Its source."""
        return self.module.segment(self.node)

    @cached_property
    def shape(self) -> str:
        """The same for two tests that do the same, whatever they are called."""
        return "".join(
            [shape(self.node.args), *map(shape, self.body), "@", *map(shape, self.node.decorator_list)]
        )

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Its own."""
        caught = any(
            dotted(each.func if isinstance(each, ast.Call) else each, self.module.aliases).rpartition(".")[
                2
            ]
            in self.swallowers
            for each in self.node.decorator_list
        )
        return checks_in(self.body, self.swallowers, caught=caught)

    @cached_property
    def all_checks(self) -> tuple[Check, ...]:
        """Its own and those of the helpers and fixtures that it uses."""
        return (*self.checks, *self._helping(self.node, set(), 0))

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """What keeps it from being judged."""
        aliases = self.module.aliases
        own = (mark for each in self.node.decorator_list for mark in marks_of(each, aliases))
        return (*self.inherited, *own, *calls_that_leave(self.body, aliases))

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The shapes of the parameter sets that are written down."""
        return tuple(shape(case) for case in self.case_nodes)

    @cached_property
    def case_nodes(self) -> tuple[ast.expr, ...]:
        """The parameter sets that are written down, or stand in a constant of the module."""
        found: list[ast.expr] = []
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call) and dotted(decorator.func, self.module.aliases).endswith(
                "parametrize"
            ):
                values = decorator.args[1] if len(decorator.args) > 1 else _argvalues(decorator)
                found += _elements(values, self.module)
        return tuple(found)

    @cached_property
    def literals(self) -> frozenset[str]:
        """Every constant of it, spelled."""
        return frozenset(literals_in([self.node]))

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that it uses; what likeness is measured by."""
        return frozenset(
            each.id if isinstance(each, ast.Name) else each.attr
            for each in ast.walk(self.node)
            if isinstance(each, ast.Name | ast.Attribute)
        )

    def _helping(self, node: ast.AST, seen: set[str], depth: int) -> Iterator[Check]:
        if depth >= _DEEPEST_HELPERS:
            return
        own = {id(each) for each in ast.walk(self.node)}
        names = {arg.arg for arg in node.args.args} if isinstance(node, ast.FunctionDef) else set[str]()
        for each in ast.walk(node):
            if isinstance(each, ast.Call):
                names.add(getattr(each.func, "attr", getattr(each.func, "id", "")))
            elif isinstance(each, ast.Name):
                names.add(each.id)
        for name in sorted(names - seen):
            helper = self.helpers.get(name)
            if helper is not None and id(helper) not in own:
                seen.add(name)
                yield from checks_in(helper.body, self.swallowers)
                yield from self._helping(helper, seen, depth + 1)


def read_tests(
    module: Module,
    *,
    functions: Sequence[str],
    helpers: dict[str, Function],
    swallowers: frozenset[str] = frozenset(),
    cases: frozenset[str] = frozenset(),
) -> tuple[TestUnit, ...]:
    """The tests of a module, and the functions that stop being tests by their name only.

    ``cases`` are the names of classes, of this module or another, that make test cases of what they hold.
    """
    every = {**helpers, **module.functions}
    marks = tuple(module_marks(module))
    units = _of_body(module, module.tree.body, "", True, marks, every, functions, False, cases)
    nets = swallowers | swallowers_of(module)
    return tuple(replace(unit, swallowers=nets) if nets else unit for unit in units)


def literals_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The constants of trees, spelled; docstrings too."""
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and each.value is not None and each.value is not Ellipsis:
                yield repr(each.value)


def _of_body(
    module: Module,
    body: Sequence[ast.stmt],
    owner: str,
    collected: bool,
    inherited: tuple[Mark, ...],
    helpers: dict[str, Function],
    functions: Sequence[str],
    is_case: bool,
    cases: frozenset[str],
) -> Iterator[TestUnit]:
    last = {each.name: each for each in definitions(body)}
    disabled, never = _disabled(body), _never_defined(body)
    for each in definitions(body):
        if isinstance(each, ast.ClassDef):
            case = _is_test_case(each) or not cases.isdisjoint(_bases(each))
            marks = tuple(m for one in each.decorator_list for m in marks_of(one, module.aliases))
            counts = (
                collected
                and last[each.name] is each
                and each.name not in disabled | never
                and (case or (each.name.startswith("Test") and not _has_init(each)))
                and not _says_no_test(each.body)
            )
            if case or "test" in each.name.lower() or _holds_tests(each):
                name = f"{owner}::{each.name}" if owner else each.name
                own = tuple(marks_assigned(each.body, module.aliases))
                more = (*inherited, *marks, *own)
                units = _of_body(module, each.body, name, counts, more, helpers, functions, case, cases)
                if any(dotted(base, module.aliases) in _AWAITS_NOTHING for base in each.bases):
                    units = (_not_awaited(unit, name) for unit in units)
                yield from units
        elif any(each.name.startswith(prefix) for prefix in functions) or (
            is_case and each.name.startswith("test")
        ):
            if is_fixture(each, module.aliases):
                continue
            counts = collected and last[each.name] is each and each.name not in disabled | never
            yield TestUnit(module, each, owner, counts, inherited, helpers)


def is_fixture(node: Function, aliases: dict[str, str]) -> bool:
    """Whether a function is a fixture of pytest."""
    return fixture_call(node, aliases) is not None


def fixture_call(node: Function, aliases: dict[str, str]) -> ast.expr | None:
    """The decorator that makes a function a fixture."""
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if dotted(called, aliases).rpartition(".")[2] in ("fixture", "yield_fixture"):
            return decorator
    return None


def _disabled(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that are deleted, bound anew, or told to be no tests."""
    found: set[str] = set()
    defined: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(statement.name)
            found.discard(statement.name)
        elif isinstance(statement, ast.Delete):
            found.update(t.id for t in statement.targets if isinstance(t, ast.Name))
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name) and target.id in defined:
                    found.add(target.id)
                elif (
                    isinstance(target, ast.Attribute)
                    and target.attr == "__test__"
                    and isinstance(target.value, ast.Name)
                    and fold(statement.value) is False
                ):
                    found.add(target.value.id)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            found.update({n.asname or n.name for n in statement.names} & defined)
    if _says_no_test(body):
        found |= defined
    return frozenset(found)


def _never_defined(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that stand below a condition that never holds where tests run."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If):
            said = ast.unparse(statement.test)
            if (
                is_always_false(statement.test)
                or said.rpartition(".")[2] == "TYPE_CHECKING"
                or is_main_guard(statement)
            ):
                found |= {each.name for each in definitions(statement.body)}
    return frozenset(found)


def _says_no_test(body: Sequence[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__test__" for t in statement.targets
        ):
            value = fold(statement.value)
            return value is not NOTHING and not value
    return False


def _holds_tests(node: ast.ClassDef) -> bool:
    return any(
        isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test")
        for each in node.body
    )


def _is_test_case(node: ast.ClassDef) -> bool:
    return any(name.endswith(("TestCase", "TestBase")) for name in _bases(node))


def _bases(node: ast.ClassDef) -> list[str]:
    return [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]


def case_names(modules: Iterable[Module]) -> frozenset[str]:
    """The names of classes from which others inherit that their tests are run, by way of unittest.

    A base class of which nobody knows may be one: whether its tests run is seen when they do.
    """
    classes: dict[str, ast.ClassDef] = {}
    for module in modules:
        classes.update(
            (each.name, each) for each in ast.walk(module.tree) if isinstance(each, ast.ClassDef)
        )
    found = {name for name, node in classes.items() if _is_test_case(node)}
    found |= {base for node in classes.values() if _holds_tests(node) for base in _bases(node)} - (
        classes.keys() | _NO_CASES
    )
    while more := {name for name in classes.keys() - found if not found.isdisjoint(_bases(classes[name]))}:
        found |= more
    return frozenset(found)


def _not_awaited(unit: TestUnit, owner: str) -> TestUnit:
    """The test of a class, which is none where it would have to be awaited."""
    is_lost = unit.owner == owner and isinstance(unit.node, ast.AsyncFunctionDef)
    return replace(unit, collected=False) if is_lost else unit


_AWAITS_NOTHING = ("unittest.TestCase", "unittest.case.TestCase")
"""Bases whose tests are called and not awaited: what a coroutine would assert is never asked."""

_NO_CASES = frozenset({*dir(builtins), "ABC", "Enum", "Generic", "NamedTuple", "Protocol", "TypedDict"})


def _has_init(node: ast.ClassDef) -> bool:
    return any(
        isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__") for each in node.body
    )


def _argvalues(call: ast.Call) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == "argvalues"), None)


def _elements(values: ast.expr | None, module: Module) -> list[ast.expr]:
    if isinstance(values, ast.Name):
        values = module.constants.get(values.id)
    return list(values.elts) if isinstance(values, ast.List | ast.Tuple | ast.Set) else []
