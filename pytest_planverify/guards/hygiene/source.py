"""Python source as the guards compare it: its tree, what names mean, what constants amount to."""

from __future__ import annotations

import ast
import base64
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
UNKNOWN = object()
"""The value of an expression that is no constant."""

_LARGEST_SOURCE = 2_000_000
_LONGEST_TEXT = 100_000
_USUAL_DEPTH = 1_000
_DEEPEST = 60_000
_TEXT_METHODS = frozenset(
    {"lower", "upper", "title", "strip", "replace", "join", "decode", "encode", "format", "removeprefix",
     "removesuffix", "capitalize", "swapcase", "rstrip", "lstrip", "casefold"}
)  # fmt: skip
_NO_MEANING = frozenset({"annotation", "returns", "type_comment", "kind", "type_params", "ctx"})


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One node of a tree with the function and the class that it stands in."""

    node: ast.AST
    function: Function | None
    owner: ast.ClassDef | None
    in_main: bool
    """Below ``if __name__ == "__main__"``."""

    @property
    def place(self) -> str:
        """Return the name of the function."""
        return self.function.name if self.function else ""


@dataclass(eq=False)
class Module:
    """One source file."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def statements(self) -> frozenset[str]:
        """The shapes of the statements of the top level and of classes."""
        return frozenset(shape(node) for node in _members(self.tree.body))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Return what names mean by imports and plain assignments: ``{"o": "os", "leave": "os._exit"}``."""
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
    def constants(self) -> dict[str, ast.expr]:
        """Names that the top level binds once, with what they are bound to."""
        found: dict[str, ast.expr] = {}
        twice: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and node.value is not None:
                        if target.id in found or isinstance(node, ast.AugAssign):
                            twice.add(target.id)
                        found[target.id] = node.value
        return {name: value for name, value in found.items() if name not in twice}

    def sites(self, before: Module | None = None) -> Iterator[Site]:
        """Yield the nodes of all statements that another version has not."""
        known = before.statements if before is not None else frozenset[str]()
        yield from self._sites(self.tree.body, None, known)

    def _sites(
        self, body: list[ast.stmt], owner: ast.ClassDef | None, known: frozenset[str]
    ) -> Iterator[Site]:
        for statement in body:
            if known and shape(statement) in known:
                continue
            if isinstance(statement, ast.ClassDef):
                yield Site(statement, None, owner, False)
                for part in (*statement.bases, *statement.keywords, *statement.decorator_list):
                    yield from _below(part, owner)
                yield from self._sites(statement.body, statement, known)
            else:
                yield from _below(statement, owner)

    def line(self, node: ast.AST) -> str:
        """Return the first source line of a node."""
        lines = self.text.split("\n")
        at = getattr(node, "lineno", 0)
        return lines[at - 1].strip() if 0 < at <= len(lines) else ""


@contextmanager
def room_for_deep_trees() -> Generator[None]:
    """Allow the recursion that sums of a thousand terms need, which Python parses."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEEPEST)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def parse(path: str, content: bytes | None) -> Module | None:
    """Return a source file; ``None`` where it is no Python that can be parsed."""
    if content is None or len(content) > _LARGEST_SOURCE:
        return None
    limit = sys.getrecursionlimit()
    try:
        # How deep the parser goes on the stack of C depends on the limit of Python.
        sys.setrecursionlimit(_USUAL_DEPTH)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        sys.setrecursionlimit(limit)
    text = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return Module(path, text, tree)


def has_same_tree(path: str, before: bytes | None, now: bytes | None) -> bool:
    """Return whether two versions of a Python source differ in format, comments or annotations only."""
    if not path.endswith(".py"):
        return False
    with room_for_deep_trees():
        modules = parse(path, before), parse(path, now)
        return None not in modules and len({shape(each.tree) for each in modules if each is not None}) == 1


def shape(node: ast.AST) -> str:
    """Return a tree as text without places, annotations and docstrings: equal shapes do the same."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return f"Assign([{shape(node.target)}],{shape(node.value)})"
    parts: list[str] = []
    for name in node._fields:
        if name in _NO_MEANING:
            continue
        value: Any = getattr(node, name, None)
        if isinstance(value, list):
            items = cast("list[Any]", value)
            kept = [shape(each) if isinstance(each, ast.AST) else repr(each) for each in items if not (
                name == "body" and _says_nothing(each)
            )]  # fmt: skip
            parts.append(f"[{','.join(kept)}]")
        elif value is not None:
            parts.append(shape(value) if isinstance(value, ast.AST) else repr(value))
    return f"{type(node).__name__}({','.join(parts)})"


def dotted(node: ast.AST | None, aliases: Mapping[str, str]) -> str:
    """Return what a chain of names means, ``os._exit``; empty where it is none."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, aliases)
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Subscript) and dotted(node.value, aliases) == "sys.modules":
        return _text(fold(node.slice))
    if isinstance(node, ast.Call) and node.args:
        called = dotted(node.func, aliases).removeprefix("builtins.")
        if called == "getattr" and len(node.args) > 1:
            owner, name = dotted(node.args[0], aliases), _text(fold(node.args[1]))
            return f"{owner}.{name}" if owner and name else ""
        if called in ("__import__", "importlib.import_module", "sys.modules.get"):
            return _text(fold(node.args[0]))
    return ""


