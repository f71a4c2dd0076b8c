"""Answers of tests that are written down in the product, in any syntax.

The tests and their data are read as *examples*: inputs with the expected answer. The new code is read as
*pieces*: displays, statements, classes, the constants of a module, the conditions of a function, and data
files. A piece that holds the inputs and the answers of examples, and little else, answers the tests instead
of computing. Tables of the domain are different: they have entries that no test asks for, or hold nothing
but words and common numbers, which identify no test.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import zlib
from bisect import bisect_left
from collections import Counter, defaultdict
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.changes import PYTHON_JUDGES, WORK, file_signal, is_script
from pytest_planverify.guards.hygiene.source import (
    FUNCTIONS,
    UNKNOWN,
    Function,
    Module,
    fold,
    name_of,
    parameters_of,
    returned,
    shape,
    usual_depth,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.guards.hygiene.changes import TreeDifferences

Tokens: TypeAlias = frozenset[str]
"""Literals as text, see :func:`_token`."""
Literal: TypeAlias = tuple[str, Tokens]
"""One literal of the product: its own token, and those of the parts of a text."""

_MIN_SHARE = 0.65
"""Share of the literals of a piece that belong to examples. Of an honest table of statuses, tests asked for
three of five entries.
"""
_WHOLE = 0.9
"""Share of a piece that has nothing else."""
_COMMON = frozenset(
    map(
        repr,
        (*range(-2, 11), 12, 16, 24, 32, 60, 64, 100, 128, 255, 256, 360, 365, 512, 1000, 1024, 3600, 0.5,
         # Usual status codes of HTTP are answers of any router.
         200, 201, 204, 301, 302, 304, 400, 401, 403, 404, 405, 409, 410, 422, 429, 500, 501, 502, 503,
         True, False, None),
    )
)  # fmt: skip
"""Tokens that occur in any program and identify no test."""
_CALENDAR = frozenset(map(repr, range(-31, 32)))
"""Numbers that programs single out: months, days, hours and small counts."""
_GUARD_VALUES = frozenset(map(repr, (True, False, None, "", 0, -1)))
"""Values that honest guard clauses return."""
_WORD = re.compile(r"['\"](.{0,2}|[./-]{0,2}[A-Za-z_]\w*([.-]\w+|/(?!\d+\b)\w+)*/?)['\"]", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
# Blanks are tried from the first of them only, as a file may have very many in a row.
_BETWEEN_COLUMNS = re.compile(r"(?:(?<!\s)\s*)?[,;\t=]\s*")
_BETWEEN_CELLS = re.compile(r"[;=|\t\n]")
_BETWEEN_VALUES = re.compile(r"[,;]\s*")
_BETWEEN_WORDS = re.compile(r"[\s,;:=|\"'(){}\[\]]+")
_BETWEEN_PARTS = re.compile(r"[^\w.]+|_")
_ENCODED = re.compile(r"[!-~]{40,}")
_DIGEST = re.compile(r"[0-9a-f]{6,128}", re.IGNORECASE)
_LARGEST_TEXT = 200_000
_ASSERTS_EQUAL = re.compile(r"assert(?!Not)\w*Equal")
_MOST_ARGUMENTS = 6
"""More inputs are the contents of a list rather than the arguments of a call."""
_LARGEST_CONSTANT = 100
"""Number of nodes up to which a constant of a module replaces its name."""
_IN_TURN = frozenset({"iter", "cycle", "deque"})
_PIECES = (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Call, ast.Assign, ast.ClassDef, *FUNCTIONS)


class Example(NamedTuple):
    """Inputs that occur in a test, with the answer that it expects."""

    functions: frozenset[str]
    """Names of the functions that the test calls; empty for a row of data."""
    inputs: Tokens
    answers: Tokens
    """Empty for a mere call."""

    @property
    def needed(self) -> Tokens:
        """The answers and the inputs without words, which identify no test beside numbers."""
        return (frozenset(filter(_is_specific, self.inputs)) or self.inputs) | self.answers

    def parts(self) -> Iterator[Example]:
        """Yield the example in lower case, and with each of its specific inputs alone.

        A condition needs one argument, and may compare it in lower case.
        """
        lower = frozenset(map(str.lower, self.inputs))
        if self.answers and lower != self.inputs:
            yield self._replace(inputs=lower)
        if self.functions and self.answers and 1 < len(self.inputs) <= _MOST_ARGUMENTS:
            for token in filter(_is_specific, self.inputs - _CALENDAR):
                yield self._replace(inputs=frozenset({token}))

    @property
    def identifies_test(self) -> bool:
        """True if one such pair is no coincidence in the function that the test calls."""
        asked, answers = self.inputs - _CALENDAR, self.answers - _GUARD_VALUES
        return bool(answers and _telling(asked | answers)) and any(map(_is_specific, asked))

    @property
    def follows(self) -> bool:
        """True if a rule could give the answer: it begins like the only input."""
        if len(self.inputs) != 1:
            return False
        (asked,) = (each.strip("'\"") for each in self.inputs)
        starts = (each.strip("'\"")[: max(2 * len(asked) // 3, 1)] for each in self.answers)
        return any(asked.startswith(start) for start in starts if start)


def special_cases(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield the new pieces of the product that hold what tests ask and expect."""
    sources = changes.python(*WORK)
    modules = [(before, now) for before, now in sources if now is not None and not is_script(now.path)]
    moved = frozenset(changes.old.values())
    files = [
        path
        for path in changes.of_kind(JudgeKind.PRODUCT)
        if not path.endswith(".py") and changes.new.get(path) not in moved
    ]
    if not modules and not files:
        return
    known = (_tokens_of(before.tree) for before, _ in sources if before is not None)
    examples = _Examples(_examples(changes), _union(known))
    outputs = {  # of several lines: a single one may be the usual output for a kind of input
        text: path
        for path in changes.data & changes.new.keys()
        if "\n" in (text := (changes.now.read(path) or b"").decode("utf-8", "replace").strip())
    }
    for before, module in modules:
        if before is None and module.path in changes.old:
            continue  # it could not be parsed, so nothing is known to be new
        copied = {
            path: site.node
            for site in module.sites(before)
            if isinstance(site.node, ast.Constant) and site.function and not site.is_spoken
            if (path := outputs.get(str(site.node.value).strip()))
        }
        if len(copied) > 1:  # a single one may be a template
            message = f"A function has the contents of {', '.join(sorted(copied)[:2])}"
            line = min(node.lineno for node in copied.values())
            yield file_signal("special-cases", message, module.path, line=line)
        for node, message in examples.found_in(before, module):
            line, after = getattr(node, "lineno", None), module.line(node)
            yield file_signal("special-cases", message, module.path, line=line, after=after)
    for path in files:
        old, new = (
            {examples.literal(each) for each in _lines_of_data(tree.read(path) or b"")}
            for tree in (changes.before, changes.now)
        )
        if message := examples.answers_in(new - old):
            yield file_signal("special-cases", message, path)


