"""Code whose answer depends on how often it was asked."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_GROWS = frozenset({"append", "add", "appendleft", "extend", "insert", "put"})
_TAKES = frozenset({"pop", "popleft", "popitem", "get_nowait"})
_RUNS_THROUGH = frozenset(
    {"iter", "cycle", "itertools.cycle", "itertools.chain", "chain", "deque", "collections.deque",
     "reversed", "enumerate", "queue.Queue"}
)  # fmt: skip
_COUNTS = frozenset({"itertools.count", "count"})
_FEW = 50
"""Larger numbers are limits, not calls of a test."""


def counting(module: Module, around: Surroundings) -> Iterator[Find]:
    """Counters that outlive the call and decide, and answers that are handed out one after the other."""
    raised = {
        _spelled(name)
        for node in _functions(module)
        for name in _raised(node)
        if isinstance(name, ast.Attribute | ast.Subscript) and _outlives(name, node, module)
    }
    for node in _functions(module):
        handed = _handed_out(node, module)
        name = handed or _counter(node, module, raised)
        if name is None:
            continue
        answers = handed is not None or _answers(node, name, module)
        yield Find(
            sign="answers-by-count" if answers else "counts-calls",
            message=f"{node.name} hands out what is written down, one answer a call"
            if handed
            else f"{node.name} counts its calls in {name}, and decides by it",
            path=module.path,
            line=node.lineno,
            subject=name,
            place=node.name,
            after=module.line(node),
        )


def _functions(module: Module) -> Iterator[Function]:
    for site in module.sites:
        if isinstance(site.node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield site.node


# -- answers that are handed out ------------------------------------------------------------------


def _handed_out(node: Function, module: Module) -> str | None:
    """The row of constants of the module whose next one a function gives back."""
    for each in ast.walk(node):
        if isinstance(each, ast.Return | ast.Yield) and each.value is not None:
            for call in ast.walk(each.value):
                name = _taken_from(call) if isinstance(call, ast.Call) else None
                if name is not None and _is_row(module.constants.get(name), module):
                    return name
    return None


def _taken_from(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Name) and call.func.id == "next" and call.args:
        return call.args[0].id if isinstance(call.args[0], ast.Name) else None
    if isinstance(call.func, ast.Attribute) and call.func.attr in (*_TAKES, "__next__", "send"):
        return call.func.value.id if isinstance(call.func.value, ast.Name) else None
    return None


def _is_row(value: ast.expr | None, module: Module) -> bool:
    """Constants one after the other, or a generator of constants."""
    if value is None:
        return False
    if isinstance(value, ast.GeneratorExp):
        return any(_is_row(loop.iter, module) for loop in value.generators)
    if isinstance(value, ast.Call):
        called = dotted(value.func, module.aliases)
        if called in _RUNS_THROUGH:
            return any(_is_row(arg, module) for arg in value.args)
        made = module.functions.get(called)
        given = [
            each.value for each in ast.walk(made) if isinstance(each, ast.Yield) and each.value is not None
        ] if made is not None else []  # fmt: skip
        return len(given) > 1 and all(fold(each, module.constants) is not NOTHING for each in given)
    known = fold(value, module.constants)
    return isinstance(known, list | tuple) and len(known) > 1  # pyright: ignore[reportUnknownArgumentType]


# -- counters -------------------------------------------------------------------------------------


def _counter(node: Function, module: Module, raised_elsewhere: set[str]) -> str | None:
    """What is raised by each call and compared with a number, as it is spelled."""
    raised = {_spelled(name) for name in _raised(node) if _outlives(name, node, module)} | raised_elsewhere
    grown = {f"len({name})" for name in _grown(node, module)}
    context = set(_of_context(node, module))
    counted = raised | grown | context
    for each in ast.walk(node):
        if not (isinstance(each, ast.Compare | ast.BinOp) and _has_number(each, module)):
            continue
        for side in ast.walk(each):
            if isinstance(side, ast.expr) and (counted or isinstance(side, ast.Call)):
                is_next = _is_next_number(side, module)
                if is_next or (counted and _spelled(side) in counted):
                    return _spelled(side)
    for each in ast.walk(node):
        # A counter that is asked whether it is there: ``if n:``
        test = each.test if isinstance(each, ast.If | ast.IfExp) else None
        if test is not None and _spelled(test) in context:
            return _spelled(test)
    return None


def _answers(node: Function, name: str, module: Module) -> bool:
    """Whether an answer is chosen by the count: written down for a call, or another one after few."""
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Subscript)
            and name in _spelled(each.slice)
            and (
                _is_row(each.value, module)
                or (
                    isinstance(each.value, ast.Name)
                    and _is_row(module.constants.get(each.value.id), module)
                )
            )
        ):
            return True
        if isinstance(each, ast.If | ast.IfExp) and name in _spelled(each.test):
            given = (
                [each.body]
                if isinstance(each, ast.IfExp)
                else [inner.value for statement in each.body for inner in ast.walk(statement)
                      if isinstance(inner, ast.Return) and inner.value is not None]
            )  # fmt: skip
            values = [fold(value, module.constants) for value in given]
            if any(value is not NOTHING and value is not None for value in values):
                return True
            if given and all(value is NOTHING for value in values) and _is_few(each.test, module):
                return True
    return False


def _is_few(test: ast.expr, module: Module) -> bool:
    numbers = [
        value
        for each in ast.walk(test)
        if isinstance(each, ast.Constant) and type(value := fold(each, module.constants)) is int
    ]
    return all(abs(value) <= _FEW for value in numbers)


def _raised(node: Function) -> Iterator[ast.expr]:
    for each in ast.walk(node):
        if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add | ast.Sub):
            if fold(each.value) == 1:
                yield each.target
        elif isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.value, ast.BinOp):
            same = _spelled(each.targets[0]) == _spelled(each.value.left)
            if (same and isinstance(each.value.op, ast.Add) and fold(each.value.right) == 1) or (
                isinstance(each.value.left, ast.Call) and fold(each.value.right) == 1
            ):
                yield each.targets[0]


def _grown(node: Function, module: Module) -> Iterator[str]:
    """Lists that outlive the call and take something in with each."""
    kept = {arg.arg for arg in _with_default(node)}
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _GROWS:
            owner = each.func.value
            if isinstance(owner, ast.Name) and (owner.id in kept or _is_empty(owner.id, node, module)):
                yield owner.id


def _is_empty(name: str, node: Function, module: Module) -> bool:
    value = module.constants.get(name)
    bound = {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return (
        value is not None
        and name not in bound
        and (
            (isinstance(value, ast.List | ast.Set) and not value.elts)
            or (isinstance(value, ast.Call) and not value.args)
        )
    )


def _with_default(node: Function) -> Iterator[ast.arg]:
    """Parameters whose default is a list, a table or a counter."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for arg, default in (*defaults, *keyword):
        if isinstance(default, ast.List | ast.Dict | ast.Set | ast.Call):
            yield arg


