"""Python source as guards compare it: syntax trees, meanings of names, values of constant expressions.

Nothing of the source is executed. Constant expressions are folded, so that a value is recognized even if
it is assembled from parts or encoded. Sizes and depths are limited, because the source is not trusted.
"""

from __future__ import annotations

import ast
import base64
import operator
import re
import sys
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from contextlib import AbstractContextManager

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
UNKNOWN = object()
"""Value of an expression that is not constant."""

_LARGEST_SOURCE = 2_000_000
# Python's default recursion limit, and one at which the deepest tree that the parser accepts can be walked.
_USUAL_DEPTH, _DEEPEST = 1_000, 60_000
# Fields of syntax nodes that do not influence behaviour; see shape() for annotations of classes.
_NO_MEANING = frozenset({"annotation", "returns", "type_comment", "type_params", "ctx"})
_TEXT_METHODS = frozenset(
    {"lower", "upper", "title", "strip", "replace", "join", "decode", "encode", "format", "removeprefix",
     "removesuffix", "capitalize", "swapcase", "rstrip", "lstrip", "casefold"}
)  # fmt: skip
_FINDS_BY_NAME = frozenset({"getattr", "__import__", "import_module", "get"})
_LONGEST = 10_000
"""Limit of computed sequences: a short expression could produce gigabytes."""


def _product(left: Any, right: Any) -> Any:
    """Multiply numbers, and repeat sequences moderately."""
    for times, repeated in ((left, right), (right, left)):
        if isinstance(repeated, str | bytes | list | tuple) and times * _size(repeated) > _LONGEST:
            raise ValueError(times)
    return left * right


def _size(value: Any) -> int:
    """Return the number of characters of a text, and of values in nested sequences."""
    if isinstance(value, list | tuple):
        return max(len(value), sum(map(_size, cast("list[Any]", value))))  # pyright: ignore
    return len(value) if isinstance(value, str | bytes) else 1


def _power(base: float, exponent: float) -> float:
    """Raise moderate numbers to a power."""
    if max(abs(base), abs(exponent) ** 4) > _LONGEST**2:
        raise ValueError(exponent)
    return base**exponent


def _range(*bounds: int) -> range:
    """Return a range, unless a list of it would be long."""
    found = range(*bounds)
    if len(found) > _LONGEST:
        raise ValueError(bounds)
    return found


