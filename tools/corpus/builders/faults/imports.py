"""Faults of imports: what is imported is not installed, not there any more, or not ready yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from faults.fault import Fault, Injector, Judged, Kind, Module, Reach, body_of, inserted, misspelt, replaced
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

_INVENTED = ("quickdigest", "textloom", "nimblecache.core", "fastcollate")
_REAL = ("orjson", "structlog", "redis.client", "tenacity", "msgpack")

_CONTRACT = Reading(
    category=Category.SPEC_MISMATCH,
    owner=Owner.PRODUCT,
    why="A module of the project that others import is part of what they were promised.",
)
_OWN_IMPORT = Reading(
    category=Category.IMPORT_ERROR,
    owner=Owner.PRODUCT,
    why="It is an import of the product itself that fails.",
)


def _invented(module: Module) -> Iterator[Fault]:
    yield from _at_top(module, _INVENTED)


def _absent(module: Module) -> Iterator[Fault]:
    yield from _at_top(module, _REAL)


def _absent_in_function(module: Module) -> Iterator[Fault]:
    for number, function in enumerate(module.functions()):
        body = body_of(function)
        if body:
            name = (*_REAL, *_INVENTED)[number % (len(_REAL) + len(_INVENTED))]
            yield inserted(module, body[0], f"import {name}", name=name)


def _misspelt_import(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.Import) and len(node.names) == 1 and len(node.names[0].name) > 3:
            name = node.names[0].name
            new = misspelt(name)
            if "." not in name:
                yield replaced(module, node, f"import {new} as {node.names[0].asname or name}", name=new)
        elif (
            isinstance(node, ast.ImportFrom) and not node.level and node.module not in (None, "__future__")
        ):
            assert node.module is not None
            new = misspelt(node.module.split(".")[0])
            rest = node.module.partition(".")[2]
            whole = f"{new}.{rest}" if rest else new
            yield replaced(module, node, f"from {whole} import {_names(node)}", name=new)


def _absent_first_party(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            new = f"{node.module}_support"
            yield replaced(module, node, f"from .{new} import {_names(node)}", name=new)
    at = _first_import(module)
    if at is not None and module.package:
        yield inserted(module, at, f"from {module.package}.compat_layer import adapt", name="compat_layer")


def _deleted(module: Module) -> Iterator[Fault]:
    if not module.path.endswith("__init__.py"):
        yield Fault(
            changes={module.path: None},
            path=module.path,
            before=module.path,
            name=module.path.rsplit("/", 1)[-1].removesuffix(".py"),
        )


def _emptied(module: Module) -> Iterator[Fault]:
    names = [each.name for each in module.tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    if names:
        yield Fault(changes={module.path: ""}, path=module.path, before=module.lines[0].rstrip("\n"))


def _circular(module: Module) -> Iterator[Fault]:
    """The package imports the module, and the module asks the package for what comes later."""
    at = _first_import(module)
    if at is None or not module.package or module.path.endswith("__init__.py"):
        return
    names = [each.name for each in module.tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    for name in names[:2]:
        if not name.startswith("_"):
            yield inserted(module, at, f"from {module.package} import {name} as _{name}", name=name)


def _names(node: ast.ImportFrom) -> str:
    return ", ".join(f"{each.name} as {each.asname}" if each.asname else each.name for each in node.names)


def _at_top(module: Module, names: tuple[str, ...]) -> Iterator[Fault]:
    at = _first_import(module)
    if at is not None:
        for name in names:
            yield inserted(module, at, f"import {name}", name=name)


def _first_import(module: Module) -> ast.stmt | None:
    for node in module.tree.body:
        if isinstance(node, ast.Import) or (
            isinstance(node, ast.ImportFrom) and node.module != "__future__"
        ):
            return node
    return None


def _row(name: str, sentence: str, inject: Injector, category: Category, **more: Any) -> Kind:
    given = {"reach": Reach.IMPORT, "exact": True, "raises": ("ImportError",), **more}
    return Kind(id=name, sentence=sentence, inject=inject, category=category, **given)


_IMPORT = Category.IMPORT_ERROR
_ARTIFACT = Category.ARTIFACT_MISSING
KINDS = (
    _row(
        "absent-invented-module", "A module imports a library that nobody ever wrote.", _invented, _IMPORT
    ),
    _row("absent-library", "A module imports a library that is not installed.", _absent, _IMPORT),
    _row(
        "absent-library-in-function",
        "A function imports a library that is not installed.",
        _absent_in_function,
        _IMPORT,
        reach=Reach.LINE,
    ),
    _row("misspelt-import", "The name of an imported library is misspelt.", _misspelt_import, _IMPORT),
    _row(
        "absent-own-module",
        "A module imports another of the project that is not there.",
        _absent_first_party,
        _ARTIFACT,
        also=(_CONTRACT,),
    ),
    _row("deleted-module", "A module was deleted.", _deleted, _ARTIFACT, also=(_CONTRACT,), exact=False),
    _row(
        "emptied-module",
        "A module holds nothing any more.",
        _emptied,
        Category.SPEC_MISMATCH,
        exact=False,
        judged=Judged.INTERFACE,
        raises=(),
    ),
    _row(
        "circular-import",
        "Two modules import each other while they are made.",
        _circular,
        Category.TEST_REGRESSION,
        also=(_OWN_IMPORT,),
    ),
)
