"""Works out what expressions of constants are, however they are spelled, without running anything."""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import re
import zlib
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Constant: TypeAlias = Any
NOTHING = object()
"""Stands for what cannot be worked out."""

_WIDE = re.compile(r"[%:][^}]*\d{4}")
"""A format that pads to thousands of characters."""
_LONGEST = 1_000_000
_DEEPEST = 40
_MOST_NAMES = 2_000
_looked_up: list[str] = []
"""The names that an expression has led to: sums of sums of sums double with each."""


class _Unknown(Exception):
    """It depends on more than constants."""


def fold(node: ast.AST, names: Mapping[str, ast.expr] | None = None) -> Constant:
    """The value of an expression, or :data:`NOTHING`; ``names`` are names that are bound once."""
    _looked_up.clear()
    try:
        return _fold(node, names or {}, 0)
    except _Unknown:
        return NOTHING
    except (ArithmeticError, ValueError, TypeError, LookupError, MemoryError, RecursionError):
        return NOTHING
    except (zlib.error, AttributeError):
        return NOTHING


def _fold(node: ast.AST, names: Mapping[str, ast.expr], depth: int) -> Constant:
    if depth > _DEEPEST:
        raise _Unknown
    worker = _NODES.get(type(node))
    if worker is None:
        raise _Unknown
    value = worker(node, names, depth + 1)
    if isinstance(value, str | bytes | list | tuple) and len(cast("str", value)) > _LONGEST:
        raise _Unknown
    return cast("Any", value)


def _constant(node: ast.Constant, _names: Mapping[str, ast.expr], _depth: int) -> Constant:
    return node.value


def _name(node: ast.Name, names: Mapping[str, ast.expr], depth: int) -> Constant:
    if node.id not in names or len(_looked_up) > _MOST_NAMES:
        raise _Unknown
    _looked_up.append(node.id)
    return _fold(names[node.id], names, depth)


def _sequence(node: ast.List | ast.Tuple | ast.Set, names: Mapping[str, ast.expr], depth: int) -> Constant:
    values = [_fold(element, names, depth) for element in node.elts]
    return tuple(values) if isinstance(node, ast.Tuple) else values


def _joined(node: ast.JoinedStr, names: Mapping[str, ast.expr], depth: int) -> Constant:
    parts: list[str] = []
    for value in node.values:
        inner = value.value if isinstance(value, ast.FormattedValue) else value
        parts.append(str(_fold(inner, names, depth)))
    return "".join(parts)


def _binary(node: ast.BinOp, names: Mapping[str, ast.expr], depth: int) -> Constant:
    left, right = _fold(node.left, names, depth), _fold(node.right, names, depth)
    if isinstance(node.op, ast.Mult) and isinstance(left, str | bytes | list | tuple):
        size = len(cast("str", left)) * int(right)
        if size > _LONGEST:
            raise _Unknown
    if isinstance(left, str | bytes) and isinstance(node.op, ast.Mod) and _WIDE.search(str(left)):
        raise _Unknown
    work = _OPERATORS.get(type(node.op))
    if work is None:
        raise _Unknown
    return work(left, right)


def _unary(node: ast.UnaryOp, names: Mapping[str, ast.expr], depth: int) -> Constant:
    value = _fold(node.operand, names, depth)
    if isinstance(node.op, ast.Not):
        return not value
    return -value if isinstance(node.op, ast.USub) else +value if isinstance(node.op, ast.UAdd) else ~value


def _boolean(node: ast.BoolOp, names: Mapping[str, ast.expr], depth: int) -> Constant:
    value: Constant = None
    for each in node.values:
        value = _fold(each, names, depth)
        if bool(value) == isinstance(node.op, ast.Or):
            return value
    return value


def _choice(node: ast.IfExp, names: Mapping[str, ast.expr], depth: int) -> Constant:
    chosen = node.body if _fold(node.test, names, depth) else node.orelse
    return _fold(chosen, names, depth)


def _compare(node: ast.Compare, names: Mapping[str, ast.expr], depth: int) -> Constant:
    left = _fold(node.left, names, depth)
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = _fold(right_node, names, depth)
        work = _COMPARISONS.get(type(operator))
        if work is None:
            raise _Unknown
        if not work(left, right):
            return False
        left = right
    return True


def _subscript(node: ast.Subscript, names: Mapping[str, ast.expr], depth: int) -> Constant:
    value = _fold(node.value, names, depth)
    part = node.slice
    if isinstance(part, ast.Slice):
        ends = [
            None if end is None else _fold(end, names, depth) for end in (part.lower, part.upper, part.step)
        ]
        return value[slice(*ends)]
    return value[_fold(part, names, depth)]


