"""What the text of a conftest tells of the company that its tests need: read, never imported."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_READS_SELECTION = re.compile(
    r"\.(?:keyword|markexpr)\b"
    r"|(?:getoption|getvalue|getattr)\([^)]*[\"'](?:-k|-m|keyword|markexpr)[\"']"
)
_READS_COMPANY = re.compile(
    r"session\.items|testscollected|config\.args\b|\binvocation_params|(?<![\"'])\bsys\.argv\b(?!\s*=[^=])"
)
_SETS_STATUS = re.compile(r"\.exitstatus\s*=[^=]")
_RUNS_TESTS = re.compile(r"\bdef\s+pytest_(?:runtestloop|collection)\s*\(")
"""Hooks that decide for a whole session, and not at all the same way in workers of pytest-xdist."""
_ITEM_HOOKS = ("pytest_collection_modifyitems", "pytest_collection_finish")
_COUNTING = (ast.AugAssign, ast.Global, ast.Nonlocal, ast.Break, ast.Return)


def reads_selection(text: str) -> bool:
    """Whether a conftest looks at ``-k`` or ``-m``."""
    return _READS_SELECTION.search(text) is not None


@cache
def reads_company(text: str) -> bool:
    """Whether what a conftest does to one test may depend on which others are there.

    A hook that only goes through the items, sorts or reverses them treats each by itself.
    """
    if any(each.search(text) for each in (_READS_COMPANY, _SETS_STATUS, _RUNS_TESTS)):
        return True
    if not any(name in text for name in _ITEM_HOOKS):
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False  # it cannot be loaded, and the session will say so
    hooks = (
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in _ITEM_HOOKS
    )
    return any(_weighs_items(hook) for hook in hooks)


def _weighs_items(hook: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    harmless = {id(name) for name in _uses_one_by_one(hook)}
    loops = [node for node in ast.walk(hook) if isinstance(node, (ast.For, ast.While))]
    return any(
        isinstance(node, ast.Name)
        and node.id == "items"
        and isinstance(node.ctx, ast.Load)
        and id(node) not in harmless
        for node in ast.walk(hook)
    ) or any(isinstance(node, _COUNTING) for loop in loops for node in ast.walk(loop))


def _uses_one_by_one(hook: ast.AST) -> Iterator[ast.Name]:
    """Where ``items`` stands for each of its members: loops, sorting, taking its members' place."""
    for node in ast.walk(hook):
        candidate: ast.expr | None = None
        if isinstance(node, (ast.For, ast.comprehension)):
            candidate = node.iter
            if isinstance(candidate, ast.Call) and _called(candidate) in (
                "list",
                "tuple",
                "reversed",
                "sorted",
            ):
                candidate = candidate.args[0] if candidate.args else None
        elif (isinstance(node, ast.Attribute) and node.attr in ("sort", "reverse", "remove")) or (
            isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_whole(node.slice)
        ):
            candidate = node.value
        elif isinstance(node, ast.Assign) and all(_is_whole_of_items(each) for each in node.targets):
            value = node.value
            if isinstance(value, ast.Call) and _called(value) in ("sorted", "reversed", "list"):
                candidate = value.args[0] if value.args else None
        if isinstance(candidate, ast.Subscript) and _is_whole(candidate.slice):
            candidate = candidate.value
        if isinstance(candidate, ast.Name) and candidate.id == "items":
            yield candidate


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def _is_whole_of_items(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and _is_whole(target.slice)
