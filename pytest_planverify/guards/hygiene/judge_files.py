"""The files that judge: each changed one is asked what it lost, and by whose leave."""

from __future__ import annotations

import ast
import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.model.kinds import Hardness
from pytest_planverify.guards.hygiene.check_changes import Pair
from pytest_planverify.guards.hygiene.checks import checks_in
from pytest_planverify.guards.hygiene.configuration import effective
from pytest_planverify.guards.hygiene.data_files import compare_data, first_difference, literals_of
from pytest_planverify.guards.hygiene.fixtures import OF_THE_TEST, compare_fixtures, fixtures_of
from pytest_planverify.guards.hygiene.harmless import is_same, only_adds
from pytest_planverify.guards.hygiene.hooks import compare_hooks
from pytest_planverify.guards.hygiene.judges import JUDGING
from pytest_planverify.guards.hygiene.rebinding import compare_bindings, public_names, uses_product
from pytest_planverify.guards.hygiene.signs import Find, Leave, weigh
from pytest_planverify.guards.hygiene.suite import TestUnit, case_names, literals_in, read_tests
from pytest_planverify.guards.hygiene.swallowing import (
    empty_checks,
    overridden,
    skipping_set_ups,
    swallowers_of,
)
from pytest_planverify.guards.hygiene.test_changes import Suites, compare_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.changes import Changes
    from pytest_planverify.guards.hygiene.reading import Function, Module

_PYTHON = (JudgeKind.TEST, JudgeKind.CONFTEST, JudgeKind.TEST_SUPPORT)