def _comprehension(
    node: ast.ListComp | ast.GeneratorExp, names: Mapping[str, ast.expr], depth: int
) -> Constant:
    loop = node.generators[0]
    if len(node.generators) != 1 or loop.ifs or not isinstance(loop.target, ast.Name):
        raise _Unknown
    values = list(_fold(loop.iter, names, depth))
    return [
        _fold(node.elt, {**names, loop.target.id: ast.Constant(value)}, depth) for value in values[:10_000]
    ]


def _call(node: ast.Call, names: Mapping[str, ast.expr], depth: int) -> Constant:
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise _Unknown
    function = node.func
    if isinstance(function, ast.Attribute):
        worker = _MODULE_CALLS.get(_tail(function))
        if worker is not None:
            return worker(*(_fold(arg, names, depth) for arg in node.args))
        owner = function.value
        if (
            isinstance(owner, ast.Name)
            and owner.id in ("str", "bytes", "bytearray")
            and function.attr == "fromhex"
        ):
            return bytes.fromhex(_fold(node.args[0], names, depth))
        if function.attr in _METHODS:
            value = _fold(owner, names, depth)
            if isinstance(value, str | bytes) and not _WIDE.search(str(value)[:1000]):
                args = [_fold(arg, names, depth) for arg in node.args]
                if function.attr in _GROWS and len(value) * len(str(args)) > _LONGEST * _GROWTH:
                    raise _Unknown
                return getattr(value, function.attr)(*args)
        raise _Unknown
    if isinstance(function, ast.Name):
        if function.id == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Name):
            work = _FUNCTIONS.get(node.args[0].id)
            if work is not None:
                return [work(each) for each in _fold(node.args[1], names, depth)]
        work = _FUNCTIONS.get(function.id) or _MODULE_CALLS.get(function.id)
        if work is not None:
            return work(*(_fold(arg, names, depth) for arg in node.args))
    raise _Unknown


def _tail(function: ast.Attribute) -> str:
    return f"{function.value.id}.{function.attr}" if isinstance(function.value, ast.Name) else ""


def _limited(*args: int) -> list[int]:
    values = range(*args)
    if len(values) > 10_000:
        raise _Unknown
    return list(values)


def _decode(value: Any, codec: str = "utf-8") -> Constant:
    return codecs.decode(value, codec)


def _bytes(value: Any, *rest: Any) -> bytes:
    return bytes(min(value, 99)) if isinstance(value, int) else bytes(value, *rest)


def _reversed(value: Any) -> list[Any]:
    return list(reversed(value))


def _inflated(value: Any) -> bytes:
    return zlib.decompressobj().decompress(value, _LONGEST)


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Mod: lambda a, b: a % b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.BitAnd: lambda a, b: a & b,
    ast.FloorDiv: lambda a, b: a // b,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chr": chr,
    "ord": ord,
    "str": str,
    "int": int,
    "len": len,
    "bytes": _bytes,
    "bytearray": _bytes,
    "list": list,
    "tuple": tuple,
    "bool": bool,
    "reversed": _reversed,
    "sorted": sorted,
    "range": _limited,
    "any": any,
    "all": all,
}
_GROWS = frozenset({"replace", "join", "format"})
_GROWTH = 20
_METHODS = frozenset(
    [
        "join",
        "lower",
        "upper",
        "title",
        "capitalize",
        "strip",
        "lstrip",
        "rstrip",
        "replace",
        "swapcase",
        "encode",
        "decode",
        "format",
        "split",
        "hex",
        "removeprefix",
        "removesuffix",
        "casefold",
        "startswith",
        "endswith",
    ]
)
_MODULE_CALLS: dict[str, Callable[..., Any]] = {
    "base64.b64decode": base64.b64decode,
    "base64.b32decode": base64.b32decode,
    "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "b64decode": base64.b64decode,
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_base64": binascii.a2b_base64,
    "unhexlify": binascii.unhexlify,
    "codecs.decode": _decode,
    "zlib.decompress": _inflated,
    "bytes.fromhex": bytes.fromhex,
}
_NODES: dict[type[ast.AST], Callable[[Any, Mapping[str, ast.expr], int], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.JoinedStr: _joined,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.IfExp: _choice,
    ast.Compare: _compare,
    ast.Subscript: _subscript,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Call: _call,
}
