"""Self-containment of a test: its own file alone, or something of the product."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN_MODULES = frozenset(
    {"__future__", "abc", "collections", "copy", "dataclasses", "decimal", "enum", "fractions", "functools",
     "itertools", "math", "operator", "pytest", "random", "re", "statistics", "string", "textwrap",
     "typing", "unittest"}
)  # fmt: skip
"""Modules that give what their callers put in: they read no file and start nothing."""

_REACHING = {"__import__", "breakpoint", "compile", "eval", "exec", "globals", "input", "open", "vars"}
_PLAIN_BUILTINS = frozenset(dir(builtins)) - _REACHING
_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_self_contained(source: str | bytes, function: str, owner: str | None = None) -> bool:
    """Return whether a test function, of a class where ``owner`` names one, uses its own file alone.

    All names that it reads, and those that what it calls in the file reads, must be bound there, or be
    those of builtins and plain modules. In doubt it is not. Never raises.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bound: dict[str, list[ast.stmt]] = {}
    for statement in module.body:
        for name in _bound_names(statement):
            bound.setdefault(name, []).append(statement)
    waiting = list(bound.get(owner or function, ()))
    if not waiting or not _is_given_values(waiting, function):
        return False
    seen: set[ast.stmt] = set()
    while waiting:
        statement = waiting.pop()
        if statement in seen:
            continue
        seen.add(statement)
        if not all(_PLAIN_MODULES.issuperset(each) for each in _imported(statement)):
            return False
        inside = set(_bound_names(statement, within=True))
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in inside:
                if node.id not in bound and node.id not in _PLAIN_BUILTINS:
                    return False
                waiting.extend(bound.get(node.id, ()))
    return True


def _is_given_values(statements: list[ast.stmt], function: str) -> bool:
    """Return whether all that the test is given stands in its decorators; nothing comes from fixtures."""
    for node in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(node, _FUNCTION) and node.name == function:
            calls = (each for each in node.decorator_list if isinstance(each, ast.Call) and each.args)
            listed = {
                name.strip()
                for call in calls
                if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
                for name in call.args[0].value.split(",")
            }
            return {each.arg for each in node.args.args} <= listed | {"self", "cls"}
    return False


def _imported(statement: ast.stmt) -> Iterator[set[str]]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            yield {(node.module or "").partition(".")[0] if not node.level else "."}


def _bound_names(statement: ast.stmt, *, within: bool = False) -> Iterator[str]:
    """Yield the names that a statement binds in its module; ``within`` also those of its own scopes."""
    if isinstance(statement, _DEFINITION):
        yield statement.name
        if not within:
            return
    for node in ast.walk(statement):
        if isinstance(node, _DEFINITION):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
