"""Which names and attributes a piece of code uses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def uses(node: ast.AST) -> list[tuple[str, str | None]]:
    """The names that a piece of code reads, in the order of the text, with the attribute that it takes."""
    return [(name, attribute) for name, attribute, _ in used(node)]


def used(node: ast.AST) -> list[tuple[str, str | None, int]]:
    """The names that a piece of code reads, in the order of the text, with the attribute that it takes of
    them; arguments too, for a test's arguments are its fixtures."""
    attributes: dict[int, str] = {}
    found: list[tuple[int, int, str, str | None]] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            attributes[id(each.value)] = each.attr
            inner = each.value
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
                name = f"{inner.value.id}.{inner.attr}"
                found.append((each.lineno, each.col_offset, name, each.attr))
            if isinstance(each.value, ast.Name) and each.value.id == "self":
                found.append((each.lineno, each.col_offset, f"self.{each.attr}", None))
        elif isinstance(each, ast.Name):
            found.append((each.lineno, each.col_offset, each.id, attributes.get(id(each))))
        elif isinstance(each, ast.arg):
            found.append((each.lineno, each.col_offset, each.arg, None))
    found.sort(key=lambda use: use[:2])
    return [(name, attribute, line) for line, _, name, attribute in found]


_IMPLIED: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Subscript: ("__getitem__", "__setitem__", "__delitem__", "__missing__", "__class_getitem__"),
    ast.In: ("__contains__",),
    ast.NotIn: ("__contains__",),
    ast.With: ("__enter__", "__exit__"),
    ast.For: ("__iter__", "__next__"),
    ast.comprehension: ("__iter__", "__next__"),
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__eq__", "__ne__"),
    ast.Lt: ("__lt__",),
    ast.Add: ("__add__", "__radd__", "__iadd__"),
    ast.Sub: ("__sub__",),
    ast.Mult: ("__mul__", "__rmul__"),
    ast.Mod: ("__mod__",),
    ast.BitOr: ("__or__", "__ior__"),
    ast.BitAnd: ("__and__",),
    ast.FormattedValue: ("__format__", "__str__"),
}
"""The methods that a piece of syntax calls."""

_CALLED_BY: dict[str, tuple[str, ...]] = {
    "len": ("__len__",),
    "iter": ("__iter__",),
    "list": ("__iter__",),
    "next": ("__next__",),
    "repr": ("__repr__",),
    "str": ("__str__", "__html__"),
    "bool": ("__bool__", "__len__"),
    "hash": ("__hash__",),
    "format": ("__format__",),
    "int": ("__int__",),
    "copy": ("__copy__", "__deepcopy__", "__reduce__"),
    "dumps": ("__reduce__", "__getstate__"),
}
"""The methods that a function calls of what it is given."""


def members(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The attributes that a piece of code takes of anything, by name or by syntax, each with its line."""
    line = getattr(node, "lineno", 1)
    for each in ast.walk(node):
        line = getattr(each, "lineno", line)
        if isinstance(each, ast.Attribute):
            yield each.attr, each.end_lineno or line
            names = _CALLED_BY.get(each.attr, ())
        elif isinstance(each, ast.Name):
            names = _CALLED_BY.get(each.id, ())
        else:
            names = _IMPLIED.get(type(each), ())
        yield from ((name, line) for name in names)
