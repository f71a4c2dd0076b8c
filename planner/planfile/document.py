"""A plan file as a tree of nodes: read within bounds, with the position of every part and what is wrong.

The nodes are composed here from the events of PyYAML's parser, in C where it is built so: PyYAML's own
composer recurses without bound, keeps the last of two equal keys and lets a few aliases stand for
gigabytes. JSON goes the same way once :mod:`json` has found it sound. The parser then sees ``x`` for each
character of a text and blanks for line ends, because YAML knows other escapes and line breaks than JSON.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import yaml

from planner.errors import PlanFileError
from planner.planfile.project_files import open_regular
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
"""The size of the largest plan file that is read."""

MAX_DEPTH = 64
"""How deep lists and mappings may be nested."""

MAX_NODES = 2_000_000
"""How many values a file may hold. A long text counts as several."""

MAX_ALIASED = 500_000
"""How many values all aliases of a file may stand for together."""

MAX_FAULTS = 1_000
"""Further faults of a file are not kept."""

SCREEN = 20
"""How many lines of faults are shown."""

MAX_LINE = 400
"""How many characters one line of a fault may have."""

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the plan by the names of the model: ``("items", 2, "title")``."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\t\r\n]|NaN|-?Infinity')
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + "str", "!"}
_TAGS = {None, *_TEXT_TAGS, *(_TAG + name for name in ("bool", "int", "float", "null", "map", "seq"))}
_YAML_REMEDIES = {
    "mapping values are not allowed": "put text that holds ': ' in quotes",
    "cannot start any token": "put the text in quotes",
    "expected <block end>": "indent the lines of one list or mapping alike",
    "could not find expected ':'": "write 'key: value', or indent the lines of a text alike",
    "did not find expected ',' or": "close the bracket, or put a comma between its parts",
    "did not find expected key": "indent the lines of one mapping alike",
    "unknown escape character": "write a backslash in double quotes twice, or use single quotes",
}

_TOO_DEEP = f"the nesting is deeper than {MAX_DEPTH}; flatten the plan"


# -- faults --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong. ``problem`` says what, and after a semicolon what to do."""

    line: int | None = None
    column: int | None = None
    path: str = ""
    """Where in the plan: ``items[2].title``; empty for the document itself."""
    problem: str


class Refused(Exception):
    """The file cannot be used: ``faults`` tells why, or the message does."""

    def __init__(self, problem: str, faults: Iterable[Fault] = ()) -> None:
        self.faults = tuple(faults) or (Fault(problem=problem),)
        super().__init__(self.faults[0].problem)


class ManyFaultsError(PlanFileError):
    """A plan file with more faults than a screen holds: the first are shown, all are in ``faults``."""

    def __str__(self) -> str:
        head, *lines = super().__str__().split("\n")
        return "\n".join([head, *lines[:SCREEN], f"… and {len(lines) - SCREEN} more"])


def plan_file_error(name: str, faults: Iterable[Fault]) -> PlanFileError:
    """Return the error that shows these faults, in the order of their positions, of the file ``name``."""
    name = one_line(name, limit=MAX_LINE)
    lines: list[str] = []
    for fault in sorted(set(faults), key=lambda each: (each.line or 0, each.column or 0, each.path)):
        position = "" if fault.line is None else f":{fault.line}:{fault.column}"
        path = f" {one_line(fault.path, limit=120)}" if fault.path else ""
        lines.append(f"{name}{position}{path}: {one_line(fault.problem, limit=MAX_LINE)}")
    return (ManyFaultsError if len(lines) > SCREEN else PlanFileError)(name, tuple(lines))


# -- the bytes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """The text of a file. A character is named by its offset in ``text``."""

    text: str
    digest: str = ""
    """``sha256:`` and the hexadecimal digest of the file's bytes."""
    marked: bool = False
    """Whether a byte order mark stands in front of the text, which does not hold it."""

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of a character, both counted from one."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        # Editors count only these as the end of a line, str.splitlines many more.
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]


