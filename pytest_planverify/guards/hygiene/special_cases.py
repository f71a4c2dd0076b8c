"""Answers that are written down: conditions and tables of the product that hold the inputs of the tests."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_planverify.guards.hygiene.files import is_script
from pytest_planverify.guards.hygiene.judges import PYTHON_JUDGES
from pytest_planverify.guards.hygiene.product import WORK
from pytest_planverify.guards.hygiene.signals import Finding
from pytest_planverify.guards.hygiene.source import UNKNOWN, fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.changes import Changes
    from pytest_planverify.guards.hygiene.source import Module

_ENOUGH = 3
"""So many literals of the tests are no accident."""
_MOSTLY = 0.7
"""Of a table, so much comes from the tests."""
_NUMBERS = (*range(-2, 11), 12, 16, 24, 32, 60, 64, 100, 128, 255, 256, 360, 365, 512, 1000, 1024, 3600)
_COMMON = frozenset(
    [repr(value) for value in (*_NUMBERS, 0.0, 0.5, 1.0, 2.0, 10.0, 100.0, True, False, None, b"")]
    + [repr(value) for value in ("", " ", "\n", ",", "\t", ".", "/", "utf-8", "utf8", "ascii", "__main__")]
    + [repr(value) for value in ("r", "w", "rb", "wb")]
)
"""Literals that stand in any program."""
_DATA = (".json", ".csv", ".tsv", ".txt", ".dat")
_DISPLAYS = re.compile(r"ipykernel|ipython|idle|jupyter|outstream|colorama|zmq|terminal", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """One condition or table entry: what it asks for, and what it answers."""

    node: ast.AST
    asked: frozenset[str]
    answer: frozenset[str]
    """Literals; empty where the answer is worked out."""
    place: str
    table_size: int = 0
    parts: int = 1
    """How many things a condition compares."""


class _TestLiterals:
    """What the tests and their data hold, as groups of literals that stand together."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    @cached_property
    def groups(self) -> list[frozenset[str]]:
        """Literals of each call, comparison, row and test function."""
        found: list[frozenset[str]] = []
        for path in self._changes.new:
            kind = self._changes.kind(path)
            if kind in PYTHON_JUDGES and path.endswith(".py"):
                module = self._changes.module(path, now=True)
                if module is not None:
                    found += self._of_module(module)
            elif path in self._changes.data:
                found += _rows(self._changes.now.read(path))
        return found

    @cached_property
    def literals(self) -> frozenset[str]:
        """All of them."""
        return frozenset(each for group in self.groups for each in group)

    @cached_property
    def calls(self) -> set[tuple[str, frozenset[str]]]:
        """The functions that tests call, with the literals that they are given."""
        return {
            (getattr(node.func, "attr", getattr(node.func, "id", "")), literals_below(node))
            for path in self._changes.new
            if path.endswith(".py") and self._changes.kind(path) in PYTHON_JUDGES
            and (module := self._changes.module(path, now=True)) is not None
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call)
        }  # fmt: skip

    def together(self, asked: frozenset[str], answer: frozenset[str]) -> bool:
        """Return whether an input and its answer stand together in some test or row."""
        return any(asked <= group and answer <= group for group in self.groups)

    def _of_module(self, module: Module) -> Iterator[frozenset[str]]:
        for node in ast.walk(module.tree):
            is_row = (
                isinstance(node, ast.Tuple | ast.List | ast.Dict)
                and len(list(ast.iter_child_nodes(node))) > 1
            )
            if is_row or isinstance(node, ast.Compare | ast.FunctionDef | ast.AsyncFunctionDef):
                body: list[ast.AST] = list(getattr(node, "body", ())) or [node]
                yield frozenset(text for each in body for text in literals_below(each))


def special_case_findings(changes: Changes) -> Iterator[Finding]:
    """Yield conditions and tables that came and hold what the tests ask for."""
    files = [path for path in changes.of_kind(*WORK) if path.endswith(".py") and not is_script(path)]
    known = {
        text
        for path in files
        if (module := changes.module(path, now=False)) is not None
        for text in literals_below(module.tree)
    }
    tests = _TestLiterals(changes)
    for path in files:
        module = changes.module(path, now=True)
        answers = list(_answers(module, changes.module(path, now=False))) if module is not None else []
        if module is None or not answers:
            continue
        tables: dict[int, list[_Answer]] = {}
        for each in answers:
            if each.table_size:
                tables.setdefault(id(each.node), []).append(each)
        found = [_table_finding(entries, known, tests) for entries in tables.values()]
        found += _condition_findings([each for each in answers if not each.table_size], known, tests)
        for said, node in (each for each in found if each is not None):
            line = getattr(node, "lineno", None)
            yield Finding(sign="special-cases", message=said, path=path, line=line, after=module.line(node))
    if files:
        yield from _data_findings(changes, tests)


