"""Document: a plan file as a tree of nodes with positions, read within bounds, and its faults.

PyYAML composes the nodes, with libyaml if available. JSON is first checked by :mod:`json` and then
composed in the same way, with ``x`` for each character of a string and spaces for line ends, as YAML's
escapes and line breaks differ from JSON's. The size of the file, the nesting and the number of values are
limited, so that no file, even with aliases of aliases, can exhaust memory or the stack.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import yaml

from planner.errors import Fault, PlanFileError
from planner.planfile.project_files import open_regular
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
"""Limit of a plan file in bytes."""

MAX_DEPTH = 64
"""Limit of nesting."""

MAX_NODES = 500_000
"""Limit of values, with aliases expanded; a long text counts as several."""

MAX_FAULTS = 1_000
"""Limit of recorded faults."""

MAX_LINE = 400
"""Limit of characters of a fault."""

Loc: TypeAlias = tuple[str | int, ...]
"""Location by names of the model: ``("items", 2, "title")``."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What is masked in JSON.
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\t\r\n]')
_TAG = "tag:yaml.org,2002:"
_TAGS = {None, *(_TAG + name for name in ("str", "bool", "int", "float", "null", "map", "seq"))}
# Parts of messages of PyYAML, and what to do.
_YAML_REMEDIES = {
    "mapping values are not allowed": "put text that holds ': ' in quotes",
    "cannot start any token": "put the text in quotes",
    "unexpected end of stream": "close the quote",
    "did not find expected ',' or": "close the bracket, or put a comma between its parts",
    "undefined alias": "write &name before *name",
    "another document": "keep one plan in one file",
}
_CHECK_BOX = re.compile(r"^ *[-*+] \[[ xX]\] ", re.MULTILINE)
_YAML_REMEDY = "indent the lines of a list or mapping equally, and put unusual text in quotes"

_TOO_DEEP = (
    f"the nesting is deeper than {MAX_DEPTH}, or an alias is inside of its own anchor; flatten the plan"
)
_TOO_MANY = f"the file holds more than {MAX_NODES:,} values, with aliases expanded; use sub_plan"


# -- faults --------------------------------------------------------------------------------------------


class Refused(Exception):
    """The file cannot be used, for the reasons in ``faults`` or in the message."""

    def __init__(self, problem: str, faults: Iterable[Fault] = ()) -> None:
        self.faults = tuple(faults) or (Fault(problem=problem),)
        super().__init__(self.faults[0].problem)


def plan_file_error(name: str, faults: Iterable[Fault]) -> PlanFileError:
    """Return the error that shows these faults of the file ``name``, ordered by position."""
    name = one_line(name, limit=MAX_LINE)
    lines: list[str] = []
    for fault in sorted(set(faults), key=lambda each: (each.line or 0, each.column or 0, each.path)):
        position = "" if fault.line is None else f":{fault.line}:{fault.column}"
        path = f" {one_line(fault.path, limit=120)}" if fault.path else ""
        lines.append(f"{name}{position}{path}: {one_line(fault.problem, limit=MAX_LINE)}")
    return PlanFileError(name, tuple(lines))


# -- the bytes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """The text of a file; positions are offsets into ``text``."""

    text: str
    digest: str = ""
    """``sha256:`` and the hexadecimal digest of the file's bytes."""

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        # Line ends as editors count them; str.splitlines() has more.
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]


def read_source(path: Path) -> Source:
    """Read a plan or contract. Raises :class:`Refused` unless it is UTF-8 text within the size limit."""
    try:
        with open_regular(path) as file:
            return decode(file.read(MAX_BYTES + 1))
    except IsADirectoryError:
        raise Refused("this is a directory; name the file in it") from None
    except FileNotFoundError:
        raise Refused("the file does not exist; check the path") from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"the file cannot be read: {cause}; check its path and its permissions") from None


def decode(data: bytes) -> Source:
    """Decode bytes to text. Raises :class:`Refused`."""
    if len(data) > MAX_BYTES:
        raise Refused(f"the file is larger than {MAX_BYTES // 2**20} MiB; split it, a plan with sub_plan")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        # Up to the fault it is valid, so that the position can be counted in characters.
        before = error.object[: error.start].decode()
        line, column = Source(before).position(len(before))
        problem = f"the byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Refused(problem, [Fault(line=line, column=column, problem=problem)]) from None
    return Source(text, "sha256:" + hashlib.sha256(data).hexdigest())


# -- the nodes -----------------------------------------------------------------------------------------

if TYPE_CHECKING:

    class Node(yaml.Node):
        """A node of PyYAML, whose ``value`` :func:`compose` has made usable.

        A mapping has the nodes of key and value by key. A further occurrence of an anchored value is the
        same node again.
        """

        value: str | list[Node] | dict[str, tuple[Node, Node]]
        style: str | None
        """For scalars only: quotes, ``|`` or ``>``; ``None`` if plain."""

else:
    Node = yaml.Node


