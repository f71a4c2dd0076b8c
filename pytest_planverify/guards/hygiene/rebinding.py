"""Names of the product that mean something else in a file of tests."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_planverify.guards.hygiene.reading import Module


def compare_bindings(before: Module | None, now: Module, product: Collection[str]) -> Iterator[Find]:
    """What was imported from the product and is defined here now, and what is put in its place."""
    yield from _redefined(before, now, product)
    yield from _assigned(before, now, product)


def _redefined(before: Module | None, now: Module, product: Collection[str]) -> Iterator[Find]:
    if before is None:
        return
    for name, meaning in before.aliases.items():
        if name not in product:
            continue
        other = now.aliases.get(name)
        top = meaning.partition(".")[0]
        node = next((each for each in now.tree.body if _binds(each, name)), None)
        if node is not None:
            said = f"{name} of {top} is replaced in {now.path}"
            yield Find(
                sign="product-mocked",
                message=said,
                path=now.path,
                line=node.lineno,
                before=meaning,
                after=now.line(node),
            )
        elif other is not None and _is_of_tests(other) and not _is_of_tests(meaning):
            said = f"{name} comes from {other.rpartition('.')[0]} instead of the product"
            yield Find(sign="product-mocked", message=said, path=now.path, before=meaning, after=other)


def _assigned(before: Module | None, now: Module, product: Collection[str]) -> Iterator[Find]:
    """``product.name = …`` at the top of a module, or in a hook."""
    names = set(product) | {
        name for name, meaning in now.aliases.items() if meaning.partition(".")[0] in _tops(before, product)
    }
    for site in now.sites:
        node = site.node
        is_free = site.function is None or site.function.name.startswith("pytest_")
        if not (isinstance(node, ast.Assign) and is_free):
            continue
        for target in node.targets:
            root = target
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(target, ast.Attribute) and isinstance(root, ast.Name) and root.id in names:
                said = f"{ast.unparse(target)} of the product is replaced"
                yield Find(
                    sign="product-mocked",
                    message=said,
                    path=now.path,
                    line=node.lineno,
                    after=ast.unparse(node),
                )
    for site in now.sites:
        node = site.node
        if (
            isinstance(node, ast.Call)
            and site.function is None
            and dotted(node.func, now.aliases) == "setattr"
        ):
            root = node.args[0] if node.args else None
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in names:
                said = f"{ast.unparse(node.args[0])} of the product is patched"
                yield Find(
                    sign="product-mocked",
                    message=said,
                    path=now.path,
                    line=node.lineno,
                    after=ast.unparse(node),
                )


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    return False


def _is_of_tests(meaning: str) -> bool:
    parts = meaning.split(".")[:-1]
    return any(
        part in ("tests", "test", "conftest") or part.startswith(("fake", "stub", "mock")) for part in parts
    )


def _tops(before: Module | None, product: Collection[str]) -> set[str]:
    if before is None:
        return set()
    return {before.aliases[name].partition(".")[0] for name in product if name in before.aliases}
