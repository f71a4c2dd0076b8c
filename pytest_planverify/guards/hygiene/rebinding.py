"""Names of the product that mean something else in a file of tests."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from pytest_planverify.guards.hygiene.doubles import is_judged, is_wrapper
from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import definitions, dotted
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pytest_planverify.guards.hygiene.reading import Module


def compare_bindings(
    before: Module | None, now: Module, product: Mapping[str, str], tops: Collection[str]
) -> Iterator[Find]:
    """What was imported from the product and is defined here now, and what is put in its place.

    ``product`` is what the file imported from the product before, by name; ``tops`` are the packages and
    modules of the product.
    """
    yield from _redefined(before, now, product, tops)
    yield from _hidden_by_arguments(before, now, product)
    yield from _assigned(before, now, product, tops)


def _redefined(
    before: Module | None, now: Module, product: Mapping[str, str], tops: Collection[str]
) -> Iterator[Find]:
    if before is None:
        return
    had = {name for node in before.tree.body for name in product if _binds(node, name)}
    for name, meaning in product.items():
        other = now.aliases.get(name)
        top = meaning.partition(".")[0]
        node = next((each for each in now.tree.body if _binds(each, name)), None)
        if node is not None and name not in had:
            said = f"{name} of {top} is replaced in {now.path}"
            yield Find(
                sign=_weight(node, name, meaning, now, tops),
                message=said,
                path=now.path,
                line=node.lineno,
                before=meaning,
                after=now.line(node),
            )
        elif other is not None and _is_of_tests(other) and not _is_of_tests(meaning):
            said = f"{name} comes from {other.rpartition('.')[0]} instead of the product"
            yield Find(sign="product-mocked", message=said, path=now.path, before=meaning, after=other)


def _weight(node: ast.stmt, name: str, meaning: str, now: Module, tops: Collection[str]) -> str:
    """The sign of a new binding: a wrapper of the product is less than a double that tests judge."""
    if not uses_product(node, now, tops):
        return "product-replaced"
    if is_wrapper(node, meaning, now, tops) or not is_judged(name, now, tops):
        return "product-mocked"
    return "product-replaced"


def _hidden_by_arguments(before: Module | None, now: Module, product: Mapping[str, str]) -> Iterator[Find]:
    """A test whose parameter has the name of what it tests."""
    old = before.functions if before is not None else {}
    for node, _ in now.members:
        if isinstance(node, ast.ClassDef) or not node.name.startswith("test"):
            continue
        was = old.get(node.name)
        had = {arg.arg for arg in was.args.args} if was is not None else set[str]()
        used = {each.id for each in ast.walk(was) if isinstance(each, ast.Name)} if was is not None else had
        for arg in (*node.args.args, *node.args.kwonlyargs):
            if arg.arg in product and arg.arg not in had and arg.arg in used:
                said = f"{arg.arg} of the product is hidden by a parameter of {node.name}"
                sign = "product-replaced" if _has_default(node, arg) else "product-mocked"
                yield Find(sign=sign, message=said, path=now.path, line=node.lineno, after=now.line(node))


def public_names(module: Module) -> frozenset[str]:
    """The names that ``from module import *`` gives."""
    listed = fold(module.constants["__all__"]) if "__all__" in module.constants else None
    if isinstance(listed, list | tuple):
        return frozenset(map(str, cast("list[object]", listed)))
    found = {node.name for node in definitions(module.tree.body)}
    found |= set(module.constants) | {name for name in module.aliases if name != "*"}
    return frozenset(name for name in found if not name.startswith("_"))


def uses_product(node: ast.AST, module: Module, tops: Collection[str]) -> bool:
    """Whether something is made with the product: a wrapper, a fixture."""
    return any(
        isinstance(each, ast.Name)
        and each.id in module.aliases
        and module.aliases[each.id].partition(".")[0] in tops
        for each in ast.walk(node)
    )


def _has_default(node: ast.FunctionDef | ast.AsyncFunctionDef, arg: ast.arg) -> bool:
    positional = [*node.args.posonlyargs, *node.args.args]
    return arg in positional[len(positional) - len(node.args.defaults) :] or any(
        each is arg and default is not None
        for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    )


def _assigned(
    before: Module | None, now: Module, product: Mapping[str, str], tops: Collection[str]
) -> Iterator[Find]:
    """``product.name = …`` and ``setattr(product, "name", …)`` at the top of a module, or in a hook."""
    names = {name for name, meaning in now.aliases.items() if meaning.partition(".")[0] in tops} | set(
        product
    )
    had = {before.line(site.node) for site in before.sites} if before is not None else set[str]()
    for site in now.sites:
        node = site.node
        is_free = site.function is None or site.function.name.startswith("pytest_")
        if not is_free or site.owner is not None:
            continue
        targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Call) and dotted(node.func, now.aliases) in ("setattr", "builtins.setattr"):
            targets = [ast.Attribute(node.args[0], "…", ast.Store())] if node.args else []
        for target in targets:
            if _root(target) in names and isinstance(target, ast.Attribute | ast.Subscript):
                if now.line(node) in had or not _reaches_in(target):
                    continue
                said = f"{ast.unparse(target)} of the product is replaced"
                yield Find(
                    sign="product-replaced",
                    message=said,
                    path=now.path,
                    line=getattr(node, "lineno", None),
                    after=ast.unparse(node),
                )


def _root(target: ast.expr) -> str:
    root = target
    while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
        root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name) and root.id in ("vars", "getattr"):
            break
    return root.id if isinstance(root, ast.Name) else ""


def _reaches_in(target: ast.expr) -> bool:
    """An attribute, or an entry of the names of a module; not an entry of a table."""
    return isinstance(target, ast.Attribute) or "__dict__" in ast.unparse(target)


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