class Place(NamedTuple):
    """Position of a location in a document, or of its innermost existing parent."""

    node: Node
    path: str
    """Path as spelled in the file: ``items[2].title``."""
    at: int
    """Offset of the node's key, if it has one, else of the node."""
    is_there: bool

    @property
    def start(self) -> int:
        """Return the offset of the node; of an alias, whose value is written above, that of its key."""
        return max(self.at, self.node.start_mark.index)


class Document:
    """The nodes of a file, and the faults found so far."""

    def __init__(self, source: Source, *, is_json: bool) -> None:
        self.source = source
        self._is_json = is_json
        self.root: Node = cast("Any", yaml.MappingNode)(None, {}, yaml.Mark("", 0, 0, 0, None, 0))
        self.spelled: dict[int, dict[str, str]] = {}
        """The key used in the file by field name, for a mapping by the ``id`` of its node."""
        self.pairs: dict[int, list[tuple[Node, Node]]] = {}
        """The keys and values in the text of a mapping, without merged ones, by the ``id`` of its node."""
        self.faults: list[Fault] = []
        self._faulty: set[str] = set()
        self._said: set[tuple[int, str]] = set()
        self._count = 0
        self._known: set[int] = set()
        """Ids of the nodes read so far: PyYAML returns the same object for each alias."""

    def find(self, loc: Loc) -> Place:
        """Return the position of a location."""
        node, path, at, is_there = self.root, "", self.root.start_mark.index, True
        for part in loc:
            held = node.value
            if isinstance(held, list) and isinstance(part, int) and part < len(held):
                node, path = held[part], f"{path}[{part}]"
                at = node.start_mark.index
            elif isinstance(held, dict):
                key = self.spelled.get(id(node), {}).get(str(part), str(part))
                path = f"{path}.{key}".removeprefix(".")
                if key not in held:
                    return Place(node, path, node.start_mark.index, False)
                name, node = held[key]
                at = name.start_mark.index
            else:
                is_there = False
        return Place(node, path, at, is_there)

    def mark(self, at: int, path: str, problem: str) -> None:
        """Add a fault; faults repeated by aliases are added once."""
        self._faulty.add(path)
        # Each alias of a faulty value has a path of its own, but the same position.
        if (at, problem) not in self._said and len(self.faults) < MAX_FAULTS:
            self._said.add((at, problem))
            self.faults.append(self.fault(at, path, problem))

    def fault(self, at: int, path: str, problem: str) -> Fault:
        """Return a fault with the position of an offset, without adding it."""
        line, column = self.source.position(at)
        return Fault(line=line, column=column, path=path, problem=problem)

    def refusal(self, at: int, problem: str, path: str = "") -> Refused:
        """Return the exception for a fault that prevents further reading."""
        self.mark(at, path, problem)
        return Refused(problem, self.faults)

    def is_faulty(self, path: str, *, below: bool = False) -> bool:
        """Return whether the path has a fault, with ``below`` also anything inside of it."""
        return path in self._faulty or (
            below and any(each.startswith(path) for each in self._faulty if each)
        )

    def read(self, node: Any, path: str, depth: int = 1) -> None:
        """Check a node of PyYAML, with aliases expanded, and make its value usable.

        Raises :class:`Refused` beyond the limits.
        """
        at = node.start_mark.index
        is_scalar = isinstance(node, yaml.ScalarNode)
        # Long texts count more, so that aliases of one cannot exhaust the memory.
        self._count += 1 + (len(node.value) >> 6 if is_scalar else 0)
        if self._count > MAX_NODES:
            raise self.refusal(at, _TOO_MANY)
        if depth > MAX_DEPTH and not is_scalar:
            raise self.refusal(at, _TOO_DEEP)
        if id(node) not in self._known:
            self._known.add(id(node))
            if node.tag not in _TAGS:
                shown = "!!" + node.tag.removeprefix(_TAG) if node.tag.startswith(_TAG) else node.tag
                problem = f"the tag {shown} is not allowed; write plain text, lists and mappings"
                raise self.refusal(at, problem, path)
            if isinstance(node, yaml.MappingNode):
                self.pairs[id(node)] = pairs = node.value
                node.value = {}  # before anything in it is read, which may be itself
                self._read_entries(node.value, pairs, path, depth)
            elif is_scalar:
                # `!!str 007` is text like "007", although no quotes are written.
                node.style = node.style or ('"' if node.tag == _TAG + "str" else None)
                if self._is_json and node.style:  # the composer has only seen "xxx", see _masked_json
                    node.value = json.loads(self.source.text[at : node.end_mark.index])
        if isinstance(node, yaml.SequenceNode):
            for index, each in enumerate(node.value):
                self.read(each, f"{path}[{index}]", depth + 1)
        elif isinstance(node, yaml.MappingNode):
            for key, (_, value) in cast("dict[str, tuple[Any, Any]]", node.value).items():
                self.read(value, f"{path}.{key}".removeprefix("."), depth + 1)

    def _read_entries(self, entries: dict[str, Any], pairs: Any, path: str, depth: int) -> None:
        """Fill the entries of a mapping; own keys win over merged ones, and earlier over later ones."""
        merged: list[Any] = []
        for key, value in pairs:
            at = key.start_mark.index
            if not isinstance(key, yaml.ScalarNode):
                self.mark(at, path, "a list or mapping cannot be a key; write a name")
                continue
            self.read(key, path)
            name = str(key.value)
            if name == "<<" and key.style is None:
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif name in entries:
                line, column = self.source.position(entries[name][0].start_mark.index)
                problem = f"the key '{name}' is repeated (first at {line}:{column}); keep one"
                self.mark(at, f"{path}.{name}".removeprefix("."), problem)
            else:
                entries[name] = key, value
        for each in merged:
            self.read(each, path, depth + 1)
            if isinstance(each, yaml.MappingNode):
                entries |= {name: held for name, held in each.value.items() if name not in entries}
            else:
                problem = "only a mapping can be merged with <<; name one, or a list of them"
                self.mark(each.start_mark.index, path, problem)


