"""Which changes of a file of tests take nothing from what it judges: formatting, and additions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.fixtures import BUILT_IN, fixture_name, is_autouse
from pytest_planverify.guards.hygiene.reading import shape, without_docstring
from pytest_planverify.guards.hygiene.suite import is_fixture

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_planverify.guards.hygiene.reading import Module

_SPEAKS_TO_PYTEST = frozenset(
    {"pytestmark", "pytest_plugins", "collect_ignore", "collect_ignore_glob", "__test__", "test", "setUp"}
)
_SETS_UP = (
    "setup_", "teardown_", "setUp", "tearDown", "pytest_", "load_tests", "addCleanup", "asyncSetUp",
    "setUpModule", "tearDownModule",
)  # fmt: skip


def is_same(before: Module, now: Module) -> bool:
    """Whether two sources do the same: they differ in format, comments, annotations, order of imports."""
    return _without_imports(before) == _without_imports(now) and _imports(before) == _imports(now)


def only_adds(before: Module | None, now: Module, fixtures: Collection[str]) -> bool:
    """Whether all that was there is there, and what came is only called by what is new.

    ``fixtures`` are the names of fixtures that conftests give.
    """
    body = before.tree.body if before is not None else []
    if before is not None and not _imports_hold(before, now):
        return False
    taken = (
        set(fixtures) | BUILT_IN if before is not None or now.path.endswith("conftest.py") else set[str]()
    )
    return _adds(body, now.tree.body, taken, now, top=True)


def names_bound(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a body binds."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for name in statement.names:
                yield (name.asname or name.name).partition(".")[0]
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        yield each.id


def _adds(
    before: list[ast.stmt], now: list[ast.stmt], taken: Collection[str], module: Module, *, top: bool
) -> bool:
    """Whether the statements of before stand in their order, and those between are harmless."""
    waiting = [each for each in without_docstring(before) if not _is_import(each)]
    bound = set(names_bound(before))
    for statement in without_docstring(now):
        if _is_import(statement):
            continue
        if (waiting and module.form(statement) == _form_before(waiting[0], module)) or (
            waiting and _is_larger_class(waiting[0], statement, taken, module)
        ):
            waiting.pop(0)
        elif not _is_harmless(statement, bound, taken, module, top=top):
            return False
    return not waiting


def _form_before(statement: ast.stmt, now: Module) -> str:
    """The form of a statement of before; of a file that is new there is none."""
    return now.other.form(statement) if now.other is not None else shape(statement)


def _is_larger_class(before: ast.stmt, now: ast.stmt, taken: Collection[str], module: Module) -> bool:
    if not (isinstance(before, ast.ClassDef) and isinstance(now, ast.ClassDef) and before.name == now.name):
        return False
    heads = [
        [shape(part) for part in (*each.bases, *each.keywords, *each.decorator_list)]
        for each in (before, now)
    ]
    return heads[0] == heads[1] and _adds(before.body, now.body, taken, module, top=False)


def _is_harmless(
    statement: ast.stmt, bound: Collection[str], taken: Collection[str], module: Module, *, top: bool
) -> bool:
    names = set(names_bound([statement]))
    if not names or names & set(bound) or names & _SPEAKS_TO_PYTEST:
        return False
    if any(name.startswith(_SETS_UP) for name in names):
        return False
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        if is_fixture(statement, module.aliases):
            name = fixture_name(statement, module.aliases)
            return not is_autouse(statement, module.aliases) and name not in taken
        return True
    if isinstance(statement, ast.ClassDef):
        return all(_is_quiet_member(each, module) for each in statement.body)
    return top and isinstance(statement, ast.Assign | ast.AnnAssign) and _is_plain(statement)


def _is_quiet_member(statement: ast.stmt, module: Module) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return not is_autouse(statement, module.aliases)
    return isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.Pass | ast.ClassDef)


def _is_plain(statement: ast.Assign | ast.AnnAssign) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return all(isinstance(each, ast.Name | ast.Tuple) for each in targets)


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _without_imports(module: Module) -> list[str]:
    return [module.form(each) for each in without_docstring(module.tree.body) if not _is_import(each)]


def _imports(module: Module) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for statement in module.tree.body:
        if isinstance(statement, ast.Import):
            found |= {(name.asname or name.name, name.name) for name in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            source = "." * statement.level + (statement.module or "")
            found |= {(name.asname or name.name, f"{source}.{name.name}") for name in statement.names}
    return found


def _imports_hold(before: Module, now: Module) -> bool:
    """Whether names mean what they meant; what nobody uses may go, and what nobody had may come."""
    had, has = _imports(before), _imports(now)
    if had == has:
        return True
    used = {node.id for node in ast.walk(now.tree) if isinstance(node, ast.Name)}
    if any(name.partition(".")[0] in used for name, _ in had - has):
        return False
    known = set(names_bound(before.tree.body))
    return not any(
        name.partition(".")[0] in known for name, source in has - had if not _extends(source, had)
    )


def _extends(source: str, had: set[tuple[str, str]]) -> bool:
    """``import a.b`` beside ``import a`` binds what was bound."""
    top = source.partition(".")[0]
    return any(name.partition(".")[0] == top and meaning.partition(".")[0] == top for name, meaning in had)