def name_of(node: ast.AST) -> str:
    """Return the last name of a chain of names; empty where it is none."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def fold(node: ast.AST | None, names: Mapping[str, ast.expr] | None = None, depth: int = 0) -> Any:
    """Return the value of an expression of constants, however it is spelled; else :data:`UNKNOWN`."""
    if depth > 40:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        value = names.get(node.id) if names else None
        return fold(value, None, depth + 1) if value is not None else UNKNOWN
    inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)] if node else []
    if isinstance(node, ast.JoinedStr):
        inner = [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values]
    if isinstance(node, ast.Call):
        inner = [*node.args]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
            inner.insert(0, node.func.value)
    if not isinstance(node, ast.Slice) and any(isinstance(each, ast.Slice) for each in inner):
        inner = inner[:1]
    values = [fold(each, names, depth + 1) for each in inner]
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    try:
        return _combined(node, values)
    except Exception:  # a constant expression that raises has no value
        return UNKNOWN


def is_always_true(node: ast.expr) -> bool:
    """Return whether a condition holds whatever the code under test does."""
    value = fold(node)
    if value is not UNKNOWN:
        return bool(value)
    if isinstance(node, ast.BoolOp):
        return (any if isinstance(node.op, ast.Or) else all)(is_always_true(each) for each in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_always_false(node.operand)
    if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Lambda):
        return isinstance(node, ast.Lambda) or any(True for _ in ast.iter_child_nodes(node))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        same = (
            left == right
            and "(" not in left
            and isinstance(node.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
        )
        return same or (left.startswith("len(") and isinstance(node.ops[0], ast.GtE) and right == "0")
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node).startswith("isinstance(")
        and (ast.unparse(node.args[-1]) == "object")
    )


def is_always_false(node: ast.expr) -> bool:
    """Return whether a condition never holds."""
    value = fold(node)
    if value is not UNKNOWN:
        return not value
    if isinstance(node, ast.BoolOp):
        return (all if isinstance(node.op, ast.Or) else any)(is_always_false(each) for each in node.values)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and is_always_true(node.operand)


def _combined(node: ast.AST | None, values: list[Any]) -> Any:
    if isinstance(node, ast.BinOp):
        left, right = values
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Mod):
            return left % right
        if isinstance(node.op, ast.Sub):
            return left - right
        small = all(isinstance(each, str | bytes) or abs(each) < _LONGEST_TEXT for each in values)
        return left * right if isinstance(node.op, ast.Mult) and small else UNKNOWN
    if isinstance(node, ast.UnaryOp):
        (value,) = values
        if isinstance(node.op, ast.Not):
            return not value
        return -value if isinstance(node.op, ast.USub) else UNKNOWN
    if isinstance(node, ast.JoinedStr):
        return "".join(map(str, values))
    if isinstance(node, ast.Tuple):
        return tuple(values)
    if isinstance(node, ast.List | ast.Set):
        return values
    if isinstance(node, ast.Dict):
        return dict(zip(values[: len(node.keys)], values[len(node.keys) :], strict=True))
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Slice):
            bounds = [
                fold(each) if each else None
                for each in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            return values[0][slice(*bounds)]
        return values[0][values[1]]
    if isinstance(node, ast.Call) and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if (
            isinstance(node.func, ast.Attribute)
            and name in _TEXT_METHODS
            and isinstance(values[0], str | bytes)
        ):
            return getattr(values[0], name)(*values[1:])
        known = {
            "chr": chr,
            "fromhex": bytes.fromhex,
            "b64decode": base64.b64decode,
            "str": str,
            "len": len,
        }
        if name in known:
            return known[name](*values)
        if name in ("frozenset", "set", "tuple", "list") and len(values) == 1:
            return list(values[0])
    return UNKNOWN


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _says_nothing(node: object) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _members(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from _members(statement.body)


def _below(node: ast.AST, owner: ast.ClassDef | None) -> Iterator[Site]:
    pending: list[tuple[ast.AST, Function | None, ast.ClassDef | None, bool]] = [(node, None, owner, False)]
    while pending:
        each, function, owner, in_main = pending.pop()
        yield Site(each, function, owner, in_main)
        if isinstance(each, FUNCTIONS):
            function = each
        elif isinstance(each, ast.ClassDef):
            owner = each
        elif isinstance(each, ast.If) and function is None and "__main__" in ast.unparse(each.test):
            in_main = True
        children = list(ast.iter_child_nodes(each))
        pending.extend((child, function, owner, in_main) for child in reversed(children))
