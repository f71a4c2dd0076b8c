"""What keeps a test from being judged: marks, and calls that leave it, with their conditions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.truths import is_always_false, is_always_true

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_planverify.guards.hygiene.reading import Module


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark, or a call, that keeps a test from being judged."""

    kind: str
    """``skip`` or ``xfail``."""
    conditional: bool
    """Only under a condition that may be false."""
    line: int
    text: str


def marks_of(node: ast.expr, aliases: dict[str, str]) -> Iterator[Mark]:
    """The marks that an expression of ``pytestmark``, or a decorator, puts on a test."""
    if isinstance(node, ast.List | ast.Tuple):
        for each in node.elts:
            yield from marks_of(each, aliases)
        return
    call = node if isinstance(node, ast.Call) else None
    meaning = dotted(call.func if call else node, aliases)
    last = meaning.rpartition(".")[2]
    kind = _KINDS.get(last)
    if kind is None:
        return
    condition = None
    if call is not None and last in ("skipif", "skipIf", "skipUnless"):
        condition = call.args[0] if call.args else _keyword(call, "condition")
    elif call is not None and last == "xfail":
        condition = call.args[0] if call.args else _keyword(call, "condition")
        if condition is not None and is_always_false(condition):
            return
    always = condition is None or _always_here(condition, last == "skipUnless", aliases)
    if not always and condition is not None and _never_here(condition, last == "skipUnless"):
        return
    yield Mark(kind, not always, node.lineno, ast.unparse(node))


def module_marks(module: Module) -> Iterator[Mark]:
    """What keeps every test of a module from being judged."""
    yield from marks_assigned(module.tree.body, module.aliases)
    yield from calls_that_leave(
        [
            s
            for s in module.tree.body
            if isinstance(s, ast.Expr | ast.If | ast.Raise | ast.Assign | ast.Try)
        ],
        module.aliases,
    )


def marks_assigned(body: Sequence[ast.stmt], aliases: dict[str, str]) -> Iterator[Mark]:
    """The marks of ``pytestmark`` in the body of a module or a class."""
    for statement in body:
        value = getattr(statement, "value", None)
        targets: list[ast.AST] = getattr(statement, "targets", None) or [
            getattr(statement, "target", ast.Pass())
        ]
        if any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in targets) and value is not None:
            yield from marks_of(value, aliases)


def calls_that_leave(
    body: Sequence[ast.stmt], aliases: dict[str, str], conditional: bool = False
) -> Iterator[Mark]:
    """Calls of ``pytest.skip`` and its like, raised or called, and under which condition."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(statement, ast.If):
            if not is_always_false(statement.test):
                unsure = conditional or not _always_here(statement.test, False, aliases)
                yield from calls_that_leave(statement.body, aliases, unsure)
            yield from calls_that_leave(
                statement.orelse, aliases, conditional or not is_always_false(statement.test)
            )
        elif isinstance(statement, ast.Try):
            for block in (statement.body, statement.orelse, statement.finalbody):
                yield from calls_that_leave(block, aliases, conditional)
            for handler in statement.handlers:
                yield from calls_that_leave(handler.body, aliases, not _takes_failures(handler))
        elif isinstance(statement, ast.With | ast.For | ast.While | ast.AsyncWith):
            yield from calls_that_leave(statement.body, aliases, conditional)
        else:
            for each in ast.walk(statement):
                if isinstance(each, ast.Call) and _leaves(each, aliases):
                    name = dotted(each.func, aliases).rpartition(".")[2]
                    kind = "xfail" if name in ("xfail", "XFailed") else "skip"
                    unsure = conditional or (name == "importorskip")
                    yield Mark(kind, unsure, each.lineno, ast.unparse(each))


def _takes_failures(handler: ast.ExceptHandler) -> bool:
    """A skip where an assertion failed is no condition of the surroundings."""
    names = (
        {getattr(e, "id", getattr(e, "attr", "")) for e in ast.walk(handler.type)} if handler.type else {""}
    )
    return bool(names & {"", "AssertionError", "Exception", "BaseException"}) and "ImportError" not in names


def _leaves(call: ast.Call, aliases: dict[str, str]) -> bool:
    meaning = dotted(call.func, aliases)
    owner, _, last = meaning.rpartition(".")
    if last not in _LEAVES:
        return False
    return owner.partition(".")[0] in ("pytest", "_pytest", "unittest", "self", "cls") or not owner


def _always_here(condition: ast.expr, negated: bool, aliases: dict[str, str]) -> bool:
    """Whether a condition holds wherever these tests are run: constants, versions of long ago."""
    test = ast.UnaryOp(ast.Not(), condition) if negated else condition
    value = fold(condition)
    if isinstance(value, str):
        try:
            condition = ast.parse(value, mode="eval").body
        except (SyntaxError, ValueError):
            return False
        test = ast.UnaryOp(ast.Not(), condition) if negated else condition
    if is_always_true(test):
        return True
    return _is_true_of_version(condition, aliases) is (not negated)


def _never_here(condition: ast.expr, negated: bool) -> bool:
    return is_always_true(condition) if negated else is_always_false(condition)


def _is_true_of_version(condition: ast.expr, aliases: dict[str, str]) -> bool | None:
    """What ``sys.version_info >= (3, 6)`` says of every Python that this runs on."""
    if not (isinstance(condition, ast.Compare) and len(condition.ops) == 1):
        return None
    if dotted(condition.left, aliases) != "sys.version_info":
        return None
    version = fold(condition.comparators[0])
    if not (isinstance(version, tuple) and all(isinstance(part, int) for part in version)):  # pyright: ignore[reportUnknownVariableType]
        return None
    operator = condition.ops[0]
    if isinstance(operator, ast.Gt | ast.GtE) and version <= (3, 11):
        return True
    return True if isinstance(operator, ast.Lt | ast.LtE) and version >= (3, 99) else None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


_KINDS = {
    "skip": "skip",
    "skipif": "skip",
    "skipIf": "skip",
    "skipUnless": "skip",
    "xfail": "xfail",
    "expectedFailure": "xfail",
    "SkipTest": "skip",
    "skipTest": "skip",
}
_LEAVES = frozenset({"skip", "xfail", "skipTest", "SkipTest", "importorskip", "Skipped", "XFailed"})