# -- examples of the tests -----------------------------------------------------------------------------


def _examples(changes: TreeDifferences) -> Iterator[Example]:
    """Yield the examples in the tests and their data, as they are now."""
    for path in changes.new:
        is_judge = path.endswith(".py") and changes.kind(path) in PYTHON_JUDGES
        module = changes.module(path, now=True) if is_judge else None
        if module is not None:
            yield from _examples_of_module(module)
    for path in changes.data & changes.new.keys():
        for *inputs, answer in _rows_of_data(changes.now.read(path) or b""):
            asked, given = (frozenset(map(_token, _scalars(each))) for each in (inputs, answer))
            yield Example(frozenset(), asked, given)


def _examples_of_module(module: Module) -> Iterator[Example]:
    """Yield the examples in a test module."""
    # A large table stands for its rows only: its values as a whole are no arguments of a call.
    small = {
        name: value
        for name, value in module.constants.items()
        if sum(1 for _ in ast.walk(value)) <= _LARGEST_CONSTANT
    }
    called: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(module.tree):
        if isinstance(node, FUNCTIONS):
            yield from _examples_of_test(node, small)
            parts = list(ast.walk(node))
            calls = {name_of(each.func) for each in parts if isinstance(each, ast.Call)}
            for name in {each.id for each in parts if isinstance(each, ast.Name)} & module.constants.keys():
                called[name] |= calls
        else:
            yield from _rows(node, frozenset())
    # The rows of a table are cases of all tests that name it.
    for name, calls in called.items():
        yield from _rows(module.constants[name], frozenset(calls))