def _data_findings(changes: Changes, tests: _TestLiterals) -> Iterator[Finding]:
    """Yield data files of the product whose rows are those of the tests."""
    for path in changes.of_kind(*WORK):
        content = changes.now.read(path)
        if content is None or not path.endswith(_DATA):
            continue
        old = {row for row in _rows(changes.before.read(path)) if len(row - _COMMON) > 1}
        rows = [row for row in _rows(content) if len(row - _COMMON) > 1 and row not in old]
        taken = [
            row
            for row in rows
            if any(len(row & group) > 1 and _weight(row & group) > 1 for group in tests.groups)
        ]
        if len(taken) >= _ENOUGH and len(taken) >= _MOSTLY * len(rows):
            said = f"{path} answers {len(taken)} inputs of the tests"
            yield Finding(sign="special-cases", message=said, path=path)


def literals_below(node: ast.AST) -> frozenset[str]:
    """Return the scalars of a tree, spelled as Python spells them."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and not isinstance(each.value, type(...)):
            found.add(repr(each.value))
        elif isinstance(each, ast.UnaryOp | ast.BinOp):
            value = fold(each)
            if isinstance(value, int | float | str):
                found.add(repr(value))
    return frozenset(found)


def _rows(content: bytes | None) -> Iterator[frozenset[str]]:
    """Yield the rows of a data file: lines of text, objects and lists of JSON."""
    text = (content or b"").decode("utf-8", "replace")
    try:
        pending: list[Any] = [json.loads(text)]
    except ValueError:
        pending = list(text.splitlines()[:20_000])
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            cells = [cell.strip() for cell in re.split(r"[,;\t]", value)]
            yield frozenset(repr(each) for cell in (value, *cells) for each in _readings(cell))
        elif isinstance(value, list | dict):
            items: list[Any] = list(value.values() if isinstance(value, dict) else value)  # pyright: ignore
            pending += [each for each in items if isinstance(each, list | dict)]
            scalars = [*items, *(value if isinstance(value, dict) else ())]  # pyright: ignore
            inner = [one for each in items if isinstance(each, list) for one in each]  # pyright: ignore
            kept: list[Any] = [*scalars, *inner]
            yield frozenset(repr(each) for each in kept if not isinstance(each, list | dict))


def _readings(cell: str) -> Iterator[object]:
    yield cell
    for kind in (int, float):
        try:
            yield kind(cell)
        except ValueError:
            continue


def _table_finding(
    entries: list[_Answer], known: set[str], tests: _TestLiterals
) -> tuple[str, ast.AST] | None:
    taken = [
        each
        for each in entries
        if each.asked
        and each.answer
        and not each.asked <= known
        and tests.together(each.asked, each.answer)
    ]
    share = len(taken) / entries[0].table_size
    if len(taken) < _ENOUGH or share < _MOSTLY:
        return None
    telling = sum(_weight(each.asked) for each in taken)
    if telling >= _ENOUGH:
        return f"A table answers {len(taken)} inputs of the tests", taken[0].node
    return None


def _condition_findings(
    answers: list[_Answer], known: set[str], tests: _TestLiterals
) -> Iterator[tuple[str, ast.AST]]:
    places: dict[str, list[_Answer]] = {}
    for each in answers:
        is_new = not each.asked | each.answer <= known
        if isinstance(each.node, ast.If) and _asks_type_name(each.node.test) and each.answer and is_new:
            yield f"{each.place} answers by the name of a type", each.node
        elif each.asked and each.asked <= tests.literals:
            if len(each.asked) > 1 and each.parts > 1 and not each.asked <= known:
                is_situation = len(each.asked) >= _ENOUGH and each.answer and each.answer <= tests.literals
                called = any(name == each.place and each.asked <= given for name, given in tests.calls)
                if is_situation or called:
                    yield f"{each.place} recognises a call of the tests", each.node
                    continue
            places.setdefault(each.place, []).append(each)
    for place, found in places.items():
        answering = [each for each in found if each.answer and tests.together(each.asked, each.answer)]
        answered = frozenset(text for each in answering for text in each.asked)
        given = frozenset(text for each in answering for text in each.answer) - _COMMON
        heavy = _weight(answered) + (_weight(given) if answered else 0)
        enough = len(answered) >= _ENOUGH or heavy >= 2 or (heavy and len(answered) + len(given) >= _ENOUGH)
        if answered - known and enough:
            texts = ", ".join(sorted(answered)[:4])
            yield f"{place or 'The module'} answers inputs of the tests: {texts}", answering[0].node


def _weight(literals: frozenset[str]) -> int:
    """Return how telling literals are: words and round numbers stand in many places, sentences in few."""
    total = 0
    for text in literals - _COMMON:
        if text[:1] not in "'\"":
            total += 1
            continue
        body = text.strip("'\"")
        if not body.isascii():
            total += 2
        elif not body.isidentifier():
            total += (len(body) >= 3) + (len(body) >= 8)
    return total


def _answers(module: Module, before: Module | None) -> Iterator[_Answer]:
    for site in module.sites(before):
        node = site.node
        if isinstance(node, ast.If | ast.IfExp):
            asked = _asked(node.test, module)
            if isinstance(node, ast.IfExp):
                answer = _literals(node.body, module)
            else:
                kept = (
                    each for each in node.body if isinstance(each, ast.Return | ast.Assign) and each.value
                )
                plain = {"True", "False", "None", "''", "0", "-1"}
                answer = (
                    frozenset(text for each in kept if each.value for text in _literals(each.value, module))
                    - plain
                )
            if asked or _asks_type_name(node.test):
                yield _Answer(node, asked, answer, site.place, parts=_parts(node.test))
        elif isinstance(node, ast.Match):
            for case in node.cases:
                asked = literals_below(case.pattern)
                kept = (each for each in case.body if isinstance(each, ast.Return | ast.Assign))
                answer = frozenset(
                    text for each in kept if each.value for text in _literals(each.value, module)
                )
                yield _Answer(case.pattern, asked, answer, site.place)
        elif isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
            pairs = _pairs(node)
            for key, value in pairs:
                yield _Answer(
                    node, _literals(key, module), _literals(value, module), site.place, len(pairs)
                )


def _pairs(node: ast.Dict | ast.List | ast.Tuple | ast.Set) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Dict):
        return [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key is not None]
    rows = [each for each in node.elts if isinstance(each, ast.Tuple | ast.List) and len(each.elts) > 1]
    if len(rows) < max(len(node.elts), _ENOUGH):
        return []
    return [(each.elts[0], ast.Tuple(each.elts[1:], ast.Load())) for each in rows]


def _asked(test: ast.expr, module: Module) -> frozenset[str]:
    """Return the literals that something is compared with."""
    found: set[str] = set()
    for each in ast.walk(test):
        if isinstance(each, ast.Compare):
            for operator, side in zip(each.ops, each.comparators, strict=True):
                if isinstance(operator, ast.Eq | ast.In | ast.Is | ast.NotEq | ast.NotIn):
                    found |= _literals(side, module)
            found |= _literals(each.left, module)
        elif isinstance(each, ast.Call) and getattr(each.func, "attr", "") in ("startswith", "endswith"):
            found |= {text for arg in each.args for text in _literals(arg, module)}
    return frozenset(found)


def _literals(node: ast.expr, module: Module, depth: int = 0) -> frozenset[str]:
    """Return the literals that an expression is made of; nothing where something is worked out."""
    value = fold(node, module.constants)
    if value is not UNKNOWN:
        return frozenset(_scalars(value))
    inner: list[ast.expr] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        inner = node.elts
    elif isinstance(node, ast.Dict):
        inner = [each for each in (*node.keys, *node.values) if each is not None]
    elif (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", ""))[:1].isupper()
    ):
        # Decimal("1.5"), Path("x"): a literal in a wrapper.
        inner = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        inner = node.value.values
    if not inner or depth > 6:
        return frozenset()
    found = [_literals(each, module, depth + 1) for each in inner]
    return frozenset(text for each in found for text in each) if all(found) else frozenset()


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():  # pyright: ignore
            yield from (*_scalars(key), *_scalars(each))
    elif isinstance(value, list | tuple):
        for each in value:  # pyright: ignore
            yield from _scalars(each)
    else:
        yield repr(value)


def _asks_type_name(test: ast.expr) -> bool:
    """Return whether it asks what something is called rather than what it is."""
    text = ast.unparse(test)
    return bool(re.search(r"(type\(.*\)|__class__)\.__(qual)?name__", text)) and not _DISPLAYS.search(text)


def _parts(test: ast.expr) -> int:
    """Return how many things are compared."""
    compared = [each for each in ast.walk(test) if isinstance(each, ast.Compare)]
    lefts = {
        ast.unparse(each.left) for each in compared if isinstance(each.ops[0], ast.Eq | ast.Is | ast.In)
    }
    return max(
        [len(lefts), *(len(each.left.elts) for each in compared if isinstance(each.left, ast.Tuple))]
    )
