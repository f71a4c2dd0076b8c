"""Comparing annotations and defaults by what they mean, not by how they are spelled.

``pd.Series`` is ``pandas.Series`` where the module imports it so, ``Optional[X]`` is ``X | None``, and
quotes do not matter. What cannot be resolved is said to be so, because it must never count as a mismatch.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


MAX_ALIASES = 5
"""How many aliases a name of a type is followed through."""


class Likeness(Enum):
    """How two pieces of source compare."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """One of them names what cannot be resolved without running the code."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the names in a module or a class stand for."""

    imported: Mapping[str, str]
    """Local name to full dotted name."""
    defined: frozenset[str]
    """Classes and functions that the module defines: they are what they are."""
    assigned: frozenset[str]
    """Other names of the module: a type variable, a constant. What they stand for is not known."""
    module: str
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of those that are bound once, to a type or a plain value, its source: ``Price = float``."""
    is_open: bool = False
    """The module may have names that its source does not show."""


def compare_annotations(expected: str, actual: str, names: Names) -> Likeness:
    """Whether two annotations mean the same type, as far as that can be told from the source."""
    left, right = _Reader(names), _Reader(names)
    try:
        wanted, found = left.read(expected), right.read(actual)
        return _compare_meanings(wanted, found, left, right)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Likeness.SAME if expected.strip() == actual.strip() else Likeness.UNKNOWN


def _compare_meanings(wanted: str, found: str, left: _Reader, right: _Reader) -> Likeness:
    if wanted == found:
        return Likeness.SAME
    if left.unresolved or right.unresolved:
        return Likeness.UNKNOWN
    if left.loose and wanted == _with_names_cut(found, _to_one_of(left.loose)):
        return Likeness.SAME
    if right.loose and left.names.is_open:
        return Likeness.UNKNOWN
    # One library gives its types by several paths: pandas.Series is pandas.core.series.Series.
    if _with_names_cut(wanted, _to_its_ends) == _with_names_cut(found, _to_its_ends):
        return Likeness.UNKNOWN
    return Likeness.DIFFERENT


def compare_defaults(expected: str, actual: str, names: Names | None = None) -> Likeness:
    """Whether two defaults are the same value. A name in the code is resolved if it is a constant."""
    likeness = _compare_values(expected, actual)
    if likeness is Likeness.UNKNOWN and names is not None and actual in names.aliases:
        return _compare_values(expected, names.aliases[actual])
    return likeness


def _compare_values(expected: str, actual: str) -> Likeness:
    try:
        wanted, found = (
            ast.parse(expected.strip(), mode="eval").body,
            ast.parse(actual.strip(), mode="eval").body,
        )
        if ast.dump(wanted) == ast.dump(found):
            return Likeness.SAME
        left, right = ast.literal_eval(wanted), ast.literal_eval(found)
        return Likeness.SAME if (type(left), left) == (type(right), right) else Likeness.DIFFERENT
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return Likeness.SAME if expected.strip() == actual.strip() else Likeness.UNKNOWN


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of a name or a chain of attributes."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def resolve(name: str, names: Names) -> str | None:
    """The full name of a dotted name in a module, or ``None`` where nothing is known of it."""
    head, dot, rest = name.partition(".")
    if head in names.imported:
        full = f"{names.imported[head]}{dot}{rest}"
    elif head in names.defined:
        full = f"{names.module}.{name}"
    elif head in names.assigned:
        return None
    elif head in _CUSTOMARY:
        full = f"{_CUSTOMARY[head]}{dot}{rest}"
    elif hasattr(builtins, head) and not dot:
        full = head
    else:
        return None
    return _SAME_AS.get(full, full)


_CUSTOMARY = {
    "pd": "pandas",
    "np": "numpy",
    "pl": "polars",
    "plt": "matplotlib.pyplot",
    "tf": "tensorflow",
    "pandas": "pandas",
    "numpy": "numpy",
    "polars": "polars",
    "torch": "torch",
    "typing": "typing",
    "t": "typing",
    "datetime": "datetime",
    "pathlib": "pathlib",
    "decimal": "decimal",
    "collections": "collections",
    "Path": "pathlib.Path",
    "Decimal": "decimal.Decimal",
    **{
        name: f"typing.{name}"
        for name in ("Any", "Optional", "Union", "Literal", "Annotated", "Self", "Final")
    },
    **{
        name: f"typing.{name}"
        for name in ("List", "Dict", "Set", "FrozenSet", "Tuple", "Type", "Text", "NoReturn")
    },
    **{
        name: f"collections.abc.{name}"
        for name in (
            "Callable",
            "Iterable",
            "Iterator",
            "Sequence",
            "Mapping",
            "MutableMapping",
            "Awaitable",
        )
    },
}
"""What a contract usually means by a name that the module does not bind."""

_ABSTRACT = (
    *("Callable", "Iterable", "Iterator", "Sequence", "MutableSequence", "Mapping", "MutableMapping"),
    *("Awaitable", "Coroutine", "AsyncIterator", "AsyncIterable", "Generator", "AsyncGenerator"),
    *("Collection", "Container", "Hashable", "Sized", "Reversible", "KeysView", "ItemsView", "ValuesView"),
)
_SAME_AS = {
    **{f"typing.{name}": name.lower() for name in ("List", "Dict", "Set", "FrozenSet", "Tuple", "Type")},
    **{f"typing.{name}": f"collections.abc.{name}" for name in _ABSTRACT},
    "typing.AbstractSet": "collections.abc.Set",
    "typing.Text": "str",
    "typing.DefaultDict": "collections.defaultdict",
    "typing.OrderedDict": "collections.OrderedDict",
    "typing.Deque": "collections.deque",
    "typing.Counter": "collections.Counter",
    **{
        f"typing_extensions.{name}": f"typing.{name}"
        for name in (
            "Any",
            "Optional",
            "Union",
            "Literal",
            "Annotated",
            "Self",
            "Final",
            "Never",
            "NoReturn",
        )
    },
    "pandas.core.series.Series": "pandas.Series",
    "pandas.core.frame.DataFrame": "pandas.DataFrame",
}
"""Names of one and the same type."""


class _Reader:
    """Turns one annotation into a spelling of its meaning."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.unresolved = False
        """It names something that only running the code would tell."""
        self.steps = 0
        """How many aliases of types are being followed."""
        self.loose: set[str] = set()
        """Bare names of which nothing is known; they are compared by their last part."""

    def read(self, source: str) -> str:
        return self._expression(ast.parse(source.strip(), mode="eval").body)

    def _expression(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return self.read(text)
            case ast.Constant(value=value):
                return "..." if value is ... else repr(value)
            case ast.Name() | ast.Attribute():
                return self._name(node)
            case ast.BinOp(op=ast.BitOr()):
                return _union([self._expression(node.left), self._expression(node.right)])
            case ast.Subscript():
                return self._subscript(node)
            case ast.List(elts=elements):
                return f"[{', '.join(self._expression(element) for element in elements)}]"
            case _:
                self.unresolved = True
                return ast.unparse(node)

    def _name(self, node: ast.expr) -> str:
        name = dotted(node)
        if name is None:
            self.unresolved = True
            return ast.unparse(node)
        full = resolve(name, self.names)
        if full is not None:
            return full
        if name in self.names.aliases and self.steps < MAX_ALIASES:
            return self._alias(self.names.aliases[name])
        if name.partition(".")[0] in self.names.assigned:
            self.unresolved = True
        else:
            self.loose.add(name)
        return name

    def _alias(self, source: str) -> str:
        self.steps += 1
        try:
            return self.read(source)
        finally:
            self.steps -= 1

    def _subscript(self, node: ast.Subscript) -> str:
        base = self._expression(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match base:
            case "typing.Literal":
                return f"Literal[{', '.join(sorted(ast.unparse(each) for each in inner))}]"
            case "typing.Annotated" if inner:
                return self._expression(inner[0])
            case "typing.Optional" if len(inner) == 1:
                return _union([self._expression(inner[0]), "None"])
            case "typing.Union":
                return _union([self._expression(each) for each in inner])
            case _:
                return f"{base}[{', '.join(self._expression(each) for each in inner)}]"


_BAR = " | "


def _union(parts: list[str]) -> str:
    """The parts in one order. A part may be a union itself."""
    flat: set[str] = set()
    for part in parts:
        flat.update(_split_union(part))
    return _BAR.join(sorted(flat))


def _split_union(text: str) -> list[str]:
    depth, start, parts = 0, 0, list[str]()
    for at, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth == 0 and text.startswith(_BAR, at):
            parts.append(text[start:at])
            start = at + len(_BAR)
    return [*parts, text[start:]]


class _NameCutter(ast.NodeTransformer):
    """Puts a shorter name in the place of each dotted one."""

    def __init__(self, cut: Callable[[str], str]) -> None:
        self.cut = cut

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = dotted(node)
        return node if name is None else ast.parse(self.cut(name), mode="eval").body


def _with_names_cut(found: str, cut: Callable[[str], str]) -> str:
    tree = _NameCutter(cut).visit(ast.parse(found, mode="eval").body)
    return _union(_split_union(ast.unparse(tree)))


def _to_one_of(loose: set[str]) -> Callable[[str], str]:
    """Cuts full names to the bare ones that they may be: ``indicators.Candle`` to ``Candle``."""
    known = sorted(loose)
    return lambda name: next((each for each in known if name.endswith(f".{each}")), name)


def _to_its_ends(name: str) -> str:
    return f"{name.partition('.')[0]}.{name.rpartition('.')[2]}"