_FUNCTIONS_OF_CONSTANTS: dict[str, Callable[..., Any]] = {
    "chr": chr, "str": str, "int": int, "len": len, "list": list, "tuple": list, "set": list,
    "frozenset": list, "range": _range,
    "fromhex": bytes.fromhex, "b64decode": base64.b64decode,
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mod: operator.mod, ast.USub: operator.neg,
    ast.Not: operator.not_, ast.Mult: _product, ast.Div: operator.truediv,  # pyright: ignore[reportUnknownMemberType]
    ast.Pow: _power,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_WIDTH = re.compile(r"\d{3}|%[-+ #\d.]*\*|\{[^{}]+\{")
"""Widths of three digits or more, or from arguments: a short template could produce gigabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A node of a syntax tree with its enclosing function and class."""

    module: Module
    node: ast.AST
    function: Function | None
    owner: ast.ClassDef | None
    is_spoken: bool
    """Whether it is part of a docstring, or of a raise statement and thereby of an error message."""

    @property
    def place(self) -> str:
        """Name of the enclosing function; empty outside of functions."""
        return self.function.name if self.function else ""

    def meaning(self, node: ast.AST) -> str:
        """Return the dotted name that an expression refers to, with imports and aliases resolved."""
        return dotted(node, self.module.aliases)


@dataclass(eq=False)
class Module:
    """One parsed source file."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def statements(self) -> frozenset[str]:
        """Shapes (see :func:`shape`) of the statements at module and class level."""
        return frozenset(shape(node) for node, _ in _members(self.tree.body))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Dotted names that names refer to by imports and assignments: ``{"leave": "os._exit"}``."""
        found: dict[str, str] = {}
        nodes = list(ast.walk(self.tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    top = name.name.partition(".")[0]
                    found[name.asname or top] = name.name if name.asname else top
            elif isinstance(node, ast.ImportFrom):
                source = "." * node.level + (node.module or "")
                found |= {name.asname or name.name: f"{source}.{name.name}" for name in node.names}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                meaning = dotted(node.value, found)
                if meaning.partition(".")[0] in found.values() and "." in meaning:
                    found.setdefault(node.targets[0].id, meaning)
        return found

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """Functions by name, at any depth, except those that a protocol only declares."""
        nodes = list(ast.walk(self.tree))
        protocols = [each for each in nodes if "Protocol" in map(name_of, getattr(each, "bases", ()))]
        declared = {member for each in protocols for member in ast.iter_child_nodes(each)}
        functions = (each for each in nodes if isinstance(each, ast.FunctionDef))
        return {each.name: each for each in functions if each not in declared}

    @cached_property
    def bases(self) -> frozenset[str]:
        """Names of the bases of its classes of tests."""
        classes = (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))
        return frozenset(name_of(base) for each in classes if _has_tests(each) for base in each.bases)

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Names assigned once at module level, with their values."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(node.value)
        return {name: values[0] for name, values in found.items() if len(values) == 1}

    @cached_property
    def uses(self) -> Counter[str]:
        """Names with the number of places that bind or read them, not counting ``parametrize``."""
        nodes = list(ast.walk(self.tree))
        decorators = (each for node in nodes for each in getattr(node, "decorator_list", ()))
        calls = (each for each in decorators if name_of(getattr(each, "func", each)) == "parametrize")
        parts = (part for each in calls for part in ast.walk(each))
        found = Counter(node.id for node in nodes if isinstance(node, ast.Name))
        found.subtract(node.id for node in parts if isinstance(node, ast.Name))
        return found

    def sites(self, before: Module | None = None) -> Iterator[Site]:
        """Yield the nodes of all statements that an earlier version does not have; without one, of all."""
        known = before.statements if before is not None else frozenset[str]()
        for statement, owner in _members(self.tree.body):
            if known and shape(statement) in known:
                continue
            if isinstance(statement, ast.ClassDef):  # its members are compared one by one
                yield Site(self, statement, None, owner, False)
                for part in (*statement.bases, *statement.keywords, *statement.decorator_list):
                    yield from self._sites_below(part, owner)
            else:
                yield from self._sites_below(statement, owner)

    def _sites_below(self, node: ast.AST, owner: ast.ClassDef | None) -> Iterator[Site]:
        """Yield a node and all nodes below it, in the order of the source; iterative, for deep trees."""
        pending: list[Site] = [Site(self, node, None, owner, False)]
        while pending:
            site = pending.pop()
            yield site
            each = site.node
            function = each if isinstance(each, FUNCTIONS) else site.function
            owner = each if isinstance(each, ast.ClassDef) else site.owner
            is_spoken = site.is_spoken or isinstance(each, ast.Raise) or _has_no_effect(each)
            children = list(ast.iter_child_nodes(each))
            pending += [Site(self, child, function, owner, is_spoken) for child in reversed(children)]

    def line(self, node: ast.AST) -> str:
        """Return the first source line of a node, stripped; empty if it has no position."""
        lines = self.text.split("\n")
        at = getattr(node, "lineno", 0)
        return lines[at - 1].strip() if 0 < at <= len(lines) else ""


@contextmanager
def room_for_deep_trees(limit: int = _DEEPEST) -> Generator[None]:
    """Raise the recursion limit for long expressions, such as sums of a thousand terms."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def usual_depth() -> AbstractContextManager[None]:
    """Return a context for parsers, within :func:`room_for_deep_trees`.

    They take the recursion limit for what the C stack has room for.
    """
    return room_for_deep_trees(_USUAL_DEPTH)


def parse(path: str, content: bytes | None) -> Module | None:
    """Parse a source file; return ``None`` without content, if it is too large, or if parsing fails."""
    if content is None or len(content) > _LARGEST_SOURCE:
        return None
    try:
        with usual_depth(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None  # a text is the same with the prefix "u"
            # repr() and unparse() refuse integers of thousands of digits, as hexadecimal literals may have.
            if isinstance(node.value, int) and node.value.bit_length() > 10_000:
                node.value = hex(node.value)
    text = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return Module(path, text, tree)


def has_same_tree(path: str, before: bytes | None, now: bytes | None) -> bool:
    """Return whether two versions of a Python file differ in formatting, comments or annotations only."""
    if not path.endswith(".py"):
        return False
    with room_for_deep_trees():
        then, since = parse(path, before), parse(path, now)
        return then is not None and since is not None and shape(then.tree) == shape(since.tree)


def shape(node: ast.AST) -> str:
    """Return a tree as text without positions, docstrings, and annotations outside of class bodies.

    Code with equal shapes behaves equally.
    """
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return f"Assign([{shape(node.target)}],{shape(node.value)})"
    parts: list[str] = []
    for name in node._fields:
        if name in _NO_MEANING:
            continue
        value: Any = getattr(node, name, None)
        if isinstance(value, list):
            items = cast("list[Any]", value)
            if isinstance(node, ast.ClassDef):  # of a dataclass or pydantic model, annotations are fields
                items = [ast.dump(each) if isinstance(each, ast.AnnAssign) else each for each in items]
            kept = [shape(each) if isinstance(each, ast.AST) else repr(each) for each in items if not (
                name == "body" and _has_no_effect(each)
            )]  # fmt: skip
            parts.append(f"[{','.join(kept)}]")
        elif value is not None:
            parts.append(shape(value) if isinstance(value, ast.AST) else repr(value))
    return f"{type(node).__name__}({','.join(parts)})"


def dotted(node: ast.AST | None, aliases: Mapping[str, str]) -> str:
    """Return the dotted name that an expression refers to, for example ``os._exit``; empty if none.

    Aliases are resolved, as are ``getattr`` with a constant name and imports by function.
    """
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, aliases)
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Subscript) and dotted(node.value, aliases) == "sys.modules":
        return _text(fold(node.slice))
    # Of a chain of calls only the last one can be such a function, so that its length does not count.
    if (
        isinstance(node, ast.Call)
        and node.args
        and (isinstance(node.func, ast.Name) or name_of(node.func) in _FINDS_BY_NAME)
    ):
        called = dotted(node.func, aliases).removeprefix("builtins.")
        if called == "getattr" and len(node.args) > 1:
            owner, name = dotted(node.args[0], aliases), _text(fold(node.args[1]))
            return f"{owner}.{name}" if owner and name else ""
        if called in ("__import__", "importlib.import_module", "sys.modules.get"):
            return _text(fold(node.args[0]))
    return ""


def _has_tests(node: ast.ClassDef) -> bool:
    """Return whether a class is one of tests, by its name, those of its bases, or those of its methods."""
    methods = (each.name for each in node.body if isinstance(each, FUNCTIONS))
    return any("Test" in each for each in (node.name, *map(name_of, node.bases))) or any(
        each.startswith("test") for each in methods
    )


def name_of(node: ast.AST) -> str:
    """Return the last component of a name or attribute; empty for other expressions."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def returned(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that a function returns, except those in handlers and ``NotImplemented``."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    handlers = (each for each in ast.walk(node) if isinstance(each, ast.ExceptHandler))
    caught = {each for handler in handlers for each in ast.walk(handler)}
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return) and each.value is not None and each not in caught
        and name_of(each.value) != "NotImplemented"
    ]  # fmt: skip


