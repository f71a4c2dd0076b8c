"""Values that a function takes out of the frames of its callers, and where they go."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_planverify.guards.hygiene.reading import Module

_STACKS = frozenset(
    {
        "sys._getframe",
        "sys._current_frames",
        "inspect.stack",
        "inspect.currentframe",
        "inspect.getouterframes",
        "traceback.extract_stack",
        "traceback.walk_stack",
    }
)
_NOT_OF_CALLERS = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
_PLACES = frozenset(
    {
        "f_lineno",
        "f_lasti",
        "lineno",
        "code_context",
        "positions",
        "co_name",
        "co_qualname",
        "co_filename",
        "co_varnames",
        "co_names",
        "co_consts",
        "co_firstlineno",
    }
)
_TELLS_PEOPLE = frozenset(
    {"debug", "info", "warning", "error", "exception", "critical", "log", "warn", "warn_explicit", "print"}
)
_MOST_ROUNDS = 6


def looks_at_frames(node: ast.AST, module: Module) -> bool:
    """Whether an expression asks for frames, or for what a frame holds."""
    return bool(_part_of_frame(node, module)) or _is_stack(node, module)


def values_taken(scope: ast.AST, module: Module) -> ast.AST | None:
    """Where variables of a caller are given back or decide, or what tells callers apart decides."""
    looks = any(_is_stack(site.node, module) or _attribute(site.node) == "f_back" for site in module.sites)
    values = _Flow(scope, lambda node: _is_value(node, scope, module, looks))
    for sink in _ends(scope):
        if values.reaches(sink):
            return sink
    places = _Flow(scope, lambda node: _is_place(node, scope, module))
    for sink in (*_decisions(scope), *_keys(scope)):
        if places.reaches(sink):
            return sink
    return None


class _Flow:
    """What is made of some expressions, by the names of one function."""

    def __init__(self, scope: ast.AST, starts: Callable[[ast.AST], bool]) -> None:
        self._starts = {id(node) for node in ast.walk(scope) if starts(node)}
        self._names: set[str] = set()
        if not self._starts:
            return
        for _ in range(_MOST_ROUNDS):
            count = len(self._names)
            for target, value in _bindings(scope):
                if self.reaches(value):
                    self._names |= set(_written(target))
            if len(self._names) == count:
                break

    def reaches(self, node: ast.AST) -> bool:
        """Whether an expression holds such a value; what is only logged counts for nothing."""
        if not self._starts or _is_message(node):
            return False
        if id(node) in self._starts or (isinstance(node, ast.Name) and node.id in self._names):
            return True
        return any(self.reaches(each) for each in ast.iter_child_nodes(node))


def _is_value(node: ast.AST, scope: ast.AST, module: Module, looks: bool) -> bool:
    """``f_locals``, or a name of ``f_globals`` that is not one that every module has."""
    if isinstance(node, ast.Call) and dotted(node.func, module.aliases) == "inspect.getargvalues":
        return True
    part = _part_of_frame(node, module)
    if part == "f_locals":
        base = node.value if isinstance(node, ast.Attribute) else node
        return _of_caller(base, scope, module, looks)
    return _global_name(node, module) and _of_caller(node, scope, module, looks)


def _of_caller(base: ast.AST, scope: ast.AST, module: Module, looks: bool) -> bool:
    """Not a frame of an exception or a generator; not the function's own."""
    nodes = list(ast.walk(base))
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    for target, value in _bindings(scope):
        if names & set(_written(target)):
            nodes += ast.walk(value)
    attributes = {_attribute(each) for each in nodes}
    if "f_back" in attributes:
        return True
    if attributes & _NOT_OF_CALLERS:
        return False
    stacks = [each for each in nodes if _is_stack(each, module)]
    return (looks and not stacks) or any(not _is_own(each, module) for each in stacks)


def _is_own(node: ast.AST, module: Module) -> bool:
    """``inspect.currentframe()`` and ``sys._getframe(0)``."""
    if not isinstance(node, ast.Call):
        return False
    meaning = dotted(node.func, module.aliases)
    if meaning == "inspect.currentframe":
        return True
    return meaning == "sys._getframe" and (not node.args or fold(node.args[0], module.constants) == 0)


def _global_name(node: ast.AST, module: Module) -> bool:
    """``frame.f_globals["expected"]`` and ``frame.f_globals.get("expected")``."""
    if isinstance(node, ast.Subscript):
        owner, key = node.value, node.slice
    elif isinstance(node, ast.Call) and _attribute(node.func) in ("get", "pop") and node.args:
        owner, key = node.func, node.args[0]
        owner = owner.value if isinstance(owner, ast.Attribute) else owner
    else:
        return False
    if _part_of_frame(owner, module) != "f_globals":
        return False
    name = fold(key, module.constants)
    return not (isinstance(name, str) and name.startswith("__"))


def _is_place(node: ast.AST, scope: ast.AST, module: Module) -> bool:
    """A line, a name or a depth that tells one caller from another."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and node.args:
        return any(_is_stack(each, module) for each in _origins(node.args[0], scope))
    if isinstance(node, ast.Attribute) and node.attr in _PLACES:
        return any(
            _is_stack(each, module) or _attribute(each) == "f_back" for each in _origins(node, scope)
        )
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
        return fold(node.slice, module.constants) in (1, 2, 3, 4) and _is_stack(node.value.value, module)
    return False


def _origins(node: ast.AST, scope: ast.AST) -> Iterator[ast.AST]:
    """An expression, and what its names are bound to."""
    yield from ast.walk(node)
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    for target, value in _bindings(scope):
        if names & set(_written(target)):
            yield from ast.walk(value)


def _ends(scope: ast.AST) -> Iterator[ast.AST]:
    """What is given back, kept or decides."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None:
            yield node.value
        elif isinstance(node, ast.Lambda):
            yield node.body
        elif isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Attribute) and getattr(each.value, "id", "") != "record"
            for each in node.targets
        ):
            # A record of a logger is for people.
            yield node.value
    yield from _decisions(scope)


def _decisions(scope: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(scope):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test
        elif isinstance(node, ast.Match):
            yield node.subject
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.Compare):
            yield node


def _keys(scope: ast.AST) -> Iterator[ast.AST]:
    """What an entry of a table is chosen by."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield node.slice
        elif isinstance(node, ast.Call) and _attribute(node.func) == "get" and node.args:
            yield node.args[0]


def _bindings(scope: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield node.target, node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "update", "add", "setdefault", "insert")
        ):
            for arg in node.args:
                yield node.func.value, arg


def _written(target: ast.AST) -> Iterator[str]:
    """The names that a target binds; a part of a thing is the thing."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _written(each)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _written(target.value)


def _part_of_frame(node: ast.AST, module: Module) -> str:
    """``f_locals`` or ``f_globals``, also where they are asked for by ``getattr``."""
    name = _attribute(node)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
        name = str(fold(node.args[1], module.constants))
    return name if name in ("f_locals", "f_globals") else ""


def _is_stack(node: ast.AST, module: Module) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func, module.aliases) in _STACKS


def _attribute(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
        _TELLS_PEOPLE
    )
