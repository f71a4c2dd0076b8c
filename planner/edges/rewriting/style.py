"""How one file writes its values: its indentation, line ends and spacing, learned from it and kept to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import yaml

from planner.edges.plan_text import Dumper
from planner.planfile.scalars import BOOLEANS, NULLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.edges.rewriting.layout import Part

_WIDTH = 100
_NARROWEST = 40
_UNFOLDED = 2**30
_LOOKED_AT = 2_000
_WORD = r"(?:[\w./()\[\]=+@-]|:(?=\w|:\w))*"
_SIMPLE = re.compile(rf"[A-Za-z_]{_WORD}(?: [\w./(=+-]{_WORD})*", re.ASCII)
_WORDS = frozenset((*BOOLEANS, *NULLS, "y", "Y", "n", "N"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockStyle:
    """YAML in lines. Widths count spaces; a column counts from zero."""

    step: int = 2
    """How far a mapping stands in from the key above it."""
    list_step: int = 0
    """How far the dashes of a list stand in from the key above them."""
    dash: int = 2
    """The width of a dash and the spaces after it."""

    def below(self, value: Any, column: int) -> tuple[str, list[str]]:
        """A value after a key that stands at ``column``: what follows on the line, and the lines below."""
        if isinstance(value, dict) and value:
            return "", self.lines(cast("dict[str, Any]", value), column + self.step)
        if isinstance(value, list) and value:
            return "", self.lines(cast("list[Any]", value), column + self.list_step)
        return self.scalar(value, column)

    def lines(self, value: dict[str, Any] | list[Any], column: int) -> list[str]:
        """A list or mapping that is not empty, each line whole."""
        if isinstance(value, dict):
            return [line for key, held in value.items() for line in self.entry(key, held, column)]
        return [line for held in value for line in self.item(held, column)]

    def entry(self, key: str, value: Any, column: int) -> list[str]:
        """A key and its value."""
        if not _is_simple(key):
            # Odd keys may need a line of their own; whoever writes YAML for a living knows when.
            return [" " * column + line if line else "" for line in _dumped({key: value}, _WIDTH)]
        head, lines = self.below(value, column)
        return [f"{' ' * column}{key}:{' ' if head else ''}{head}", *lines]

    def item(self, value: Any, column: int) -> list[str]:
        """A dash and what it lists."""
        dash = " " * column + "-".ljust(self.dash)
        if isinstance(value, (dict, list)) and value:
            first, *rest = self.lines(cast("dict[str, Any]", value), column + self.dash)
            return [dash + first[column + self.dash :], *rest]
        head, lines = self.scalar(value, column)
        return [dash + head, *lines]

    def scalar(self, value: Any, column: int) -> tuple[str, list[str]]:
        """What is written on one line, or begins on it."""
        if isinstance(value, str):
            if _is_simple(value) and len(value) + column < _WIDTH:
                return value, []
            if _is_literal(value):
                return self._literal(value, " " * (column + self.step))
        first, *rest = _dumped({"k": value}, max(_WIDTH - column, _NARROWEST))
        return first[3:], [" " * (column + self.step) + line.lstrip() if line else "" for line in rest]

    def _literal(self, text: str, indent: str) -> tuple[str, list[str]]:
        # Where the text itself begins with a blank, the width of the indentation has to be said.
        said = str(self.step) if text[0] in " \t\n" else ""
        end = "" if text.endswith("\n") else "-"
        lines = text.removesuffix("\n").split("\n")
        return f"|{said}{end}", [indent + line if line else "" for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStyle:
    """Values within brackets: as JSON where the file writes JSON, else as YAML."""

    is_json: bool = False
    colon: str = ": "
    comma: str = ", "
    indent: str | None = None
    """What each level of JSON is indented with, ``None`` where it stands in one line."""
    newline: str = "\n"

    def value(self, value: Any, margin: str | None = None) -> str:
        """A value; spread over lines, which begin with ``margin``, if that is the file's habit."""
        if not self.is_json:
            # Within brackets no text is written over several lines.
            return yaml.dump(
                [value],
                Dumper=Dumper,
                default_flow_style=True,
                sort_keys=False,
                allow_unicode=True,
                width=_UNFOLDED,
            ).strip()[1:-1]
        if margin is None or self.indent is None:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        said = json.dumps(
            value, ensure_ascii=False, indent=self.indent, separators=(self.comma.rstrip(), self.colon)
        )
        return said.replace("\n", self.newline + margin)

    def entry(self, key: str, value: Any, margin: str | None = None) -> str:
        """A key and its value."""
        if self.is_json:
            return f"{json.dumps(key, ensure_ascii=False)}{self.colon}{self.value(value, margin)}"
        return self.value({key: value})[1:-1]


