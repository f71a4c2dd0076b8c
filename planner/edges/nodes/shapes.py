"""What a plan may hold in each place: reads a node into the plain value that the place wants.

A shape never stops at a fault. It marks the faulty node in the tree and yields :data:`BAD`, so that one
reading of a file finds everything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from planner.edges.nodes import ListNode, MappingNode, Node, Scalar, Tree
from planner.edges.nodes.scalars import NoSuchScalarError, anything, boolean, is_null, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.model.base import Value

EXTENSION = "x-"
"""Keys that begin so are the user's own."""


_COMPARED = 80
"""So many characters are compared when a name is guessed: the comparison is quadratic."""


_SHORT = 2
"""Of words up to this length nothing is guessed."""


_FEW = 12
"""Fewer keys than this are all listed."""


class Bad:
    """The type of :data:`BAD`."""


BAD: Final = Bad()
"""Stands for a value that could not be read."""


class Shape(Protocol):
    """What is wanted in one place of a plan."""

    def read(self, node: Node, tree: Tree) -> object:
        """The plain value of the node, or ``BAD`` after marking it."""
        ...

    def blank(self) -> object:
        """A value that stands where none could be read, so that the rest can still be looked at."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """A text, as it was written, whatever it looks like."""

    nullable: bool = False

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not Scalar:
            return _wrong(node, tree, "text", "put it in quotes if it is meant as text")
        if not node.quoted and is_null(node):
            if self.nullable:
                return None
            tree.mark(node, "nothing is written here; write a text, in quotes if it is meant as it stands")
            return BAD
        return node.text

    def blank(self) -> object:
        return ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words. ``noun`` is what to call one."""

    names: tuple[str, ...]
    noun: str
    nullable: bool = False

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not Scalar:
            return _wrong(node, tree, self.noun, f"write one of {', '.join(self.names)}")
        if node.text in self.names:
            return node.text
        if self.nullable and is_null(node):
            return None
        said = f"'{node.text}' is no {self.noun}" if node.text else f"no {self.noun} is written here"
        tree.mark(node, f"{said}; {suggestion(node.text, self.names)}")
        return BAD

    def blank(self) -> object:
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number."""

    whole: bool
    nullable: bool = False

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not Scalar:
            return _wrong(node, tree, "number", "write digits")
        if self.nullable and is_null(node):
            return None
        try:
            return number(node, whole=self.whole)
        except NoSuchScalarError as error:
            tree.mark(node, str(error))
            return BAD

    def blank(self) -> object:
        return 0


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    nullable: bool = False

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not Scalar:
            return _wrong(node, tree, "boolean", "write true or false")
        if self.nullable and is_null(node):
            return None
        try:
            return boolean(node)
        except NoSuchScalarError as error:
            tree.mark(node, str(error))
            return BAD

    def blank(self) -> object:
        return False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. A part that cannot be read leaves ``None`` in its place, so that the others keep theirs."""

    item: Shape
    nullable: bool = False

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not ListNode:
            if type(node) is Scalar and is_null(node):
                return _empty(node, tree, "[]", nullable=self.nullable)
            return _wrong(node, tree, "list", "put it in [ ], or begin each line with '- '")
        read = self.item.read
        values = [read(item, tree) for item in node.items]
        if BAD in values:
            return [None if value is BAD else value for value in values]
        return values

    def blank(self) -> object:
        return []


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping whose keys are words of a choice."""

    keys: Choice
    values: Shape

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not MappingNode:
            if type(node) is Scalar and is_null(node):
                return _empty(node, tree, "{}", nullable=False)
            return _wrong(node, tree, "mapping", f"write '{self.keys.noun}: …'")
        table: dict[str, object] = {}
        for key, value in node.entries:
            if key.text.startswith(EXTENSION):
                continue
            word = self.keys.read(key, tree)
            found = self.values.read(value, tree)
            if word is not BAD and found is not BAD:
                table[key.text] = found
        return table

    def blank(self) -> object:
        return {}


@dataclass(frozen=True, slots=True)
class Either:
    """One of some words, or a list."""

    word: Choice
    many: ListOf

    def read(self, node: Node, tree: Tree) -> object:
        return (self.many if type(node) is ListNode else self.word).read(node, tree)

    def blank(self) -> object:
        return self.word.blank()


@dataclass(frozen=True, slots=True)
class Anything:
    """Whatever stands under a key of the user's own."""

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is ListNode:
            return [self._below(item, tree) for item in node.items]
        if type(node) is MappingNode:
            return {key.text: self._below(value, tree) for key, value in node.entries}
        try:
            return anything(cast("Scalar", node))
        except NoSuchScalarError as error:
            tree.mark(node, str(error))
            return BAD

    def _below(self, node: Node, tree: Tree) -> object:
        value = self.read(node, tree)
        return None if value is BAD else value

    def blank(self) -> object:
        return None


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of a record: its name in the model and what it wants."""

    name: str
    shape: Shape
    required: bool


@dataclass(slots=True)
class Record:
    """A mapping with the fields of a model. ``shorthand`` names the field that a mere text stands for."""

    model: type[Value]
    noun: str
    fields: dict[str, FieldShape] = field(default_factory=dict[str, FieldShape])
    """By every spelling that a file may use."""
    shorthand: str | None = None

    def read(self, node: Node, tree: Tree) -> object:
        if type(node) is not MappingNode:
            return self._read_scalar(node, tree)
        values: dict[str, object] = {}
        extensions: dict[str, object] = {}
        seen: dict[str, str] = {}
        for key, value_node in node.entries:
            known = self.fields.get(key.text)
            if known is None:
                if key.text.startswith(EXTENSION):
                    extensions[key.text] = Anything().read(value_node, tree)
                else:
                    tree.mark(key, f"'{key.text}' is no key of {self.noun}; {self._nearest(key.text)}")
                continue
            name = known.name
            if name in seen:
                tree.mark(key, f"'{key.text}' and '{seen[name]}' are two names of one key; keep one")
                continue
            seen[name] = key.text
            value = known.shape.read(value_node, tree)
            if value is not BAD:
                values[name] = value
        if extensions:
            values["extensions"] = {key: None if v is BAD else v for key, v in extensions.items()}
        for missing in self.required() - seen.keys():
            tree.mark(node, f"{self.noun} needs the key '{missing}'; add it", f".{missing}")
        return values

    def _read_scalar(self, node: Node, tree: Tree) -> object:
        if type(node) is Scalar:
            if is_null(node):
                return _empty(node, tree, "its keys", nullable=False)
            if self.shorthand is not None:
                return {self.shorthand: node.text}
        return _wrong(
            node, tree, "mapping", f"write the keys of {self.noun}, such as '{self.example()}: …'"
        )

    def example(self) -> str:
        """A key that such a mapping may have."""
        return next(iter(self.fields))

    def _nearest(self, key: str) -> str:
        near = get_close_matches(key[:_COMPARED].lower(), self.fields, n=1, cutoff=0.6)
        if near:
            return f"did you mean '{near[0]}'?"
        known = f"known are {', '.join(self.fields)}; " if len(self.fields) < _FEW else ""
        return f"{known}keys of your own begin with '{EXTENSION}'"

    def required(self) -> set[str]:
        """The names of the fields that no file may leave out."""
        return {known.name for known in self.fields.values() if known.required}

    def blank(self) -> object:
        return {}

    def construct(self, values: Mapping[str, Any]) -> Value:
        """A model of what could be read, unchecked, with blanks for what could not."""
        shapes = {known.name: known for known in self.fields.values()}
        parts: dict[str, Any] = {
            known.name: known.shape.blank() for known in shapes.values() if known.required
        }
        for name, value in values.items():
            parts[name] = _constructed(shapes[name].shape, value) if name in shapes else value
        return self.model.model_construct(None, **parts)


def _constructed(shape: Shape, value: Any) -> Any:
    if isinstance(shape, Record):
        return shape.construct(cast("Mapping[str, Any]", value or {}))
    if isinstance(shape, ListOf) and isinstance(value, list):
        item = shape.item
        return tuple(_constructed(item, item.blank() if v is None else v) for v in cast("list[Any]", value))
    return value


def suggestion(word: str, names: Iterable[str]) -> str:
    """Which of the names was meant, or all of them."""
    known = list(names)
    by_folded = {name.lower(): name for name in known}
    guessed = word[:_COMPARED].lower() if len(word) > _SHORT else ""
    near = get_close_matches(guessed, by_folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{by_folded[near[0]]}'?"
    return f"write one of {', '.join(known)}"


def _wrong(node: Node, tree: Tree, wanted: str, remedy: str) -> Bad:
    """Mark a node of another kind than what is wanted."""
    if type(node) is Scalar:
        shown = node.text if len(node.text) <= 60 else node.text[:57] + "…"
        found = f"'{shown}'" if shown else "nothing"
    else:
        found = "a list" if type(node) is ListNode else "a mapping"
    article = "an" if wanted[0] in "aeiou" else "a"
    tree.mark(node, f"{found} stands where {article} {wanted} is wanted; {remedy}")
    return BAD


def _empty(node: Node, tree: Tree, remedy: str, *, nullable: bool) -> object:
    if nullable:
        return None
    tree.mark(node, f"nothing is written here; write {remedy}, or leave the key out")
    return BAD
