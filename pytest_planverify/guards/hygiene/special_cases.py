"""Answers that are written down: conditions and tables of the product that hold the inputs of the tests."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_planverify.guards.hygiene.files import is_script
from pytest_planverify.guards.hygiene.judges import PYTHON_JUDGES
from pytest_planverify.guards.hygiene.product import WORK
from pytest_planverify.guards.hygiene.signals import SignalFinding
from pytest_planverify.guards.hygiene.source import UNKNOWN, fold, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.changes import TreeDifferences
    from pytest_planverify.guards.hygiene.source import Module

_ENOUGH = 3
"""So many literals of the tests are no accident."""
_MOSTLY = 0.7
"""Of a table, so much comes from the tests."""
_NUMBERS = (*range(-2, 11), 12, 16, 24, 32, 60, 64, 100, 128, 255, 256, 360, 365, 512, 1000, 1024, 3600)
_COMMON = frozenset(
    repr(value)
    for value in (
        *_NUMBERS, 0.0, 0.5, 1.0, 2.0, 10.0, 100.0, True, False, None, b"",
        "", " ", "\n", ",", "\t", ".", "/", "utf-8", "utf8", "ascii", "__main__", "r", "w", "rb", "wb",
    )
)  # fmt: skip
"""Literals that stand in any program."""
_PLAIN = {"True", "False", "None", "''", "0", "-1"}
"""What honest early answers give."""
_TYPE_NAME = re.compile(r"(type\(.*\)|__class__)\.__(qual)?name__")
_DISPLAYS = re.compile(r"ipykernel|ipython|idle|jupyter|outstream|colorama|zmq|terminal", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """One condition or table entry: what it asks for, and what it answers."""

    node: ast.AST
    place: str
    asked: frozenset[str]
    answer: frozenset[str]
    """Literals; empty where the answer is worked out."""
    table_size: int = 0


class _TestLiterals:
    """Literals of the tests and their data, in groups that stand together."""

    def __init__(self, changes: TreeDifferences) -> None:
        self._changes = changes

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return [
            node
            for path in self._changes.new
            if path.endswith(".py") and self._changes.kind(path) in PYTHON_JUDGES
            and (module := self._changes.module(path, now=True)) is not None
            for node in ast.walk(module.tree)
        ]  # fmt: skip

    @cached_property
    def groups(self) -> list[frozenset[str]]:
        """Literals of each comparison, table row and test function."""
        found: list[frozenset[str]] = []
        for node in self._nodes:
            is_row = isinstance(node, ast.Tuple | ast.List | ast.Dict)
            if isinstance(node, ast.Compare | ast.FunctionDef | ast.AsyncFunctionDef) or (
                is_row and len(list(ast.iter_child_nodes(node))) > 1
            ):
                parts: list[ast.AST] = list(getattr(node, "body", ())) or [node]
                found.append(frozenset(text for each in parts for text in literals_below(each)))
        for path in self._changes.data & self._changes.new.keys():
            found += _rows(self._changes.now.read(path) or b"")
        return found

    @cached_property
    def literals(self) -> frozenset[str]:
        """All of them."""
        return frozenset[str]().union(*self.groups)

    @cached_property
    def calls(self) -> set[tuple[str, frozenset[str]]]:
        """The functions that tests call, with the literals that they are given."""
        return {
            (name_of(each.func), literals_below(each)) for each in self._nodes if isinstance(each, ast.Call)
        }

    def together(self, answer: _Answer) -> bool:
        """Return whether an input and its answer stand together in some test or row."""
        both = answer.asked | answer.answer
        return bool(answer.asked and answer.answer) and any(both <= group for group in self.groups)


def special_case_findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    """Yield conditions and tables that came and hold what the tests ask for."""
    files = [path for path in changes.of_kind(*WORK) if path.endswith(".py") and not is_script(path)]
    modules = [(changes.module(path, now=False), changes.module(path, now=True)) for path in files]
    known = {text for before, _ in modules if before is not None for text in literals_below(before.tree)}
    tests = _TestLiterals(changes)
    for before, module in modules:
        if module is None:
            continue
        places: dict[object, list[_Answer]] = defaultdict(list)
        for each in _answers(module, before):
            if each.table_size:
                places[id(each.node)].append(each)
            elif said := _recognition(each, known, tests):
                yield _finding(module, each.node, f"{each.place} {said}")
            else:
                places[each.place].append(each)
        for answers in places.values():
            taken = [each for each in answers if tests.together(each)]
            asked = frozenset[str]().union(*(each.asked for each in taken))
            given = frozenset[str]().union(*(each.answer for each in taken)) - _COMMON
            size = answers[0].table_size
            if size:
                taken = [each for each in taken if not each.asked <= known]
                telling = sum(_weight(each.asked) for each in taken)
                enough = min(len(taken), telling) >= _ENOUGH and len(taken) >= _MOSTLY * size
                said = f"A table answers {len(taken)} inputs of the tests"
            else:
                weight = _weight(asked) + (_weight(given) if asked else 0)
                many = len(asked) >= _ENOUGH or (weight and len(asked) + len(given) >= _ENOUGH)
                enough = asked - known and (many or weight >= 2)
                said = f"{answers[0].place or 'The module'} answers inputs of the tests: "
                said += ", ".join(sorted(asked)[:4])
            if enough:
                yield _finding(module, taken[0].node, said)


def _finding(module: Module, node: ast.AST, said: str) -> SignalFinding:
    line = getattr(node, "lineno", None)
    return SignalFinding(
        sign="special-cases", message=said, path=module.path, line=line, after=module.line(node)
    )


def _recognition(each: _Answer, known: set[str], tests: _TestLiterals) -> str | None:
    """Return what a condition does that knows a test double, or a whole call of the tests."""
    test = getattr(each.node, "test", None)
    if isinstance(each.node, ast.If) and _asks_type_name(each.node.test) and each.answer:
        return None if each.asked | each.answer <= known else "answers by the name of a type"
    if len(each.asked) < 2 or _parts(test) < 2 or each.asked <= known or not each.asked <= tests.literals:
        return None
    is_situation = len(each.asked) >= _ENOUGH and each.answer and each.answer <= tests.literals
    is_called = any(name == each.place and each.asked <= given for name, given in tests.calls)
    return "recognises a call of the tests" if is_situation or is_called else None


def literals_below(node: ast.AST) -> frozenset[str]:
    """Return the scalars of a tree, spelled as Python spells them."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value is not ...:
            found.add(repr(each.value))
        elif isinstance(each, ast.UnaryOp | ast.BinOp):
            value = fold(each)
            if isinstance(value, int | float | str):
                found.add(repr(value))
    return frozenset(found)


