"""YAML text to a tree of nodes, by the events of PyYAML's parser.

The tree is built here rather than by PyYAML because its composer recurses, expands aliases without
bound, and keeps the last of two equal keys. Tags that would make anything but text, lists and mappings
are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from planner.edges.nodes import MAX_DEPTH, MAX_NODES, ListNode, MappingNode, Node, Scalar, Tree

if TYPE_CHECKING:
    from planner.edges.source import Source

MAX_ALIASED = 500_000
"""How many values all aliases of a file may stand for together."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("bool", "int", "float", "null")}
_COLLECTION_TAGS = {_TAG + "map", _TAG + "seq", "!"}
_TEXT_TAGS = {_TAG + "str", "!"}

_REMEDIES = {
    "mapping values are not allowed": "put text that holds ': ' in quotes",
    "cannot start any token": "put the text in quotes",
    "expected <block end>": "indent the lines of one list or mapping alike",
    "could not find expected ':'": "write 'key: value', or indent the lines of a text alike",
    "unexpected end of stream": "close the quote",
    "did not find expected ',' or": "close the bracket, or put a comma between its parts",
    "did not find expected key": "indent the lines of one mapping alike",
    "unknown escape character": "write a backslash in double quotes twice, or use single quotes",
}


class _Open:
    """A list or mapping whose end has not been seen. A mapping's keys and values stand in turns."""

    __slots__ = ("anchor", "at", "before", "height", "is_mapping", "nodes", "tag")

    def __init__(self, at: int, is_mapping: bool, event: Any, before: int) -> None:
        self.at = at
        self.tag: str | None = event.tag
        self.is_mapping = is_mapping
        self.anchor: str | None = event.anchor
        self.before = before
        self.height = 1
        self.nodes: list[Node] = []


class _Anchored:
    """A node that an alias may repeat, and what that repetition costs."""

    __slots__ = ("height", "node", "size")

    def __init__(self, node: Node, size: int, height: int) -> None:
        self.node = node
        self.size = size
        self.height = height


def read_yaml(source: Source) -> Tree:
    """The tree of a YAML text. Raises :class:`planner.edges.faults.Refused` where reading cannot go on."""
    tree = Tree(source)
    odd = _UNPRINTABLE.search(source.text)
    if odd:
        code = f"U+{ord(odd[0]):04X}"
        raise tree.refusal(odd.start(), f"the control character {code} may not stand in YAML; delete it")
    try:
        parser = _Parser(source.text)
        try:
            _Builder(tree).build(parser.get_event)
        finally:
            parser.dispose()
    except yaml.YAMLError as error:
        raise tree.refusal(*_syntax_fault(source.text, error)) from None
    return tree


