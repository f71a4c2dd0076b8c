"""Whether a failing assertion comes out of where it stands: nets, threads, functions that nobody calls."""

from __future__ import annotations

import ast

from pytest_planverify.guards.hygiene.truths import is_always_true

_CATCHES_ASSERTION = frozenset({"AssertionError", "Exception", "BaseException", "Failed"})
_THREADS = frozenset({"Thread", "Timer", "start_new_thread"})


def catches(statement: ast.Try) -> bool:
    """Whether some handler takes a failing assertion, and the test goes on."""
    return any(
        _takes_assertions(handler) and not _raises_again(handler.body) for handler in statement.handlers
    ) or any(isinstance(each, ast.Return) for last in statement.finalbody for each in ast.walk(last))


def _takes_assertions(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(
        (isinstance(each, ast.Name) and each.id in _CATCHES_ASSERTION)
        or (isinstance(each, ast.Attribute) and each.attr in _CATCHES_ASSERTION | {"Exception"})
        for each in ast.walk(handler.type)
    )


def _raises_again(body: list[ast.stmt]) -> bool:
    """Whether the handler itself fails the test."""
    for statement in body:
        for each in ast.walk(statement):
            if isinstance(each, ast.Raise | ast.Assert):
                return True
            if isinstance(each, ast.Call):
                name = each.func.id if isinstance(each.func, ast.Name) else getattr(each.func, "attr", "")
                if name == "fail" or name.startswith("assert"):
                    return True
    return False


def catches_below(statement: ast.With | ast.AsyncWith, swallowers: frozenset[str]) -> bool:
    """Whether a context manager takes a failing assertion; ``swallowers`` are some that do."""
    return _pushes_a_net(statement) or any(
        suppresses(item.context_expr) or _is_one_of(item.context_expr, swallowers)
        for item in statement.items
    )


def suppresses(context: ast.expr) -> bool:
    """``suppress(AssertionError)``, ``raises(Exception)``."""
    if not isinstance(context, ast.Call):
        return False
    name = context.func.id if isinstance(context.func, ast.Name) else getattr(context.func, "attr", "")
    if name not in ("suppress", "raises", "assertRaises"):
        return False
    return any(
        isinstance(each, ast.Name | ast.Attribute)
        and (each.id if isinstance(each, ast.Name) else each.attr) in _CATCHES_ASSERTION
        for arg in context.args
        for each in ast.walk(arg)
    )


class _Everything(frozenset[str]):
    """All names."""

    def __contains__(self, item: object) -> bool:
        return isinstance(item, str)


EVERY = _Everything()
"""Of all names: methods are called by whoever has the object."""


def uses(body: list[ast.stmt]) -> tuple[frozenset[str], frozenset[str]]:
    """Names of functions that a body calls or hands on, and those that it only hands to threads."""
    nodes = [each for statement in body for each in ast.walk(statement)]
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    handed: set[str] = set()
    aside: set[str] = set()
    for call in calls:
        names = {
            each.id
            for each in (*call.args, *(keyword.value for keyword in call.keywords))
            if isinstance(each, ast.Name)
        }
        is_thread = getattr(call.func, "attr", getattr(call.func, "id", "")) in _THREADS
        (aside if is_thread else handed).update(names)
    bound = {
        each.value.id
        for each in nodes
        if isinstance(each, ast.Return | ast.Yield | ast.Assign | ast.Attribute)
        and isinstance(each.value, ast.Name)
    }
    known = called | handed | bound | aside | _in_collections(nodes)
    return frozenset(known), frozenset(aside - called - handed)


def _in_collections(nodes: list[ast.AST]) -> set[str]:
    return {
        each.id
        for node in nodes
        if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Subscript | ast.IfExp)
        for each in ast.walk(node)
        if isinstance(each, ast.Name)
    }


def _is_one_of(context: ast.expr, names: frozenset[str]) -> bool:
    call = context.func if isinstance(context, ast.Call) else context
    return getattr(call, "attr", getattr(call, "id", "")) in names


def _pushes_a_net(statement: ast.With | ast.AsyncWith) -> bool:
    """An exit stack that gets something that takes failures away."""
    if not any("ExitStack" in ast.unparse(item.context_expr) for item in statement.items):
        return False
    for inner in statement.body:
        for each in ast.walk(inner):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
                if each.func.attr == "push" and any(
                    isinstance(arg, ast.Lambda) and is_always_true(arg.body) for arg in each.args
                ):
                    return True
                if each.func.attr == "enter_context" and any(map(suppresses, each.args)):
                    return True
    return False