def parameters_of(function: Function) -> set[str]:
    """Return the names of a function's parameters, except variable ones."""
    arguments = function.args
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def fold(node: ast.AST | None, names: Mapping[str, ast.expr] | None = None) -> Any:
    """Return the value of a constant expression, or :data:`UNKNOWN`.

    ``names`` are constants of the module, see :attr:`Module.constants`; their names in the expression are
    replaced by their values.
    """
    try:
        return _value(node, names or {}, 0)
    except Exception:  # not constant, or raises when evaluated
        return UNKNOWN


def _value(node: ast.AST | None, names: Mapping[str, ast.expr], depth: int) -> Any:
    """Evaluate an expression. Raises any exception if it is not constant, too deep, or too large."""

    def of(inner: ast.AST) -> Any:
        return _value(inner, names, depth + 1)

    if depth > 40:
        raise ValueError(depth)
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            # Without names, so that constants that refer to each other do not multiply the work.
            return _value(names[node.id], {}, depth + 1)
        case ast.JoinedStr():
            return "".join(str(of(each)) for each in node.values)
        case ast.FormattedValue():
            return of(node.value)
        case ast.Tuple():
            return tuple(of(each) for each in node.elts)
        case ast.List() | ast.Set():
            return [of(each) for each in node.elts]
        case ast.Dict():
            return {
                of(cast("ast.expr", key)): of(value)
                for key, value in zip(node.keys, node.values, strict=True)
            }
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](of(node.operand))
        case ast.BinOp():
            left = of(node.left)
            if isinstance(node.op, ast.Mod) and _WIDTH.search(str(left)):
                raise ValueError(left)
            return _OPERATORS[type(node.op)](left, of(node.right))
        case ast.Subscript(slice=ast.Slice() as cut):
            bounds = [of(each) if each else None for each in (cut.lower, cut.upper, cut.step)]
            return of(node.value)[slice(*bounds)]
        case ast.Subscript():
            return of(node.value)[of(node.slice)]
        case ast.Call(keywords=[], func=ast.Attribute(attr=method, value=owner)) if method in _TEXT_METHODS:
            text = of(owner)
            if not isinstance(text, str | bytes) or (method == "format" and _WIDTH.search(str(text))):
                raise ValueError(text)
            arguments = [*map(of, node.args)]
            lengths = [len(each) for each in arguments if isinstance(each, str | bytes | list | tuple)]  # pyright: ignore
            if method in ("replace", "join") and len(text) * max(lengths, default=0) > 100 * _LONGEST:
                raise ValueError(text)
            return getattr(text, method)(*arguments)
        case ast.Call(keywords=[]):
            return _FUNCTIONS_OF_CONSTANTS[name_of(node.func)](*map(of, node.args))
        case _:
            raise ValueError(node)


