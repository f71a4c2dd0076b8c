"""What a test asserts: every check in one spelling, how much each asks for, and whether it can fail."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.catching import EVERY, catches, catches_below, uses
from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.reading import blocks, shape
from pytest_planverify.guards.hygiene.truths import is_always_false, is_always_true, is_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator


class Strength(IntEnum):
    """How much a check asks for."""

    NOTHING = 0
    """It holds whatever the product does."""
    PRESENCE = 1
    """There is some value."""
    KIND = 2
    """The value is of some type or size."""
    RELATION = 3
    """The value lies somewhere, or holds something."""
    VALUE = 4
    """The value is this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One assertion of a test."""

    node: ast.AST
    operator: str
    strength: Strength
    swallowed: bool = False
    """What it raises is caught."""
    reached: bool = True
    """Something comes to it."""
    guarded: bool = False
    """It stands under a condition."""
    parts: tuple[ast.AST, ...] = ()
    """What it is made of."""
    tolerance: float | None = None
    matched: str | None = None
    """What the message of an expected exception must match."""

    def text(self, masked: frozenset[str]) -> str:
        """The same for two checks that ask for the same; ``masked`` are the names of local variables."""
        shapes = [shape(part, masked) for part in self.parts]
        parts = "|".join(sorted(shapes) if self.operator in _BOTH_WAYS else shapes)
        return f"{self.operator}|{parts}|{self.tolerance}|{self.matched}"

    @property
    def match_values(self) -> tuple[str, ...]:
        """What an expected message must match, as a literal."""
        return (self.matched,) if self.matched else ()

    @property
    def counts(self) -> bool:
        """Whether it can fail a test."""
        return self.reached and not self.swallowed and self.strength > Strength.NOTHING


def checks_in(
    body: list[ast.stmt], swallowers: frozenset[str] = frozenset(), *, caught: bool = False
) -> tuple[Check, ...]:
    """Every check of a function's body, those of nested blocks included.

    ``swallowers`` are context managers that take failures away; ``caught`` if something around the function
    does.
    """
    return tuple(_walk(body, _Where(swallowed=caught, swallowers=swallowers, uses=uses(body))))


_UNITTEST: dict[str, tuple[str, int, Strength]] = {
    "assertEqual": ("==", 2, Strength.VALUE),
    "assertEquals": ("==", 2, Strength.VALUE),
    "assertNotEqual": ("!=", 2, Strength.RELATION),
    "assertTrue": ("", 1, Strength.PRESENCE),
    "assertFalse": ("not", 1, Strength.PRESENCE),
    "assertIs": ("is", 2, Strength.VALUE),
    "assertIsNot": ("is not", 2, Strength.RELATION),
    "assertIsNone": ("is", 1, Strength.VALUE),
    "assertIsNotNone": ("is not", 1, Strength.PRESENCE),
    "assertIn": ("in", 2, Strength.RELATION),
    "assertNotIn": ("not in", 2, Strength.RELATION),
    "assertIsInstance": ("isinstance", 2, Strength.KIND),
    "assertGreater": (">", 2, Strength.RELATION),
    "assertGreaterEqual": (">=", 2, Strength.RELATION),
    "assertLess": ("<", 2, Strength.RELATION),
    "assertLessEqual": ("<=", 2, Strength.RELATION),
    "assertRegex": ("in", 2, Strength.RELATION),
    "assertAlmostEqual": ("==", 2, Strength.VALUE),
}
_SAME_AS_EQUAL = frozenset(
    [
        "assertListEqual",
        "assertDictEqual",
        "assertTupleEqual",
        "assertSetEqual",
        "assertCountEqual",
        "assertSequenceEqual",
        "assertMultiLineEqual",
    ]
)
_RAISES = {
    "raises": "raises",
    "assertRaises": "raises",
    "assertRaisesRegex": "raises",
    "warns": "warns",
    "deprecated_call": "warns",
    "assertWarns": "warns",
    "assertWarnsRegex": "warns",
    "assertLogs": "logs",
}
_OPERATORS: dict[type[ast.cmpop], tuple[str, Strength]] = {
    ast.Eq: ("==", Strength.VALUE),
    ast.Is: ("is", Strength.VALUE),
    ast.NotEq: ("!=", Strength.RELATION),
    ast.IsNot: ("is not", Strength.RELATION),
    ast.In: ("in", Strength.RELATION),
    ast.NotIn: ("not in", Strength.RELATION),
    ast.Lt: ("<", Strength.RELATION),
    ast.LtE: ("<=", Strength.RELATION),
    ast.Gt: (">", Strength.RELATION),
    ast.GtE: (">=", Strength.RELATION),
}
_EQUALITY = re.compile(r"assert_?(are_?)?(equals?|eq|same|identical)_?|eq_", re.IGNORECASE)
"""Functions that projects write to compare two values."""
_BOTH_WAYS = frozenset({"==", "!=", "is", "is not"})
"""It is the same which side stands first."""
_WIDE_EXCEPTIONS = frozenset({"Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class _Where:
    """Where the walk is."""

    swallowed: bool = False
    reached: bool = True
    guarded: bool = False
    swallowers: frozenset[str] = frozenset()
    uses: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """Names of functions that are used, and of those that run in another thread only."""

    def placed(self, check: Check) -> Check:
        return replace(check, swallowed=self.swallowed, reached=self.reached, guarded=self.guarded)


def _walk(body: list[ast.stmt], where: _Where) -> Iterator[Check]:
    for statement in body:
        yield from _of_statement(statement, where)
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break) or _always_leaves(
            statement
        ):
            where = replace(where, reached=False)


def _of_statement(statement: ast.stmt, where: _Where) -> Iterator[Check]:
    if isinstance(statement, ast.Assert):
        yield where.placed(check_of(statement.test, statement))
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        used, aside = where.uses
        inner = replace(
            where,
            reached=where.reached and (statement.name in used or bool(statement.decorator_list)),
            swallowed=where.swallowed or statement.name in aside,
        )
        yield from _walk(statement.body, inner)
    elif isinstance(statement, ast.ClassDef):
        yield from _walk(statement.body, replace(where, uses=(EVERY, frozenset())))
    elif isinstance(statement, ast.Try):
        yield from _walk(statement.body, replace(where, swallowed=where.swallowed or catches(statement)))
        for handler in statement.handlers:
            yield from _walk(handler.body, replace(where, guarded=True))
        for block in (statement.orelse, statement.finalbody):
            yield from _walk(block, where)
    elif isinstance(statement, ast.If):
        yield from _of_condition(statement, where)
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            for check in _calls(item.context_expr):
                yield where.placed(check)
        caught = where.swallowed or catches_below(statement, where.swallowers)
        yield from _walk(statement.body, replace(where, swallowed=caught))
    else:
        yield from _of_others(statement, where)


def _of_condition(statement: ast.If, where: _Where) -> Iterator[Check]:
    never, always = is_always_false(statement.test), is_always_true(statement.test)
    guarded = where.guarded or not (never or always)
    yield from _walk(statement.body, replace(where, reached=where.reached and not never, guarded=guarded))
    yield from _walk(
        statement.orelse, replace(where, reached=where.reached and not always, guarded=guarded)
    )


def _of_others(statement: ast.stmt, where: _Where) -> Iterator[Check]:
    inner = list(blocks(statement))
    if isinstance(statement, ast.While):
        never = is_always_false(statement.test)
        guarded = where.guarded or not (never or is_always_true(statement.test))
        where = replace(where, reached=where.reached and not never, guarded=guarded)
    if isinstance(statement, ast.For) and fold(statement.iter) in ([], (), ""):
        where = replace(where, reached=False)
    for block in inner:
        yield from _walk(block, where)
    if not inner:
        for check in _calls(statement):
            yield where.placed(check)


def check_of(test: ast.expr, node: ast.AST) -> Check:
    """The check that an ``assert`` of this expression is."""
    if is_always_true(test):
        return _check(node, "true", (test,), Strength.NOTHING)
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        negated, test = not negated, test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(test, node)
    if isinstance(test, ast.Call):
        return _call_check(test, node, negated)
    if isinstance(test, ast.BoolOp):
        weak = isinstance(test.op, ast.Or)
        return _check(node, "or" if weak else "and", (test,), Strength.RELATION if weak else Strength.VALUE)
    return _check(node, "not" if negated else "", (test,), Strength.PRESENCE)


def _check(
    node: ast.AST,
    operator: str,
    parts: tuple[ast.AST, ...],
    strength: Strength,
    *,
    tolerance: float | None = None,
    matched: str | None = None,
) -> Check:
    """The first part is what is looked at, the others what it is compared with."""
    return Check(
        node=node, operator=operator, parts=parts, strength=strength, tolerance=tolerance, matched=matched
    )


def _comparison(test: ast.Compare, node: ast.AST) -> Check:
    operator, strength = _OPERATORS[type(test.ops[0])]
    left, right = test.left, test.comparators[0]
    if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant) and operator in ("==", "is"):
        left, right = right, left
    if operator == "is not" and isinstance(right, ast.Constant) and right.value is None:
        strength = Strength.PRESENCE
    if operator in (">", ">=", "!=") and isinstance(right, ast.Constant) and right.value == 0:
        strength = Strength.KIND
    tolerance = _tolerance(right) if _is_approx(right) else _tolerance(left) if _is_approx(left) else None
    return _check(node, operator, (_bare(left), _bare(right)), strength, tolerance=tolerance)


def _call_check(test: ast.Call, node: ast.AST, negated: bool) -> Check:
    name = test.func.id if isinstance(test.func, ast.Name) else getattr(test.func, "attr", "")
    strength = Strength.PRESENCE
    if name in ("isinstance", "issubclass", "hasattr", "callable"):
        strength = Strength.KIND
    elif name in ("all", "any", "isclose", "startswith", "endswith", "equals", "issubset", "issuperset"):
        strength = Strength.RELATION
    if test.args and strength is Strength.KIND:
        return _check(node, name, tuple(test.args), strength)
    return _check(node, "not" if negated else "", (test,), strength)


def _calls(node: ast.AST) -> Iterator[Check]:
    """The checks that a statement's calls are: of unittest, of pytest, of mocks, of libraries."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            check = _of_call(each)
            if check is not None:
                yield check