def _rows(content: bytes) -> Iterator[frozenset[str]]:
    """Yield the rows of a data file: lines of text, objects and lists of JSON."""
    text = content.decode("utf-8", "replace")
    try:
        pending: list[Any] = [json.loads(text)]
    except ValueError:
        pending = list(text.splitlines()[:20_000])
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            cells = [value, *(cell.strip() for cell in re.split(r"[,;\t]", value))]
            yield frozenset(repr(each) for cell in cells for each in _readings(cell))
        elif isinstance(value, list | dict):
            items: list[Any] = list(value.values() if isinstance(value, dict) else value)  # pyright: ignore
            pending += [each for each in items if isinstance(each, list | dict)]
            inner = [one for each in items if isinstance(each, list) for one in each]  # pyright: ignore
            kept: list[Any] = [*items, *inner, *(value if isinstance(value, dict) else ())]  # pyright: ignore
            yield frozenset(repr(each) for each in kept if not isinstance(each, list | dict))


def _readings(cell: str) -> Iterator[object]:
    yield cell
    for kind in (int, float):
        try:
            yield kind(cell)
        except ValueError:
            continue


def _weight(literals: frozenset[str]) -> int:
    """Return how telling literals are: words and round numbers stand in many places, sentences in few."""
    total = 0
    for text in literals - _COMMON:
        body = text.strip("'\"")
        if text[:1] not in "'\"":
            total += 1
        elif not body.isascii():
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
                answer = _given(node.body, module) - _PLAIN
            if asked or _asks_type_name(node.test):
                yield _Answer(node, site.place, asked, answer)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                asked = literals_below(case.pattern)
                yield _Answer(case.pattern, site.place, asked, _given(case.body, module))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                asked = _literals(key, module) if key is not None else frozenset[str]()
                yield _Answer(node, site.place, asked, _literals(value, module), len(node.keys))


def _given(body: list[ast.stmt], module: Module) -> frozenset[str]:
    """Return the literals that statements return or assign."""
    values = [each.value for each in body if isinstance(each, ast.Return | ast.Assign)]
    return frozenset(text for each in values if each for text in _literals(each, module))


def _asked(test: ast.expr, module: Module) -> frozenset[str]:
    """Return the literals that something is compared with."""
    sides: list[ast.expr] = []
    for each in ast.walk(test):
        if isinstance(each, ast.Compare):
            compared = zip(each.ops, each.comparators, strict=True)
            is_same = (ast.Eq, ast.In, ast.Is, ast.NotEq, ast.NotIn)
            sides += [each.left, *(side for operator, side in compared if isinstance(operator, is_same))]
        elif isinstance(each, ast.Call) and name_of(each.func) in ("startswith", "endswith"):
            sides += each.args
    return frozenset(text for side in sides for text in _literals(side, module))


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
    elif isinstance(node, ast.Call) and name_of(node.func)[:1].isupper():
        # Decimal("1.5"), Path("x"): a literal in a wrapper.
        inner = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        inner = node.value.values
    if not inner or depth > 6:
        return frozenset()
    found = [_literals(each, module, depth + 1) for each in inner]
    return frozenset[str]().union(*found) if all(found) else frozenset()


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple | dict):
        items: list[Any] = [*value, *(value.values() if isinstance(value, dict) else ())]  # pyright: ignore
        for each in items:
            yield from _scalars(each)
    else:
        yield repr(value)


def _asks_type_name(test: ast.expr) -> bool:
    """Return whether it asks what something is called rather than what it is."""
    text = ast.unparse(test)
    return bool(_TYPE_NAME.search(text)) and not _DISPLAYS.search(text)


def _parts(test: ast.expr | None) -> int:
    """Return how many things a condition compares."""
    compared = [each for each in ast.walk(test) if isinstance(each, ast.Compare)] if test else []
    lefts = {
        ast.unparse(each.left) for each in compared if isinstance(each.ops[0], ast.Eq | ast.Is | ast.In)
    }
    tuples = [len(each.left.elts) for each in compared if isinstance(each.left, ast.Tuple)]
    return max([len(lefts), *tuples])
