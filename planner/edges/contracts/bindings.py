"""How often, and under which conditions, a module or a class body binds each of its names.

griffe tells what a name is last bound to; whether that is what a run would find depends on this.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.rules.contracts.annotations import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STAR = "*"
"""Stands for the names that a star import binds."""

_TYPE_CHECKING = frozenset({"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True, slots=True)
class Bindings:
    """What a body does with its names."""

    assigned: frozenset[str]
    """Names that are bound by something else than ``def``, ``class`` or ``import``."""
    unsure: frozenset[str]
    """Bound inside ``if``, ``try``, a loop …, or more than once in different ways."""
    is_open: bool
    """It may have names that its source does not show: a star import, a ``__getattr__``."""


def read_bindings(body: Sequence[ast.stmt], *, has_globals: bool = False) -> Bindings:
    """What a body binds; with ``has_globals``, also by functions that declare a name ``global``."""
    kinds: dict[str, set[str]] = {}
    unsure: set[str] = set()
    for statement, is_conditional in _statements(body):
        kind = _kind(statement)
        for name in _bound(statement):
            before = kinds.setdefault(name, set())
            # Of several definitions by `def` or by `import`, the last one counts.
            if is_conditional or (before and (kind == "assigned" or before != {kind})):
                unsure.add(name)
            before.add(kind)
    if has_globals:  # to look for them takes as long as all the rest
        unsure.update(name for statement in body for name in _rebound(statement))
    return Bindings(
        assigned=frozenset(name for name, how in kinds.items() if "assigned" in how),
        unsure=frozenset(unsure),
        is_open=STAR in kinds or "function" in kinds.get("__getattr__", ()),
    )


def _statements(body: Sequence[ast.AST], *, conditional: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every statement of a body that may bind a name, and whether it is only run under a condition."""
    for statement in body:
        yield statement, conditional
        if isinstance(statement, _DEFINITIONS):
            continue
        if isinstance(statement, ast.If) and dotted(statement.test) in _TYPE_CHECKING:
            yield from _statements(statement.body, conditional=conditional)
            yield from _statements(statement.orelse, conditional=True)
            continue
        is_certain = isinstance(statement, ast.With | ast.AsyncWith)
        for block in _BLOCKS:
            yield from _statements(getattr(statement, block, ()), conditional=conditional or not is_certain)


def _kind(statement: ast.AST) -> str:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return "function"
    if isinstance(statement, ast.ClassDef):
        return "class"
    return "imported" if isinstance(statement, ast.Import | ast.ImportFrom) else "assigned"


def _bound(statement: ast.AST) -> list[str]:
    """The names that one statement binds by itself, without the blocks that it holds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=aliases):
            return [alias.asname or alias.name.partition(".")[0] for alias in aliases]
        case ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name for alias in aliases]
        case ast.AnnAssign(value=None):
            return []  # it says of what type a name will be
        case ast.ExceptHandler(name=name):
            return [name] if name else []
        case ast.match_case(pattern=pattern):
            return [name for node in ast.walk(pattern) for name in _captured(node)]
        case _:
            return [name for part in _expressions(statement) for name in _stored(part)]


def _captured(node: ast.AST) -> list[str]:
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    return [name] if isinstance(name, str) else []


def _expressions(statement: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are no statements."""
    for part in ast.iter_child_nodes(statement):
        if not isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield part


def _stored(expression: ast.AST) -> Iterator[str]:
    """The names that an expression binds; a comprehension and a lambda keep theirs to themselves."""
    pending = [expression]  # no recursion: a sum of a thousand terms is a thousand levels deep
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, ast.comprehension):
            pending += [part.iter, *part.ifs]
        elif not isinstance(part, ast.Lambda):
            pending += ast.iter_child_nodes(part)


def _rebound(statement: ast.stmt) -> Iterator[str]:
    """Names that a function of the body binds in the module when it is called."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Global):
            yield from node.names
