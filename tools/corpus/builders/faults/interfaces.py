"""Faults of what a module offers: names and parameters are not those that others were promised."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from faults.fault import (
    Fault,
    Function,
    Injector,
    Judged,
    Kind,
    Module,
    Reach,
    body_of,
    edited,
    plain_name,
    replaced,
)
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

_ORDER = Reading(
    category=Category.SPEC_MISMATCH,
    owner=Owner.PRODUCT,
    why="The order of its parameters is part of a function's promised signature.",
)


def _function_renamed(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if plain_name(node):
            yield _renamed(module, node)


def _method_renamed(module: Module) -> Iterator[Fault]:
    for node in _methods(module):
        yield _renamed(module, node)


def _function_removed(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if plain_name(node) and isinstance(node, Function):
            yield _removed(module, node)


def _method_removed(module: Module) -> Iterator[Fault]:
    for node in _methods(module):
        if isinstance(module.parents[node], ast.ClassDef) and len(module.parents[node].body) > 1:
            yield _removed(module, node)


def _class_into_function(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if plain_name(node) and isinstance(node, ast.ClassDef):
            start, end = _whole(module, node)
            hidden = module.text[start:end].replace(f"class {node.name}", f"class _{node.name}", 1)
            made = f"\n\n\ndef {node.name}(*args, **kwargs):\n    return _{node.name}(*args, **kwargs)"
            fault = edited(
                module, start, end, hidden + made, node=node, name=node.name, runs=_body_line(node)
            )
            yield _placed(fault, module, node.lineno, node.name)


def _parameter_renamed(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        new = f"{each.arg}_value"
        uses = [
            node
            for node in ast.walk(function)
            if (isinstance(node, ast.Name) and node.id == each.arg) or node is each
        ]
        if "lambda" in module.source(function) or any(
            each.arg in _own(inner) for inner in _nested(function)
        ):
            continue
        text = module.text
        for node in sorted(uses, key=lambda use: module.span(use)[0], reverse=True):
            start = module.span(node)[0]
            text = text[:start] + new + text[start + len(each.arg) :]
        yield _signature(module, function, text, each.arg)


def _parameter_added(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        if each is function.args.args[-1] and not function.args.defaults and not function.args.vararg:
            end = module.span(each)[1]
            yield _signature(module, function, f"{module.text[:end]}, mode{module.text[end:]}", "mode")


def _parameter_removed(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        arguments = function.args
        at = arguments.args.index(each)
        if at == 0 or at >= len(arguments.args) - len(arguments.defaults):
            continue
        start, end = module.span(arguments.args[at - 1])[1], module.span(each)[1]
        first = body_of(function)[0]
        body = module.line_start(first.lineno)
        if first.lineno <= function.lineno or first.lineno <= each.lineno:
            continue
        kept = f"{' ' * first.col_offset}{each.arg} = None\n"
        text = module.text[:start] + module.text[end:body] + kept + module.text[body:]
        yield _signature(module, function, text, each.arg)


def _keyword_only(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        if function.args.vararg or function.args.kwonlyargs:
            continue
        start = module.span(each)[0]
        yield _signature(module, function, f"{module.text[:start]}*, {module.text[start:]}", each.arg)


def _reordered(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        plain = [each for each in function.args.args if each.arg not in ("self", "cls")]
        plain = plain[: len(plain) - len(function.args.defaults)]
        if plain_name(function) and body_of(function) and len(plain) > 1:
            (a, b), (c, d) = module.span(plain[0]), module.span(plain[1])
            text = module.text
            text = text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
            yield _signature(module, function, text, plain[0].arg)


def _not_exported(module: Module) -> Iterator[Fault]:
    """Only a package's ``__init__`` exports what others define."""
    if not module.path.endswith("__init__.py"):
        return
    for node in module.tree.body:
        if not (isinstance(node, ast.ImportFrom) and node.level and node.names[0].name != "*"):
            continue
        for each in node.names:
            kept = [
                f"{other.name} as {other.asname}" if other.asname else other.name
                for other in node.names
                if other is not each
            ]
            name = each.asname or each.name
            dots = "." * node.level
            new = f"from {dots}{node.module or ''} import {', '.join(kept)}" if kept else "pass"
            yield replaced(module, node, new, name=name)