def _of_context(node: Function, module: Module) -> Iterator[str]:
    """Names that hold what a context variable counts."""
    counted = {
        each.func.value.id
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "set"
        and isinstance(each.func.value, ast.Name)
        and "ContextVar" in ast.unparse(module.constants.get(each.func.value.id, ast.Constant(None)))
        and any(isinstance(arg, ast.BinOp) for arg in each.args)
    }
    for name in counted:
        yield f"{name}.get()"
        for each in ast.walk(node):
            if isinstance(each, ast.Assign) and _spelled(each.value) == f"{name}.get()":
                yield from (_spelled(target) for target in each.targets)


def _is_next_number(side: ast.expr, module: Module) -> bool:
    """``next(calls)``, where ``calls = itertools.count()``."""
    if not isinstance(side, ast.Call):
        return False
    value = module.constants.get(_taken_from(side) or "")
    return isinstance(value, ast.Call) and dotted(value.func, module.aliases) in _COUNTS


def _outlives(target: ast.expr, node: Function, module: Module) -> bool:
    """A global, a name of the function around, an attribute of a function or of the class, an entry of a
    table of the module or of a default."""
    if isinstance(target, ast.Name):
        return any(
            isinstance(each, ast.Global | ast.Nonlocal) and target.id in each.names
            for each in ast.walk(node)
        )
    root: ast.expr = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id == "self":
        return False
    known = module.functions.keys() | module.constants.keys() | {"cls"} | _classes(module)
    arguments = {arg.arg for arg in node.args.args} - {"cls"}
    return root.id in known - arguments or root.id in {arg.arg for arg in _with_default(node)}


def _classes(module: Module) -> set[str]:
    return {node.name for node, _ in module.members if isinstance(node, ast.ClassDef)}


def _has_number(node: ast.Compare | ast.BinOp, module: Module) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod) and isinstance(fold(node.right), int)
    return any(type(fold(side, module.constants)) is int for side in (node.left, *node.comparators))


def _spelled(node: ast.expr) -> str:
    return ast.unparse(node)