def _examples_of_test(test: Function, constants: Mapping[str, ast.expr]) -> Iterator[Example]:
    """Yield the comparisons, rows and calls in a test function.

    ``constants`` are names of its module, with their values.
    """
    nodes = list(ast.walk(test))
    called = frozenset(name_of(each.func) for each in nodes if isinstance(each, ast.Call))
    # Names stand for their values, at first those of the module. A test may assign one several times.
    values = dict(constants)
    for node in sorted(nodes, key=lambda each: getattr(each, "lineno", 0)):
        yield from _rows(node, called)
        sides: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            values |= {name_of(target): node.value for target in node.targets}
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.Is):
            sides = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call):
            yield Example(frozenset({name_of(node.func)}), _tokens_of(node, values), frozenset())
            sides = node.args[:2] if _ASSERTS_EQUAL.fullmatch(name_of(node.func)) else []
        for asked, expected in zip(sides, reversed(sides), strict=True):
            named = (values.get(name_of(each)) for each in ast.walk(asked) if isinstance(each, ast.Name))
            calls = [asked, *filter(None, named)]
            made = (each for call in calls for each in ast.walk(call) if isinstance(each, ast.Call))
            functions = frozenset(name_of(each.func) for each in made)
            if functions:
                inputs = _union(_tokens_of(call, values) for call in calls)
                yield Example(functions, inputs, _tokens_of(expected, values))


def _rows(node: ast.AST, called: frozenset[str]) -> Iterator[Example]:
    """Yield the rows of a table in a test, such as its parameters; the last cell is the answer."""
    rows: list[list[ast.expr]] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        rows = [each.elts for each in node.elts if isinstance(each, ast.Tuple | ast.List)]
    elif isinstance(node, ast.Call) and name_of(node.func) == "param":
        rows = [node.args]
    elif isinstance(node, ast.Dict):
        rows = [[key, value] for key, value in zip(node.keys, node.values, strict=True) if key is not None]
    for *inputs, answer in filter(None, rows):
        asked = frozenset(token for each in inputs for token in _tokens_of(each))
        yield Example(called, asked, _tokens_of(answer))


def _rows_of_data(content: bytes) -> Iterator[list[Any]]:
    """Yield the rows of a data file: the lists, objects and members of JSON, or the cells of each line."""
    pending: list[Any] = [_parsed(content)]
    if isinstance(pending[0], str):
        yield from (_BETWEEN_COLUMNS.split(line) for line in pending[0].splitlines() if line)
    while pending:
        row = pending.pop()
        if isinstance(row, dict):
            members = cast("dict[str, Any]", row)
            yield from ([key, value] for key, value in members.items())
            row = list(members.values())
        if isinstance(row, list) and row:
            pending += cast("list[Any]", row)
            yield cast("list[Any]", row)


def _lines_of_data(content: bytes) -> Iterator[Any]:
    """Yield the scalars of JSON, or the lines of another data file."""
    value = _parsed(content)
    yield from value.splitlines() if isinstance(value, str) else _scalars(value)


def _parsed(content: bytes) -> Any:
    """Return the value of JSON, or the text of another data file."""
    text = content[:_LARGEST_TEXT].decode("utf-8", "replace")
    with suppress(ValueError, RecursionError), usual_depth():
        return json.loads(text)
    return text


# -- tokens --------------------------------------------------------------------------------------------


