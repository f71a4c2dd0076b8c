"""Answers that are written down: conditions and tables of the product that hold the inputs of the tests."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pytest_planverify.guards.hygiene.reading import Module
    from pytest_planverify.guards.hygiene.tricks.test_facts import TestFacts

NOTEBOOKS = re.compile(
    r"ipykernel|ipython|idle|jupyter|outstream|colorama|zmq|terminal|spyder|pyodide", re.IGNORECASE
)
"""What programs ask for that show things to a person."""
_ENOUGH = 3
"""So many literals of the tests are no accident."""
_MOSTLY = 0.7
"""Of a table, so much comes from the tests."""
COMMON = frozenset(
    [
        repr(value)
        for value in (*range(-2, 11), 12, 16, 24, 32, 60, 64, 100, 128, 255, 256, 360, 365, 512, 1000)
    ]
    + [
        repr(value)
        for value in (1024, 3600, 0.0, 0.5, 1.0, 2.0, 10.0, 100.0, "", " ", "\n", ",", "utf-8", "r", "w")
    ]
    + [
        repr(value)
        for value in (True, False, None, b"", "utf8", "rb", "wb", "ascii", "__main__", "\t", ".", "/")
    ]
)


@dataclass(frozen=True, slots=True)
class Answered:
    """One condition or table entry: what it asks for, and what it answers."""

    node: ast.AST
    asked: frozenset[str]
    """Literals of the input, spelled."""
    answer: frozenset[str]
    """Literals of the answer; empty where it is worked out."""
    place: str
    is_table: bool = False
    size: int = 1
    parts: int = 1
    """How many things a condition compares."""
    by_type: bool = False
    """It asks for the name of a type."""


def special_cases(
    now: Sequence[Module], known: Collection[str], of_tests: Callable[[Collection[str]], TestFacts]
) -> Iterator[Find]:
    """Literals of the tests in the product as it is now, that ``known``, the product of before, had not.

    ``of_tests`` says what the tests and their data hold of some literals.
    """
    cases = [(module, case) for module in now for case in _cases(module)]
    asked = {text for _, case in cases for text in case.asked | case.answer}
    if not asked - set(known):
        return
    if not asked - set(known) - COMMON:
        return
    tests = of_tests(asked)
    for module in now:
        own = [case for each, case in cases if each is module]
        yield from _in_tables(module, [case for case in own if case.is_table], known, tests)
        yield from _in_conditions(module, [case for case in own if not case.is_table], known, tests)


def spelled_literals(value: object) -> Iterator[str]:
    """The scalars in a value of constants, spelled as source spells them."""
    if isinstance(value, dict):
        for key, each in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from spelled_literals(key)  # pyright: ignore[reportUnknownArgumentType]
            yield from spelled_literals(each)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list | tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from spelled_literals(each)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield repr(value)


def _in_tables(
    module: Module, cases: Sequence[Answered], known: Collection[str], tests: TestFacts
) -> Iterator[Find]:
    tables: dict[int, list[Answered]] = {}
    for case in cases:
        tables.setdefault(id(case.node), []).append(case)
    for entries in tables.values():
        taken = [
            case
            for case in entries
            if case.asked and case.answer and not case.asked <= set(known)
            and tests.together(case.asked, case.answer)
        ]  # fmt: skip
        share = len(taken) / entries[0].size
        if len(taken) < 2 or share < _MOSTLY:
            continue
        telling = sum(_weight(case.asked) for case in taken)
        falls_through = _falls_through(entries[0].node, module)
        said = f"A table answers {len(taken)} inputs of the tests"
        if len(taken) >= _ENOUGH and (telling >= _ENOUGH or (share == 1.0 and falls_through)):
            yield _find("special-cases", said, taken[0], module)
        elif len(taken) >= _ENOUGH or telling >= 2:
            yield _find("test-literals", said, taken[0], module)


def _falls_through(table: ast.AST, module: Module) -> bool:
    """Whether what the table does not hold is worked out: ``TABLE.get(x, f(x))``, ``if x in TABLE``."""
    names = {name for name, value in module.constants.items() if value is table} | {
        target.id
        for site in module.sites
        if isinstance(site.node, ast.Assign) and site.node.value is table
        for target in site.node.targets
        if isinstance(target, ast.Name)
    }
    for site in module.sites:
        node = site.node
        function = node.func if isinstance(node, ast.Call) and len(node.args) == 2 else None
        if (
            isinstance(node, ast.Call)
            and isinstance(function, ast.Attribute)
            and function.attr == "get"
            and _is_one_of(function.value, table, names)
        ):
            return fold(node.args[1]) is NOTHING and not _leaves_as_is(node.args[1], node.args[0], table)
        if isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Compare):
            is_in = isinstance(node.test.ops[0], ast.In)
            if is_in and any(_is_one_of(side, table, names) for side in node.test.comparators):
                return True
    return False


def _leaves_as_is(default: ast.expr, key: ast.expr, table: ast.AST) -> bool:
    """``ESCAPED.get(sign, sign)`` for single signs, ``MESSAGES.get(code, f"unknown: {code}")``."""
    if isinstance(default, ast.JoinedStr):
        held = [each.value for each in default.values if isinstance(each, ast.FormattedValue)]
        return [ast.unparse(each) for each in held] == [ast.unparse(key)]
    signs = [each.value for each in getattr(table, "keys", ()) if isinstance(each, ast.Constant)]
    single = all(isinstance(each, str) and len(each) == 1 for each in signs)
    return single and ast.unparse(default) == ast.unparse(key)


def _is_one_of(node: ast.expr, table: ast.AST, names: Collection[str]) -> bool:
    return node is table or (isinstance(node, ast.Name) and node.id in names)


def _in_conditions(
    module: Module, cases: Sequence[Answered], known: Collection[str], tests: TestFacts
) -> Iterator[Find]:
    places: dict[str, list[Answered]] = {}
    for case in cases:
        if case.by_type and case.answer:
            yield _find("special-cases", f"{case.place} answers by the name of a type", case, module)
        elif case.by_type:
            yield _find("asks-for-type-name", f"{case.place} asks for the name of a type", case, module)
        if case.asked and case.asked <= tests.literals:
            if len(case.asked) > 1 and case.parts > 1 and not case.asked <= set(known):
                is_situation = len(case.asked) >= _ENOUGH and case.answer and case.answer <= tests.literals
                if is_situation or tests.called_with(case.place, case.asked):
                    said = f"{case.place} recognises a call of the tests"
                    yield _find("special-cases", said, case, module)
                    continue
            places.setdefault(case.place, []).append(case)
    for place, found in places.items():
        literals = {text for case in found for text in case.asked}
        new = literals - set(known)
        answering = [case for case in found if case.answer and tests.together(case.asked, case.answer)]
        answered = {text for case in answering for text in case.asked}
        if not new:
            continue
        said = (
            f"{place or 'The module'} answers inputs of the tests: {', '.join(sorted(answered or new)[:4])}"
        )
        given = {text for case in answering for text in case.answer}
        heavy = _weight(frozenset(answered)) + (_weight(frozenset(given - COMMON)) if answered else 0)
        distinct = len(answered) + len(given - COMMON)
        if new & answered and (len(answered) >= _ENOUGH or heavy >= 2 or (heavy and distinct >= _ENOUGH)):
            yield _find("special-cases", said, answering[0], module)
        elif len(new) >= _ENOUGH or (new & answered and heavy):
            yield _find("test-literals", said, found[0], module)


def _weight(literals: frozenset[str]) -> int:
    """How telling literals are: words and round numbers stand in many places, sentences in few."""
    total = 0
    for text in literals:
        if text in COMMON:
            continue
        if text[:1] in "'\"":
            body = text.strip("'\"")
            if not body.isascii():
                total += 2
            elif not body.isidentifier():
                total += (len(body) >= 3) + (len(body) >= 8)
        else:
            total += 1
    return total


def weight_of(literals: Collection[str]) -> int:
    """How telling some literals are: nothing for plain words and round numbers."""
    return _weight(frozenset(literals))


def _cases(module: Module) -> Iterator[Answered]:
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.If):
            yield from _branch(node.test, node.body, node, site.place, module)
        elif isinstance(node, ast.IfExp):
            asked = _asked(node.test, module)
            if asked:
                yield Answered(node, asked, _value(node.body, module), site.place)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                asked = frozenset(
                    repr(value)
                    for each in ast.walk(case.pattern)
                    if isinstance(each, ast.MatchValue) and (value := fold(each.value)) is not NOTHING
                )
                yield Answered(case.pattern, asked, _answer(case.body, module), site.place)
        elif isinstance(node, ast.Dict):
            yield from _table(node, list(zip(node.keys, node.values, strict=True)), site.place, module)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            pairs = [
                (each.elts[0], ast.Tuple(each.elts[1:], ast.Load()))
                for each in node.elts
                if isinstance(each, ast.Tuple | ast.List) and len(each.elts) >= 2
            ]
            if len(pairs) == len(node.elts) and len(pairs) >= _ENOUGH:
                yield from _table(node, list(pairs), site.place, module)


def _branch(
    test: ast.expr, body: list[ast.stmt], node: ast.AST, place: str, module: Module
) -> Iterator[Answered]:
    asked, by_type = _asked(test, module), _by_type(test)
    if asked or by_type:
        yield Answered(node, asked, _answer(body, module), place, parts=_parts(test), by_type=by_type)


def _table(
    node: ast.expr, pairs: Sequence[tuple[ast.expr | None, ast.expr]], place: str, module: Module
) -> Iterator[Answered]:
    for key, value in pairs:
        asked = _value(key, module) if key is not None else frozenset[str]()
        yield Answered(node, asked, _value(value, module), place, is_table=True, size=len(pairs))


def _asked(test: ast.expr, module: Module) -> frozenset[str]:
    """Literals that something is compared with."""
    found: set[str] = set()
    for each in ast.walk(test):
        if isinstance(each, ast.Compare):
            for operator, side in zip(each.ops, each.comparators, strict=True):
                if isinstance(operator, ast.Eq | ast.In | ast.Is | ast.NotEq | ast.NotIn):
                    found |= _value(side, module)
            found |= _value(each.left, module)
        elif isinstance(each, ast.Call) and getattr(each.func, "attr", "") in ("startswith", "endswith"):
            for arg in each.args:
                found |= _value(arg, module)
    return frozenset(found)


def _answer(body: list[ast.stmt], module: Module) -> frozenset[str]:
    """What a branch gives, where that is written down."""
    found: set[str] = set()
    for statement in body:
        value = statement.value if isinstance(statement, ast.Return | ast.Assign) else None
        if value is not None:
            found |= _value(value, module) - {"True", "False", "None", "''", "0", "-1"}
    return frozenset(found)


def _value(node: ast.expr, module: Module) -> frozenset[str]:
    """The literals that an expression is made of; nothing where something is worked out."""
    found = _constants(node, module, 0)
    return frozenset() if found is None else frozenset(found)


def _constants(node: ast.expr, module: Module, depth: int) -> set[str] | None:
    value = fold(node, module.constants)
    if value is not NOTHING:
        return set(spelled_literals(value))
    inner: list[ast.expr] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        inner = node.elts
    elif isinstance(node, ast.Dict):
        inner = [each for each in (*node.keys, *node.values) if each is not None]
    elif isinstance(node, ast.Call) and not _is_lower(node):
        # Decimal("1.5"), Path("x"): a literal in a wrapper.
        inner = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        inner = list(node.value.values)
    if not inner or depth > 6:
        return None
    found: set[str] = set()
    for each in inner:
        more = _constants(each, module, depth + 1)
        if more is None:
            return None
        found |= more
    return found


def _is_lower(node: ast.Call) -> bool:
    """A function works something out; a class holds it."""
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return not name[:1].isupper()


def _by_type(test: ast.expr) -> bool:
    """``type(x).__name__ == …``: asks what a thing is called rather than what it is."""
    for each in ast.walk(test):
        if isinstance(each, ast.Attribute) and each.attr in ("__name__", "__qualname__", "__module__"):
            owner = ast.unparse(each.value)
            if NOTEBOOKS.search(ast.unparse(test)):
                return False
            if owner.startswith("type(") or owner.endswith("__class__"):
                return True
    return False


def _parts(test: ast.expr) -> int:
    """How many things are compared."""
    compared = {
        ast.unparse(each.left)
        for each in ast.walk(test)
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Eq | ast.Is | ast.In)
    }
    tuples = [
        len(each.left.elts)
        for each in ast.walk(test)
        if isinstance(each, ast.Compare) and isinstance(each.left, ast.Tuple)
    ]
    return max([len(compared), *tuples])


def _find(sign: str, said: str, case: Answered, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(case.node, "lineno", None),
        subject=f"{sign}:{case.place}",
        place=case.place,
        after=ast.unparse(case.node),
    )
