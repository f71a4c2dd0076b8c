"""Python source as detectors see it: its tree, what stands in which function, what names mean."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pytest_planverify.guards.hygiene.folding import fold
from pytest_planverify.guards.hygiene.odd_sources import lines_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_SOURCE = 2_000_000
"""Longer sources are not read."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One node, and what it stands in."""

    node: ast.AST
    function: Function | None
    owner: ast.ClassDef | None
    """The class whose body it stands in, functions between included."""
    in_main: bool = False
    """Below ``if __name__ == "__main__"``."""

    @property
    def place(self) -> str:
        """The function that it stands in."""
        return self.function.name if self.function else ""


@dataclass(eq=False)
class Module:
    """One source file."""

    path: str
    text: str
    tree: ast.Module
    other: Module | None = None
    """The same file at the other moment."""

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """The nodes of what the other version has not, word for word, in the order of the source.

        What stands in both is no difference, and need not be looked at.
        """
        found: list[Site] = []
        self._collect(self.tree.body, None, found)
        return tuple(found)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What names of the module mean: ``{"o": "os", "leave": "os._exit"}``."""
        return aliases_of([*_top_level(self.tree.body), *(site.node for site in self.sites)])

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Names that are bound once in the module, at its top level, to an expression."""
        bound: dict[str, ast.expr | None] = {}
        for node in _top_level(self.tree.body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name):
                    bound[target.id] = None if target.id in bound else node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                bound[node.target.id] = None if node.target.id in bound else node.value
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                bound[node.target.id] = None
        return {name: value for name, value in bound.items() if value is not None}

    @cached_property
    def members(self) -> tuple[tuple[Definition, ast.ClassDef | None], ...]:
        """Every function and class of the top level and of classes, with the class that it stands in."""
        return tuple(_members(self.tree.body, None))

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions and methods by their bare name, the last of a name."""
        found = {
            site.node.name: site.node
            for site in self.sites
            if isinstance(site.node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        return found | {node.name: node for node, _ in self.members if not isinstance(node, ast.ClassDef)}

    @cached_property
    def segments(self) -> frozenset[str]:
        """The text of every statement of the top level and of classes."""
        return frozenset(self.segment(node) for node in _statements(self.tree.body))

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the source."""
        return lines_of(self.text)

    def segment(self, node: ast.stmt) -> str:
        """The text of a statement, its decorators included."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        return "\n".join(self.lines[first - 1 : node.end_lineno])

    def form(self, node: ast.stmt) -> str:
        """The same for two statements that do the same: their text where both versions have it."""
        if self.other is not None:
            text = self.segment(node)
            if text in self.other.segments:
                return text
        return shape(node)

    def _collect(self, body: Iterable[ast.stmt], owner: ast.ClassDef | None, found: list[Site]) -> None:
        known = self.other.segments if self.other is not None else frozenset[str]()
        for statement in body:
            if known and self.segment(statement) in known:
                continue
            if isinstance(statement, ast.ClassDef):
                found.append(Site(statement, None, owner))
                for part in (*statement.bases, *statement.keywords, *statement.decorator_list):
                    _sites(part, None, owner, False, found)
                self._collect(statement.body, statement, found)
            else:
                _sites(statement, None, owner, False, found)

    def line(self, node: ast.AST) -> str:
        """The first source line of a node, stripped."""
        at = getattr(node, "lineno", 0)
        return self.lines[at - 1].strip() if 0 < at <= len(self.lines) else ""


def parse(path: str, content: bytes | None) -> Module | None:
    """A source file; nothing where it is no Python that can be parsed."""
    if content is None or len(content) > MAX_SOURCE:
        return None
    try:
        tree = parsed(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Module(path, content.decode("utf-8", "replace"), tree)


def dotted(node: ast.AST, aliases: dict[str, str]) -> str:
    """What a chain of names means, aliases resolved: ``os._exit``; empty where it is none."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, aliases)
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Call):
        return _called(node, aliases)
    if isinstance(node, ast.Subscript):
        return _subscripted(node, aliases)
    return ""


def plain_text(node: ast.AST | None) -> str | None:
    """The value of an expression that is a string."""
    value = fold(node) if node is not None else None
    return value if isinstance(value, str) else None