def truth(node: ast.expr) -> bool | None:
    """Return the value of a condition that does not depend on the code under test, or ``None``."""
    value = fold(node)
    if value is not UNKNOWN:
        return bool(value)
    if isinstance(node, ast.BoolOp):
        decisive = isinstance(node.op, ast.Or)  # short-circuit value
        parts = {truth(each) for each in node.values}
        return decisive if decisive in parts else None if None in parts else not decisive
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides, compare = [fold(node.left), fold(node.comparators[0])], _COMPARISONS.get(type(node.ops[0]))
        if compare is not None and UNKNOWN not in sides:
            with suppress(TypeError):  # 1 < "a"
                return compare(*sides)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = truth(node.operand)
        return None if inner is None else not inner
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts)
    if isinstance(node, ast.Lambda | ast.GeneratorExp):
        return True  # the object itself, which is neither called nor consumed
    if name_of(node) == "TYPE_CHECKING":
        return False
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        if left == right and "(" not in left:  # calls may return different values
            return True if isinstance(node.ops[0], ast.Eq | ast.Is) else None
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _has_no_effect(node: object) -> bool:
    """Return whether a statement has no effect: a docstring or an annotation without a value."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _members(
    body: list[ast.stmt], owner: ast.ClassDef | None = None
) -> Iterator[tuple[ast.stmt, ast.ClassDef | None]]:
    """Yield the statements of a module, and of classes at any depth, each with its class."""
    for statement in body:
        yield statement, owner
        if isinstance(statement, ast.ClassDef):
            yield from _members(statement.body, statement)
