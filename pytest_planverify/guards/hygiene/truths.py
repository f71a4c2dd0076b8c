"""Which expressions hold, or fail, whatever the names in them stand for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import shape

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_always_true(node: ast.expr, names: Mapping[str, ast.expr] | None = None) -> bool:
    """Whether an expression is true whatever its names stand for."""
    value = fold(node, names)
    if value is not NOTHING:
        return bool(value)
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And):
            return all(is_always_true(each, names) for each in node.values)
        return any(is_always_true(each, names) for each in node.values) or _holds_opposites(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_always_false(node.operand, names)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _is_true_comparison(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        return _is_true_call(node, names)
    if isinstance(node, ast.IfExp):
        return is_always_true(node.body, names) and is_always_true(node.orelse, names)
    if isinstance(node, ast.NamedExpr):
        return is_always_true(node.value, names)
    return isinstance(node, ast.Lambda) or (
        isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
        and bool(node.keys if isinstance(node, ast.Dict) else node.elts)
    )


def is_always_false(node: ast.expr, names: Mapping[str, ast.expr] | None = None) -> bool:
    """Whether an expression is false whatever its names stand for."""
    value = fold(node, names)
    if value is not NOTHING:
        return not value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_always_true(node.operand, names)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return any(is_always_false(each, names) for each in node.values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        same = shape(node.left) == shape(node.comparators[0]) and is_quiet(node.left)
        return same and isinstance(node.ops[0], ast.NotEq | ast.IsNot | ast.Lt | ast.Gt)
    return False


def _holds_opposites(node: ast.BoolOp) -> bool:
    """``x or not x``, ``x is y or x is not y``."""
    plain = {shape(each) for each in node.values}
    return any(shape(opposite) in plain for each in node.values for opposite in _opposites(each))


def _opposites(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITES:
        return [ast.Compare(node.left, [_OPPOSITES[type(node.ops[0])]()], node.comparators)]
    return []


def _is_true_comparison(node: ast.Compare) -> bool:
    left, operator, right = node.left, node.ops[0], node.comparators[0]
    if isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE) and shape(left) == shape(right):
        return is_quiet(left)
    if isinstance(operator, ast.In) and isinstance(right, ast.Tuple | ast.List | ast.Set):
        return any(shape(left) == shape(each) for each in right.elts)
    if (
        isinstance(operator, ast.GtE)
        and isinstance(left, ast.Call)
        and getattr(left.func, "id", "") == "len"
    ):
        return fold(right) == 0
    if (
        isinstance(operator, ast.Gt)
        and isinstance(left, ast.Call)
        and getattr(left.func, "id", "") == "len"
    ):
        least = fold(right)
        return isinstance(least, int) and least < 0
    return (
        isinstance(operator, ast.IsNot)
        and isinstance(right, ast.Constant)
        and right.value is None
        and isinstance(left, ast.Name)
        and left.id == "self"
    )


def _is_true_call(node: ast.Call, names: Mapping[str, ast.expr] | None) -> bool:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name in ("eq", "is_", "le", "ge", "__eq__", "isclose") and len(node.args) == 2:
        return shape(node.args[0]) == shape(node.args[1]) and is_quiet(node.args[0])
    if name in ("isinstance", "issubclass") and len(node.args) == 2:
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        return any(isinstance(kind, ast.Name) and kind.id == "object" for kind in kinds)
    if name == "bool" and len(node.args) == 1:
        return is_always_true(node.args[0], names)
    return False


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip


def is_quiet(node: ast.expr) -> bool:
    """Whether looking twice gives the same: no call is in it."""
    return not any(isinstance(each, ast.Call | ast.Await | ast.Yield) for each in ast.walk(node))
