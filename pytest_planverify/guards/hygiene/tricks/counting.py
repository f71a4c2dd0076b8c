"""Code whose answer depends on how often it was asked."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings


def counting(module: Module, around: Surroundings) -> Iterator[Find]:
    """Counters that outlive the call, raised and compared with a number in one function."""
    for site in module.sites:
        node = site.node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = _counter(node, module)
        if name is not None:
            yield Find(
                sign="answers-by-count" if _answers(node, name) else "counts-calls",
                message=f"{node.name} counts its calls in {name}, and decides by it",
                path=module.path,
                line=node.lineno,
                subject=name,
                place=node.name,
                after=module.line(node),
            )


def _counter(node: Function, module: Module) -> str | None:
    raised = {_spelled(name) for name in _raised(node) if _outlives(name, node, module)}
    for each in ast.walk(node):
        if isinstance(each, ast.Compare | ast.BinOp) and _has_number(each):
            for side in ast.walk(each):
                if isinstance(side, ast.expr) and _spelled(side) in raised:
                    return _spelled(side)
    return None


def _answers(node: Function, name: str) -> bool:
    """Whether some value is written down for a certain call."""
    for each in ast.walk(node):
        if isinstance(each, ast.If | ast.IfExp) and name in _spelled(each.test):
            given = (
                [each.body]
                if isinstance(each, ast.IfExp)
                else [inner.value for statement in each.body for inner in ast.walk(statement)
                      if isinstance(inner, ast.Return) and inner.value is not None]
            )  # fmt: skip
            if any(fold(value) is not NOTHING and fold(value) is not None for value in given):
                return True
    return False


def _raised(node: Function) -> Iterator[ast.expr]:
    for each in ast.walk(node):
        if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add) and fold(each.value) == 1:
            yield each.target
        elif isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.value, ast.BinOp):
            same = _spelled(each.targets[0]) == _spelled(each.value.left)
            if (same and isinstance(each.value.op, ast.Add) and fold(each.value.right) == 1) or (
                isinstance(each.value.left, ast.Call) and fold(each.value.right) == 1
            ):
                yield each.targets[0]


def _outlives(target: ast.expr, node: Function, module: Module) -> bool:
    """A global, an attribute of a function or of the class, an entry of a table of the module."""
    if isinstance(target, ast.Name):
        return any(isinstance(each, ast.Global) and target.id in each.names for each in ast.walk(node))
    root: ast.expr = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id == "self":
        return False
    known = module.functions.keys() | module.constants.keys() | {"cls"} | _classes(module)
    arguments = {arg.arg for arg in node.args.args} - {"cls"}
    return root.id in known - arguments


def _classes(module: Module) -> set[str]:
    return {node.name for node, _ in module.members if isinstance(node, ast.ClassDef)}


def _has_number(node: ast.Compare | ast.BinOp) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod) and isinstance(fold(node.right), int)
    return any(type(fold(side)) is int for side in (node.left, *node.comparators))


def _spelled(node: ast.expr) -> str:
    return ast.unparse(node)
