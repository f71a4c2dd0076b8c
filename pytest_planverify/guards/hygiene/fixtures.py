"""pytest's fixtures as they stand in the source: names, who gets them, what they stand for."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.marks import calls_that_leave
from pytest_planverify.guards.hygiene.reading import shape
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.stand_ins import patches_in
from pytest_planverify.guards.hygiene.suite import fixture_call

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pytest_planverify.guards.hygiene.reading import Function, Module

BUILT_IN = frozenset(
    [
        "cache",
        "capfd",
        "capfdbinary",
        "caplog",
        "capsys",
        "capsysbinary",
        "capteesys",
        "config",
        "doctest_namespace",
        "monkeypatch",
        "pytestconfig",
        "record_property",
        "record_testsuite_property",
        "record_xml_attribute",
        "recwarn",
        "request",
        "subtests",
        "testdir",
        "pytester",
        "tmp_path",
        "tmp_path_factory",
        "tmpdir",
        "tmpdir_factory",
        "planverify",
    ]
)
"""What pytest and this plugin give."""


def fixtures_of(module: Module) -> dict[str, Function]:
    """The fixtures that a module defines, by the name under which tests ask for them."""
    return {
        fixture_name(node, module.aliases): node
        for node, _ in module.members
        if not isinstance(node, ast.ClassDef) and fixture_call(node, module.aliases) is not None
    }


def fixture_name(node: Function, aliases: dict[str, str]) -> str:
    """The name under which tests ask for a fixture."""
    name = fold(_option(node, aliases, "name") or ast.Constant(None))
    return name if isinstance(name, str) else node.name


def is_autouse(node: Function, aliases: dict[str, str]) -> bool:
    """Whether every test in reach gets the fixture."""
    value = _option(node, aliases, "autouse")
    return value is not None and fold(value) is not False


def compare_fixtures(
    before: Module | None, now: Module, above: Mapping[str, str], product: Collection[str]
) -> Iterator[Find]:
    """Fixtures that came or changed, and put something else where the product was.

    ``above`` are the fixtures of conftests that this file can hide, by name, with their path; ``product``
    are the names that modules of the product define.
    """
    old = fixtures_of(before) if before is not None else {}
    for name, node in fixtures_of(now).items():
        was = old.get(name)
        if was is not None and shape(was) == shape(node):
            continue
        yield from _patching(name, node, was, now)
        yield from _leaving(name, node, was, now)
        if was is None:
            if (name in above and above[name] != now.path) or name in BUILT_IN:
                where = above.get(name, "pytest")
                yield _find("fixture-overridden", f"The fixture {name} hides that of {where}", node, now)
        elif _loses_product(was, node, product):
            yield _find(
                "product-mocked", f"The fixture {name} hands out a stand-in for the product", node, now, was
            )


def _leaving(name: str, node: Function, was: Function | None, module: Module) -> Iterator[Find]:
    """A fixture that skips whoever gets it, which did not, or that came and everybody gets."""
    if was is None and not is_autouse(node, module.aliases):
        return
    had = len(list(calls_that_leave(was.body, module.aliases))) if was is not None else 0
    for mark in list(calls_that_leave(node.body, module.aliases))[had:]:
        sign = "test-skipped" if mark.kind == "skip" else "test-xfailed"
        asks_who = any(
            isinstance(each, ast.Attribute) and each.attr in ("node", "nodeid", "function")
            for each in ast.walk(node)
        )
        found = _find(sign, f"The fixture {name} skips tests", node, module)
        yield found.softer() if mark.conditional and not asks_who else found


def _patching(name: str, node: Function, was: Function | None, module: Module) -> Iterator[Find]:
    if not is_autouse(node, module.aliases):
        return
    known = {target for _, target, _ in patches_in(was, module.aliases)} if was is not None else set[str]()
    for call, target, _ in patches_in(node, module.aliases):
        if target not in known and (not _is_environment(call) or _is_of_the_test(call)):
            found = _find(
                "autouse-patch", f"The fixture {name} replaces {target} for every test", call, module
            )
            yield replace(found, subject=OF_THE_TEST) if _is_of_the_test(call) else found
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and any(map(_is_of_the_test, each.targets)):
            said = f"The fixture {name} puts something in the place of what the tests use"
            yield replace(_find("autouse-patch", said, each, module), subject=OF_THE_TEST)
        elif (
            isinstance(each, ast.Assign)
            and any(
                isinstance(target, ast.Attribute) and not _is_own(target, node) for target in each.targets
            )
            and (
                was is None
                or shape(each) not in {shape(one) for one in ast.walk(was) if isinstance(one, ast.Assign)}
            )
        ):
            said = f"The fixture {name} assigns to {ast.unparse(each.targets[0])} for every test"
            yield _find("autouse-patch", said, each, module)


OF_THE_TEST = "of the test"
"""The names of the test's own module are changed: no test needs that."""


def _is_of_the_test(node: ast.AST) -> bool:
    """``request.module.f``, ``request.function.__globals__["f"]``, ``request.node.obj``."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            if each.attr == "__globals__" or (each.attr == "obj" and "node" in ast.unparse(each.value)):
                return True
            if each.attr in ("module", "function") and getattr(each.value, "id", "") in ("request", "item"):
                return True
    return False


def _is_environment(call: ast.Call) -> bool:
    return getattr(call.func, "attr", "") in ("setenv", "delenv", "chdir", "syspath_prepend", "setitem")


def _is_own(target: ast.Attribute, node: Function) -> bool:
    """An attribute of something that the fixture made itself, or of the test's own object."""
    root: ast.expr = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not isinstance(root, ast.Name):
        return True
    bound = {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return root.id in bound | {"self", "cls", "request"}


def _loses_product(was: Function, node: Function, product: Collection[str]) -> bool:
    used = [
        {each.id for each in ast.walk(one) if isinstance(each, ast.Name)} & set(product)
        for one in (was, node)
    ]
    return bool(used[0]) and not used[1]


def _option(node: Function, aliases: dict[str, str], name: str) -> ast.expr | None:
    call = fixture_call(node, aliases)
    if isinstance(call, ast.Call):
        return next((each.value for each in call.keywords if each.arg == name), None)
    return None


def _find(sign: str, said: str, node: ast.AST, module: Module, was: ast.AST | None = None) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        before=ast.unparse(was) if was is not None else None,
        after=ast.unparse(node),
    )