class JudgeFiles:
    """The changed files that judge."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._python = [path for path in changes.of_kind(*_PYTHON) if path.endswith(".py")]

    def finds(self) -> Iterator[Find]:
        """What they lost, and of what was changed without leave that it was."""
        said: set[str] = set()
        for find in self._by_content():
            signal = weigh(find, self._changes.grants.leave(find.path))
            if signal is not None and signal.hardness is Hardness.HARD:
                said.add(find.path)
            yield find
        for path in self._changes.of_kind(*JUDGING):
            if path not in said and self._changes.grants.leave(path) is not Leave.GRANTED:
                yield from self._difference(path)

    def _by_content(self) -> Iterator[Find]:
        if self._python:
            if not self._all_harmless():
                yield from compare_tests(self._suites())
            for path in self._python:
                now = self._now(path)
                if now is not None:
                    yield from compare_hooks(self._before(path), now)
                    for find in compare_fixtures(
                        self._before(path), now, self._fixtures, self._product_names
                    ):
                        own = find.subject != OF_THE_TEST and self._reaches_own_only(path)
                        yield find.softer() if own else find
                    yield from compare_bindings(
                        self._before(path), now, self._imported(path), self._product_tops
                    )
                    yield from self._star_imports(path, now)
                    for detector in (overridden, skipping_set_ups, empty_checks):
                        yield from detector(self._before(path), now)
                elif path in self._changes.new:
                    yield Find(
                        sign="judge-unreadable", message=f"{path} can no longer be parsed", path=path
                    )
        for kind, sign in ((JudgeKind.FIXTURE, "data-changed"), (JudgeKind.CONTRACT, "contract-changed")):
            for path in self._changes.of_kind(kind):
                find = compare_data(self._changes.before, self._changes.now, path, sign)
                if find is not None and not self._may_grow(find):
                    yield find

    def _reaches_own_only(self, path: str) -> bool:
        """Whether the fixtures of a file that somebody may change serve only tests that he may change."""
        grants = self._changes.grants
        if grants.leave(path) is not Leave.GRANTED:
            return False
        if self._changes.kind(path) is JudgeKind.TEST:
            return True
        folder = posixpath.dirname(path)
        owners = set(grants.owners(path))
        return all(
            owners & set(grants.owners(other))
            for other in self._changes.new
            if self._changes.kind(other) is JudgeKind.TEST
            and (not folder or other.startswith(f"{folder}/"))
            and other in self._changes.old
        )

    def _may_grow(self, find: Find) -> bool:
        """Data that says more is the wish of whoever may change it."""
        return find.subject == "more" and self._changes.grants.leave(find.path) is not Leave.FORBIDDEN

    def _difference(self, path: str) -> Iterator[Find]:
        """A file that judges is another one, and nothing says what it lost."""
        old, new = self._changes.before.read(path), self._changes.now.read(path)
        if path in self._changes.old and path not in self._changes.new:
            yield from self._removed(path)
            return
        if path in self._python:
            before, now = self._before(path), self._now(path)
            if now is None or self._is_harmless(path):
                return
            line, was, is_now = first_difference(old or b"", new or b"")
            if before is None and path in self._changes.old:
                was = None
            yield Find(
                sign="judge-changed",
                message=f"{path} was {'changed' if path in self._changes.old else 'added'} without leave",
                path=path,
                line=line,
                before=was,
                after=is_now,
            )
        elif path in self._changes.old and old is None:
            yield Find(sign="judge-changed", message=f"{path} was changed without leave", path=path)

    def _removed(self, path: str) -> Iterator[Find]:
        twin = self._twin(path)
        if twin is None:
            if (
                self._changes.kind(path) is JudgeKind.TEST
                and self._changes.grants.leave(path) is Leave.OPEN
            ):
                return  # its tests were looked at one by one
            yield Find(sign="judge-removed", message=f"{path} is gone", path=path)
        elif self._changes.kind(path) is JudgeKind.TEST and not self._in_same_reach(path, twin):
            said = f"{path} is now {twin}, where the criteria do not look"
            yield Find(sign="judge-moved-away", message=said, path=path)

    def _twin(self, path: str) -> str | None:
        """A new file that does the same."""
        before = self._before(path) if path.endswith(".py") else None
        for other in sorted(self._changes.new.keys() - self._changes.old.keys()):
            if self._changes.new[other] == self._changes.old[path]:
                return other
            if before is not None and other in self._python:
                now = self._now(other)
                if now is not None and is_same(before, now):
                    return other
        return None

    def _in_same_reach(self, path: str, twin: str) -> bool:
        """Whether every criterion that selected the file selects the other."""
        if self._changes.kind(twin) is not JudgeKind.TEST:
            return False
        grants = self._changes.grants
        return not grants.todos or set(grants.dependants(path)) <= set(grants.dependants(twin))

    def _all_harmless(self) -> bool:
        return all(path in self._changes.new and self._is_harmless(path) for path in self._python)

    def _is_harmless(self, path: str) -> bool:
        before, now = self._before(path), self._now(path)
        if now is None:
            return False
        if before is not None and is_same(before, now):
            return True
        if before is None and path in self._changes.old:
            return False
        above = {name for name, where in self._fixtures.items() if where != path}
        return only_adds(before, now, above)

    def _suites(self) -> Suites:
        functions = self._prefixes()
        helpers_before, helpers_now = self._helpers(now=False), self._helpers(now=True)
        nets_before, nets_now = self._nets(now=False), self._nets(now=True)
        before: list[TestUnit] = []
        now: list[TestUnit] = []
        others: list[TestUnit] = []
        pool: set[str] = set()
        cases_before = case_names(filter(None, map(self._before, self._python)))
        cases_now = case_names(filter(None, map(self._now, self._python)))
        for path in self._python:
            old, new = self._before(path), self._now(path)
            collected = self._changes.kind(path) is JudgeKind.TEST
            if old is not None and collected:
                before += read_tests(
                    old,
                    functions=functions,
                    helpers=helpers_before,
                    swallowers=nets_before,
                    cases=cases_before,
                )
            if new is not None:
                if collected:
                    now += read_tests(
                        new,
                        functions=functions,
                        helpers=helpers_now,
                        swallowers=nets_now,
                        cases=cases_now,
                    )
                others += _other_functions(new, functions)
        for path in self._changes.of_kind(JudgeKind.FIXTURE):
            pool |= literals_of(path, self._changes.now.read(path))
        for path in self._python:
            new = self._now(path)
            if new is not None and path not in self._changes.old:
                pool |= set(literals_in(new.constants.values()))
        return Suites(before=before, now=now, functions=others, helpers=self._helper_pairs(), pool=pool)

    def _helper_pairs(self) -> list[Pair]:
        """The functions of support files that check something for tests, where they have changed."""
        found: list[Pair] = []
        for path in self._python:
            old, new = self._before(path), self._now(path)
            if old is None or new is None or self._changes.kind(path) is JudgeKind.TEST:
                continue
            for name, node in old.functions.items():
                twin = new.functions.get(name)
                if twin is not None and checks_in(node.body):
                    nets = swallowers_of(new)
                    found.append(Pair(TestUnit(old, node), TestUnit(new, twin, swallowers=nets)))
        return found

    def _prefixes(self) -> tuple[str, ...]:
        _, options = effective(self._changes.before, "")
        return tuple(each.rstrip("*") for each in (options or {}).get("python_functions", ("test",)))

    def _helpers(self, *, now: bool) -> dict[str, Function]:
        """Functions that tests may call: those of conftests and support, of unchanged ones too."""
        paths = self._changes.new if now else self._changes.old
        found: dict[str, Function] = {}
        for path in sorted(paths):
            is_helper = path.endswith(".py") and self._changes.kind(path) in (
                JudgeKind.CONFTEST,
                JudgeKind.TEST_SUPPORT,
            )
            module = self._changes.module(path, now=now) if is_helper else None
            if module is not None:
                found |= module.functions
        return found

    def _nets(self, *, now: bool) -> frozenset[str]:
        """What takes failures away, of conftests and support."""
        found: set[str] = set()
        for path in sorted(self._changes.new if now else self._changes.old):
            if path.endswith(".py") and self._changes.kind(path) in _PYTHON[1:]:
                module = self._changes.module(path, now=now)
                if module is not None:
                    found |= swallowers_of(module)
        return frozenset(found)

    @cached_property
    def _fixtures(self) -> dict[str, str]:
        """The fixtures that conftests and support gave before, by name."""
        found: dict[str, str] = {}
        for path in sorted(self._changes.old):
            if path.endswith(".py") and self._changes.kind(path) in (
                JudgeKind.CONFTEST,
                JudgeKind.TEST_SUPPORT,
            ):
                module = self._before(path)
                if module is not None:
                    found |= dict.fromkeys(fixtures_of(module), path)
        return found

    @cached_property
    def _product_tops(self) -> frozenset[str]:
        """The packages and modules of the product."""
        return frozenset(
            path.split("/")[1 if path.startswith(("src/", "lib/")) and "/" in path else 0].removesuffix(
                ".py"
            )
            for path in (*self._changes.old, *self._changes.new)
            if path.endswith(".py") and self._changes.kind(path) is JudgeKind.PRODUCT
        )

    @cached_property
    def _product_names(self) -> frozenset[str]:
        """Names that the changed judges import from the product."""
        return frozenset(name for path in self._python for name in self._imported(path))

    def _imported(self, path: str) -> dict[str, str]:
        """What a file imported from the product before, stars included, by name."""
        module = self._before(path)
        if module is None:
            return {}
        found = {
            name: meaning
            for name, meaning in module.aliases.items()
            if name != "*" and meaning.partition(".")[0] in self._product_tops
        }
        for node in module.tree.body:
            if (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and node.names[0].name == "*"
                and (node.module or "").partition(".")[0] in self._product_tops
            ):
                found |= {name: f"{node.module}.{name}" for name in self._public(node.module or "")}
        return found

    def _public(self, dotted_name: str) -> frozenset[str]:
        """The names that a module of the tree gives to whoever asks for all."""
        place = dotted_name.replace(".", "/")
        for folder in ("", "src/", "lib/"):
            for path in (f"{folder}{place}.py", f"{folder}{place}/__init__.py"):
                module = self._before(path) if path in self._changes.old else None
                if module is not None:
                    return public_names(module)
        return frozenset()

    def _star_imports(self, path: str, now: Module) -> Iterator[Find]:
        """A module of the tests whose names, all imported, hide those of the product."""
        product = self._imported(path)
        folder = posixpath.dirname(path)
        for node in now.tree.body:
            if not (isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and product):
                continue
            name = (node.module or "").rpartition(".")[2]
            other = posixpath.join(folder, f"{name}.py")
            module = self._now(other) if other in self._changes.changed else None
            hidden = sorted(public_names(module) & product.keys()) if module is not None else []
            if hidden:
                said = f"{hidden[0]} comes from {other} instead of the product"
                made_of_it = (
                    any(uses_product(each, module, self._product_tops) for each in module.tree.body)
                    if module
                    else False
                )
                sign = "product-mocked" if made_of_it else "product-replaced"
                yield Find(sign=sign, message=said, path=path, line=node.lineno, after=now.line(node))

    def _before(self, path: str) -> Module | None:
        return self._changes.module(path, now=False)

    def _now(self, path: str) -> Module | None:
        return self._changes.module(path, now=True)


def _other_functions(module: Module, prefixes: tuple[str, ...]) -> Iterator[TestUnit]:
    """Functions that are called otherwise than tests, fixtures left out, and nowhere called."""
    from pytest_planverify.guards.hygiene.suite import is_fixture

    called = {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(module.tree)
        if isinstance(each, ast.Name | ast.Attribute)
    }
    for name, node in module.functions.items():
        if name.startswith(prefixes) and posixpath.basename(module.path) != "conftest.py":
            continue
        if name not in called and not is_fixture(node, module.aliases) and not name.startswith("pytest_"):
            yield TestUnit(module, node, collected=False)
