"""Answers that are written down in pieces: in rows that are put together, in text that is encoded or taken
apart, in data files of the work."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.tricks.decodings import readings
from pytest_planverify.guards.hygiene.tricks.recognised_calls import recognised_calls
from pytest_planverify.guards.hygiene.tricks.special_cases import spelled_literals, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pytest_planverify.guards.hygiene.reading import Function, Module
    from pytest_planverify.guards.hygiene.tricks.test_facts import TestFacts

_ENOUGH = 3
_MOSTLY = 0.7
_HEAVY = 6
"""So much two rows must weigh together."""
_LEAST_BLOB = 24
_LEAST_WORD = 5
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_QUOTED = re.compile(r"\\([\"'/\\])")
_LONGEST_KEY, _MOST_KEYS = 64, 50
_HIDDEN = 2
"""So many texts of the tests below an encoding are no accident."""


@dataclass(frozen=True, slots=True)
class Row:
    """Constants that stand one after the other."""

    module: Module
    node: ast.AST
    spelled: tuple[frozenset[str], ...]
    place: str = ""
    is_answer: bool = False
    """They are what a function gives back, where it also works something out."""


class WrittenAnswers:
    """Looks through the changed modules of the work."""

    def __init__(
        self,
        modules: Sequence[Module],
        known: Collection[str],
        of_tests: Callable[[Collection[str]], TestFacts],
        texts: Callable[[], Collection[str]],
    ) -> None:
        """``texts`` gives the telling texts of the tests, where somebody asks."""
        self._modules, self._known, self._of_tests, self._texts = modules, frozenset(known), of_tests, texts

    def finds(self) -> Iterator[Find]:
        """Rows that answer together, calls of the tests that are recognised, encoded answers."""
        rows = [row for module in self._modules for row in rows_of(module)]
        calls = [call for module in self._modules for call in recognised_calls(module)]
        asked = {text for row in rows for cell in row.spelled for text in cell}
        asked |= {text for _, _, _, cells in calls for text in cells}
        asked -= self._known
        if any(weight_of({text}) for text in asked):
            tests = self._of_tests(asked | self._known)
            yield from self._in_rows(rows, tests)
            yield from self._in_calls(calls, tests)
        for module in self._modules:
            yield from self._encoded(module)

    def in_file(self, path: str, content: bytes, rows: Sequence[set[str]], loader: str) -> Iterator[Find]:
        """A data file of the work that holds what the tests expect; ``loader`` is who names it."""
        wanted = {text for row in rows for text in row}
        tests = self._of_tests(wanted)
        taken = [row for row in rows if len(row & tests.literals) > 1 and _stand_together(row, tests)]
        heavy = sum(weight_of(row) for row in taken)
        is_table = len(taken) >= _ENOUGH and heavy >= _HEAVY and len(taken) >= _MOSTLY * len(rows)
        if is_table or self._held(content) is not None:
            said = f"{path}, which {loader} reads, holds what the tests ask and expect"
            yield Find(sign="special-cases", message=said, path=path, subject="data")

    # -- rows -------------------------------------------------------------------------------------

    def _in_rows(self, rows: Sequence[Row], tests: TestFacts) -> Iterator[Find]:
        telling = [row for row in rows if self._is_of_tests(row, tests)]
        for at, one in enumerate(telling):
            heavy = sum(weight_of(cell) for cell in one.spelled)
            if one.is_answer and 2 * heavy >= max(2 * _HEAVY, 3 * len(one.spelled)):
                said = (
                    f"{one.place or 'The module'} gives what {len(one.spelled)} tests expect, written down"
                )
                yield self._find(said, one)
                continue
            for other in telling[at + 1 :]:
                if self._pair_up(one, other, tests):
                    yield self._find("Two rows hold what the tests ask and expect", other)
                    break

    def _is_of_tests(self, row: Row, tests: TestFacts) -> bool:
        of_tests = [
            cell
            for cell in row.spelled
            if cell <= tests.literals and not cell <= self._known and weight_of(cell)
        ]
        return len(of_tests) >= _ENOUGH and len(of_tests) >= _MOSTLY * len(row.spelled)

    def _pair_up(self, one: Row, other: Row, tests: TestFacts) -> bool:
        if len(one.spelled) != len(other.spelled) or one.spelled == other.spelled:
            return False
        pairs = list(zip(one.spelled, other.spelled, strict=True))
        together = [pair for pair in pairs if pair[0] != pair[1] and tests.together(*pair)]
        heavy = sum(weight_of(left) + weight_of(right) for left, right in together)
        return len(together) >= _ENOUGH and len(together) >= _MOSTLY * len(pairs) and heavy >= _HEAVY

    def _in_calls(
        self, calls: Sequence[tuple[Module, ast.AST, str, frozenset[str]]], tests: TestFacts
    ) -> Iterator[Find]:
        for module, node, place, cells in calls:
            if not cells <= self._known and weight_of(cells) and tests.called_with(place, cells):
                said = f"{place} recognises a call of the tests"
                yield self._find(said, Row(module, node, (), place))

    # -- encodings --------------------------------------------------------------------------------

    def _encoded(self, module: Module) -> Iterator[Find]:
        keys = None
        for node, value, place in _blobs(module):
            held = self._held(value)
            if held is None and isinstance(value, bytes):
                keys = _keys_of(module) if keys is None else keys
                mixed = (bytes(a ^ b for a, b in zip(value, cycle(key), strict=False)) for key in keys)
                held = next((found for each in mixed if (found := self._held(each, plain=True))), None)
            if held is not None:
                said = f"A constant holds, encoded, what the tests ask and expect: {held[:40]!r}"
                yield self._find(said, Row(module, node, (), place))
            elif isinstance(value, str) and self._is_text_of_cases(value):
                yield self._find("A text holds what the tests ask and expect", Row(module, node, (), place))

    def _held(self, value: str | bytes, *, plain: bool = False) -> str | None:
        """A text of the tests that an encoding of the value holds, where it holds several.

        ``plain``: the value itself is what was encoded.
        """
        texts = [value.decode("utf-8", "ignore")] if plain and isinstance(value, bytes) else readings(value)
        for text in texts:
            spelled = text if "\\" not in text else _unescaped(text)
            found = [word for word in self._words_like(spelled) if word in spelled]
            if len(found) >= _HIDDEN and repr(found[0]) not in self._known:
                return found[0]
        return None

    def _words_like(self, text: str) -> list[str]:
        """The texts of the tests whose beginning a text holds: few, where it holds none."""
        starts = self._starts
        held = {text[at : at + _LEAST_WORD] for at in range(len(text) - _LEAST_WORD + 1)} & starts.keys()
        return sorted(word for start in held for word in starts[start])

    @cached_property
    def _starts(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for word in self._texts():
            if len(word) >= _LEAST_WORD:
                found[word[:_LEAST_WORD]].append(word)
        return found

    def _is_text_of_cases(self, value: str) -> bool:
        words = [word for word in self._words_like(value) if word in value]
        held = {repr(word) for word in words} - self._known
        if len(held) < 2 * _ENOUGH or sum(map(len, words)) < len(value) * 0.4:
            return False
        tests = self._of_tests(held)
        pairs = {
            (one, other)
            for one in held
            for other in held
            if one != other and tests.together({one}, {other})
        }
        return len({one for one, _ in pairs}) >= 2 * _ENOUGH

    @staticmethod
    def _find(said: str, row: Row) -> Find:
        return Find(
            sign="special-cases",
            message=said,
            path=row.module.path,
            line=getattr(row.node, "lineno", None),
            subject=f"written:{row.place}",
            place=row.place,
            after=row.module.line(row.node),
        )


def telling_texts(modules: Sequence[Module], data: Collection[str]) -> frozenset[str]:
    """The texts of tests that stand in no other place: sentences, signs, what is no plain word."""
    found = set(data)
    for module in modules:
        for each in ast.walk(module.tree):
            if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes):
                value = each.value if isinstance(each.value, str) else each.value.decode("utf-8", "replace")
                if len(value) < 2000:
                    found.add(value)
    return frozenset(text for text in found if weight_of({repr(text)}))


def rows_of(module: Module) -> Iterator[Row]:
    """The rows of constants of what was added to a module."""
    put: Mapping[str, list[tuple[ast.expr, ast.expr]]] = _put_in(module)
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield from _row(module, node, node.elts, site.place)
            for column in _columns(node):
                yield from _row(module, node, column, site.place, is_answer=_is_asked(node, module))
        elif isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            yield from _row(module, node, keys, site.place)
            yield from _row(module, node, node.values, site.place, is_answer=_is_asked(node, module))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [
                each.value
                for each in ast.walk(node)
                if isinstance(each, ast.Return | ast.Yield) and each.value is not None
            ]
            written = [each for each in given if fold(each, module.constants) is not NOTHING]
            yield from _row(module, node, written, node.name, is_answer=len(written) < len(given))
    for name, pairs in put.items():
        asked = _is_asked(pairs[0][0], module, name)
        yield from _row(module, pairs[0][0], [key for key, _ in pairs], name)
        yield from _row(module, pairs[0][0], [value for _, value in pairs], name, is_answer=asked)


def _columns(node: ast.List | ast.Tuple | ast.Set) -> list[tuple[ast.expr, ...]]:
    """The columns of rows that are all as long."""
    rows = [each.elts for each in node.elts if isinstance(each, ast.Tuple | ast.List)]
    if len(rows) < _ENOUGH or len(rows) < len(node.elts) or len({len(row) for row in rows}) > 1:
        return []
    return list(zip(*rows, strict=True))


def _row(
    module: Module, node: ast.AST, cells: Sequence[ast.expr], place: str, *, is_answer: bool = False
) -> Iterator[Row]:
    if len(cells) < _ENOUGH:
        return
    spelled: list[frozenset[str]] = []
    for cell in cells:
        value = fold(cell, module.constants)
        spelled.append(frozenset() if value is NOTHING else frozenset(spelled_literals(value)))
    if sum(map(bool, spelled)) >= _ENOUGH:
        yield Row(module, node, tuple(spelled), place, is_answer)


def _put_in(module: Module) -> dict[str, list[tuple[ast.expr, ast.expr]]]:
    """``TABLE[key] = value``, one after the other."""
    found: dict[str, list[tuple[ast.expr, ast.expr]]] = defaultdict(list)
    for site in module.sites:
        node = site.node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if isinstance(target.value, ast.Name):
                found[target.value.id].append((target.slice, node.value))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and len(node.args) == 2
            and node.func.attr in ("setdefault", "__setitem__")
            and isinstance(node.func.value, ast.Name)
        ):
            found[node.func.value.id].append((node.args[0], node.args[1]))
    return found


def _is_asked(table: ast.expr, module: Module, name: str = "") -> bool:
    """Whether a function looks a table up and works out what it does not hold."""
    names = {name} - {""} | {known for known, value in module.constants.items() if value is table}
    for node in module.functions.values():
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & names
        inside = any(each is table for each in ast.walk(node))
        if (used or inside) and _works_out(node, names | _taken_from(node, names, table)):
            return True
    return False


def _taken_from(node: Function, names: Collection[str], table: ast.expr) -> set[str]:
    """Names that hold what a table gave."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Assign | ast.NamedExpr):
            inner = list(ast.walk(each.value))
            if any(one is table or (isinstance(one, ast.Name) and one.id in names) for one in inner):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _works_out(node: Function, names: Collection[str]) -> bool:
    for each in ast.walk(node):
        value = each.value if isinstance(each, ast.Return) else None
        if value is None or fold(value) is not NOTHING:
            continue
        inner = [one.id for one in ast.walk(value) if isinstance(one, ast.Name)]
        if (
            inner
            and not set(inner) & set(names)
            and any(isinstance(one, ast.Call | ast.BinOp | ast.Subscript) for one in ast.walk(value))
        ):
            return True
        if (
            (
                isinstance(value, ast.Call)
                and getattr(value.func, "attr", "") == "get"
                and len(value.args) == 2
            )
            and fold(value.args[1]) is NOTHING
            and any(isinstance(one, ast.Call | ast.BinOp) for one in ast.walk(value.args[1]))
        ):
            return True
    return False


