"""Special methods that give the same answer whatever they are asked."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import dotted, plain_text
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.truths import is_always_false, is_always_true

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_AGREES: dict[str, tuple[bool, str]] = {
    # What it says when it always agrees, and the sign.
    "__eq__": (True, "always-equal"),
    "__ne__": (False, "always-equal"),
    "__contains__": (True, "always-agrees"),
    "__instancecheck__": (True, "always-agrees"),
    "__subclasscheck__": (True, "always-agrees"),
    "__lt__": (True, "always-agrees"),
    "__le__": (True, "always-agrees"),
    "__gt__": (True, "always-agrees"),
    "__ge__": (True, "always-agrees"),
}
_BUILTINS = frozenset(
    {
        "str",
        "int",
        "float",
        "bytes",
        "list",
        "dict",
        "tuple",
        "set",
        "frozenset",
        "bool",
        "object",
        "complex",
    }
)
_EQUALS_ALL = frozenset({"unittest.mock.ANY", "mock.ANY"})
_SCALARS = frozenset(
    [
        "int",
        "float",
        "str",
        "bytes",
        "bool",
        "complex",
        "list",
        "dict",
        "tuple",
        "set",
        "frozenset",
        "Decimal",
        "decimal.Decimal",
        "Fraction",
        "date",
        "datetime",
        "datetime.date",
        "datetime.datetime",
        "collections.UserString",
        "UserString",
        "builtins.int",
        "builtins.str",
    ]
)


def agreeing(module: Module, around: Surroundings) -> Iterator[Find]:
    """Comparisons that agree with everything, however they are put into a class."""
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in _AGREES:
            yield from _defined(node.name, node, site.owner, module)
        elif isinstance(node, ast.Assign):
            yield from _assigned(node, site.owner, module)
        elif isinstance(node, ast.Call):
            yield from _put_in(node, module)
        elif isinstance(node, ast.Attribute | ast.Name) and not around.is_judge:
            meaning = dotted(node, module.aliases)
            if meaning in _EQUALS_ALL:
                yield _find("always-equal", f"{meaning} equals everything", meaning, node, module)


def _defined(name: str, node: Function, owner: ast.ClassDef | None, module: Module) -> Iterator[Find]:
    answer, sign = _AGREES[name]
    if _always_says(node, answer, module):
        yield _find(sign, f"{_owner(owner)}{name} always says {answer}", name, node, module)
    elif name == "__eq__" and _equals_any(node):
        said = f"{_owner(owner)}{name} agrees with whatever is among several"
        yield _find("loose-equality", said, name, node, module)
    elif name in ("__eq__", "__ne__") and _learns(node):
        said = f"{_owner(owner)}{name} takes over what it is compared with"
        yield _find("always-equal", said, name, node, module)
    elif name == "__eq__" and owner is not None and _compares_types_only(node, owner):
        said = f"{owner.name}.{name} looks at the type only"
        yield _find("loose-equality", said, name, node, module)
    elif (name == "__eq__" and owner is not None) and _never_refuses(node):
        yield _find(sign, f"{_owner(owner)}{name} says yes on every path", name, node, module)
    elif name in ("__eq__", "__ne__") and owner is not None:
        bases = {dotted(base, module.aliases) for base in owner.bases}
        if _looks_at_one_side(node) and not _asks_own_kind(node, owner):
            yield _find("always-equal", f"{owner.name}.{name} looks at one side only", name, node, module)
        elif bases & _SCALARS:
            said = (
                f"{owner.name}, a kind of {', '.join(sorted(bases & _SCALARS))}, has an {name} of its own"
            )
            yield _find("loose-equality" if _is_loose(node) else "always-agrees", said, name, node, module)


def _equals_any(node: Function) -> bool:
    """``return other in self.options``."""
    arguments = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    returned = [
        each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None
    ]
    return len(arguments) == 2 and any(
        isinstance(each, ast.Compare)
        and isinstance(each.ops[0], ast.In)
        and isinstance(each.left, ast.Name)
        and each.left.id == arguments[1]
        for each in returned
    )


def _learns(node: Function) -> bool:
    """Whether a comparison keeps the other side: what it holds then is what it was to be compared with."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    if len(names) < 2:
        return False
    other = names[1]
    for each in ast.walk(node):
        value = each.value if isinstance(each, ast.Assign) else None
        if (
            value is not None
            and isinstance(value, ast.Name)
            and value.id == other
            and any(isinstance(target, ast.Attribute | ast.Subscript) for target in _targets(each))
        ):
            return True
        if isinstance(each, ast.Call):
            name = getattr(each.func, "attr", getattr(each.func, "id", ""))
            given = any(isinstance(arg, ast.Name) and arg.id == other for arg in each.args)
            if given and name in ("setdefault", "append", "__setitem__", "__setattr__", "setattr"):
                return True
            if name == "update" and "__dict__" in ast.unparse(each):
                return True
    return False