# -- composing -----------------------------------------------------------------------------------------


class NodeBounds:
    """Resolver that limits PyYAML's composer and leaves scalars untyped."""

    document: Document
    depth = 0
    count = 0

    def descend_resolver(self, parent: Any, _index: object) -> None:
        """Count a child that the composer is about to read."""
        self.depth += 1
        self.count += 1
        # A scalar in the deepest list is one level below it.
        if self.depth > MAX_DEPTH + 1:
            raise self.document.refusal(parent.start_mark.index, _TOO_DEEP)
        if self.count > MAX_NODES:
            raise self.document.refusal(parent.start_mark.index, _TOO_MANY)

    def ascend_resolver(self) -> None:
        """Count the return from a child."""
        self.depth -= 1

    def resolve(self, _kind: object, _value: object, _implicit: object) -> None:
        """Assign no type: types depend on the location in the plan."""


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(NodeBounds, _Base): ...  # in this order, to override the resolver of PyYAML


def compose(source: Source, *, is_json: bool) -> Document:
    """Compose the nodes of a text. Raises :class:`Refused` if reading cannot continue."""
    document = Document(source, is_json=is_json)
    text = source.text
    if is_json:
        text = _masked_json(document)
    elif odd := _UNPRINTABLE.search(text):  # found here, as libyaml tells the place in bytes
        problem = f"the control character U+{ord(odd[0]):04X} is not allowed in YAML; delete it"
        raise document.refusal(odd.start(), problem)
    loader: Any = cast("Any", _Loader)(text)  # not yaml.load(): only nodes have positions
    loader.document = document
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        raise document.refusal(*_yaml_fault(text, error)) from None
    finally:
        loader.dispose()
    if root is None:
        raise document.refusal(0, "the file is empty, or contains only comments; write keys and values")
    document.read(root, "")
    document.root = root
    return document


def _masked_json(document: Document) -> str:
    """Return the text that the YAML parser should see. Raises :class:`Refused` for invalid JSON."""
    text = document.source.text

    try:
        # Numbers stay text: converting a million digits to an integer would take long. NaN and Infinity,
        # which are no JSON, become text, which no place of a number accepts.
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        problem = f"invalid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        if text.startswith(("//", "/*", "#"), error.pos):
            problem = "JSON has no comments: remove this one, or write the file as YAML, where # begins one"
        raise document.refusal(min(error.pos, len(text)), problem) from None
    except RecursionError:
        pass  # the composer reports where the nesting is too deep
    return _JSON_TOKEN.sub(
        lambda found: f'"{"x" * (len(found[0]) - 2)}"' if len(found[0]) > 1 else " ", text
    )


def _yaml_fault(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Return offset and message of a YAML error."""
    details = cast("Any", error)
    context = getattr(details, "context", None)
    start, mark = getattr(details, "context_mark", None), getattr(details, "problem_mark", None)
    # An open quote is noticed at the end of the file, which helps nobody to find it.
    if mark is None or context == "while scanning a quoted scalar":
        mark = start or mark
    at = min(mark.index if mark is not None else getattr(details, "position", 0), len(text))
    message = str(
        getattr(details, "problem", None) or getattr(details, "reason", None) or "it cannot be read"
    )
    # A limit of libyaml's scanner, which runs ahead of the composer that counts the depth.
    if "nesting depth" in message:
        return at, _TOO_DEEP
    if text[at : at + 1] == "\t":
        return at, "invalid YAML: a tab cannot indent; use spaces"
    if "items:" not in text and _CHECK_BOX.search(text):
        return at, "a Markdown list is no plan in YAML; make one of it: planverify init --from FILE"
    remedies = (remedy for part, remedy in _YAML_REMEDIES.items() if part in message)
    message = f"{context}: {message}" if context else message
    return at, f"invalid YAML: {message}; {next(remedies, _YAML_REMEDY)}"
