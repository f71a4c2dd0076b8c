"""Parsers of texts of Python: assertions, which tell the expected value, messages, and tests of modules."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_ASSERTION = re.compile(
    r"\s*assert (?P<left>.+?) (?:[=!]=|<=?|>=?|is not|is|not in|in) (?P<right>.+)"
    r"|\s*self\.assert\w+\((?P<arguments>.+)\)"
)
_EXPECTED = re.compile(r"(?:expect|want|desire)")
_RESULT = re.compile(r"(?:actual|got|result|ret(?:urned|val)?|res)(?:_\w+|s?\d*)")
_VALUE_TYPES = frozenset(
    {"approx", "bytes", "date", "datetime", "dict", "frozenset", "list", "range", "set", "timedelta",
     "tuple"}
)  # fmt: skip
"""Lower-case callables that build a value from their arguments, as classes do."""

MIRRORED_OPERATORS = {
    "<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "containing", "not in": "not containing",
}  # fmt: skip
"""Operators for exchanged operands; operators that are not listed stay the same."""


def parse_module(source: str | bytes) -> ast.Module:
    """Return the syntax tree of untrusted source, empty if it does not parse; no warnings are shown."""
    try:
        with warnings.catch_warnings():  # about the project's code, which nobody asked for here
            warnings.simplefilter("ignore")
            return ast.parse(source)
    # Null bytes raise ValueError, deep nesting one of the last two.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def dotted_name(node: ast.AST) -> str | None:
    """Return the text ``a.b.c`` of a name or a chain of attributes, ``None`` for other nodes."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def is_expected_first(source: str, given: Collection[str], operator: str = "==") -> bool:
    """Return whether the left operand is the expected value: ``assert 3 == total(cart)``.

    ``source`` is the first line of the assertion, ``given`` the names of the test's parameters. The left
    operand is expected if it is written in the test and the right one is not. For ``in`` it is expected
    unless the right operand is written in the test or the left one is, or is called, a result. In doubt the
    right operand is expected, by convention.
    """
    left, right = _operands(source)
    # If both sides are written in the test, the convention decides.
    if right is not None and _is_written(right, given):
        return False
    if operator in ("in", "not in"):
        if left is None or (isinstance(left, ast.Name) and _RESULT.fullmatch(left.id)):
            return False
        return not any(isinstance(node, ast.Call) for node in ast.walk(left))
    return left is not None and _is_written(left, given)


def is_result_of(function: str, source: str, *, right: bool) -> bool:
    """Return whether an operand of an assertion may be what a function returned: a call of it, or a name.

    ``right`` selects the right operand. In doubt it may be.
    """
    operand = _operands(source)[right]
    if operand is None or isinstance(operand, (ast.Name, ast.Await)):
        return True
    calls = (each.func for each in ast.walk(operand) if isinstance(each, ast.Call))
    return any((dotted_name(each) or function).rpartition(".")[2] == function for each in calls)


def _operands(source: str) -> tuple[ast.expr | None, ast.expr | None]:
    """Return both operands of an assertion, ``None`` for each that is unknown."""
    found = _ASSERTION.match(source)
    if found is None:
        return None, None
    if found["arguments"] is None:
        return _parsed(found["left"]), _parsed(found["right"])
    call = _parsed(f"f({found['arguments']})")
    is_known = isinstance(call, ast.Call) and len(call.args) > 1
    return (call.args[0], call.args[1]) if isinstance(call, ast.Call) and is_known else (None, None)


def _is_written(node: ast.expr, given: Collection[str]) -> bool:
    """Return whether a value is written in the test or passed to it, and not computed by the code."""
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    match node:
        case ast.Name(id=name):
            return name in given or _EXPECTED.match(name) is not None
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            if name not in _VALUE_TYPES and not name[:1].isupper():
                return False
            # Only the arguments count: the name of the class itself is neither given nor computed.
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        # What the code returns or holds is computed, even if it is reached from a name that is given.
        case ast.Attribute() | ast.Subscript() | ast.Call() | ast.Await():
            return False
        case _:
            pass
    return all(_is_written(part, given) for part in parts if isinstance(part, ast.expr))


def _parsed(text: str) -> ast.expr | None:
    """Parse an expression; ``None`` if it is incomplete, as it continues on the next line."""
    try:
        return ast.parse(text.partition("  #")[0].strip(), mode="eval").body
    # The source is untrusted: null bytes raise ValueError, deep nesting one of the last two.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_CALL = re.compile(
    r"^(?P<callee>[\w.<>]+)\(\) (?:missing \d+ required |takes |got an unexpected keyword argument|"
    r"got multiple values for |got some positional-only arguments)"
)


def callee_of(message: str) -> str | None:
    """Return the function that a ``TypeError`` about the arguments of a call names, else ``None``."""
    found = _CALL.match(message)
    return found["callee"] if found else None


def removed_definition(name: str, diff: str) -> str | None:
    """Return the removed line of a unified diff that imports or defines ``name`` at any level.

    ``None`` if there is none, or if an added line defines the name again.
    """
    word = re.escape(name)
    defines = re.compile(
        rf"(?:from \S+ )?import (?:.*[ ,(.])?{word}\b|(?:async )?(?:def|class) {word}\b"
        rf"|{word} ?(?::[^=]+)?=(?!=)"
    )
    lines = [line for line in diff.splitlines() if defines.match(line[1:].strip())]
    # The definition was moved or rewritten, so its removal is not the cause.
    if any(line.startswith("+") for line in lines):
        return None
    return next((line[1:].strip() for line in lines if line.startswith("-")), None)


_RUNS_TESTS = re.compile(r"main|run|test|suite|check|verify|exit|exec|eval|globals|locals", re.IGNORECASE)
"""Names of functions that may run the tests of the module that calls them."""
_PREPARES = frozenset({"sys", "os", "warnings", "logging", "pytest", "django", "random"})
"""Modules whose functions a module of tests calls to set itself up: ``sys.path.insert(0, "src")``."""


def uncalled_tests(source: str) -> tuple[str, ...]:
    """Return the names of the tests that a module defines if running it as a script runs none of them.

    Empty if it defines none, if code at module level (that of ``if __name__ == "__main__"`` included) may
    run them or may fail by itself, and if the source cannot be parsed.
    """
    tests: list[str] = []
    others: list[ast.stmt] = []
    for statement in parse_module(source).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                tests += [name] if name.startswith("test") else []
            case ast.ClassDef(name=name, body=members):
                methods = (
                    each for each in members if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
                )
                tests += [name] if any(each.name.startswith("test") for each in methods) else []
            case _:
                others.append(statement)
    nodes = (node for statement in others for node in ast.walk(statement))
    return () if any(_may_judge(node, tests) for node in nodes) else tuple(tests)


def _may_judge(node: ast.AST, tests: Collection[str]) -> bool:
    """Return whether code at module level may run one of the tests, or may fail by itself."""
    match node:
        case ast.Assert() | ast.Raise():
            return True
        case ast.Name(id=name):
            return name in tests
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if _RUNS_TESTS.search(name):
            return True
        case ast.Expr(value=ast.Call(func=called)):
            return (dotted_name(called) or "").partition(".")[0] not in _PREPARES
        case _:
            return False
