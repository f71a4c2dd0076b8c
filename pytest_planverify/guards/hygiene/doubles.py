"""Definitions in a file of tests that take the place of what it tests: wrappers, and doubles."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.reading import dotted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_planverify.guards.hygiene.reading import Module

_CHECKS = ("assert", "fail")
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_wrapper(node: ast.stmt, meaning: str, module: Module, tops: Collection[str]) -> bool:
    """Whether a definition hands on what the product gives: the thing itself, a child of it, its heir.

    One that only borrows exceptions, constants or a class to fill does the work itself.
    """
    if not isinstance(node, _FUNCTIONS) and not _is_lambda(node):
        # A class of the product's, or what the product gives, under the old name.
        parts = node.bases if isinstance(node, ast.ClassDef) else [getattr(node, "value", node)]
        return any(_is_product(each, module, tops) for part in parts for each in ast.walk(part))
    own = _bound_names(node)
    last = meaning.rpartition(".")[2]
    if any(
        _is_product(each, module, tops)
        and dotted(each, module.aliases).rpartition(".")[2] == last
        and not _is_one(each, own)
        for each in ast.walk(node)
    ):
        return True
    works = any(isinstance(each, _LOOPS) for each in ast.walk(node))
    given = _given(node)
    names: set[str] = set()
    for _ in range(4):
        for each in ast.walk(node):
            if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
                continue
            if _calls_product(each.value, names, works, own, module, tops):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                names |= {one.id for to in targets for one in ast.walk(to) if isinstance(one, ast.Name)}
    return any(_calls_product(each, names, works, own, module, tops) for each in given)


def is_judged(name: str, module: Module, tops: Collection[str]) -> bool:
    """Whether some test asserts what a call of that name gives, and does not lend it to the product."""
    return any(
        isinstance(node, _FUNCTIONS) and node.name.startswith("test") and _judges(node, name, module, tops)
        for node, _ in module.members
    )


def _judges(test: ast.AST, name: str, module: Module, tops: Collection[str]) -> bool:
    own = {name}
    for _ in range(4):
        for each in ast.walk(test):
            if isinstance(each, ast.Assign | ast.For | ast.withitem):
                value, targets = _bound(each)
                if _holds(value, own, name, module, tops):
                    own |= {one.id for to in targets for one in ast.walk(to) if isinstance(one, ast.Name)}
    lent = {
        one.id
        for each in ast.walk(test)
        if isinstance(each, ast.Call) and _takes_it(each, name, module, tops)
        for arg in (*each.args, *(keyword.value for keyword in each.keywords))
        for one in ast.walk(arg)
        if isinstance(one, ast.Name)
    }
    if name in lent:
        return False
    own -= lent
    return any(_holds(each, own, name, module, tops) for each in _asserted(test))


def _asserted(test: ast.AST) -> Iterator[ast.AST]:
    """What is asserted, in any way."""
    for each in ast.walk(test):
        if isinstance(each, ast.Assert):
            yield each.test
        elif isinstance(each, ast.Call):
            called = getattr(each.func, "attr", getattr(each.func, "id", ""))
            if called.startswith(_CHECKS):
                yield from each.args
        elif isinstance(each, ast.With) and any(_raises(item.context_expr) for item in each.items):
            yield from each.body


def _raises(node: ast.expr) -> bool:
    called = getattr(node, "func", None)
    name = getattr(called, "attr", getattr(called, "id", ""))
    return name in ("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns")


def _bound(node: ast.Assign | ast.For | ast.withitem) -> tuple[ast.AST, list[ast.expr]]:
    if isinstance(node, ast.Assign):
        return node.value, node.targets
    if isinstance(node, ast.For):
        return node.iter, [node.target]
    return node.context_expr, [node.optional_vars] if node.optional_vars is not None else []


def _holds(node: ast.AST, names: set[str], name: str, module: Module, tops: Collection[str]) -> bool:
    """Whether an expression has one of the names, other than lent to the product."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call) and _takes_it(node, name, module, tops):
        return False
    return any(_holds(each, names, name, module, tops) for each in ast.iter_child_nodes(node))


def _takes_it(node: ast.Call, name: str, module: Module, tops: Collection[str]) -> bool:
    """A call of the product, or of a patcher, to which a fake may be handed; not of the fake itself."""
    if getattr(node.func, "id", "") == name:
        return False
    if dotted(node.func, module.aliases).partition(".")[0] in tops:
        return True
    return getattr(node.func, "attr", "") in ("setattr", "setitem", "object", "patch")


def _given(node: ast.AST) -> list[ast.AST]:
    """What a function gives back."""
    found: list[ast.AST] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Return | ast.Yield | ast.YieldFrom) and each.value is not None:
            found.append(each.value)
        elif isinstance(each, ast.Lambda):
            found.append(each.body)
    return found


def _calls_product(
    node: ast.AST, names: set[str], works: bool, own: set[str], module: Module, tops: Collection[str]
) -> bool:
    """Whether an expression is made of what a call of the product gave; conditions do not count."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call) and _is_product(node.func, module, tops) and not _is_one(node.func, own):
        made = dotted(node.func, module.aliases).rpartition(".")[2]
        # A class of the product may be filled by hand: that is no work of the product.
        if not (works and made[:1].isupper()):
            return True
    parts: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.comprehension):
        parts = [node.iter]
    return any(_calls_product(each, names, works, own, module, tops) for each in parts)


def _is_product(node: ast.AST, module: Module, tops: Collection[str]) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    root: ast.AST = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return (
        isinstance(root, ast.Name)
        and root.id in module.aliases
        and module.aliases[root.id].partition(".")[0] in tops
    )


def _bound_names(node: ast.stmt) -> set[str]:
    """The name that a definition binds: in its body that means the new thing."""
    name = getattr(node, "name", None)
    return {name} if name else {getattr(target, "id", "") for target in getattr(node, "targets", ())}


def _is_one(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_lambda(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