def _of_call(call: ast.Call) -> Check | None:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in _RAISES:
        return _raising(call, _RAISES[name], name)
    known = _UNITTEST.get(name) or (("==", 2, Strength.VALUE) if name in _SAME_AS_EQUAL else None)
    if known is not None and len(call.args) >= known[1]:
        return _of_unittest(call, name, *known)
    if _EQUALITY.fullmatch(name) and len(call.args) >= 2:
        return _of_unittest(call, "assertEqual", *_UNITTEST["assertEqual"])
    if name.startswith("assert") or name == "fail":
        return _check(call, name, (*call.args, *call.keywords), Strength.VALUE)
    return None


def _of_unittest(call: ast.Call, name: str, operator: str, count: int, strength: Strength) -> Check:
    if name == "assertTrue":
        return check_of(call.args[0], call)
    if name == "assertFalse":
        return check_of(ast.UnaryOp(ast.Not(), call.args[0]), call)
    left = call.args[0]
    right: ast.expr = call.args[1] if count == 2 else ast.Constant(None)
    if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant) and operator == "==":
        left, right = right, left
    always = operator == "==" and shape(left) == shape(right) and is_quiet(left)
    places = call.args[2] if len(call.args) > 2 else _keyword(call, "places")
    tolerance = None
    if name == "assertAlmostEqual":
        given = fold(_keyword(call, "delta") or ast.Constant(None))
        digits = fold(places) if places is not None else 7
        tolerance = (
            float(given)
            if isinstance(given, int | float)
            else 10.0 ** -min(digits, 30)
            if isinstance(digits, int)
            else None
        )
    return _check(
        call, operator, (left, right), Strength.NOTHING if always else strength, tolerance=tolerance
    )