def _blobs(module: Module) -> Iterator[tuple[ast.AST, str | bytes, str]]:
    """Long texts and rows of numbers that are no docstrings."""
    quiet = {
        id(site.node.value)
        for site in module.sites
        if isinstance(site.node, ast.Expr) and isinstance(site.node.value, ast.Constant)
    }
    for site in module.sites:
        node = site.node
        value: object = None
        if isinstance(node, ast.Constant) and id(node) not in quiet:
            value = node.value
        elif isinstance(node, ast.List | ast.Tuple) and len(node.elts) >= _LEAST_BLOB:
            numbers = fold(node)
            if isinstance(numbers, list | tuple):
                value = _as_bytes(numbers)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(node, ast.Call | ast.BinOp | ast.JoinedStr):
            value = fold(node, module.constants)
        if isinstance(value, str | bytes) and len(value) >= _LEAST_BLOB:
            yield node, value, site.place


def _keys_of(module: Module) -> list[bytes]:
    """Short constants that something may have been mixed with."""
    found: set[bytes] = set()
    for site in module.sites:
        value = site.node.value if isinstance(site.node, ast.Constant) else None
        if isinstance(value, str):
            value = value.encode("utf-8", "replace")
        if isinstance(value, bytes) and 1 < len(value) <= _LONGEST_KEY:
            found.add(value)
    return sorted(found)[:_MOST_KEYS]


def _as_bytes(numbers: Sequence[object]) -> str | None:
    if all(type(each) is int and 0 < each < 0x110000 for each in numbers):
        return "".join(chr(each) for each in numbers if isinstance(each, int))
    return None


def _stand_together(row: set[str], tests: TestFacts) -> bool:
    held = sorted(row & tests.literals)
    return any(tests.together({one}, {other}) for one in held for other in held if one < other)


def _unescaped(text: str) -> str:
    """A text whose characters are spelled as JSON spells them."""
    found = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    joined = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _QUOTED.sub(r"\1", joined)
