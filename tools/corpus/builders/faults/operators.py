"""Faults of expressions: a wrong operator, constant, variable or argument; the code goes on with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from faults.fault import Fault, Function, Injector, Judged, Kind, Module, replaced

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.Div: "*",
}
_BOUNDARIES: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


def _arithmetic(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.BinOp):
        new = _ARITHMETIC.get(type(node.op))
        if new:
            left, right = module.source(node.left), module.source(node.right)
            yield replaced(module, node, f"{left} {new} {right}")


def _boundary(module: Module) -> Iterator[Fault]:
    yield from _comparisons(module, _BOUNDARIES)


def _comparison(module: Module) -> Iterator[Fault]:
    yield from _comparisons(module, _OPPOSITES)


def _comparisons(module: Module, table: dict[type[ast.cmpop], str]) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Compare):
        new = table.get(type(node.ops[0]))
        if new and len(node.ops) == 1:
            left, right = module.source(node.left), module.source(node.comparators[0])
            yield replaced(module, node, f"{left} {new} {right}")


def _negated(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.If):
        yield replaced(module, node.test, f"not ({module.source(node.test)})")


def _boolean(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.BoolOp):
        new = " or " if isinstance(node.op, ast.And) else " and "
        values = [module.source(each) for each in node.values]
        yield replaced(module, node, f"({new.join(values)})")


def _off_by_one(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Constant):
        if type(node.value) is int and isinstance(
            module.parents[node], ast.Slice | ast.BinOp | ast.Compare
        ):
            yield replaced(module, node, str(node.value + 1))


def _constant(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Constant):
        above = module.parents[node]
        if not isinstance(above, ast.Return | ast.Assign | ast.Call | ast.Dict | ast.keyword):
            continue
        if isinstance(node.value, str) and node.value.strip() and node.lineno == node.end_lineno:
            text = module.source(node)
            if text[0] in "'\"" and text[1] not in "'\"" and "\\" not in text:
                yield replaced(module, node, f"{text[0]}{text[1:-1]}x{text[-1]}")
        elif type(node.value) is int:
            yield replaced(module, node, str(node.value * 2 + 7))
        elif isinstance(node.value, bool):
            yield replaced(module, node, str(not node.value))


def _default(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        for node in (*function.args.defaults, *(each for each in function.args.kw_defaults if each)):
            if isinstance(node, ast.Constant) and function.body:
                new = _other(node.value)
                if new:
                    yield replaced(module, node, new, runs=function.body[-1].lineno)


def _other(value: object) -> str | None:
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    if isinstance(value, str):
        return repr(value + "-") if value.isascii() else None
    return None


def _swapped(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Call):
        if len(node.args) < 2 or any(isinstance(each, ast.Starred) for each in node.args[:2]):
            continue
        first, second = (module.source(each) for each in node.args[:2])
        if first != second and len(first) + len(second) < 60 and "\n" not in first + second:
            start, end = module.span(node.args[0])[0], module.span(node.args[1])[1]
            whole = module.text[start:end]
            between = whole[len(first) : len(whole) - len(second)]
            if between.strip() == ",":
                call, call_end = module.span(node)
                new = module.text[call:start] + second + between + first + module.text[end:call_end]
                yield replaced(module, node, new)


def _variable(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
        names = [each for each in names if each not in ("self", "cls")]
        if len(names) < 2:
            continue
        for node in ast.walk(function):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names):
                continue
            if module.inside(node) is function and not _in_signature(module, node, function):
                other = names[(names.index(node.id) + 1) % len(names)]
                yield replaced(module, node, other)


def _in_signature(module: Module, node: ast.AST, function: Function) -> bool:
    return any(each in (function.args, *function.decorator_list) for each in (node, *module.above(node)))


def _in_functions(module: Module, kind: type) -> Iterator[ast.AST]:
    for node in ast.walk(module.tree):
        if isinstance(node, kind) and module.inside(node) and not _annotates(module, node):
            yield node


def _annotates(module: Module, node: ast.AST) -> bool:
    """In a signature, a docstring, an f-string or an annotation: nothing there is a fault of its own."""
    chain = [node, *module.above(node)]
    if any(
        isinstance(each, ast.arguments | ast.JoinedStr | ast.arg | ast.FormattedValue) for each in chain
    ):
        return True
    below = dict(zip(chain[1:], chain, strict=False))
    return any(
        (isinstance(each, ast.AnnAssign) and below.get(each) is each.annotation)
        or (isinstance(each, Function) and below.get(each) in (each.returns, *each.decorator_list))
        for each in chain
    )


def _row(name: str, sentence: str, inject: Injector) -> Kind:
    return Kind(id=name, sentence=sentence, inject=inject, judged=Judged.BEHAVIOUR)


KINDS = (
    _row("wrong-arithmetic", "An arithmetic operator is another one.", _arithmetic),
    _row("boundary-comparison", "A comparison takes in its boundary, or leaves it out.", _boundary),
    _row("wrong-comparison", "A comparison is its opposite.", _comparison),
    _row("negated-condition", "The condition of an if is negated.", _negated),
    _row("wrong-boolean", "And is or, or the other way round.", _boolean),
    _row("off-by-one", "A number in a slice, sum or comparison is one too large.", _off_by_one),
    _row("wrong-constant", "A constant in the code has another value.", _constant),
    _row("wrong-default", "A parameter has another default.", _default),
    _row("swapped-arguments", "The first two arguments of a call in the product change places.", _swapped),
    _row("wrong-variable", "Another parameter of the function is used.", _variable),
)