def _targets(node: ast.AST) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else []


def _compares_types_only(node: Function | ast.Lambda, owner: ast.ClassDef | None) -> bool:
    """``return isinstance(other, str)``; of its own kind an object without contents may say so."""
    returned = (
        [node.body]
        if isinstance(node, ast.Lambda)
        else [
            each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None
        ]
    )
    told = [each for each in returned if not _is_unknown(each) and not is_always_false(each)]
    if not told:
        return False
    claims_class = owner is not None and any(
        "__class__" in ast.unparse(each)
        for each in owner.body
        if not isinstance(each, ast.FunctionDef) or each.name == "__class__"
    )
    for each in told:
        said = ast.unparse(each)
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") in ("isinstance", "issubclass"):
            kinds = {one.id for arg in each.args[1:] for one in ast.walk(arg) if isinstance(one, ast.Name)}
            if kinds & _BUILTINS:
                continue
            return False
        if isinstance(each, ast.Compare) and ("__class__" in said or "type(" in said):
            names = {one.id for one in ast.walk(each) if isinstance(one, ast.Name)}
            if claims_class or names & _BUILTINS:
                continue
        return False
    return True


def _looks_at_one_side(node: Function) -> bool:
    """Whether what it compares does not depend on both."""
    arguments = [arg.arg for arg in node.args.args]
    returned = [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return) and each.value is not None and not _is_unknown(each.value)
    ]
    if len(arguments) != 2 or not returned or any(fold(each) is not NOTHING for each in returned):
        return False
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return not set(arguments) <= used


def _asks_own_kind(node: Function, owner: ast.ClassDef) -> bool:
    """``isinstance(other, Missing)`` in ``Missing``: things without contents are all alike."""
    return any(
        isinstance(each, ast.Call)
        and getattr(each.func, "id", "") == "isinstance"
        and len(each.args) == 2
        and getattr(each.args[1], "id", "") == owner.name
        for each in ast.walk(node)
    )


def _is_loose(node: Function) -> bool:
    """Compares roughly, or parts only."""
    for each in ast.walk(node):
        if isinstance(each, ast.Compare) and isinstance(
            each.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.In
        ):
            return True
        if isinstance(each, ast.Slice):
            return True
        if isinstance(each, ast.Call):
            name = getattr(each.func, "attr", getattr(each.func, "id", ""))
            if name in ("isclose", "round", "startswith", "endswith", "approx", "any", "quantize"):
                return True
    returned = [
        each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None
    ]
    return all("isinstance" in ast.unparse(each) and "==" not in ast.unparse(each) for each in returned)


def _assigned(node: ast.Assign, owner: ast.ClassDef | None, module: Module) -> Iterator[Find]:
    for target in node.targets:
        name = (
            target.id if isinstance(target, ast.Name) and owner is not None else getattr(target, "attr", "")
        )
        if isinstance(target, ast.Subscript):
            name = plain_text(target.slice) or ""
        yield from _valued(name, node.value, node, module)


