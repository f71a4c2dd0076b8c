"""Faults of flow: something is not done, or not returned, or done to the wrong object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from faults.fault import Fault, Injector, Judged, Kind, Module, body_of, edited, inserted, replaced


def _missing_return(module: Module) -> Iterator[Fault]:
    for node in _returns(module):
        if node.value is not None:
            yield replaced(module, node, f"({module.source(node.value)})")


def _early_return(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if len(body) > 2:
            yield inserted(module, body[len(body) // 2], "return")


def _dropped_branch(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.If):
        yield _emptied(module, node.body)


def _dropped_else(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.If):
        if node.orelse and not isinstance(node.orelse[0], ast.If):
            yield _emptied(module, node.orelse)


def _dropped_statement(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.Expr, ast.AugAssign):
        if not isinstance(
            getattr(node, "value", None), ast.Constant | ast.Yield | ast.YieldFrom | ast.Await
        ):
            yield replaced(module, node, "pass")


def _dropped_loop(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.For):
        yield replaced(module, node.iter, f"list({module.source(node.iter)})[1:]")


def _missing_await(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Await):
            yield replaced(module, node, module.source(node.value))


def _missing_copy(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Call) and module.inside(node)):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            yield replaced(module, node, module.source(node.func.value))
        elif (
            (
                isinstance(node.func, ast.Name)
                and node.func.id in ("list", "dict", "set")
                and len(node.args) == 1
            )
            and isinstance(node.args[0], ast.Name | ast.Attribute)
            and not node.keywords
        ):
            yield replaced(module, node, module.source(node.args[0]))


def _missing_none_check(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.If):
        test = node.test
        if (
            isinstance(test, ast.Compare)
            and isinstance(test.ops[0], ast.Is | ast.IsNot)
            and isinstance(test.comparators[0], ast.Constant)
            and test.comparators[0].value is None
        ):
            yield replaced(module, test, "False" if isinstance(test.ops[0], ast.Is) else "True")


def _emptied(module: Module, body: list[ast.stmt]) -> Fault:
    start, end = module.span(body[0])[0], module.span(body[-1])[1]
    return edited(module, start, end, "pass", node=body[0])


def _returns(module: Module) -> Iterator[ast.Return]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return):
            yield node


def _statements(module: Module, *kinds: type) -> Iterator[ast.AST]:
    for node in ast.walk(module.tree):
        if isinstance(node, kinds) and module.inside(node):
            yield node


def _row(name: str, sentence: str, inject: Injector) -> Kind:
    return Kind(id=name, sentence=sentence, inject=inject, judged=Judged.BEHAVIOUR)


KINDS = (
    _row("missing-return", "A value is computed and not returned.", _missing_return),
    _row("early-return", "A function returns before its work is done.", _early_return),
    _row("dropped-branch", "The branch of an if does nothing.", _dropped_branch),
    _row("dropped-else", "The else branch does nothing.", _dropped_else),
    _row("dropped-statement", "A call or an update is left out.", _dropped_statement),
    _row("skipped-first", "A loop leaves out the first element.", _dropped_loop),
    _row("missing-await", "A coroutine is not awaited.", _missing_await),
    _row("missing-copy", "What should be copied is used itself, and changed in place.", _missing_copy),
    _row("missing-none-check", "A value is used without asking whether it is None.", _missing_none_check),
)
