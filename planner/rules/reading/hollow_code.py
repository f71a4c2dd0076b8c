"""Code that succeeds whatever the product does: empty bodies, constant asserts, swallowed failures."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.rules.reading.determinism import Names

_CONSTANT_NODES = (
    ast.Constant,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.BinOp,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.operator,
    ast.cmpop,
    ast.boolop,
    ast.unaryop,
    ast.expr_context,
)
_SWALLOWS = frozenset({"Exception", "BaseException", "AssertionError"})
_SKIPS = frozenset({"pytest.mark.skip", "unittest.skip", "pytest.mark.xfail", "unittest.expectedFailure"})
_SKIP_CALLS = frozenset({"pytest.skip", "pytest.xfail", "unittest.SkipTest"})


def hollow_body(body: Sequence[ast.stmt], names: Names) -> str | None:
    """Why the body of a test proves nothing, or ``None``."""
    reasons = [_hollow(statement, names) for statement in body]
    if any(reason is None for reason in reasons):
        return None
    said = dict.fromkeys(reason for reason in reasons if reason)
    return "it " + " and ".join(said) if said else "its body is empty"


def hollow_script(source: str) -> str | None:
    """Why running a script proves nothing, or ``None``; code that cannot be parsed is not hollow."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    does_nothing = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    left = [each for each in tree.body if not isinstance(each, does_nothing)]
    if not tree.body:
        return "it is empty"
    if not left and all(isinstance(each, ast.Import | ast.ImportFrom) for each in tree.body):
        # Importing runs the product, if only a little of it.
        return None
    if not left:
        return "it only defines things and runs none of them"
    if all(_shows(each) for each in left) and len(left) == len(tree.body):
        return "it does nothing"
    return None


def is_skipped(decorators: Iterable[ast.expr], names: Names, body: Sequence[ast.stmt] = ()) -> bool:
    """Whether a test is always skipped, or always expected to fail."""
    for decorator in decorators:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = names.dotted(call.func if call else decorator) or ""
        if name in _SKIPS and not _is_conditional(name, call):
            return True
        if name in ("pytest.mark.skipif", "unittest.skipIf") and call and _is_true(call.args[:1]):
            return True
    first = next((each for each in body if not _is_docstring(each)), None)
    if isinstance(first, ast.Expr | ast.Raise):
        call = first.value if isinstance(first, ast.Expr) else first.exc
        return isinstance(call, ast.Call) and (names.dotted(call.func) or "") in _SKIP_CALLS
    return False


def _is_conditional(name: str, call: ast.Call | None) -> bool:
    """``xfail`` may depend on a condition, or on what is raised."""
    if not name.endswith("xfail") or call is None:
        return False
    return bool(call.args) or any(each.arg in ("condition", "raises") for each in call.keywords)


def _is_true(arguments: Sequence[ast.expr]) -> bool:
    return bool(arguments) and isinstance(arguments[0], ast.Constant) and bool(arguments[0].value)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _shows(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but pass, or print constants."""
    if isinstance(statement, ast.Pass) or _is_docstring(statement):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "print"
        and all(_is_constant(argument) for argument in call.args)
    )


def _hollow(statement: ast.stmt, names: Names) -> str | None:
    """What a statement does instead of proving something: ``""`` for nothing at all, ``None`` if it may."""
    if _shows(statement):
        return "" if isinstance(statement, ast.Pass) or _is_docstring(statement) else "only prints"
    if isinstance(statement, ast.Assert):
        return _hollow_assert(statement.test)
    if isinstance(statement, ast.Return):
        return "" if statement.value is None or isinstance(statement.value, ast.Constant) else None
    if isinstance(statement, ast.Try) and any(_swallows(handler) for handler in statement.handlers):
        return "swallows every failure" if not statement.orelse and not statement.finalbody else None
    if (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Constant)
        and not statement.test.value
    ):
        return "never runs its code" if not statement.orelse else None
    return None


def _hollow_assert(test: ast.expr) -> str | None:
    if isinstance(test, ast.Tuple) and test.elts:
        return "asserts a tuple, which is always true"
    if (
        isinstance(test, ast.BoolOp)
        and isinstance(test.op, ast.Or)
        and any(_is_true([e]) for e in test.values)
    ):
        return f"asserts {_shown(test)}, which is always true"
    if _is_constant(test):
        # A false constant fails, which is honest.
        return f"asserts only {_shown(test)}" if _value(test) else None
    if (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
        and not any(isinstance(node, ast.Call) for node in ast.walk(test))
        and ast.dump(test.left) == ast.dump(test.comparators[0])
    ):
        return f"compares {_shown(test.left)} with itself"
    return None


def _is_constant(node: ast.expr) -> bool:
    return all(isinstance(each, _CONSTANT_NODES) for each in ast.walk(node))


def _value(node: ast.expr) -> bool:
    """What a constant expression is. Only the simplest are worked out, the rest is taken for true."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand)
    if isinstance(node, ast.List | ast.Set | ast.Tuple):
        return bool(node.elts)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node)
    return True


def _compared(node: ast.Compare) -> bool:
    left, right = node.left, node.comparators[0]
    if not (isinstance(left, ast.Constant) and isinstance(right, ast.Constant)):
        return True
    same = left.value == right.value
    return same if isinstance(node.ops[0], ast.Eq | ast.Is) else not same


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    named = [caught] if not isinstance(caught, ast.Tuple) else caught.elts
    catches = caught is None or any(isinstance(each, ast.Name) and each.id in _SWALLOWS for each in named)
    return catches and all(
        isinstance(each, ast.Pass | ast.Continue) or _shows(each) for each in handler.body
    )


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}…"
