"""What takes the failures of tests away: context managers, decorators, methods of test cases."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.checks import checks_in
from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.marks import calls_that_leave
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.truths import is_always_false

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module

_SET_UPS = frozenset(
    {"setUp", "setUpClass", "setUpModule", "setup_method", "setup_class", "setup_module", "setup_function",
     "asyncSetUp", "setup"}
)  # fmt: skip
_CHECKING = ("assert", "check", "expect", "verify", "compare", "ensure")
_TAKES = frozenset({"AssertionError", "Exception", "BaseException", "Failed", ""})
_MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})
_OWN = frozenset(
    {"setUp", "tearDown", "setUpClass", "tearDownClass", "id", "shortDescription", "maxDiff", "longMessage",
     "asyncSetUp", "asyncTearDown"}
)  # fmt: skip
"""Members of a test case that are there to be defined by tests."""


def swallowers_of(module: Module) -> frozenset[str]:
    """The names of a module below which no assertion can fail a test."""
    found: set[str] = set()
    for node, owner in module.members:
        if owner is not None:
            continue
        if isinstance(node, ast.ClassDef):
            if any(_leaves_quietly(each) for each in node.body):
                found.add(node.name)
        elif (_is_manager(node, module) and _yields_into_a_net(node)) or _makes_harmless(node):
            found.add(node.name)
    return frozenset(found)


def takes_failures(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches what a failing assertion raises, and raises nothing itself."""
    names = (
        {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(handler.type)}
        if handler.type is not None
        else {""}
    )
    raises = any(
        isinstance(each, ast.Raise | ast.Assert)
        or (
            isinstance(each, ast.Call)
            and getattr(each.func, "attr", getattr(each.func, "id", "")) == "fail"
        )
        for statement in handler.body
        for each in ast.walk(statement)
    )
    return bool(names & _TAKES) and not raises


def overridden(before: Module | None, now: Module) -> Iterator[Find]:
    """Methods of unittest that classes of tests define themselves, which they did not."""
    had = set(_overrides(before)) if before is not None else set[tuple[str, str]]()
    gone = {name for _, name in had}
    for owner, name in _overrides(now):
        if (owner, name) not in had and name not in gone:
            line = next((node.lineno for node, _ in now.members if node.name == owner), None)
            said = f"{owner} has {name} of its own instead of that of unittest"
            yield Find(sign="outcome-hook", message=said, path=now.path, line=line, place=owner)
    if before is not None and _asks_own_kinds(before):
        return
    for site in now.sites:
        if isinstance(site.node, ast.Call) and getattr(site.node.func, "attr", "") == "addTypeEqualityFunc":
            said = "A comparison of unittest is replaced"
            yield Find(
                sign="outcome-hook", message=said, path=now.path, line=site.node.lineno, place=site.place,
                after=now.line(site.node),
            )  # fmt: skip


def skipping_set_ups(before: Module | None, now: Module) -> Iterator[Find]:
    """``setUpClass``, ``setup_module`` and their like that skip, which they did not."""
    had = {
        (owner.name if owner else "", node.name): len(list(calls_that_leave(node.body, before.aliases)))
        for node, owner in (before.members if before is not None else ())
        if not isinstance(node, ast.ClassDef) and before is not None
    }
    for node, owner in now.members:
        if isinstance(node, ast.ClassDef) or node.name not in _SET_UPS:
            continue
        known = had.get((owner.name if owner else "", node.name), 0)
        for mark in list(calls_that_leave(node.body, now.aliases))[known:]:
            said = f"{node.name} skips tests"
            found = Find(
                sign="test-skipped",
                message=said,
                path=now.path,
                line=mark.line,
                place=node.name,
                after=mark.text,
            )
            yield found.softer() if mark.conditional else found


def empty_checks(before: Module | None, now: Module) -> Iterator[Find]:
    """Functions that checked something for tests, here or where they were imported from, and do not now."""
    if before is None:
        return
    for node, owner in now.members:
        if isinstance(node, ast.ClassDef) or owner is not None:
            continue
        was = before.functions.get(node.name)
        checked = was is not None and any(check.counts for check in checks_in(was.body))
        imported = node.name in before.aliases and node.name.startswith(_CHECKING)
        if (checked or imported) and not _can_fail(node):
            said = f"{node.name} checks nothing"
            yield Find(
                sign="assertion-always-true",
                message=said,
                path=now.path,
                line=node.lineno,
                place=node.name,
                after=now.line(node),
            )


