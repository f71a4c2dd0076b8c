"""JSON text to a tree of nodes, by JSON's own grammar: no comments, no NaN, no key twice."""

from __future__ import annotations

import re
from json import JSONDecodeError, decoder
from typing import TYPE_CHECKING, Any, cast

from planner.edges.nodes import MAX_DEPTH, MAX_NODES, ListNode, MappingNode, Node, Scalar, Tree
from planner.edges.nodes.of_yaml import duplicate

if TYPE_CHECKING:
    from planner.edges.source import Source

_scanstring = cast("Any", decoder).scanstring

_SPACE = re.compile(r"[ \t\n\r]*")
_BARE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_A_VALUE = "a text in double quotes, a number, true, false or null"
_REMEDIES = {
    "/": "; delete the comment",
    "#": "; delete the comment",
    "}": "; delete the comma before the bracket",
    "]": "; delete the comma before the bracket",
    "'": "; use double quotes",
}
_NOT_FINITE = re.compile(r"-?(NaN|Infinity)")


def read_json(source: Source) -> Tree:
    """The tree of a JSON text. Raises :class:`planner.edges.faults.Refused` where reading cannot go on."""
    tree = Tree(source)
    reader = _Reader(tree)
    tree.root, end = reader.value(reader.skip(0), 0)
    end = reader.skip(end)
    if end != len(source.text):
        raise tree.refusal(end, "something follows the end of the JSON document; delete it")
    return tree


class _Reader:
    """Reads one value at an offset and returns it with the offset of its end. Depth is bounded."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._text = tree.source.text
        self._count = 0

    def skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        self._count += 1
        if self._count > MAX_NODES:
            raise self._tree.refusal(at, f"the file holds more than {MAX_NODES} values; use sub_plan")
        first = self._text[at : at + 1]
        if first == '"':
            return self._string(at)
        if first and first in "{[":
            if depth >= MAX_DEPTH:
                raise self._tree.refusal(at, f"the nesting is deeper than {MAX_DEPTH}; flatten the plan")
            return self._object(at, depth) if first == "{" else self._array(at, depth)
        bare = _BARE.match(self._text, at)
        if bare is None:
            raise self._tree.refusal(at, self._unexpected(at, _A_VALUE))
        return Scalar(at, bare[0], False), bare.end()

    def _string(self, at: int) -> tuple[Scalar, int]:
        try:
            text, end = _scanstring(self._text, at + 1, True)
        except JSONDecodeError as error:
            raise self._tree.refusal(error.pos, f"this is no JSON: {error.msg.lower()}") from None
        return Scalar(at, text, True), end

    def _array(self, at: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        end = self.skip(at + 1)
        if self._text[end : end + 1] == "]":
            return ListNode(at, items), end + 1
        while True:
            item, end = self.value(end, depth + 1)
            items.append(item)
            end, closed = self._next(end, "]")
            if closed:
                return ListNode(at, items), end

    def _object(self, at: int, depth: int) -> tuple[Node, int]:
        mapping = MappingNode(at, [])
        entries: dict[str, tuple[Scalar, Node]] = {}
        end = self.skip(at + 1)
        if self._text[end : end + 1] == "}":
            return mapping, end + 1
        while True:
            if self._text[end : end + 1] != '"':
                raise self._tree.refusal(end, self._unexpected(end, "a key in double quotes"))
            key, end = self._string(end)
            end = self.skip(end)
            if self._text[end : end + 1] != ":":
                raise self._tree.refusal(end, "this is no JSON: a colon is wanted after the key")
            value, end = self.value(self.skip(end + 1), depth + 1)
            if key.text in entries:
                first = self._tree.source.position(entries[key.text][0].at)
                self._tree.mark(mapping, duplicate(key.text, first), f".{key.text}", key.at)
            entries.setdefault(key.text, (key, value))
            end, closed = self._next(end, "}")
            if closed:
                mapping.entries = list(entries.values())
                return mapping, end

    def _next(self, at: int, close: str) -> tuple[int, bool]:
        """Past a comma, or past the closing bracket."""
        at = self.skip(at)
        found = self._text[at : at + 1]
        if found == close:
            return at + 1, True
        if found != ",":
            raise self._tree.refusal(at, f"this is no JSON: a comma or '{close}' is wanted here")
        return self.skip(at + 1), False

    def _unexpected(self, at: int, wanted: str) -> str:
        found = self._text[at : at + 1]
        if not found:
            return "this is no JSON: the text ends too early; close what was opened"
        if _NOT_FINITE.match(self._text, at):
            return "NaN and Infinity are no JSON; write a finite number"
        remedy = _REMEDIES.get(found, "")
        return f"this is no JSON: {wanted} is wanted here{remedy}"
