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

    from pytest_planverify.guards.hygiene.reading import Function, Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_JUDGES = frozenset(
    {"builtins", "pytest", "_pytest", "unittest", "pluggy", "__builtins__", "pytest_planverify"}
)
_ALLOWED = (
    "sys.stdout", "sys.stderr", "sys.stdin", "sys.dont_write_bytecode",
    "sys.path", "sys.argv", "os.environ",
    "sys.tracebacklimit", "sys.ps1", "sys.ps2", "os.umask", "locale", "warnings.showwarning",
    "sys.pycache_prefix", "sys.last_",
)  # fmt: skip
_HANDLERS = frozenset({"sys.excepthook", "sys.unraisablehook", "threading.excepthook", "sys.displayhook"})
_SETTERS = frozenset({"setattr", "builtins.setattr", "object.__setattr__", "type.__setattr__", "delattr"})


_OWN_NAMES = frozenset({"__name__", "__package__"})
_NAMES_OF_OTHERS = frozenset({"__globals__", "f_globals", "f_locals", "f_builtins"})
_WATCHERS = frozenset({"gc.callbacks.append", "sys.addaudithook", "codecs.register", "os.register_at_fork",
                       "signal.setitimer", "sys.setswitchinterval"})  # fmt: skip
"""What has code run behind whatever else is run."""
_INSIDES = frozenset({"__code__", "__globals__", "__closure__"})
"""Parts of functions that only somebody replaces who wants another function to do something else."""
_OF_COPIES = frozenset({"cell_contents", "__defaults__"})
"""Parts of functions that who makes functions of others sets."""


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
        if target.attr in _INSIDES | _OF_COPIES and not around.is_judge:
            sign = "patches-judge" if target.attr in _INSIDES else "patches-foreign"
            said = f"{ast.unparse(target)} of a function is replaced"
            yield _find(sign, said, target.attr, target, site, module)
            return
        is_special = target.attr.startswith("__") and target.attr.endswith("__")
        if not is_special and _is_free(site, around) and _is_loaded(target.value, site, module):
            yield _find("patches-judge", "A loaded module is changed", "sys.modules", target, site, module)
            return
        meaning = dotted(target, _imported(module, site))
        yield from _patched(meaning, target, site, module, around)


def _entry(target: ast.Subscript, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    """``sys.modules["x"] = …``, ``vars(builtins)["x"] = …``, ``f.__globals__["x"] = …``."""
    if (
        _is_free(site, around)
        and isinstance(target.value, ast.Attribute | ast.Call)
        and _is_loaded(target.value, site, module)
    ):
        yield _find("patches-judge", "A loaded module is changed", "sys.modules", target, site, module)
        return
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
    elif isinstance(target.value, ast.Attribute) and target.value.attr in _NAMES_OF_OTHERS:
        sign = "patches-foreign" if around.is_judge else "patches-judge"
        said = "The names of another function are changed"
        yield _find(sign, said, target.value.attr, target, site, module)


def _is_free(site: Site, around: Surroundings) -> bool:
    """Whether it is no test that does so, for itself."""
    return not around.is_judge or site.function is None or site.function.name.startswith("pytest_")


def _is_loaded(node: ast.expr, site: Site, module: Module) -> bool:
    """Whether it is a module that was taken out of those that are loaded, but for its own."""
    root = node
    while isinstance(root, ast.Attribute | ast.Call):
        if isinstance(root, ast.Call):
            if dotted(root.func, module.aliases) == "vars" and root.args:
                root = root.args[0]
                continue
            return _takes_loaded(root, module)
        root = root.value
    if isinstance(root, ast.Subscript):
        return _takes_loaded(root, module)
    if not isinstance(root, ast.Name) or site.function is None:
        return False
    return any(
        isinstance(each, ast.Assign | ast.NamedExpr)
        and _takes_loaded(each.value, module)
        and any(
            isinstance(target, ast.Name) and target.id == root.id
            for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        )
        for each in ast.walk(site.function)
    )


def _takes_loaded(node: ast.expr, module: Module) -> bool:
    if isinstance(node, ast.Call) and dotted(node.func, module.aliases) == "sys.modules.get" and node.args:
        key = node.args[0]
    elif isinstance(node, ast.Subscript) and dotted(node.value, module.aliases) == "sys.modules":
        key = node.slice
    else:
        return False
    return not any(isinstance(each, ast.Name) and each.id in _OWN_NAMES for each in ast.walk(key))


def _called(node: ast.Call, site: Site, module: Module, around: Surroundings) -> Iterator[Find]:
    meaning = dotted(node.func, module.aliases)
    if meaning in _SETTERS and len(node.args) >= 2:
        if plain_text(node.args[1]) in _INSIDES and not around.is_judge:
            yield _find(
                "patches-judge", "The code of a function is replaced", "__code__", node, site, module
            )
            return
        owner, name = dotted(node.args[0], _imported(module, site)), plain_text(node.args[1])
        if owner:
            yield from _patched(f"{owner}.{name or '?'}", node, site, module, around)
    elif meaning in _WATCHERS and not around.is_judge:
        yield _find(
            "patches-foreign", f"{meaning} runs code behind what is run", meaning, node, site, module
        )
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "__setitem__", "setdefault"):
        if isinstance(node.func.value, ast.Attribute) and node.func.value.attr in _NAMES_OF_OTHERS:
            sign = "patches-foreign" if around.is_judge else "patches-judge"
            said = "The names of another function are changed"
            yield _find(sign, said, node.func.value.attr, node, site, module)
        elif meaning.endswith((".__dict__.update", ".__dict__.__setitem__")):
            yield from _patched(meaning.replace(".__dict__", ""), node, site, module, around)
    elif meaning.startswith(("unittest.mock.patch", "mock.patch")) and not around.is_judge:
        yield _find("patches-foreign", f"Product code calls {meaning}", meaning, node, site, module)
    elif meaning.rpartition(".")[2] in ("curse", "patchable_builtin") and "forbiddenfruit" in meaning:
        yield _find("patches-judge", "A builtin type is changed", meaning, node, site, module)
    elif meaning.startswith("ctypes.pythonapi") or meaning in ("ctypes.memmove", "ctypes.memset"):
        yield _find(
            "patches-foreign", f"{meaning} writes into the interpreter", meaning, node, site, module
        )


def _patched(
    meaning: str, node: ast.AST, site: Site, module: Module, around: Surroundings
) -> Iterator[Find]:
    top = meaning.partition(".")[0]
    if not top or "." not in meaning or meaning.startswith(".") or top in around.own_packages:
        return
    if meaning.startswith(_ALLOWED) or meaning == "builtins._":
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
    own |= {
        each.id
        for each in ast.walk(site.function)
        if isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Store)
        and _is_made(each.id, site.function)
    }
    return {name: meaning for name, meaning in module.aliases.items() if name not in own} | dict.fromkeys(
        own, ""
    )


def _is_made(name: str, function: Function) -> bool:
    """Whether a function binds a name to something that it makes, not to a module by another name."""
    return any(
        isinstance(each, ast.Assign | ast.AnnAssign)
        and isinstance(each.value, ast.Call)
        and not (isinstance(each.value.func, ast.Name) and each.value.func.id in ("__import__", "getattr"))
        and getattr(each.value.func, "attr", "") not in ("import_module", "get", "__import__")
        and any(
            isinstance(target, ast.Name) and target.id == name
            for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        )
        for each in ast.walk(function)
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