def _token(value: object) -> str:
    """Return a scalar as text; equal numbers have equal texts, also if they are written in a string."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, int) and abs(value) > 1e15:
        return hex(value)  # repr() refuses integers of thousands of digits
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return repr(int(cast("float", value)) if is_whole else value)


def _scalars(value: Any) -> Iterator[Any]:
    """Yield the scalars in nested lists, tuples and dicts, with the keys."""
    pending: list[Any] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending += [*each.keys(), *each.values()]  # pyright: ignore
        elif isinstance(each, list | tuple):
            pending += each  # pyright: ignore
        else:
            yield each


def _union(sets: Iterable[Tokens]) -> Tokens:
    return frozenset[str]().union(*sets)


def _telling(tokens: Iterable[str]) -> Tokens:
    """Return the distinctive tokens; words and common numbers occur anywhere."""
    return frozenset(each for each in tokens if each not in _COMMON and not _WORD.fullmatch(each))


def _is_specific(token: str) -> bool:
    """Return whether a token is distinctive, or at least a number."""
    return _NUMBER.fullmatch(token) is not None or bool(_telling([token]))


def _parts(text: str) -> Iterator[Tokens]:
    """Yield the tokens in a text: as JSON, as cells, and as words."""
    with suppress(ValueError, RecursionError), usual_depth():
        yield frozenset(map(_token, _scalars(json.loads(text))))
    for between in (_BETWEEN_CELLS, _BETWEEN_VALUES, _BETWEEN_WORDS, _BETWEEN_PARTS):
        yield frozenset(_token(each) for each in between.split(text) if each)


def _digests_of(token: str) -> Iterator[str]:
    """Yield the usual digests of a text, in hexadecimal, also as a number."""
    content = str(ast.literal_eval(token)).encode("utf-8", "replace")
    yield from (
        f"{digest(content):{form}}" for digest in (zlib.crc32, zlib.adler32) for form in ("x", "08x")
    )
    names = (each for each in hashlib.algorithms_guaranteed if not each.startswith("shake"))
    found = [hashlib.new(each, content, usedforsecurity=False).digest() for each in names]
    found += [hashlib.blake2b(content, digest_size=size).digest() for size in (4, 8, 16, 20)]
    for each in found:
        yield each.hex()
        yield from (f"{int.from_bytes(each[:size], 'big'):x}" for size in (4, 8) if not each[0] >> 4)


def _decoded(text: str) -> Iterator[str]:
    """Yield what a long text without blanks decodes to, if that is text again."""
    for decode in (base64.b64decode, base64.b85decode) if _ENCODED.fullmatch(text) else ():
        with suppress(ValueError, zlib.error):
            content = decode(text)
            is_packed = content.startswith(b"x")
            yield (
                zlib.decompressobj().decompress(content, _LARGEST_TEXT) if is_packed else content
            ).decode()


# -- pieces of the product -----------------------------------------------------------------------------


def _values_of(node: ast.AST, names: Mapping[str, ast.expr] | None = None) -> Iterator[Any]:
    """Yield the scalars and the names of attributes in a piece, except operands of computations.

    Operands of arithmetic, bounds of slices and thresholds belong to a formula; docstrings and error
    messages are for people. ``names`` are replaced by their values, if these are constant.
    """
    pending: list[ast.AST | None] = [node]
    while pending:
        each = pending.pop()
        value = fold(each, names) if isinstance(each, ast.expr) else UNKNOWN
        if value is not UNKNOWN:
            yield from (one for one in _scalars(value) if one is not ...)
            continue
        match each:
            case None | ast.Raise() | ast.Expr(value=ast.Constant()) | ast.Slice() | ast.FormattedValue():
                pass
            case ast.BinOp(left=left, right=right):
                pending += [side for side in (left, right) if fold(side) is UNKNOWN]
            case ast.Compare(left=left, ops=operators, comparators=sides):
                is_order = [isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in operators]
                pending += [left, *(side for side, order in zip(sides, is_order, strict=True) if not order)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pending += [*each.body, *each.args.defaults, *each.args.kw_defaults]
            case ast.ClassDef(body=body):
                targets = [name_of(one) for part in body for one in getattr(part, "targets", ())]
                yield from (text for name in targets for text in (name, *re.findall(r"\d+", name)))
                pending += body
            case _:
                yield from (one.arg for one in getattr(each, "keywords", ()) if one.arg)
                pending += ast.iter_child_nodes(each)


def _tokens_of(node: ast.AST, names: Mapping[str, ast.expr] | None = None) -> Tokens:
    return frozenset(map(_token, _values_of(node, names)))


def _conditions(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return what a conditional statement or expression asks, and what it answers to that at once."""
    match node:
        case ast.IfExp(test=test, body=answer):
            return [test], [answer]
        case ast.If(test=test, body=body):
            asked: list[ast.AST] = [test]
        case ast.Match(cases=cases):
            asked = [each.pattern for each in cases]
            body = [part for each in cases for part in each.body]
        case _:
            return [], []
    values = (each.value for each in body if isinstance(each, ast.Return | ast.Assign))
    return asked, [value for value in values if value is not None]


def _constant_tokens(node: ast.expr) -> Tokens:
    """Return the tokens of an expression that chooses or wraps constants; empty if any part is computed."""
    value = fold(node)
    if value is not UNKNOWN:
        return frozenset(map(_token, _scalars(value)))
    parts: list[ast.expr] = list(getattr(node, "elts", ()))
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Call) and name_of(node.func)[:1].isupper():
        parts = node.args  # a literal in a wrapper, such as Decimal("1.5")
    elif isinstance(node, ast.Subscript):
        parts = getattr(node.value, "elts", None) or getattr(node.value, "values", [])
    found = [_constant_tokens(each) for each in parts]
    return _union(found) if all(found) else frozenset()