def read_source(path: Path) -> Source:
    """Read a plan file. Raises :class:`Refused` for whatever is not a UTF-8 text of bearable size."""
    try:
        with open_regular(path) as file:
            return decode(file.read(MAX_BYTES + 1))
    except IsADirectoryError:
        raise Refused("this is a directory; name the plan file in it") from None
    except FileNotFoundError:
        raise Refused("there is no such file; check the path") from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"the file cannot be read: {cause}; check its path and its permissions") from None


def decode(data: bytes) -> Source:
    """Return the text that these bytes are. Raises :class:`Refused`."""
    if len(data) > MAX_BYTES:
        raise Refused(f"the file is larger than {MAX_BYTES // 2**20} MiB; split the plan with sub_plan")
    if data.startswith(_WIDE_MARKS):
        raise Refused("the file is UTF-16 or UTF-32 text; save it as UTF-8")
    if not data.strip():
        raise Refused("the file is empty; a plan needs at least a todo_list_id and one item")
    if b"\0" in data:
        raise Refused("the file is binary; a plan is YAML or JSON text")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line, column = Source(before).position(len(before))
        problem = f"the byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Refused(problem, [Fault(line=line, column=column, problem=problem)]) from None
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return Source(text, digest, marked=data.startswith(codecs.BOM_UTF8))


# -- the nodes -----------------------------------------------------------------------------------------


class Node:
    """One value of a file, by the offsets of its text."""

    __slots__ = ("at", "end", "is_alias", "is_flow", "parts", "spelled", "style", "value")

    def __init__(self, at: int, value: str | list[Node] | dict[str, tuple[int, Node]]) -> None:
        self.at = at
        self.end = at
        """Of a list or mapping in block style, anywhere behind its last word."""
        self.value = value
        """A text as it was written, a list of nodes, or a mapping: key -> (offset of the key, node)."""
        self.style: str | None = None
        """Of a text its quotes, ``|`` or ``>``."""
        self.is_flow = False
        """A list or mapping in brackets."""
        self.is_alias = False
        self.parts: list[Node] = []
        """The items of a list; of a mapping, the keys and values that stand in it, in turn."""
        self.spelled: dict[str, str] = {}
        """Of a mapping, by the name of a field, the key by which the file names it."""


class Place(NamedTuple):
    """Position of something in a document, or the innermost node that lacks it."""

    node: Node
    path: str
    """As the file spells it: ``items[2].title``."""
    at: int
    """The offset of the node's key where it has one, else of the node."""
    is_there: bool


class Document:
    """The nodes of a file, and the faults found in them so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.root = Node(0, {})
        self.faults: list[Fault] = []
        self._faulty: set[str] = set()
        self._said: set[tuple[int, str]] = set()

    def find(self, loc: Loc) -> Place:
        """Look up a place by the names of the model."""
        node, path, at = self.root, "", self.root.at
        for part in loc:
            held = node.value
            if isinstance(held, list) and isinstance(part, int) and part < len(held):
                node, path = held[part], f"{path}[{part}]"
                at = node.at
            elif isinstance(held, dict):
                key = node.spelled.get(str(part), str(part))
                path = f"{path}.{key}".removeprefix(".")
                if key not in held:
                    return Place(node, path, node.at, False)
                at, node = held[key]
        return Place(node, path, at, True)

    def mark(self, at: int, path: str, problem: str) -> None:
        """Note a fault. What aliases repeat is said once."""
        self._faulty.add(path)
        if (at, problem) not in self._said and len(self.faults) < MAX_FAULTS:
            self._said.add((at, problem))
            line, column = self.source.position(at)
            self.faults.append(Fault(line=line, column=column, path=path, problem=problem))

    def refusal(self, at: int, problem: str, path: str = "") -> Refused:
        """Return the exception for a fault after which reading cannot go on."""
        self.mark(at, path, problem)
        return Refused(problem, self.faults)

    def is_faulty(self, path: str, *, below: bool = False) -> bool:
        """Return whether a fault of the place is known, or (``below``) of any that it holds."""
        return path in self._faulty or (
            below and any(each.startswith(path) for each in self._faulty if each)
        )


def compose(source: Source, *, is_json: bool) -> Document:
    """Compose the nodes of a text. Raises :class:`Refused` where reading cannot go on."""
    composer = _Composer(source)
    text = source.text
    if is_json:
        text = composer.masked_json()
    elif odd := _UNPRINTABLE.search(text):
        problem = f"the control character U+{ord(odd[0]):04X} may not stand in YAML; delete it"
        raise composer.document.refusal(odd.start(), problem)
    parser = _Parser(text)
    try:
        composer.follow(parser, source.text if is_json else None)
    except yaml.YAMLError as error:
        raise composer.document.refusal(*_yaml_fault(text, error)) from None
    finally:
        parser.dispose()
    return composer.document


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been seen."""

    node: Node
    anchor: str | None
    before: int
    """How many values the file had when it began."""
    height: int = 1
    key: Node | None = None
    """The key whose value comes next."""
    merged: list[Node] = field(default_factory=list[Node])