def aliases_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What imports and plain assignments bind names to."""
    found: dict[str, str] = {}
    assigned: list[tuple[str, ast.expr]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for name in node.names:
                found[name.asname or name.name] = f"{module}.{name.name}" if module else name.name
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            if isinstance(node.targets[0], ast.Name):
                assigned.append((node.targets[0].id, node.value))
        elif isinstance(node, ast.NamedExpr):
            assigned.append((node.target.id, node.value))
    for name, value in assigned:
        if isinstance(value, ast.Attribute | ast.Call | ast.Subscript):
            meaning = dotted(value, found)
            if meaning and not meaning.startswith(f"{name}.") and _is_known(meaning, found):
                found.setdefault(name, meaning)
        elif isinstance(value, ast.Name) and value.id in found:
            found.setdefault(name, found[value.id])
    return found


def definitions(body: Sequence[ast.stmt]) -> Iterator[Definition]:
    """The functions and classes of a body, also those below ``if`` and ``try``."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            for inner in blocks(statement):
                yield from definitions(inner)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies of a statement."""
    for name in ("body", "orelse", "finalbody"):
        block: list[ast.stmt] | None = getattr(statement, name, None)
        if block:
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def shape(node: ast.AST, masked: frozenset[str] = frozenset()) -> str:
    """A tree as text without places, types, docstrings: equal shapes do the same.

    ``masked`` are names of variables that may be called otherwise.
    """
    parts: list[str] = []
    _shape(node, parts, masked)
    return "".join(parts)


def without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that do something."""
    return [
        statement
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def is_main_guard(node: ast.AST) -> bool:
    """Whether it is ``if __name__ == "__main__"``."""
    if not (isinstance(node, ast.If) and isinstance(node.test, ast.Compare)):
        return False
    sides = (node.test.left, *node.test.comparators)
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


_SKIPPED_FIELDS = frozenset({"annotation", "returns", "type_comment", "kind", "type_params", "ctx"})


def _shape(node: ast.AST, parts: list[str], masked: frozenset[str]) -> None:
    if masked and _is_masked(node, masked):
        parts.append("_")
        return
    parts.append(type(node).__name__)
    parts.append("(")
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        # An annotated assignment does what a plain one does.
        parts[-2] = "Assign"
        for child in (node.target, node.value):
            _shape(child, parts, masked)
        parts.append(")")
        return
    for name in node._fields:
        if name in _SKIPPED_FIELDS:
            continue
        value: object = getattr(node, name, None)
        if name == "body" and isinstance(value, list):
            value = without_docstring(value)  # pyright: ignore[reportUnknownArgumentType]
        _shape_value(value, parts, masked)
    parts.append(")")


def _is_masked(node: ast.AST, masked: frozenset[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Name) and node.id in masked


def _shape_value(value: object, parts: list[str], masked: frozenset[str]) -> None:
    if isinstance(value, ast.AST):
        _shape(value, parts, masked)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(item, ast.AnnAssign) and item.value is None:
                continue
            _shape_value(item, parts, masked)  # pyright: ignore[reportUnknownArgumentType]
            parts.append(",")
        parts.append(";")
    elif value is not None:
        parts.append(repr(value))


def _sites(
    node: ast.AST, function: Function | None, owner: ast.ClassDef | None, in_main: bool, found: list[Site]
) -> None:
    """Adds a node and all below it."""
    waiting = [(node, function, owner, in_main)]
    while waiting:
        each, function, owner, in_main = waiting.pop()
        found.append(Site(each, function, owner, in_main))
        kind = type(each)
        if kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
            function = cast("Function", each)
        elif kind is ast.ClassDef:
            owner = cast("ast.ClassDef", each)
        elif kind is ast.If and function is None and is_main_guard(each):
            in_main = True
        elif kind is ast.Constant or kind is ast.Name:
            continue
        waiting.extend((child, function, owner, in_main) for child in reversed(list(_children(each))))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if isinstance(value, ast.AST):
            if name != "ctx":
                yield value
        elif isinstance(value, list):
            for item in cast("list[Any]", value):
                if isinstance(item, ast.AST):
                    yield item


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of the top level, those below ``if``, ``try`` and ``with`` too."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for block in blocks(statement):
                yield from _top_level(block)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from _statements(statement.body)


def _members(
    body: Sequence[ast.stmt], owner: ast.ClassDef | None
) -> Iterator[tuple[Definition, ast.ClassDef | None]]:
    for node in definitions(body):
        yield node, owner
        if isinstance(node, ast.ClassDef):
            yield from _members(node.body, node)


def _called(node: ast.Call, aliases: dict[str, str]) -> str:
    """What ``getattr(os, "_exit")``, ``__import__("os")`` and ``vars(os)`` give."""
    function = dotted(node.func, aliases)
    if function in ("getattr", "builtins.getattr") and len(node.args) >= 2:
        name, owner = plain_text(node.args[1]), dotted(node.args[0], aliases)
        return f"{owner}.{name}" if owner and name else ""
    if function in ("__import__", "builtins.__import__", "importlib.import_module") and node.args:
        return plain_text(node.args[0]) or ""
    if function in ("vars", "builtins.vars") and len(node.args) == 1:
        owner = dotted(node.args[0], aliases)
        return f"{owner}.__dict__" if owner else ""
    if isinstance(node.func, ast.Call) and node.args:
        return _gotten(node.func, node.args[0], aliases)
    if function.endswith(".__dict__.get") and node.args and plain_text(node.args[0]):
        return f"{function.removesuffix('.__dict__.get')}.{plain_text(node.args[0])}"
    if function == "sys.modules.get" and node.args:
        return plain_text(node.args[0]) or ""
    return ""


def _gotten(getter: ast.Call, owner: ast.expr, aliases: dict[str, str]) -> str:
    if dotted(getter.func, aliases) == "operator.attrgetter" and getter.args:
        name, meaning = plain_text(getter.args[0]), dotted(owner, aliases)
        return f"{meaning}.{name}" if name and meaning else ""
    return ""


def _subscripted(node: ast.Subscript, aliases: dict[str, str]) -> str:
    owner = dotted(node.value, aliases)
    name = plain_text(node.slice) if owner else None
    if not name or owner == "sys.modules":
        return name or ""
    if owner.endswith(".__dict__"):
        return f"{owner.removesuffix('.__dict__')}.{name}"
    if owner == "__builtins__":
        return f"builtins.{name}"
    return ""


def _is_known(meaning: str, found: dict[str, str]) -> bool:
    """Whether a dotted name starts at something imported, not at a local object."""
    top = meaning.partition(".")[0]
    return bool(top) and (top in {each.partition(".")[0] for each in found.values()} or top in _ALWAYS)


_ALWAYS = frozenset({"os", "sys", "builtins", "pytest", "_pytest", "unittest", "inspect", "importlib"})