def _raising(call: ast.Call, operator: str, name: str) -> Check:
    expected = call.args[0] if call.args else _keyword(call, "expected_exception")
    names = (
        {each.id for each in ast.walk(expected) if isinstance(each, ast.Name)} if expected else set[str]()
    )
    match = _keyword(call, "match")
    if name.endswith("Regex") and len(call.args) > 1:
        match = call.args[1]
    return _check(
        call,
        operator,
        (expected,) if expected else (),
        Strength.KIND if names & _WIDE_EXCEPTIONS else Strength.VALUE,
        matched=shape(match) if match else None,
    )


def _always_leaves(statement: ast.stmt) -> bool:
    """``if True: return``, and calls that end the test."""
    if isinstance(statement, ast.If) and is_always_true(statement.test):
        return any(isinstance(each, ast.Return | ast.Raise) for each in statement.body)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        name = getattr(statement.value.func, "attr", getattr(statement.value.func, "id", ""))
        return name in ("skip", "xfail", "skipTest", "exit", "_exit")
    return False


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _is_approx(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "approx"
    )


def _bare(node: ast.expr) -> ast.expr:
    """``pytest.approx(x, …)`` compares with ``x``."""
    return node.args[0] if isinstance(node, ast.Call) and _is_approx(node) and node.args else node


def _tolerance(node: ast.expr) -> float:
    """How far from the value ``approx`` allows; the wider of both."""
    widest = 0.0
    if isinstance(node, ast.Call):
        given = [_keyword(node, "rel"), _keyword(node, "abs"), *node.args[1:3]]
        values = [fold(each) for each in given if each is not None]
        widest = max([float(value) for value in values if isinstance(value, int | float)], default=1e-6)
    return widest
