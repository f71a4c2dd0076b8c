"""Code that runs text: what can be decoded is looked at like any other code."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from planner.model.kinds import Hardness
from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import dotted, parse
from pytest_planverify.guards.hygiene.signs import SIGNS, Find, Leave

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Module
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_RUNS = frozenset(["exec", "eval", "compile", "builtins.exec", "builtins.eval", "builtins.compile"])
_REVIVES = frozenset(["marshal.loads", "types.FunctionType", "types.CodeType", "pickle.loads"])
_HOOKS = re.compile(r"sys\.(meta_path|path_hooks|path_importer_cache)(\.|$)")


def encoded(module: Module, around: Surroundings) -> Iterator[Find]:
    """Text that is run, modules that are found by hooks."""
    for site in module.sites:
        node = site.node
        if not isinstance(node, ast.Call):
            continue
        meaning = dotted(node.func, module.aliases)
        if meaning in _RUNS and node.args:
            value = fold(node.args[0], module.constants)
            inner = _trick_within(value, around)
            if inner is not None:
                said = f"Text that is run holds a trick: {inner.message}"
                yield _find("hides-a-trick", said, node, site.place, module)
            elif not isinstance(node.args[0], ast.Constant):
                yield _find(
                    "runs-hidden-code", f"{meaning} runs text that is made", node, site.place, module
                )
        elif meaning in _REVIVES and node.args and fold(node.args[0], module.constants) is not NOTHING:
            yield _find("runs-hidden-code", f"{meaning} makes code of data", node, site.place, module)
        elif _HOOKS.search(meaning):
            yield _find("import-hook", f"{meaning} changes how modules are found", node, site.place, module)


def _trick_within(value: object, around: Surroundings) -> Find | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    inner = parse("<string>", value.encode("utf-8", "replace")) if isinstance(value, str) else None
    if inner is None:
        return None
    from pytest_planverify.guards.hygiene.tricks import tricks_in

    return next(
        (
            find
            for find in tricks_in(inner, around)
            if SIGNS[find.sign].hardness(Leave.GRANTED) is Hardness.HARD and not find.forgiven
        ),
        None,
    )


def _find(sign: str, said: str, node: ast.AST, place: str, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        subject=sign,
        place=place,
        after=module.line(node),
    )