def _can_fail(node: Function) -> bool:
    return any(check.counts for check in checks_in(node.body)) or any(
        isinstance(each, ast.Raise)
        or (
            isinstance(each, ast.Call)
            and getattr(each.func, "attr", getattr(each.func, "id", "")).startswith(
                ("assert", "fail", *_CHECKING)
            )
        )
        for each in ast.walk(node)
    )


def _overrides(module: Module) -> Iterator[tuple[str, str]]:
    for node, _ in module.members:
        if not isinstance(node, ast.ClassDef) or not _is_case(node):
            continue
        for each in node.body:
            names: list[str] = []
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [each.name]
            elif isinstance(each, ast.Assign):
                names = [target.id for target in each.targets if isinstance(target, ast.Name)]
            for name in names:
                if name in _members():
                    yield node.name, name


@cache
def _members() -> frozenset[str]:
    """What test cases inherit from unittest and have no business to define themselves."""
    import unittest

    return frozenset(name for name in dir(unittest.TestCase) if not name.startswith("__")) - _OWN | {
        "__call__"
    }


def _asks_own_kinds(module: Module) -> bool:
    return "addTypeEqualityFunc" in module.text


def _is_case(node: ast.ClassDef) -> bool:
    names = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
    holds = any(isinstance(each, ast.FunctionDef) and each.name.startswith("test") for each in node.body)
    return any("Test" in name for name in names) or holds


def _leaves_quietly(node: ast.stmt) -> bool:
    """``__exit__`` that says that nothing happened, whatever happened."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if node.name not in ("__exit__", "__aexit__"):
        return False
    for each in ast.walk(node):
        value = each.value if isinstance(each, ast.Return) else None
        if value is None or is_always_false(value):
            continue
        names = {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(value)}
        special = {name for name in names if name.endswith(("Error", "Exception", "Warning", "Exit"))}
        if (not special or special & _TAKES) and (
            fold(value) is not NOTHING or special or _asks_whether_any(value)
        ):
            return True
    return False


def _asks_whether_any(value: ast.expr) -> bool:
    """``kind is not None``: it looks for an exception, not for which."""
    return isinstance(value, ast.Compare) and any(
        isinstance(side, ast.Constant) and side.value is None for side in value.comparators
    )


def _is_manager(node: Function, module: Module) -> bool:
    return any(dotted(each, module.aliases).rpartition(".")[2] in _MANAGERS for each in node.decorator_list)


def _yields_into_a_net(node: Function) -> bool:
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Try)
            and any(takes_failures(handler) for handler in each.handlers)
            and any(isinstance(one, ast.Yield) for statement in each.body for one in ast.walk(statement))
        ):
            return True
        if isinstance(each, ast.With | ast.AsyncWith) and any(
            isinstance(one, ast.Yield) for statement in each.body for one in ast.walk(statement)
        ):
            said = " ".join(ast.unparse(item.context_expr) for item in each.items)
            if "suppress(" in said and any(name and name in said for name in _TAKES):
                return True
    return False


def _makes_harmless(node: Function) -> bool:
    """A decorator that catches what the function raises, or gives back one that never calls it."""
    arguments = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    if len(arguments) != 1:
        return any(
            _makes_harmless(each) for each in node.body if isinstance(each, ast.FunctionDef)
        ) and _gives_back_a_function(node)
    name = arguments[0]
    inner = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and each is not node
    ]
    if not inner or not _gives_back_a_function(node):
        return False
    calls = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
    ]
    if not calls:
        handed_on = any(
            isinstance(arg, ast.Name) and arg.id == name
            for each in inner
            for one in ast.walk(each)
            if isinstance(one, ast.Call)
            for arg in one.args
        )
        return not handed_on and not any(
            isinstance(each, ast.Return) and isinstance(each.value, ast.Name) and each.value.id == name
            for each in ast.walk(node)
        )
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Try)
            and any(takes_failures(handler) for handler in each.handlers)
            and any(call in ast.walk(each) for call in calls)
            and not _tries_again(node)
        ):
            return True
        if (
            isinstance(each, ast.With)
            and "suppress(" in " ".join(map(ast.unparse, each.items))
            and any(call in ast.walk(each) for call in calls)
        ):
            return True
    return False


def _tries_again(node: Function) -> bool:
    """A retry that raises in the end."""
    return any(isinstance(each, ast.Raise) for each in ast.walk(node))


def _gives_back_a_function(node: Function) -> bool:
    own = {each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef) and each is not node}
    for each in ast.walk(node):
        value = each.value if isinstance(each, ast.Return) else None
        if isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in own):
            return True
    return False