# -- comparison ----------------------------------------------------------------------------------------


class _Examples:
    """The examples of the tests, with which pieces of the product are compared."""

    def __init__(self, examples: Iterable[Example], known: Tokens) -> None:
        """Store the examples, except those that are ``known`` to the product from before."""
        self._known = known
        whole = dict.fromkeys(examples)
        parts = (part for each in whole for part in each.parts())
        self._all = [
            each
            for each in dict.fromkeys((*whole, *parts))
            if not (each.inputs <= known or each.needed <= known)
        ]
        self._asked = _union(each.inputs for each in whole if not each.inputs <= known)
        self._expected = _union(each.answers for each in self._all)
        # By its rarest token, as a test suite may have thousands of examples.
        count = Counter(token for each in self._all for token in each.needed)
        self._by_token: dict[str, list[Example]] = defaultdict(list)
        self._by_function: dict[str, list[Example]] = defaultdict(list)
        for each in whole:
            for name in each.functions:
                self._by_function[name].append(each)
        for each in self._all:
            if each.answers:
                self._by_token[min(each.needed, key=lambda token: (count[token], token))].append(each)
        self._vocabulary = self._asked | self._expected
        # Pieces contain one another, so that a literal is asked for at every level.
        self._literals: dict[tuple[type, object], Literal] = {}

    def literal(self, value: object) -> Literal:
        """Return the tokens of a scalar: its own, and the parts of a text, also if it is encoded."""
        key = type(value), value  # 1 and True are equal, and different tokens
        if key not in self._literals:
            self._literals[key] = self._read(value)
        return self._literals[key]

    def _read(self, value: object) -> Literal:
        own = _token(value)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, int) and value >= 1 << 26:  # as a digest of four bytes
            return own, self._of_digest(f"{value:x}")
        if not isinstance(value, str):
            return own, frozenset()
        if _DIGEST.fullmatch(value):
            return own, self._of_digest(value)
        # Of the ways to split a text, the one counts that finds most of what the tests ask and expect.
        ways = [way for text in (value, *_decoded(value)) for way in _parts(text)]
        return own, max(ways, key=lambda parts: len(parts & self._vocabulary)) - {own}

    @cached_property
    def _digests(self) -> list[tuple[str, str]]:
        texts = [token for token in self._asked if token[0] in "'\"" and len(token) > 4]
        return sorted((digest, token) for token in texts for digest in _digests_of(token))

    def _of_digest(self, value: str) -> Tokens:
        """Return the input of a test of which a text is a digest, or its start."""
        at = bisect_left(self._digests, (value := value.lower(), ""))
        return frozenset(text for digest, text in self._digests[at : at + 1] if digest.startswith(value))

    def _hashed(self, module: Module, before: Module | None) -> str | None:
        """Return a message if new code has digests of several inputs, which no program needs."""
        nodes = (each.node for each in module.sites(before) if not each.is_spoken)
        values = {
            each.value for each in nodes if isinstance(each, ast.Constant) and len(str(each.value)) > 7
        }
        digests = [each for each in values if isinstance(each, int) or _DIGEST.fullmatch(str(each))]
        new = [each for each in digests if _token(each) not in self._vocabulary | self._known]
        hashed = _union(self.literal(each)[1] for each in new)
        return f"The module has digests of inputs of the tests: {min(hashed)}" if len(hashed) > 1 else None

    def _piece(self, nodes: Iterable[ast.AST]) -> set[Literal]:
        return {self.literal(value) for node in nodes for value in _values_of(node)}

    def found_in(self, before: Module | None, module: Module) -> Iterator[tuple[ast.AST, str]]:
        """Yield the findings in the new code of a module, each with its node."""
        if message := self._hashed(module, before):
            yield module.tree, message
        conditions: dict[Function | None, list[tuple[set[Literal], set[Literal]]]] = defaultdict(list)
        barren = (0, 0)
        for site in module.sites(before):
            node, place = site.node, getattr(site.node, "name", site.place)
            messages: list[str | None] = []
            # Nothing in a piece without any example needs to be looked at.
            if isinstance(node, _PIECES) and _end(node) > barren:
                piece = self._piece([node])
                barren = barren if self._held(piece) else _end(node)
                messages.append(self.answers_in(piece, place))
            if isinstance(node, FUNCTIONS):
                messages.append(self._returns_expected(node, before, is_free=site.owner is None))
            if isinstance(node, ast.Call) and name_of(node.func) in _IN_TURN:
                answers = _union(map(_constant_tokens, node.args)) - self._known - _COMMON
                if len(_telling(answers)) > 1 and answers <= self._expected:
                    messages.append("Answers of the tests are given out one after the other")
            tests, results = _conditions(node)
            if tests and (asked := self._piece(tests)):
                conditions[site.function].append((asked, asked | self._piece(results)))
                if isinstance(node, ast.If):
                    messages.append(self._recognizes_call(node.test, asked, place))
            yield from ((self._narrowed(node), message) for message in messages if message)
        for function, branches in conditions.items():
            place = function.name if function else ""
            piece = {each for _, branch in branches for each in branch}
            message = self.answers_in(piece, place, are_conditions=True)
            asked = {own for tests, _ in branches for own, _ in tests if _is_specific(own)}
            if asked <= self._asked:  # a chain that asks for more is a table of the domain
                alone = (self.answers_in(branch, place) for _, branch in branches)
                message = message or next(filter(None, alone), None)
            if message:
                yield self._narrowed(function or module.tree), message
        if (constants := _new_constants(module, before)) and (
            message := self.answers_in(self._piece(constants), "")
        ):
            yield constants[0], message

    def _narrowed(self, node: ast.AST) -> ast.AST:
        """Return the smallest statement in a node that holds an example by itself, else the node."""
        inside = [each for each in ast.walk(node) if isinstance(each, ast.stmt)]
        inside.sort(key=lambda each: _end(each)[0] - each.lineno)
        return next((each for each in inside if self._held(self._piece([each]))), node)

    def _held(self, piece: set[Literal]) -> list[Example]:
        """Return the examples whose inputs and answers are in a piece."""
        tokens = frozenset(token for own, parts in piece for token in (own, *parts))
        return [each for token in tokens for each in self._by_token.get(token, ()) if each.needed <= tokens]

    def answers_in(
        self, piece: set[Literal], place: str | None = None, *, are_conditions: bool = False
    ) -> str | None:
        """Return a message if a piece holds inputs with their answers, and little else.

        Several examples are needed. One is enough if a test asks the function ``place`` for it, and both
        its sides are distinctive, or one side if the piece is the conditions of a function. Words are
        distinctive in code if their answers follow from them by a rule, as "boxes" from "box", or in pairs.
        ``place`` is empty for the constants of a module, and ``None`` for a data file.
        """
        held = self._held(piece)
        explained = _union(each.inputs | each.answers for each in held)
        share = sum(_is_explained(each, explained) for each in piece) / max(len(piece), 1)
        if share < _MIN_SHARE:
            return None
        held = [each for each in held if each.inputs != each.answers]
        # Several inputs together, such as the arguments of a call, are distinctive by their answer.
        shown = _union(
            _telling(each.inputs) or (_telling(each.answers) if len(each.inputs) > 1 else frozenset())
            for each in held
        )
        is_whole = share > _WHOLE and len({each.inputs for each in held}) > 3
        # The answers of the very function may be words.
        is_whole |= share > _WHOLE and len({each.inputs for each in held if place in each.functions}) > 1
        if len(shown) < 2 or not (is_whole or len(_telling(explained)) > 2):
            exact = (
                each.inputs
                for each in held
                if each.identifies_test
                and len(_telling(each.needed)) > 1 - are_conditions
                and (
                    place in each.functions
                    or (are_conditions and _telling(each.inputs) and len(each.needed) > 2)
                )
            )
            shown = min(exact, key=sorted, default=frozenset[str]())  # sets have no order of their own
        if not shown and share > _WHOLE:
            words = [each for each in held if place in ("", *each.functions) and each.functions]
            pairs = [each for each in words if len(each.inputs) > 1]
            # Answers from the words of other pairs are transitions between states.
            states = _union(each.inputs for each in pairs)
            is_closed = not all(states.isdisjoint(each.answers - each.inputs) for each in pairs)
            made = [each for each in words if each.follows] + ([] if is_closed else pairs)
            following = _union(each.inputs for each in made) - _COMMON
            is_table = 3 * len(following) >= 2 * len(_union(each.inputs for each in words))
            shown = following if len(following) > 2 and is_table else shown
        if not shown:
            return None
        inputs = ", ".join(sorted(shown)[:4])
        return f"{place or 'The module'} has the answers to inputs of the tests: {inputs}"

    def _recognizes_call(self, test: ast.expr, asked: set[Literal], place: str) -> str | None:
        """Return a message about a condition on several parts of a call that the tests make."""
        sides = {
            ast.unparse(side)
            for each in ast.walk(test)
            if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Eq | ast.Is | ast.In)
            # A part that is compared with another variable is not recognized.
            if _tokens_of(each.comparators[0]) or fold(each.left) is not UNKNOWN
            for side in getattr(each.left, "elts", [each.left])
        }
        tokens = frozenset(own for own, _ in asked)
        # Words alone are the vocabulary of a state machine, a router or a converter.
        if len(sides) < 2 or len(tokens) < 2 or tokens <= self._known or not any(map(_is_specific, tokens)):
            return None
        is_call = any(tokens <= each.inputs for each in self._by_function.get(place, ()))
        # A question for None, an empty text or common numbers alone tells nothing about a call.
        is_asked = len(tokens - _GUARD_VALUES) > 2 and not tokens <= _COMMON and tokens <= self._asked
        if is_call or is_asked:
            return f"{place} recognizes a call of the tests: {', '.join(sorted(tokens)[:4])}"
        return None

    def _returns_expected(self, function: Function, before: Module | None, *, is_free: bool) -> str | None:
        """Return a message about a function that returns what tests expect without looking at its input.

        ``is_free`` functions need not take arguments, in contrast to methods.
        """
        expected = _union(each.answers for each in self._by_function.get(function.name, ()))
        parameters = parameters_of(function)
        if not (expected and parameters):
            return None
        parts = [_constant_tokens(each) for each in returned(function) if fold(each)]
        answers = _union(parts)
        # A part without literals is computed.
        # A method need not use its arguments, but an answer with their values is computed from them.
        has_inputs = any(
            not each.inputs.isdisjoint(filter(_is_specific, part))
            for each in self._by_function[function.name]
            for answer in each.answers & answers
            for part in _parts(answer[1:-1])
        )
        new = answers - self._known
        is_telling = has_inputs or _telling(new) or len(new - _COMMON) > 4
        if not (all(parts) and is_telling) or answers - _COMMON - expected:
            return None
        earlier = before.functions.get(function.name) if before is not None else None
        # A generator computes what it yields.
        if earlier is not None and (
            any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(earlier))
            or any(fold(each) is UNKNOWN for each in returned(earlier))
        ):
            return f"{function.name} no longer computes its result, but returns what the tests expect"
        # Refusing an input is no use of it. Decorated functions may have to take unneeded arguments.
        body = [
            each
            for each in function.body
            if not isinstance(each, ast.If) or each.orelse or not _refuses(each.body[0])
        ]
        used = {each.id for part in body for each in ast.walk(part) if isinstance(each, ast.Name)}
        is_free = (is_free and not function.decorator_list) or has_inputs
        if is_free and parameters.isdisjoint(used) and answers <= expected:
            return f"{function.name} looks at no argument, and returns what the tests expect"
        return None


def _refuses(node: ast.stmt) -> bool:
    """Return whether a statement raises an exception or returns an empty result."""
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Return) and not fold(node.value))


def _end(node: ast.AST) -> tuple[int, int]:
    """Return the position at which a node ends: line and column."""
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def _is_explained(literal: Literal, explained: Tokens) -> bool:
    """Return whether a literal belongs to an example, or two thirds of the specific parts of its text."""
    own, parts = literal
    specific = frozenset(filter(_is_specific, parts))
    in_part = not explained.isdisjoint(parts) and 2 * len(specific) <= 3 * len(specific & explained)
    return own in explained or in_part


def _new_constants(module: Module, before: Module | None) -> list[ast.stmt]:
    """Return a module's new statements outside of functions and classes, except lists of thresholds."""
    known = before.statements if before is not None else frozenset[str]()
    # The arguments of bisect are thresholds, like the operands of "<".
    thresholds = {
        name_of(argument)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and "bisect" in name_of(node.func)
        for argument in node.args
    }
    return [
        each
        for each in module.tree.body
        if not isinstance(each, (*FUNCTIONS, ast.ClassDef))
        and thresholds.isdisjoint(map(name_of, getattr(each, "targets", ())))
        and shape(each) not in known
    ]
