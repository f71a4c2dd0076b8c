"""Resolve the names of a module: how its bodies bind them, and what griffe knows of each."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TYPE_CHECKING = frozenset({"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"})
_KINDS: Mapping[type[ast.AST], str] = {
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "function",
    ast.ClassDef: "class",
    ast.alias: "imported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """How a body binds its names: griffe tells only what a name is bound to last."""

    assigned: frozenset[str]
    """Names that are bound by something else than ``def``, ``class`` or ``import``."""
    unsure: frozenset[str]
    """Bound inside ``if``, ``try``, a loop …, or more than once in different ways."""
    is_open: bool
    """It may have names that its source does not show: a star import, a ``__getattr__``."""


def read_bindings(body: Sequence[ast.stmt], *, has_globals: bool = False) -> Bindings:
    """Read what a body binds; with ``has_globals``, also by functions that declare a name ``global``."""
    kinds: dict[str, list[str]] = {}
    unsure: set[str] = set()
    for name, node, is_conditional in _bound(body):
        kinds.setdefault(name, []).append(_KINDS.get(type(node), "assigned"))
        if is_conditional:
            unsure.add(name)
    for name, those in kinds.items():
        # Of several definitions by `def` or by `import`, the last one counts.
        if len(those) > 1 and (len({*those}) > 1 or "assigned" in those):
            unsure.add(name)
    if has_globals:  # to look for them takes as long as all the rest
        nodes = (node for statement in body for node in ast.walk(statement))
        unsure.update(name for node in nodes if isinstance(node, ast.Global) for name in node.names)
    return Bindings(
        assigned=frozenset(name for name, those in kinds.items() if "assigned" in those),
        unsure=frozenset(unsure),
        is_open="*" in kinds or "function" in kinds.get("__getattr__", ()),
    )


def _bound(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield each name that a body binds itself, by which node, and whether only under a condition."""
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in body]
    while pending:  # no recursion: a sum of a thousand terms is a thousand levels deep
        node, is_conditional = pending.pop()
        children = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node, is_conditional
                continue
            case ast.alias():
                yield node.asname or node.name.partition(".")[0], node, is_conditional
            case ast.Name(ctx=ast.Store() | ast.Del()):
                yield node.id, node, is_conditional
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                yield name, node, is_conditional
            case ast.AnnAssign(value=None) | ast.Lambda():
                continue  # the one says of what type a name will be; the other keeps its names to itself
            case ast.comprehension():
                children = [node.iter, *node.ifs]
            case ast.If() if dotted(node.test) in _TYPE_CHECKING:
                pending += [(each, is_conditional) for each in node.body]
                pending += [(each, True) for each in node.orelse]
                continue
            case _:
                pass
        is_block = isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case)
        if is_block and not isinstance(node, ast.With | ast.AsyncWith):
            at_once = ast.expr | ast.alias | ast.withitem
            pending += [(each, is_conditional or not isinstance(each, at_once)) for each in children]
        else:
            pending += [(each, is_conditional) for each in children]


def dotted(node: ast.AST) -> str | None:
    """Return ``a.b.c`` of a name or a chain of attributes, ``None`` of anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


_EXTRA = "contracts"


def set_bindings(owner: Any, bindings: Bindings) -> None:
    """Keep with a module or a class of griffe's how its body binds its names."""
    owner.extra[_EXTRA]["bindings"] = bindings


def bindings_of(owner: Any) -> Bindings:
    """Return how the body of a module or a class of griffe's binds its names."""
    return owner.extra[_EXTRA]["bindings"]


@dataclass(frozen=True, slots=True)
class Names:
    """The names as they are seen from a module, a class or a function of griffe's."""

    scope: Any

    def find(self, name: str) -> str | None:
        """Return the full name; ``""`` where only running the code would tell, ``None`` if unbound."""
        home = self._home(name)
        if home is None:
            return None
        imported = home.imports.get(name)
        if imported is None and home.is_module and _is_definition(home, name):
            return f"{home.path}.{name}"
        return imported or ""

    def value(self, name: str) -> str | None:
        """Return the source of the type or value that the module gives a name once: ``Price = float``."""
        home = self._home(name)
        if home is None or not home.is_module or name in bindings_of(home).unsure:
            return None
        member = home.members.get(name)
        if member is None or member.is_alias or not (member.is_attribute or member.is_type_alias):
            return None
        # griffe is not imported here: who only renders signatures does not wait for it.
        is_call = type(member.value).__name__ == "ExprCall"
        return None if member.value is None or is_call else str(member.value)

    @property
    def is_open(self) -> bool:
        """Return whether the module may have names that its source does not show."""
        return bindings_of(self.scope.module).is_open

    def _home(self, name: str) -> Any:
        """Return what binds a name: a function by its type parameters, a class or the module."""
        scope = self.scope
        while not scope.is_module:
            if name in scope.type_parameters:
                return scope
            if scope.is_class and (
                name in scope.imports
                or name in bindings_of(scope).assigned
                or (name in scope.members and not _is_definition(scope.module, name))
            ):
                return scope
            scope = scope.parent
        bindings = bindings_of(scope)
        bound = (scope.members, scope.imports, bindings.assigned, bindings.unsure)
        return scope if any(name in each for each in bound) else None


def _is_definition(owner: Any, name: str) -> bool:
    member = owner.members.get(name)
    return member is not None and not member.is_alias and (member.is_function or member.is_class)