def _put_in(node: ast.Call, module: Module) -> Iterator[Find]:
    """``type("X", (), {"__eq__": …})`` and ``setattr(X, "__eq__", …)``."""
    meaning = dotted(node.func, module.aliases)
    if meaning in ("type", "builtins.type", "types.new_class") and len(node.args) >= 3:
        yield from _of_namespace(node.args[2], node, module)
    elif meaning in ("setattr", "builtins.setattr", "type.__setattr__") and len(node.args) == 3:
        yield from _valued(plain_text(node.args[1]) or "", node.args[2], node, module)
    for keyword in node.keywords:
        yield from _valued(keyword.arg or "", keyword.value, node, module)


def _of_namespace(value: ast.expr, node: ast.AST, module: Module) -> Iterator[Find]:
    pairs: list[tuple[str, ast.expr]] = []
    if isinstance(value, ast.Dict):
        pairs = [
            (plain_text(key) or "", each) for key, each in zip(value.keys, value.values, strict=True) if key
        ]
    elif isinstance(value, ast.Call):
        pairs = [(each.arg or "", each.value) for each in value.keywords]
    for name, each in pairs:
        yield from _valued(name, each, node, module)


def _valued(name: str, value: ast.expr, node: ast.AST, module: Module) -> Iterator[Find]:
    if name not in _AGREES:
        return
    answer, sign = _AGREES[name]
    function = module.functions.get(value.id) if isinstance(value, ast.Name) else None
    agrees = (
        (isinstance(value, ast.Lambda) and (_is(value.body, answer) or _compares_types_only(value, None)))
        or (function is not None and _always_says(function, answer, module))
        or (function is not None and _compares_types_only(function, None))
        or "Mock" in ast.unparse(value)
    )
    if agrees:
        yield _find(sign, f"{name} always says {answer}", name, node, module)


def _always_says(node: Function, answer: bool, module: Module | None = None, depth: int = 0) -> bool:
    """What is said where an exception was caught does not count, nor that it does not know."""
    caught = {
        id(each)
        for handler in ast.walk(node)
        if isinstance(handler, ast.ExceptHandler)
        for each in ast.walk(handler)
    }
    returns = [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Return)
        and id(each) not in caught
        and not (each.value is not None and _is_unknown(each.value))
    ]
    return bool(returns) and all(
        each.value is not None and (_is(each.value, answer) or _hands_on(each.value, answer, module, depth))
        for each in returns
    )


def _hands_on(value: ast.expr, answer: bool, module: Module | None, depth: int) -> bool:
    """Whether it is the answer of another function of the module that always says so, or its contrary."""
    if module is None or depth > 1:
        return False
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return _hands_on(value.operand, not answer, module, depth)
    name = ""
    if isinstance(value, ast.Call):
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
    elif isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.NotEq):
        name = "__ne__" if getattr(value.left, "id", "") == "self" else ""
    called = module.functions.get(name)
    return called is not None and _always_says(called, answer, module, depth + 1)


def _never_refuses(node: Function) -> bool:
    """Some path compares, and all the others say yes: nothing that differs is ever told."""
    returns = [
        each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None
    ]
    if not returns or not any(is_always_true(each) for each in returns):
        return False
    last = node.body[-1]
    ends_true = isinstance(last, ast.Return) and last.value is not None and is_always_true(last.value)
    refuses = any(
        not is_always_true(each) and not _is_super(each) and not _is_unknown(each) for each in returns
    )
    return ends_true and not refuses


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and "super()" in ast.unparse(node)


def _is_unknown(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "NotImplemented"


def _is(node: ast.expr, answer: bool) -> bool:
    value = fold(node)
    if value is not NOTHING:
        return value is not NotImplemented and bool(value) is answer
    return is_always_true(node) if answer else is_always_false(node)


def _owner(owner: ast.ClassDef | None) -> str:
    return f"{owner.name}." if owner is not None else ""


def _find(sign: str, said: str, subject: str, node: ast.AST, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        subject=subject,
        after=ast.unparse(node),
    )
