"""Faults that raise, or that keep what should be raised from being raised."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from faults.fault import (
    Fault,
    Function,
    Injector,
    Judged,
    Kind,
    Module,
    body_of,
    edited,
    inserted,
    misspelt,
    replaced,
)


def _other_exception(module: Module) -> Iterator[Fault]:
    for node in _raises(module):
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if isinstance(called, ast.Name) and called.id != "RuntimeError":
            yield replaced(module, called, "RuntimeError")


def _other_message(module: Module) -> Iterator[Fault]:
    for node in _raises(module):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and len(inner.value) > 5:
                text = module.source(inner)
                if text[:1] in ("'", '"') and text[1:2] != text[0]:
                    yield replaced(module, inner, f"{text[0]}something went wrong{text[0]}")
                break


def _raise_removed(module: Module) -> Iterator[Fault]:
    for node in _raises(module):
        yield replaced(module, node, "pass")


def _swallowed(module: Module) -> Iterator[Fault]:
    for node in module.inner(ast.ExceptHandler):
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Pass)):
            start, end = module.span(node.body[0])[0], module.span(node.body[-1])[1]
            yield edited(module, start, end, "pass", node=node.body[0])


def _unfinished(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body and not _generates(function):
            start, end = module.span(body[0])[0], module.span(body[-1])[1]
            yield edited(module, start, end, "raise NotImplementedError", node=body[0])


def _assertion(module: Module) -> Iterator[Fault]:
    for name, first in _starts(module):
        yield inserted(module, first, f"assert {name} is NotImplemented, {name}")


def _undefined(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) > 2:
            function = module.inside(node)
            if function is not None and _in_body(module, node, function):
                new = misspelt(node.id)
                if new not in module.text and not hasattr(builtins, new):
                    yield replaced(module, node, new, name=new)


def _unbound(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        stored: dict[str, list[ast.AST]] = {}
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
                and module.inside(node) is function
            ):
                stored.setdefault(node.id, []).append(node)
        for statement in body_of(function):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name) and len(stored.get(target.id, ())) > 1:
                yield replaced(module, statement, "pass", name=target.id)


def _missing_import(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) == 1:
            name = (node.names[0].asname or node.names[0].name).split(".")[0]
            if name == "annotations" or node.names[0].name == "*":
                continue
            for use in ast.walk(module.tree):
                if isinstance(use, ast.Name) and use.id == name and module.inside(use):
                    yield replaced(module, node, "pass", name=name, runs=module.statement(use).lineno)
                    break


def _key_typo(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and module.inside(node):
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and len(key.value) > 2:
                yield replaced(module, key, repr(misspelt(key.value)))


def _index(module: Module) -> Iterator[Fault]:
    for node in module.inner(ast.Subscript):
        function = module.inside(node)
        key = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
        whole = node.value
        if (
            function is not None
            and isinstance(node.ctx, ast.Load)
            and isinstance(key, ast.Constant)
            and type(key.value) is int
            and isinstance(whole, ast.Name | ast.Attribute)
            and _in_body(module, node, function)
        ):
            name = module.source(whole)
            yield replaced(module, node, f"{name}[len({name})]")


def _recursion(module: Module) -> Iterator[Fault]:
    for function in module.tree.body:
        if (
            isinstance(function, ast.FunctionDef)
            and not function.decorator_list
            and not _generates(function)
        ):
            given = function.args
            body = body_of(function)
            if (
                body
                and given.args
                and not (given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs)
            ):
                names = ", ".join(each.arg for each in given.args)
                yield inserted(module, body[0], f"return {function.name}({names})")


def _number_misread(module: Module) -> Iterator[Fault]:
    for name, first in _starts(module):
        yield inserted(module, first, f'size = int(str(id({name})) + "px")')


def _starts(module: Module) -> Iterator[tuple[str, ast.stmt]]:
    """The first parameter and the first statement of every function that has both."""
    for function in module.functions():
        names = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
        body = body_of(function)
        if names and body:
            yield names[0], body[0]


def _raises(module: Module) -> Iterator[ast.Raise]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Raise) and node.exc is not None and module.inside(node):
            yield node


def _generates(function: Function) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(function))


def _in_body(module: Module, node: ast.AST, function: Function) -> bool:
    chain = [node, *module.above(node)]
    if any(isinstance(each, ast.AnnAssign | ast.JoinedStr) for each in chain[: chain.index(function)]):
        return False
    return chain[chain.index(function) - 1] in function.body


def _row(name: str, sentence: str, inject: Injector, *raises: str, exact: bool = True) -> Kind:
    judged = Judged.FIXED if raises else Judged.BEHAVIOUR
    return Kind(id=name, sentence=sentence, inject=inject, judged=judged, exact=exact, raises=raises)


KINDS = (
    _row("wrong-exception", "Another exception is raised.", _other_exception, "RuntimeError"),
    _row("wrong-message", "An exception says something else.", _other_message, exact=False),
    _row("raise-removed", "An exception is not raised.", _raise_removed, exact=False),
    _row("exception-swallowed", "A handler does nothing.", _swallowed, exact=False),
    _row("unfinished", "A function is not written yet.", _unfinished, "NotImplementedError"),
    _row("assert-in-product", "The product asserts what does not hold.", _assertion, "AssertionError"),
    _row("undefined-name", "A name in a function is misspelt.", _undefined, "NameError"),
    _row(
        "unbound-local", "A local variable has no first value.", _unbound, "UnboundLocalError", exact=False
    ),
    _row(
        "missing-import",
        "A module uses what it does not import.",
        _missing_import,
        "NameError",
        exact=False,
    ),
    _row("key-typo", "The key of a mapping is misspelt.", _key_typo, "KeyError"),
    _row("index-error", "An element past the end is asked for.", _index, "IndexError"),
    _row("endless-recursion", "A function calls itself for ever.", _recursion, "RecursionError"),
    _row("number-of-text", "A text that is no number is read as one.", _number_misread, "ValueError"),
)