class _Composer:
    """Put nodes together within the bounds, in the order of the text."""

    def __init__(self, source: Source) -> None:
        self.document = Document(source)
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int, int] | None] = {}
        """By name the node, its size and its height; ``None`` while it is open."""
        self._count = 0
        self._aliased = 0

    def masked_json(self) -> str:
        """Return the text as the YAML parser is to see it. Raises :class:`Refused` for what is no JSON."""
        text = self.document.source.text

        def refuse_constant(name: str) -> None:
            found = next(each for each in _JSON_TOKEN.finditer(text) if each[0] == name)
            problem = "NaN and Infinity are no JSON; write a finite number"
            raise self.document.refusal(found.start(), problem)

        try:
            # Numbers stay text: of a million digits none is computed.
            json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse_constant)
        except json.JSONDecodeError as error:
            problem = f"this is no JSON: {error.msg[:1].lower()}{error.msg[1:]}"
            raise self.document.refusal(min(error.pos, len(text)), problem) from None
        except RecursionError:
            pass  # the parser's events say where it is too deep
        return _JSON_TOKEN.sub(
            lambda found: f'"{"x" * (len(found[0]) - 2)}"' if len(found[0]) > 1 else " ", text
        )

    def follow(self, parser: Any, json_text: str | None) -> None:
        """Build the nodes of a document from a parser's events. Raises :class:`Refused`."""
        documents = 0
        while True:
            event = parser.get_event()
            kind = event.__class__
            at: int = event.start_mark.index
            if kind is yaml.ScalarEvent:
                self._add_scalar(event, at, json_text)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                node = Node(at, {} if kind is yaml.MappingStartEvent else [])
                node.is_flow = bool(event.flow_style)
                self._begin(node, event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(event.end_mark.index)
            elif kind is yaml.AliasEvent:
                self._add_alias(event, at)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    problem = "a second document begins here; keep one plan in one file"
                    raise self.document.refusal(at, problem)
            elif kind is yaml.StreamEndEvent:
                break
        if not documents:
            raise self.document.refusal(0, "the file holds only comments; write the plan's keys")

    def _add_scalar(self, event: Any, at: int, json_text: str | None) -> None:
        end: int = event.end_mark.index
        text: str = event.value
        if json_text is not None and event.style:
            text = json_text[at + 1 : end - 1]
            text = json.loads(f'"{text}"', strict=False) if "\\" in text else text
        node = Node(at, text)
        node.end, node.style = end, event.style or ('"' if event.tag in _TEXT_TAGS else None)
        self._refuse_tag(event.tag, at)
        # A long text weighs more, so that aliases of it cannot fill the memory either.
        weight = 1 + (len(text) >> 6)
        self._weigh(weight, at)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, weight, 0)
        self._place(node)

    def _begin(self, node: Node, event: Any) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise self.document.refusal(node.at, _TOO_DEEP)
        self._refuse_tag(event.tag, node.at)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open(node, event.anchor, self._count + self._aliased))
        self._weigh(1, node.at)

    def _close(self, end: int) -> None:
        closed = self._open.pop()
        closed.node.end = end
        for merged in closed.merged:
            self._merge(closed.node, merged)
        if closed.anchor is not None:
            size = self._count + self._aliased - closed.before
            self._anchors[closed.anchor] = (closed.node, size, closed.height)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, closed.height + 1)
        self._place(closed.node)

    def _add_alias(self, event: Any, at: int) -> None:
        name = event.anchor
        if name not in self._anchors:
            problem = f"the alias *{name} has no anchor; write &{name} before it"
            raise self.document.refusal(at, problem, self._path(self._open))
        anchored = self._anchors[name]
        if anchored is None:
            problem = f"the alias *{name} stands inside what it names; write it out"
            raise self.document.refusal(at, problem)
        target, size, height = anchored
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            problem = f"the aliases stand for more than {MAX_ALIASED} values; write less"
            raise self.document.refusal(at, problem)
        if len(self._open) + height > MAX_DEPTH:
            raise self.document.refusal(at, f"with this alias the nesting is deeper than {MAX_DEPTH}")
        if self._open:
            self._open[-1].height = max(self._open[-1].height, height + 1)
        node = Node(at, target.value)
        node.end, node.style, node.is_alias = event.end_mark.index, target.style, True
        self._place(node)

    def _weigh(self, weight: int, at: int) -> None:
        self._count += weight
        if self._count > MAX_NODES:
            raise self.document.refusal(at, f"the file holds more than {MAX_NODES} values; use sub_plan")

    def _refuse_tag(self, tag: str | None, at: int) -> None:
        if tag not in _TAGS:
            shown = "!!" + str(tag).removeprefix(_TAG) if str(tag).startswith(_TAG) else tag
            problem = f"the tag {shown} is not allowed; write plain text, lists and mappings"
            raise self.document.refusal(at, problem, self._path(self._open))

    def _place(self, node: Node) -> None:
        if not self._open:
            self.document.root = node
            return
        top = self._open[-1]
        top.node.parts.append(node)
        if isinstance(top.node.value, list):
            top.node.value.append(node)
        elif top.key is None:
            top.key = node
        else:
            self._enter(top, top.key, node)
            top.key = None

    def _enter(self, top: _Open, key: Node, value: Node) -> None:
        entries, name = top.node.value, key.value
        assert isinstance(entries, dict)
        path = self._path(self._open[:-1])
        if not isinstance(name, str):
            self.document.mark(key.at, path, "a list or mapping cannot be a key; write a name")
        elif name == "<<" and key.style is None:
            top.merged.append(value)
        elif name in entries:
            line, column = self.document.source.position(entries[name][0])
            problem = f"the key '{name}' stands here a second time (first at {line}:{column}); keep one"
            self.document.mark(key.at, f"{path}.{name}".removeprefix("."), problem)
        else:
            entries[name] = (key.at, value)

    def _merge(self, node: Node, merged: Node) -> None:
        assert isinstance(node.value, dict)
        for part in merged.value if isinstance(merged.value, list) else [merged]:
            if isinstance(part.value, dict):
                for name, entry in part.value.items():
                    node.value.setdefault(name, entry)
            else:
                problem = "only a mapping can be merged with <<; name one, or a list of them"
                self.document.mark(part.at, self._path(self._open), problem)

    def _path(self, opened: list[_Open]) -> str:
        """Return the path of what comes next inside the open lists and mappings."""
        path = ""
        for each in opened:
            if isinstance(each.node.value, list):
                path += f"[{len(each.node.value)}]"
            elif each.key is not None and isinstance(each.key.value, str):
                path += f".{each.key.value}"
        return path.removeprefix(".")


def _yaml_fault(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Return the offset at which the text is no YAML, and the message."""
    told = cast("Any", error)
    start = getattr(told, "context_mark", None)
    mark = getattr(told, "problem_mark", None) or start
    at = min(mark.index if mark is not None else getattr(told, "position", 0), len(text))
    said = str(getattr(told, "problem", None) or getattr(told, "reason", None) or "it cannot be read")
    if "nesting depth" in said:  # a limit of libyaml's own
        return at, _TOO_DEEP
    context = getattr(told, "context", None)
    if start is not None and context == "while scanning a quoted scalar" and "unexpected" in said:
        return start.index, "this is no YAML: the quote that opens here is not closed; close the quote"
    if text[at : at + 1] == "\t":
        return at, "this is no YAML: a tab cannot indent; use spaces"
    remedy = next((remedy for part, remedy in _YAML_REMEDIES.items() if part in said), "")
    said = f"{context}: {said}" if context else said
    return at, f"this is no YAML: {said}{f'; {remedy}' if remedy else ''}"
