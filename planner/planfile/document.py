"""The document between text and values: what a file holds, with the position of every part.

YAML is read by the events of PyYAML's parser, in C where it is built so. The nodes are composed here
rather than by PyYAML, whose composer recurses without bound, keeps the last of two equal keys and lets a
few aliases stand for gigabytes. JSON goes the same way once :mod:`json` has found it sound: PyYAML's
scanner refuses surrogate pairs and control characters that JSON allows, and folds some line separators.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import yaml

from planner.planfile.faults import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.planfile.source import Source

MAX_DEPTH = 64
"""How deep lists and mappings may be nested."""

MAX_NODES = 2_000_000
"""How many values a file may hold. A long text counts as several."""

MAX_ALIASED = 500_000
"""How many values all aliases of a file may stand for together."""

MAX_FAULTS = 10_000
"""After so many faults a file is read no further."""

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the plan by the names of the model: ``("items", 2, "title")``."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + "str", "!"}
_PLAIN_TAGS = {_TAG + name for name in ("bool", "int", "float", "null")}
_COLLECTION_TAGS = {_TAG + "map", _TAG + "seq", "!"}

_YAML_REMEDIES = {
    "mapping values are not allowed": "put text that holds ': ' in quotes",
    "cannot start any token": "put the text in quotes",
    "expected <block end>": "indent the lines of one list or mapping alike",
    "could not find expected ':'": "write 'key: value', or indent the lines of a text alike",
    "did not find expected ',' or": "close the bracket, or put a comma between its parts",
    "did not find expected key": "indent the lines of one mapping alike",
    "unknown escape character": "write a backslash in double quotes twice, or use single quotes",
}
_JSON_TOKEN = re.compile(r'([\[{])|([\]}])|"([^"\\]*(?:\\.[^"\\]*)*)"|[^ \t\r\n,:\[\]{}"]+')
_JSON_BARE = re.compile(r"[-0-9][-+.0-9eE]*|true|false|null")
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_JSON_VALUE = "a text in double quotes, a number, true, false or null is wanted here"
_JSON_KEY = "a key in double quotes is wanted here"
_JSON_WANTED = {
    "Expecting value": _JSON_VALUE,
    "Illegal trailing comma before end of array": _JSON_VALUE,
    "Expecting property name enclosed in double quotes": _JSON_KEY,
    "Illegal trailing comma before end of object": _JSON_KEY,
    "Expecting ':' delimiter": "a colon is wanted after the key",
    "Expecting ',' delimiter": "a comma or the closing bracket is wanted here",
}
_JSON_REMEDIES = {
    "/": "; delete the comment",
    "#": "; delete the comment",
    "}": "; delete the comma before the bracket",
    "]": "; delete the comma before the bracket",
    "'": "; use double quotes",
}


class Node:
    """One value of a file.

    ``value`` is a text as it was written, a list of nodes, or a mapping: key -> (offset of the key, node).
    A ``quoted`` text can be nothing but text. ``at`` is the offset of the first character.
    """

    __slots__ = ("at", "quoted", "value")

    def __init__(
        self, at: int, value: str | list[Node] | dict[str, tuple[int, Node]], quoted: bool = False
    ) -> None:
        self.at = at
        self.value = value
        self.quoted = quoted


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
        self._faulty: set[int] = set()
        self._said: set[tuple[int, str]] = set()
        self._condemned: set[int] = set()

    def find(self, loc: Loc, spellings: Mapping[str, frozenset[str]] | None = None) -> Place:
        """Look up a place. ``spellings`` are the keys that a file may use for a name of the model."""
        node, path, at = self.root, "", self.root.at
        for part in loc:
            held = node.value
            if isinstance(held, list) and isinstance(part, int) and part < len(held):
                node, path = held[part], f"{path}[{part}]"
                at = node.at
            elif isinstance(held, dict):
                names = (spellings or {}).get(str(part), (str(part),))
                key = next((key for key in held if key in names), None)
                if key is None:
                    return Place(node, f"{path}.{part}".removeprefix("."), node.at, False)
                (at, node), path = held[key], f"{path}.{key}"
        return Place(node, path.removeprefix("."), at, True)

    def mark(self, node: Node, path: str, problem: str, at: int | None = None) -> None:
        """Note a fault of a node, or of its part that stands ``at``."""
        at = node.at if at is None else at
        # What aliases repeat is said once.
        if id(node) not in self._condemned and (at, problem) not in self._said:
            self.add(at, path, problem)
            self._said.add((at, problem))
            self._faulty.add(id(node))

    def add(self, at: int, path: str, problem: str) -> None:
        """Note a fault. Raises :class:`Refused` with all of them where there are too many."""
        if len(self.faults) >= MAX_FAULTS:
            raise Refused("", tuple(self.faults))
        line, column = self.source.position(at)
        self.faults.append(Fault(line=line, column=column, path=path, problem=problem))

    def condemn(self, node: Node, path: str, problem: str) -> None:
        """Note a fault of a node, and ignore what else is said about it: that would only follow from it."""
        self.mark(node, path, problem)
        self._condemned.add(id(node))

    def refusal(self, at: int, problem: str) -> Refused:
        """The exception for a fault after which reading cannot go on."""
        line, column = self.source.position(at)
        self.faults.append(Fault(line=line, column=column, problem=problem))
        return Refused(problem, tuple(self.faults))

    def is_faulty(self, node: Node, *, below: bool = False) -> bool:
        """Return whether a fault of the node is known, or (``below``) of any node that it holds."""
        if id(node) in self._faulty or not below:
            return id(node) in self._faulty
        held = node.value
        if isinstance(held, str):
            return False
        parts = held if isinstance(held, list) else [value for _, value in held.values()]
        return any(self.is_faulty(part, below=True) for part in parts)


def compose(source: Source, *, is_json: bool) -> Document:
    """Compose the nodes of a text. Raises :class:`Refused` where reading cannot go on."""
    composer = _Composer(source)
    (_compose_json if is_json else _compose_yaml)(composer, source.text)
    return composer.document


class _Open:
    """A list or mapping whose end has not been seen."""

    __slots__ = ("anchor", "before", "height", "key", "merged", "node")

    def __init__(self, node: Node, anchor: str | None, before: int) -> None:
        self.node = node
        self.anchor = anchor
        self.before = before
        self.height = 1
        self.key: Node | None = None
        """The key whose value comes next."""
        self.merged: list[Node] = []


class _Anchored(NamedTuple):
    """A node that an alias may repeat, and what that repetition costs."""

    node: Node
    size: int
    height: int


class _Composer:
    """Puts nodes together within the bounds, in the order of the text."""

    def __init__(self, source: Source) -> None:
        self.document = Document(source)
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._count = 0
        self._aliased = 0

    def scalar(
        self, at: int, text: str, quoted: bool, anchor: str | None = None, tag: str | None = None
    ) -> None:
        node = Node(at, text, tag in _TEXT_TAGS or (quoted and tag not in _PLAIN_TAGS))
        if tag is not None and tag not in _TEXT_TAGS and tag not in _PLAIN_TAGS:
            self._refuse_tag(node, tag)
        # A long text weighs more, so that aliases of it cannot fill the memory either.
        weight = 1 + (len(text) >> 6)
        self._weigh(weight, at)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, weight, 0)
        self._place(node)

    def open(self, at: int, *, mapping: bool, anchor: str | None = None, tag: str | None = None) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise self.document.refusal(at, f"the nesting is deeper than {MAX_DEPTH}; flatten the plan")
        node = Node(at, {} if mapping else [])
        if tag is not None and tag not in _COLLECTION_TAGS:
            self._refuse_tag(node, tag)
        if anchor is not None:
            self._anchors[anchor] = None
        self._open.append(_Open(node, anchor, self._count + self._aliased))
        self._weigh(1, at)

    def close(self) -> None:
        closed = self._open.pop()
        for merged in closed.merged:
            self._merge(closed.node, merged)
        if closed.anchor is not None:
            size = self._count + self._aliased - closed.before
            self._anchors[closed.anchor] = _Anchored(closed.node, size, closed.height)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, closed.height + 1)
        self._place(closed.node)

    def alias(self, at: int, name: str) -> None:
        if name not in self._anchors:
            missing = Node(at, "")
            problem = f"the alias *{name} has no anchor; write &{name} before it"
            self.document.condemn(missing, self._path(), problem)
            self._place(missing)
            return
        anchored = self._anchors[name]
        if anchored is None:
            problem = f"the alias *{name} stands inside what it names; write it out"
            raise self.document.refusal(at, problem)
        self._aliased += anchored.size
        if self._aliased > MAX_ALIASED:
            problem = f"the aliases stand for more than {MAX_ALIASED} values; write less"
            raise self.document.refusal(at, problem)
        if len(self._open) + anchored.height > MAX_DEPTH:
            problem = f"with this alias the nesting is deeper than {MAX_DEPTH}"
            raise self.document.refusal(at, problem)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, anchored.height + 1)
        self._place(anchored.node)

    def _weigh(self, weight: int, at: int) -> None:
        self._count += weight
        if self._count > MAX_NODES:
            problem = f"the file holds more than {MAX_NODES} values; use sub_plan"
            raise self.document.refusal(at, problem)

    def _refuse_tag(self, node: Node, tag: str) -> None:
        shown = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
        problem = f"the tag {shown} is not allowed; write plain text, lists and mappings"
        self.document.condemn(node, self._path(), problem)

    def _place(self, node: Node) -> None:
        if not self._open:
            self.document.root = node
            return
        top = self._open[-1]
        held = top.node.value
        if isinstance(held, list):
            held.append(node)
        elif top.key is None:
            top.key = node
        else:
            key, top.key = top.key, None
            self._enter(top, key, node)

    def _enter(self, top: _Open, key: Node, value: Node) -> None:
        entries, name = top.node.value, key.value
        assert isinstance(entries, dict)
        if not isinstance(name, str):
            problem = "a list or mapping cannot be a key; write a name"
            self.document.mark(top.node, self._path(self._open[:-1]), problem, key.at)
        elif name == "<<" and not key.quoted:
            top.merged.append(value)
        elif name in entries:
            line, column = self.document.source.position(entries[name][0])
            problem = (
                f"the key '{name}' stands here a second time (first at {line}:{column}); keep one of them"
            )
            path = f"{self._path(self._open[:-1])}.{name}".removeprefix(".")
            self.document.mark(top.node, path, problem, key.at)
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
                self.document.mark(node, self._path(), problem, part.at)

    def _path(self, open_: list[_Open] | None = None) -> str:
        """The path of what comes next inside the open lists and mappings."""
        path = ""
        for each in self._open if open_ is None else open_:
            if isinstance(each.node.value, list):
                path += f"[{len(each.node.value)}]"
            elif each.key is not None and isinstance(each.key.value, str):
                path += f".{each.key.value}"
        return path.removeprefix(".")


# -- YAML ----------------------------------------------------------------------------------------------


def _compose_yaml(composer: _Composer, text: str) -> None:
    odd = _UNPRINTABLE.search(text)
    if odd:
        problem = f"the control character U+{ord(odd[0]):04X} may not stand in YAML; delete it"
        raise composer.document.refusal(odd.start(), problem)
    try:
        parser = _Parser(text)
        try:
            _follow_events(composer, parser.get_event)
        finally:
            parser.dispose()
    except yaml.YAMLError as error:
        raise composer.document.refusal(*_yaml_fault(text, error)) from None


def _follow_events(composer: _Composer, get_event: Callable[[], Any]) -> None:
    documents = 0
    while True:
        event = get_event()
        kind = event.__class__
        at = event.start_mark.index
        if kind is yaml.ScalarEvent:
            composer.scalar(at, event.value, bool(event.style), event.anchor, event.tag)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            is_mapping = kind is yaml.MappingStartEvent
            composer.open(at, mapping=is_mapping, anchor=event.anchor, tag=event.tag)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            composer.close()
        elif kind is yaml.AliasEvent:
            composer.alias(at, event.anchor)
        elif kind is yaml.DocumentStartEvent:
            documents += 1
            if documents > 1:
                problem = "a second document begins here; keep one plan in one file"
                raise composer.document.refusal(at, problem)
        elif kind is yaml.StreamEndEvent:
            break
    if not documents:
        raise composer.document.refusal(0, "the file holds only comments; write the plan's keys")


def _yaml_fault(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Return the offset at which the text is no YAML, and the message."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = min(mark.index if mark is not None else getattr(error, "position", 0), len(text))
    said = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read")
    opened = _open_quote(text, at, error)
    if opened is not None:
        return opened, "this is no YAML: the quote that opens here is not closed; close the quote"
    if text[at : at + 1] == "\t":
        return at, "this is no YAML: a tab cannot indent; use spaces"
    remedy = next((remedy for part, remedy in _YAML_REMEDIES.items() if part in said), "")
    where = getattr(error, "context", None)
    return at, f"this is no YAML: {where + ': ' if where else ''}{said}{'; ' + remedy if remedy else ''}"


def _open_quote(text: str, at: int, error: yaml.YAMLError) -> int | None:
    """Return the offset of the quote that an error follows from, if one was left open.

    A quoted text may go over several lines, so it ends where the next one begins: the parser stumbles
    there, or at the end of the file.
    """
    context = getattr(error, "context_mark", None)
    if context is not None and getattr(error, "context", None) == "while scanning a quoted scalar":
        return context.index if "unexpected" in str(getattr(error, "problem", "")) else None
    parser = _Parser(text)
    try:
        while (token := parser.get_token()) is not None:
            if isinstance(token, yaml.ScalarToken) and token.end_mark.index == at:
                several = token.start_mark.line < token.end_mark.line
                return token.start_mark.index if token.style in ('"', "'") and several else None
    except yaml.YAMLError:
        return None
    finally:
        parser.dispose()
    return None


# -- JSON ----------------------------------------------------------------------------------------------


def _compose_json(composer: _Composer, text: str) -> None:
    try:
        # Numbers stay text: of a million digits none is computed.
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise composer.document.refusal(*_json_fault(text, error)) from None
    except RecursionError:
        pass  # the composer says where it is too deep
    for token in _JSON_TOKEN.finditer(text):
        at = token.start()
        if token[1]:
            composer.open(at, mapping=token[1] == "{")
        elif token[2]:
            composer.close()
        elif token[3] is not None:
            composer.scalar(at, json.loads(token[0], strict=False) if "\\" in token[3] else token[3], True)
        elif _JSON_BARE.fullmatch(token[0]):
            composer.scalar(at, token[0], False)
        else:
            problem = "NaN and Infinity are no JSON; write a finite number"
            raise composer.document.refusal(at, problem)


def _json_fault(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """Return the offset at which the text is no JSON, and the message."""
    at = error.pos
    if error.msg == "Extra data":
        return at, "something follows the end of the JSON document; delete it"
    if error.msg.startswith("Illegal trailing comma"):
        # Python 3.13 points at the comma, those before it at what follows.
        found = _JSON_SPACE.match(text, at + 1)
        at = found.end() if found else at
    if at >= len(text):
        return at, "this is no JSON: the text ends too early; close what was opened"
    wanted = _JSON_WANTED.get(error.msg, error.msg.lower())
    remedy = _JSON_REMEDIES.get(text[at], "") if wanted in (_JSON_VALUE, _JSON_KEY) else ""
    return at, f"this is no JSON: {wanted}{remedy}"