def quoted(text: str, quote: str) -> str | None:
    """A text in the quotes that stood there before, or ``None`` where they do not fit it."""
    if not text.isprintable():
        return None
    if quote == '"':
        return json.dumps(text, ensure_ascii=False)
    return "'" + text.replace("'", "''") + "'" if quote == "'" else None


def newline_of(text: str) -> str:
    """How the lines of a text end."""
    if "\r\n" in text:
        return "\r\n"
    return "\r" if "\r" in text and "\n" not in text else "\n"


def block_style_of(text: str, root: Part) -> BlockStyle:
    """How a YAML file indents, by the first places that show it."""
    step: list[int] = []
    list_step: list[int] = []
    dash: list[int] = []
    for key, value in islice(_keyed(root), _LOOKED_AT):
        if not value.is_block or value.anchored:
            continue
        width = column(text, value.start) - column(text, key.start)
        if value.kind == "mapping" or width < 0:
            # What stands below an explicit "? key" tells nothing about the others.
            step += [width] if width > 0 else []
            continue
        list_step.append(width)
        first = value.children[0]
        if first.is_block and line_start(text, first.start) == line_start(text, value.start):
            dash.append(first.start - value.start)
    # The first list is that of the todos; what they hold may stand in otherwise.
    return BlockStyle(
        step=(step or [2])[0], list_step=([*list_step[1:2], *list_step, 0])[0], dash=(dash or [2])[0]
    )


def flow_style_of(text: str, root: Part, *, is_json: bool) -> FlowStyle:
    """How a file spaces what it puts into brackets."""
    keyed = next(iter(_keyed(root)), None)
    if not root.is_flow or keyed is None or not (is_json or keyed[0].style == '"'):
        return FlowStyle(newline=newline_of(text))
    key, value = keyed
    gap = text[root.start + 1 : key.start]
    spread = "\n" in gap or "\r" in gap
    colon = text[key.end : value.start]
    comma = re.match(r",[ ]*", text[value.end : value.end + 20])
    return FlowStyle(
        is_json=True,
        colon=colon if colon.strip() == ":" and "\n" not in colon else ": ",
        comma=", " if spread or comma is None else comma[0],
        indent=re.split(r"[\r\n]+", gap)[-1] if spread else None,
        newline=newline_of(text),
    )


def column(text: str, at: int) -> int:
    """How far into its line a character stands."""
    return at - line_start(text, at)


def line_start(text: str, at: int) -> int:
    """Where the line of a character begins."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _keyed(root: Part) -> Iterator[tuple[Part, Part]]:
    """Keys and values, those further up first in each branch."""
    pending = [root]
    while pending:
        part = pending.pop()
        if part.kind == "mapping":
            yield from part.entries()
        pending.extend(reversed(part.children))


def _is_simple(text: str) -> bool:
    """Whether a text means itself in YAML without quotes, told quickly and with many false alarms."""
    return _SIMPLE.fullmatch(text) is not None and text not in _WORDS


def _is_literal(text: str) -> bool:
    """Whether a text of several lines can be shown as it is."""
    return (
        "\n" in text
        and text.replace("\n", "").replace("\t", "").isprintable()
        and not text.endswith("\n\n")
        and bool(text.rstrip("\n").rpartition("\n")[2].strip())
    )


def _dumped(value: Any, width: int) -> list[str]:
    said = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=width)
    return said.removesuffix("\n").split("\n")