class _Builder:
    """Turns the stream of events into the nodes of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._count = 0
        self._aliased = 0
        self._documents = 0

    def build(self, get_event: Any) -> None:
        while True:
            event = get_event()
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._start(event, kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self._document(event)
            elif kind is yaml.StreamEndEvent:
                break
        if not self._documents:
            raise self._tree.refusal(0, "the file holds only comments; write the plan's keys")

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            at = event.start_mark.index
            raise self._tree.refusal(at, "a second document begins here; keep one plan in one file")

    def _scalar(self, event: Any) -> None:
        at = event.start_mark.index
        text: str = event.value
        node = Scalar(at, text, bool(event.style))
        if event.tag is not None:
            self._tag(node, event.tag)
        # A long text weighs more, so that aliases of it cannot fill the memory either.
        self._weigh(1 + (len(text) >> 6), at)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, 1 + (len(text) >> 6), 0)
        self._place(node)

    def _tag(self, node: Scalar, tag: str) -> None:
        if tag in _TEXT_TAGS:
            node.quoted = True
        elif tag in _PLAIN_TAGS:
            node.quoted = False
        else:
            self._refuse_tag(node, tag)

    def _refuse_tag(self, node: Node, tag: str) -> None:
        shown = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
        self._tree.condemn(node, f"the tag {shown} is not allowed; write plain text, lists and mappings")

    def _start(self, event: Any, is_mapping: bool) -> None:
        at = event.start_mark.index
        if len(self._open) >= MAX_DEPTH:
            raise self._tree.refusal(at, f"the nesting is deeper than {MAX_DEPTH}; flatten the plan")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open(at, is_mapping, event, self._count + self._aliased))
        self._weigh(1, at)

    def _end(self) -> None:
        closed = self._open.pop()
        node: Node
        if closed.is_mapping:
            node = MappingNode(closed.at, [])
            self._fill(node, closed.nodes)
        else:
            node = ListNode(closed.at, closed.nodes)
        if closed.tag is not None and closed.tag not in _COLLECTION_TAGS:
            self._refuse_tag(node, closed.tag)
        if closed.anchor is not None:
            size = self._count + self._aliased - closed.before
            self._anchors[closed.anchor] = _Anchored(node, size, closed.height)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, closed.height + 1)
        self._place(node)

    def _alias(self, event: Any) -> None:
        at, name = event.start_mark.index, event.anchor
        if name not in self._anchors:
            missing = Scalar(at, "", False)
            self._tree.condemn(missing, f"the alias *{name} has no anchor; write &{name} before it")
            self._place(missing)
            return
        anchored = self._anchors[name]
        if anchored is None:
            raise self._tree.refusal(at, f"the alias *{name} stands inside what it names; write it out")
        self._aliased += anchored.size
        if self._aliased > MAX_ALIASED:
            raise self._tree.refusal(
                at, f"the aliases stand for more than {MAX_ALIASED} values; write less"
            )
        if len(self._open) + anchored.height > MAX_DEPTH:
            raise self._tree.refusal(at, f"with this alias the nesting is deeper than {MAX_DEPTH}")
        if self._open:
            self._open[-1].height = max(self._open[-1].height, anchored.height + 1)
        self._place(anchored.node)

    def _weigh(self, weight: int, at: int) -> None:
        self._count += weight
        if self._count > MAX_NODES:
            raise self._tree.refusal(at, f"the file holds more than {MAX_NODES} values; use sub_plan")

    def _place(self, node: Node) -> None:
        if self._open:
            self._open[-1].nodes.append(node)
        else:
            self._tree.root = node

    def _fill(self, mapping: MappingNode, nodes: list[Node]) -> None:
        entries: dict[str, tuple[Scalar, Node]] = {}
        merged: list[Node] = []
        turns = iter(nodes)
        for key, value in zip(turns, turns, strict=True):
            if type(key) is not Scalar:
                problem = "a list or mapping cannot be a key; write a name"
                self._tree.mark(mapping, problem, at=key.at)
            elif key.text == "<<" and not key.quoted:
                merged.append(value)
            elif key.text in entries:
                first = self._tree.source.position(entries[key.text][0].at)
                self._tree.mark(mapping, duplicate(key.text, first), f".{key.text}", key.at)
            else:
                entries[key.text] = (key, value)
        for value in merged:
            self._merge(mapping, entries, value)
        mapping.entries = list(entries.values())

    def _merge(self, mapping: MappingNode, entries: dict[str, tuple[Scalar, Node]], value: Node) -> None:
        for part in value.items if type(value) is ListNode else [value]:
            if type(part) is not MappingNode:
                problem = "only a mapping can be merged with <<; name one, or a list of them"
                self._tree.mark(mapping, problem, at=part.at)
                continue
            for key, merged in part.entries:
                entries.setdefault(key.text, (key, merged))


def duplicate(key: str, first: tuple[int, int]) -> str:
    """What to say of a key that stands a second time in its mapping."""
    return f"the key '{key}' stands here a second time (first at {first[0]}:{first[1]}); keep one of them"


def _syntax_fault(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Where the text is no YAML, and how to say so."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = min(mark.index if mark is not None else getattr(error, "position", 0), len(text))
    said = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read")
    if text[at : at + 1] == "\t":
        return at, "this is no YAML: a tab cannot indent; use spaces"
    remedy = next((remedy for part, remedy in _REMEDIES.items() if part in said), "")
    where = getattr(error, "context", None)
    return at, f"this is no YAML: {where + ': ' if where else ''}{said}{'; ' + remedy if remedy else ''}"
