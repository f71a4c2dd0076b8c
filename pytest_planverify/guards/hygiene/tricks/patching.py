"""Code that patches what is not its own: builtins, pytest, the standard library."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted, plain_text
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_planverify.guards.hygiene.reading import Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_JUDGES = frozenset(
    {"builtins", "pytest", "_pytest", "unittest", "pluggy", "__builtins__", "pytest_planverify"}
)
_ALLOWED = (
    "sys.stdout", "sys.stderr", "sys.stdin", "sys.dont_write_bytecode",
    "sys.path", "sys.argv", "os.environ",
    "sys.tracebacklimit", "sys.ps1", "sys.ps2", "os.umask", "locale", "warnings.showwarning",
    "sys.pycache_prefix",
)  # fmt: skip
_HANDLERS = frozenset({"sys.excepthook", "sys.unraisablehook", "threading.excepthook", "sys.displayhook"})
_SETTERS = frozenset({"setattr", "builtins.setattr", "object.__setattr__", "type.__setattr__", "delattr"})


def patching(module: Module, around: Surroundings) -> Iterator[Find]:
    """Assignments to attributes of modules that the project does not provide."""
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for target in _flat(targets):
                yield from _target(target, site, module, around)
        elif isinstance(node, ast.Call):
            yield from _called(node, site, module, around)


def _flat(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _flat(target.elts)
        else:
            yield target


def _target(target: ast.expr, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    if isinstance(target, ast.Subscript):
        yield from _entry(target, site, module, around)
    elif isinstance(target, ast.Attribute):
        meaning = dotted(target, _imported(module, site))
        yield from _patched(meaning, target, site, module, around)


def _entry(target: ast.Subscript, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    """``sys.modules["x"] = …``, ``vars(builtins)["x"] = …``, ``f.__globals__["x"] = …``."""
    owner = dotted(target.value, module.aliases)
    name = plain_text(target.slice) or str(fold(target.slice, module.constants))
    if owner == "sys.modules":
        if name.partition(".")[0] in _JUDGES | sys.stdlib_module_names:
            yield _find("patches-judge", f"The module {name} is replaced", name, target, site, module)
        elif plain_text(target.slice) and name.partition(".")[0] not in around.own_packages:
            yield _find("patches-foreign", f"The module {name} is replaced", name, target, site, module)
    elif owner.endswith(".__dict__") or owner == "__builtins__":
        whole = f"{owner.removesuffix('.__dict__')}.{name}"
        yield from _patched(whole.replace("__builtins__", "builtins"), target, site, module, around)
    elif isinstance(target.value, ast.Attribute) and target.value.attr == "__globals__":
        yield _find(
            "patches-foreign", "The globals of a function are changed", "__globals__", target, site, module
        )


def _called(node: ast.Call, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    meaning = dotted(node.func, module.aliases)
    if meaning in _SETTERS and len(node.args) >= 2:
        owner, name = dotted(node.args[0], _imported(module, site)), plain_text(node.args[1])
        if owner:
            yield from _patched(f"{owner}.{name or '?'}", node, site, module, around)
    elif meaning.startswith(("unittest.mock.patch", "mock.patch")) and not around.is_judge:
        yield _find("patches-foreign", f"Product code calls {meaning}", meaning, node, site, module)
    elif meaning.rpartition(".")[2] in ("curse", "patchable_builtin") and "forbiddenfruit" in meaning:
        yield _find("patches-judge", "A builtin type is changed", meaning, node, site, module)
    elif meaning.startswith("ctypes.pythonapi") or meaning in ("ctypes.memmove", "ctypes.memset"):
        yield _find(
            "patches-foreign", f"{meaning} writes into the interpreter", meaning, node, site, module
        )
    elif meaning.endswith((".__dict__.update", ".__dict__.__setitem__")):
        yield from _patched(meaning.replace(".__dict__", ""), node, site, module, around)


def _patched(
    meaning: str, node: ast.AST, site: Site, module: Module, around: Surroundings
) -> Iterator[Find]:
    top = meaning.partition(".")[0]
    if not top or "." not in meaning or meaning.startswith(".") or top in around.own_packages:
        return
    if meaning.startswith(_ALLOWED):
        return
    if meaning in _HANDLERS:
        yield _find("patches-foreign", f"{meaning} is replaced", meaning, node, site, module)
    elif top in _JUDGES:
        yield _find("patches-judge", f"{meaning} is replaced", meaning, node, site, module)
    elif not _is_imported(top, module):
        return
    elif top in sys.stdlib_module_names:
        found = _find("patches-judge", f"{meaning} is replaced", meaning, node, site, module)
        yield found.softer() if around.is_judge and site.function is not None else found
    elif not around.is_judge:
        yield _find("patches-foreign", f"{meaning} is replaced", meaning, node, site, module)


def _imported(module: Module, site: Site) -> dict[str, str]:
    """What names mean, without those that the function binds itself."""
    if site.function is None:
        return module.aliases
    arguments = site.function.args
    own = {arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return {name: meaning for name, meaning in module.aliases.items() if name not in own} | dict.fromkeys(
        own, ""
    )


def _is_imported(top: str, module: Module) -> bool:
    return any(meaning.partition(".")[0] == top for meaning in module.aliases.values())


def _find(sign: str, said: str, subject: str, node: ast.AST, site: Site, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        subject=subject,
        place=site.place,
        after=module.line(node),
    )
