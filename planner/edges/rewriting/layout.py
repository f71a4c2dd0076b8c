"""Where each part of a plan file stands in its text, from its first character to its last.

The nodes of :mod:`planner.edges.nodes` say what a file holds, aliases and merged keys resolved; the parts
say how it was written: in block or flow style, quoted or not, an alias where there is one. The text must be
sound.
"""

from __future__ import annotations

import re
from json import decoder
from typing import Any, Literal, TypeAlias, cast

import yaml

Kind: TypeAlias = Literal["scalar", "list", "mapping", "alias"]

MERGE = "<<"
"""The key by which a YAML mapping takes over the entries of another."""

_BLOCK_HEADER = re.compile(r"(?:[&!]\S*[ \t]+)*[|>][-+0-9]*")
_PROPERTIES = re.compile(r"[&!]")
_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_JSON_BARE = re.compile(r"[^\s,\]}]+")

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_scanstring = cast("Any", decoder).scanstring


class Part:
    """One value or key as it was written, ``text[start:end]``: without comments or blanks around it.

    ``children`` holds the items of a list, and keys and values of a mapping in turns. ``style`` is the
    quote or block indicator of a scalar, ``{`` of a collection in flow style, else empty.
    """

    __slots__ = ("anchored", "children", "end", "kind", "start", "style", "text")

    def __init__(self, kind: Kind, start: int, end: int, style: str, text: str = "") -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.style = style
        self.text = text
        """What a scalar says."""
        self.anchored = False
        """An anchor or a tag stands in front, at ``start``."""
        self.children: list[Part] = []

    @property
    def is_flow(self) -> bool:
        return self.style == "{"

    @property
    def is_block(self) -> bool:
        """Whether it is a list or mapping that has lines of its own."""
        return self.kind in ("list", "mapping") and self.style != "{"

    @property
    def is_block_scalar(self) -> bool:
        return self.style in ("|", ">")

    def entries(self) -> list[tuple[Part, Part]]:
        """The keys and values of a mapping, as they were written."""
        return list(zip(self.children[::2], self.children[1::2], strict=True))


def json_layout(text: str) -> Part:
    """The parts of a JSON text that loads."""
    return _json_value(text, _json_skip(text, 0))


def yaml_layout(text: str) -> Part:
    """The parts of a YAML text that loads."""
    parser = _Parser(text)
    try:
        return _yaml_root(text, parser.get_event)
    finally:
        parser.dispose()


def header_end(text: str, part: Part) -> int:
    """Where the first line of a block scalar ends, before what may be said beside it."""
    found = _BLOCK_HEADER.match(text, part.start)
    return found.end() if found else part.end


def _yaml_root(text: str, get_event: Any) -> Part:
    top = Part("list", 0, 0, "")
    opened: list[Part] = [top]
    while True:
        event = get_event()
        kind = event.__class__
        if kind is yaml.ScalarEvent:
            opened[-1].children.append(_yaml_scalar(text, event))
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            name: Kind = "mapping" if kind is yaml.MappingStartEvent else "list"
            start = event.start_mark.index
            part = Part(name, start, start, "{" if event.flow_style else "")
            part.anchored = _is_anchored(text, event)
            opened[-1].children.append(part)
            opened.append(part)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            part = opened.pop()
            # The end of a block is where the next thing begins, comments and blank lines further.
            part.end = event.end_mark.index if part.style else part.children[-1].end
        elif kind is yaml.AliasEvent:
            alias = Part("alias", event.start_mark.index, event.end_mark.index, "")
            opened[-1].children.append(alias)
        elif kind is yaml.StreamEndEvent:
            return top.children[0]


def _yaml_scalar(text: str, event: Any) -> Part:
    style: str = event.style or ""
    part = Part("scalar", event.start_mark.index, event.end_mark.index, style, event.value)
    part.anchored = _is_anchored(text, event)
    if style in ("|", ">") and style:
        part.end = _end_of_block(text, part)
    return part


def _is_anchored(text: str, event: Any) -> bool:
    if event.anchor is None and event.tag is None:
        return False
    return _PROPERTIES.match(text, event.start_mark.index) is not None


def _end_of_block(text: str, part: Part) -> int:
    """The end of the last line of a block scalar. The parser looks for it beyond blank lines."""
    head = header_end(text, part)
    end = part.end
    kept = "+" in text[part.start : head].rpartition(part.style)[2]
    while end > head and text[end - 1] in (" \t" if kept else " \t\r\n"):
        end -= 1
    if kept and text.endswith("\n", head, end):
        end -= 2 if text.endswith("\r\n", head, end) else 1
    return end


def _json_value(text: str, at: int) -> Part:
    first = text[at]
    if first == '"':
        said, end = _scanstring(text, at + 1, True)
        return Part("scalar", at, end, '"', said)
    if first not in "[{":
        bare = cast("re.Match[str]", _JSON_BARE.match(text, at))
        return Part("scalar", at, bare.end(), "", bare[0])
    part = Part("list" if first == "[" else "mapping", at, at, "{")
    end = _json_skip(text, at + 1)
    while text[end] not in "]}":
        child = _json_value(text, end)
        part.children.append(child)
        end = _json_skip(text, child.end)
        if text[end] in ",:":
            end = _json_skip(text, end + 1)
    part.end = end + 1
    return part


def _json_skip(text: str, at: int) -> int:
    return cast("re.Match[str]", _JSON_SPACE.match(text, at)).end()
