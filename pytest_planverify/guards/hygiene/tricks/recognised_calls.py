"""Calls that the work recognises: several arguments of a function, compared at once."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.tricks.special_cases import spelled_literals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Module


def recognised_calls(module: Module) -> Iterator[tuple[Module, ast.AST, str, frozenset[str]]]:
    """Several arguments of a function compared at once: the comparison, the function, the literals."""
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Tuple):
            for side in node.comparators:
                for option in _options(side, module):
                    if len(option) > 1:
                        yield module, node, site.place, frozenset(spelled_literals(option))
        elif isinstance(node, ast.MatchSequence):
            values = [
                fold(each.value, module.constants)
                for each in node.patterns
                if isinstance(each, ast.MatchValue)
            ]
            if len(values) == len(node.patterns) > 1 and NOTHING not in values:
                yield module, node, site.place, frozenset(map(repr, values))


def _options(side: ast.expr, module: Module) -> list[tuple[object, ...]]:
    """The tuples that another one is compared with: itself, those of a list, the keys of a table."""
    value = fold(side, module.constants)
    if isinstance(value, tuple):
        held = cast("tuple[object, ...]", value)
        if not any(isinstance(each, tuple) for each in held):
            return [held]
        found = list(held)
    elif isinstance(value, list):
        found = cast("list[object]", value)
    else:
        found = _keys(side, module)
    return [cast("tuple[object, ...]", each) for each in found if isinstance(each, tuple)]


def _keys(node: ast.expr, module: Module) -> list[object]:
    value = module.constants.get(node.id) if isinstance(node, ast.Name) else node
    if isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, ast.Dict):
        return [fold(key, module.constants) for key in value.keys if key is not None]
    if isinstance(value, ast.Set | ast.List | ast.Tuple):
        return [fold(each, module.constants) for each in value.elts]
    return []
