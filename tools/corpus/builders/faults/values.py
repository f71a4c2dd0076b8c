"""Faults of the kind of a value: None, a text or a list in place of something else; no such attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from faults.fault import Fault, Injector, Judged, Kind, Module, misspelt, replaced
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

_MISSPELT = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.PRODUCT,
    why="A misspelt name is a bug of the code whatever the kind of its value.",
)


def _none_inside(module: Module) -> Iterator[Fault]:
    for node in _assignments(module):
        if not isinstance(node.value, ast.Constant):
            yield replaced(module, node.value, "None")


def _wrong_kind(module: Module) -> Iterator[Fault]:
    for node in _assignments(module):
        source = module.source(node.value)
        if isinstance(node.value, ast.Call | ast.Name | ast.Attribute) and "\n" not in source:
            yield replaced(module, node.value, f"[{source}]")
            yield replaced(module, node.value, f"str({source})")


def _method_not_called(module: Module) -> Iterator[Fault]:
    for node in _assignments(module):
        if isinstance(node.value, ast.Call) and not node.value.args and not node.value.keywords:
            yield replaced(module, node.value, module.source(node.value.func))


def _bytes(module: Module) -> Iterator[Fault]:
    yield from _returned(module, "str({}).encode()")


def _none(module: Module) -> Iterator[Fault]:
    yield from _returned(module, "None")


def _in_tuple(module: Module) -> Iterator[Fault]:
    yield from _returned(module, "({}),")


def _generator(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return) and module.inside(node):
            value = node.value
            if isinstance(value, ast.ListComp):
                yield replaced(module, value, f"({module.source(value)[1:-1]})")
            elif (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id in ("list", "tuple", "sorted")
            ):
                yield replaced(module, value, f"iter({module.source(value)})")


def _attribute(module: Module) -> Iterator[Fault]:
    for node in module.inner(ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if own and isinstance(node.ctx, ast.Load) and len(node.attr) > 3:
            new = misspelt(node.attr)
            yield replaced(module, node, f"self.{new}", name=new)


def _returned(module: Module, pattern: str) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return) and node.value is not None and module.inside(node):
            source = module.source(node.value)
            if "\n" not in source and not (
                isinstance(node.value, ast.Constant) and node.value.value is None
            ):
                yield replaced(module, node.value, pattern.format(source))


def _assignments(module: Module) -> Iterator[ast.Assign]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and module.inside(node) and isinstance(node.targets[0], ast.Name):
            yield node


def _row(name: str, sentence: str, inject: Injector) -> Kind:
    return Kind(id=name, sentence=sentence, inject=inject, judged=Judged.BEHAVIOUR)


KINDS = (
    _row("none-inside", "A variable of the product is None.", _none_inside),
    _row("wrong-kind-inside", "A variable holds a list or a text of what it should hold.", _wrong_kind),
    _row("method-not-called", "A method is named but not called.", _method_not_called),
    _row("returns-bytes", "A function returns bytes.", _bytes),
    _row("returns-none", "A function returns None.", _none),
    _row("returns-tuple", "A stray comma makes a tuple of what is returned.", _in_tuple),
    _row("returns-generator", "A function returns an iterator in the place of a list.", _generator),
    Kind(
        id="attribute-typo",
        sentence="An attribute of self is misspelt.",
        inject=_attribute,
        category=Category.TYPE_ERROR,
        also=(_MISSPELT,),
        exact=True,
        raises=("AttributeError",),
    ),
)