def _parameters(module: Module) -> Iterator[tuple[Function, ast.arg]]:
    """Parameters of public functions and of constructors, without ``self``."""
    for function in module.functions():
        if not (plain_name(function) or function.name == "__init__") or not body_of(function):
            continue
        for each in function.args.args:
            if each.arg not in ("self", "cls"):
                yield function, each


def _nested(function: Function) -> list[Function]:
    return [each for each in ast.walk(function) if isinstance(each, Function) and each is not function]


def _own(function: Function) -> set[str]:
    arguments = function.args
    return {each.arg for each in (*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs)}


def _methods(module: Module) -> Iterator[Function]:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if plain_name(inner) and isinstance(inner, Function) and not inner.decorator_list:
                    yield inner


def _renamed(module: Module, node: ast.AST) -> Fault:
    assert isinstance(node, Function | ast.ClassDef)
    start = module.text.index(node.name, module.span(node)[0])
    new = f"{node.name}_impl" if isinstance(node, Function) else f"{node.name}Base"
    fault = edited(
        module, start, start + len(node.name), new, node=node, name=node.name, runs=_body_line(node)
    )
    return _placed(fault, module, node.lineno, node.name)


def _removed(module: Module, node: ast.AST) -> Fault:
    start, end = _whole(module, node)
    assert isinstance(node, Function)
    fault = edited(module, start, end, "pass", node=node, name=node.name, runs=_body_line(node))
    return _placed(fault, module, min(_first(node), node.lineno), node.name)


def _signature(module: Module, function: Function, text: str, name: str) -> Fault:
    line = function.lineno
    after = text.split("\n")[line - 1]
    return Fault(
        changes={module.path: text},
        path=module.path,
        first_line=line,
        last_line=body_of(function)[0].lineno,
        function=module.qualified(function),
        runs=_body_line(function),
        before=module.lines[line - 1].rstrip("\n"),
        after=after,
        name=name,
    )


def _placed(fault: Fault, module: Module, line: int, name: str) -> Fault:
    after = str(fault.changes[module.path]).split("\n", line)
    return Fault(
        changes=fault.changes,
        path=fault.path,
        first_line=line,
        last_line=line,
        function=fault.function,
        runs=fault.runs,
        before=module.lines[line - 1].rstrip("\n"),
        after=after[line - 1],
        name=name,
    )


def _body_line(node: ast.AST) -> int:
    """The line that runs when the function is called, or any method of the class."""
    if isinstance(node, Function):
        return body_of(node)[0].lineno if body_of(node) else node.lineno
    assert isinstance(node, ast.ClassDef)
    inner = [each for each in node.body if isinstance(each, Function) and body_of(each)]
    return body_of(inner[0])[0].lineno if inner else node.lineno


def _first(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _whole(module: Module, node: ast.AST) -> tuple[int, int]:
    """With its decorators."""
    assert isinstance(node, Function | ast.ClassDef)
    start = module.span(node)[0]
    if node.decorator_list:
        start = module.line_start(min(each.lineno for each in node.decorator_list)) + node.col_offset
    return start, module.span(node)[1]


def _row(name: str, sentence: str, inject: Injector, **more: Any) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        judged=Judged.INTERFACE,
        category=Category.SPEC_MISMATCH,
        **more,
    )


KINDS = (
    _row("function-renamed", "A public function or class has another name.", _function_renamed),
    _row("method-renamed", "A method has another name where it is defined.", _method_renamed),
    _row("function-removed", "A public function is gone.", _function_removed),
    _row("method-removed", "A method is gone.", _method_removed),
    _row("class-into-function", "A class is hidden behind a function.", _class_into_function),
    _row("parameter-renamed", "A parameter has another name.", _parameter_renamed),
    _row("parameter-added", "A function needs one argument more.", _parameter_added),
    _row("parameter-removed", "A function takes one argument less.", _parameter_removed),
    _row("keyword-only", "A parameter must be given by its name.", _keyword_only),
    Kind(
        id="parameters-reordered",
        sentence="Two parameters change places.",
        inject=_reordered,
        judged=Judged.BEHAVIOUR,
        also=(_ORDER,),
    ),
    _row("not-exported", "A package does not offer a name any more.", _not_exported, reach=Reach.IMPORT),
)
