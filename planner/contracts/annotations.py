"""Comparing annotations and defaults by what they mean, not by how they are spelled.

``pd.Series`` is ``pandas.Series`` where the module imports it so, ``Optional[X]`` is ``X | None``, and
quotes do not matter. What cannot be resolved is said to be so, because it must never count as a mismatch.
"""

from __future__ import annotations

import ast
import builtins
import typing
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from planner.contracts.names import dotted

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.contracts.names import Names

MAX_ALIASES = 5
"""How many aliases a name of a type is followed through."""

_Meaning: TypeAlias = "str | tuple[_Meaning, ...] | frozenset[_Meaning]"
"""A full name; an operator or a generic type with what it is applied to; the members of a union."""


class Likeness(Enum):
    """Result of comparing two annotations."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """One of them names what cannot be resolved without running the code."""


def compare_annotations(expected: str, actual: str, names: Names) -> Likeness:
    """Compare the types that two annotations mean, as far as the source tells them."""
    left, right = _Reader(names), _Reader(names)
    try:
        wanted, found = left.read(expected), right.read(actual)
        if wanted == found:
            return Likeness.SAME
        if left.unresolved or right.unresolved:
            return Likeness.UNKNOWN
        # A bare name of which nothing is known is any full name that ends with it.
        ends = {name: f".{name}" for name in sorted(left.loose)}
        if wanted == _renamed(found, lambda name: next((n for n in ends if name.endswith(ends[n])), name)):
            return Likeness.SAME
        # One library gives its types by several paths: pandas.Series is pandas.core.series.Series.
        same_ends = _renamed(wanted, _ends) == _renamed(found, _ends)
        return Likeness.UNKNOWN if same_ends or (right.loose and names.is_open) else Likeness.DIFFERENT
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _compare_texts(expected, actual)


def compare_defaults(expected: str, actual: str, names: Names | None = None) -> Likeness:
    """Compare the values of two defaults. A constant in the code is its value."""
    try:
        wanted, found = (ast.parse(each.strip(), mode="eval").body for each in (expected, actual))
        if ast.dump(wanted) == ast.dump(found):
            return Likeness.SAME
        value = None if names is None else names.value(actual)
        if value is not None:
            return compare_defaults(expected, value)
        left, right = ast.literal_eval(wanted), ast.literal_eval(found)
        return Likeness.SAME if (type(left), left) == (type(right), right) else Likeness.DIFFERENT
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return _compare_texts(expected, actual)


def _compare_texts(expected: str, actual: str) -> Likeness:
    return Likeness.SAME if expected.strip() == actual.strip() else Likeness.UNKNOWN


def resolve(name: str, names: Names) -> str | None:
    """Return the full name of a dotted name, or ``None`` where nothing is known of it."""
    head, dot, rest = name.partition(".")
    full = names.find(head)
    if full is None:
        full = _CUSTOMARY.get(head) or (head if hasattr(builtins, head) and not dot else None)
    whole = f"{full}{dot}{rest}".replace("typing_extensions.", "typing.")
    return _SAME_AS.get(whole, whole) if full else None


class _Reader:
    """Turns one annotation into its meaning."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.unresolved = False
        """It names something that only running the code would tell."""
        self.loose: set[str] = set()
        """Bare names of which nothing is known."""
        self._steps = 0
        """How many aliases of types are being followed."""

    def read(self, source: str) -> _Meaning:
        return self._expression(ast.parse(source.strip(), mode="eval").body)

    def _expression(self, node: ast.expr) -> _Meaning:
        match node:
            case ast.Constant(value=str(text)):
                return self.read(text)
            case ast.Constant(value=value):
                return ("constant", repr(value))
            case ast.Name() | ast.Attribute() if name := dotted(node):
                return self._name(name)
            case ast.BinOp(op=ast.BitOr()):
                return _union(self._expression(node.left), self._expression(node.right))
            case ast.Subscript():
                return self._subscript(node)
            case ast.List(elts=elements):
                return ("list", *map(self._expression, elements))
            case _:
                self.unresolved = True
                return ast.unparse(node)

    def _name(self, name: str) -> _Meaning:
        full = resolve(name, self.names)
        if full is not None:
            return full
        value = self.names.value(name)
        if value is not None and self._steps < MAX_ALIASES:
            self._steps += 1
            meaning = self.read(value)
            self._steps -= 1
            return meaning
        if self.names.find(name.partition(".")[0]) is None:
            self.loose.add(name)
        else:
            self.unresolved = True
        return name

    def _subscript(self, node: ast.Subscript) -> _Meaning:
        base = self._expression(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match base:
            case "typing.Literal":
                return ("literal", frozenset(("constant", ast.unparse(each)) for each in inner))
            case "typing.Annotated" if inner:
                return self._expression(inner[0])
            case "typing.Optional" if len(inner) == 1:
                return _union(self._expression(inner[0]), ("constant", "None"))
            case "typing.Union" if inner:
                return _union(*map(self._expression, inner))
            case _:
                return ("of", base, *map(self._expression, inner))


def _union(*parts: _Meaning) -> _Meaning:
    flat = frozenset[_Meaning]().union(
        *(part if isinstance(part, frozenset) else frozenset((part,)) for part in parts)
    )
    return flat if len(flat) > 1 else next(iter(flat))


def _renamed(meaning: _Meaning, rename: Callable[[str], str]) -> _Meaning:
    """Return a meaning with another name in the place of each."""
    match meaning:
        case str():
            return rename(meaning)
        case ("constant", _):
            return meaning
        case tuple():
            return (meaning[0], *(_renamed(each, rename) for each in meaning[1:]))
        case _:
            return _union(*(_renamed(each, rename) for each in meaning))


def _ends(name: str) -> str:
    return f"{name.partition('.')[0]}.{name.rpartition('.')[2]}"


_BARE = (
    "Any Optional Union Literal Annotated Self Final NoReturn List Dict Set FrozenSet Tuple Type Text "
    "Callable Iterable Iterator Sequence Mapping MutableMapping Awaitable"
)
_MODULES = "collections datetime decimal numpy pandas pathlib polars torch typing"

_CUSTOMARY = {
    **{name: name for name in _MODULES.split()},
    **{name: f"typing.{name}" for name in _BARE.split()},
    "pd": "pandas",
    "np": "numpy",
    "pl": "polars",
    "plt": "matplotlib.pyplot",
    "tf": "tensorflow",
    "t": "typing",
    "Path": "pathlib.Path",
    "Decimal": "decimal.Decimal",
}
"""What a contract usually means by a name that the module does not bind."""

_SAME_AS = {
    f"typing.{name}": f"{origin.__module__}.{origin.__qualname__}".removeprefix("builtins.")
    for name, value in vars(typing).items()
    if isinstance(origin := getattr(value, "__origin__", None), type)
} | {
    "typing.Text": "str",
    "pandas.core.series.Series": "pandas.Series",
    "pandas.core.frame.DataFrame": "pandas.DataFrame",
}
"""Names of one and the same type; those of :mod:`typing` know what they stand for."""
