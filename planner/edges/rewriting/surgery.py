"""Changes the text of a plan file at its parts: entries and items come, go and are replaced in place.

Nothing else is touched. A comment directly above a part belongs to it, one beside it too, and so do those
below it that stand further in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from planner.edges.rewriting.layout import Part, header_end
from planner.edges.rewriting.style import (
    block_style_of,
    column,
    flow_style_of,
    line_start,
    newline_of,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_BLANKS = re.compile(r"(?:[ \t\r\n]|(?<![^ \t\r\n])#[^\r\n]*)*")
_BLANK_LINES = re.compile(r"(?:(?:\r\n|\n|\r(?!\n))[ \t]*(?=[\r\n]))*")
_LINE_END = re.compile(r"[^\r\n]*")
_REST_OF_FLOW_LINE = re.compile(r"[ \t]*(,?)[ \t]*(#[^\r\n]*)?(?=[\r\n]|$)")
_LONG_LINE = 100


class Unpatchable(Exception):
    """The change cannot be made in this place; what holds it has to be written anew."""


class Surgery:
    """Collects changes of one text, and makes them all at once."""

    def __init__(self, text: str, root: Part, *, is_json: bool) -> None:
        self._text = text
        self._newline = newline_of(text)
        self._block = block_style_of(text, root)
        self._flow = flow_style_of(text, root, is_json=is_json)
        self._edits: list[tuple[int, int, str]] = []

    def result(self) -> str:
        """The text with every change. What two removals share is removed once."""
        parts: list[str] = []
        done = 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[0]):
            if start > done:
                parts.append(self._text[done:start])
            parts.append(new)
            done = max(done, end, start)
        return "".join([*parts, self._text[done:]])

    def mark(self) -> int:
        """To go back to by :meth:`forget`."""
        return len(self._edits)

    def forget(self, mark: int) -> None:
        """Take back the changes since the mark."""
        del self._edits[mark:]

    def replace(self, holder: Part, key: Part | None, part: Part, value: Any) -> None:
        """Put another value in the place of a part. ``key`` is that of an entry, ``None`` for an item."""
        if holder.is_flow:
            self._replace_in_flow(part, value)
        elif key is not None:
            self._replace_after_key(key, part, value)
        else:
            self._replace_item(holder, part, value)

    def change_entries(
        self, mapping: Part, removed: Collection[int], added: Iterable[tuple[int, str, Any]]
    ) -> None:
        """Remove entries by index, and add others, each after the entry of an index."""
        entries = mapping.entries()
        if mapping.is_flow:
            units = [(key.start, value.end) for key, value in entries]
            for after, key, value in added:
                self._add_to_flow(units, after, [lambda m, k=key, v=value: self._flow.entry(k, v, m)])
            self._remove_from_flow(units, removed)
            return
        indent = column(self._text, entries[0][0].start)
        for after, key, value in added:
            at = self._tail(entries[after][1].end, indent)
            self._insert_lines(at, self._block.entry(key, value, indent))
        first_kept = _first_kept(len(entries), removed)
        for index in removed:
            key, value = entries[index]
            floor = entries[index - 1][1].end if index else key.start
            if self._is_first_of_line(key.start):
                is_leading = index < first_kept
                self._remove_lines(key.start, self._tail(value.end, indent), floor, indent, is_leading)
            elif index + 1 < len(entries) and index + 1 not in removed:
                # The first of an item stands beside the dash, where the next one takes its place.
                self._edits.append((key.start, entries[index + 1][0].start, ""))
            else:
                raise Unpatchable

    def change_items(
        self, part: Part, floor: int, removed: Collection[int], added: Iterable[tuple[int, list[Any]]]
    ) -> None:
        """Remove items by index, and add others, each group after the item of an index, -1 for the front.

        ``floor`` is an offset of the line above the list.
        """
        items = part.children
        if part.is_flow:
            units = [(item.start, item.end) for item in items]
            for after, values in added:
                self._add_to_flow(units, after, [lambda m, v=v: self._flow.value(v, m) for v in values])
            self._remove_from_flow(units, removed)
            return
        indent = column(self._text, self._dash(part, 0))
        for after, values in added:
            self._add_items(part, floor, indent, after, values)
        first_kept = _first_kept(len(items), removed)
        for index in removed:
            dash = self._dash(part, index)
            if not self._is_first_of_line(dash):
                raise Unpatchable
            above = items[index - 1].end if index else floor
            is_leading = index < first_kept
            self._remove_lines(dash, self._tail(items[index].end, indent), above, indent, is_leading)

    def _add_items(self, part: Part, floor: int, indent: int, after: int, values: list[Any]) -> None:
        items = part.children
        blank = [""] * self._blank_lines(part, after)
        groups = [self._block.item(value, indent) for value in values]
        if after >= 0:
            at = self._tail(items[after].end, indent)
            self._insert_lines(at, [line for group in groups for line in (*blank, *group)])
            return
        dash = self._dash(part, 0)
        if not self._is_first_of_line(dash):
            raise Unpatchable
        at = self._before(self._top(dash, floor, indent))
        self._insert_lines(at, [line for group in groups for line in (*group, *blank)])

    def _blank_lines(self, part: Part, after: int) -> int:
        """How many blank lines part an item from the next; of the last, from the one before."""
        last = len(part.children) - 1
        index = min(max(after, 0), last - 1) + 1
        if index < 1 or index > last:
            return 0
        dash = self._dash(part, index)
        floor = part.children[index - 1].end
        top = self._top(dash, floor, column(self._text, dash))
        return len(re.findall(r"\r\n|\n|\r", self._text[self._skip_blank_above(top, floor) : top])) - 1

    def _remove_lines(self, first: int, tail: int, floor: int, indent: int, is_leading: bool) -> None:
        """Remove lines, what is said above them, and the blank lines between them and what is left."""
        top = self._top(first, floor, indent)
        if is_leading:
            below = _BLANK_LINES.match(self._text, tail)
            start, end = self._before(top), below.end() if below else tail
        else:
            start, end = self._skip_blank_above(top, floor), tail
        if top == 0:
            end = self._next_line(end)
        self._edits.append((start, end, ""))

    def _replace_in_flow(self, part: Part, value: Any) -> None:
        said = quoted(value, part.style) if isinstance(value, str) else None
        if said is None:
            is_brief = bool(part.children) and not _has_break(self._text[part.start : part.end])
            said = self._flow.value(value, None if is_brief else self._margin(part.start))
        # The place of a value that was left out is right behind the colon.
        lead = " " if self._text[part.start - 1 : part.start] == ":" and not self._flow.is_json else ""
        self._edits.append((part.start, part.end, lead + said))

    def _replace_after_key(self, key: Part, part: Part, value: Any) -> None:
        text = self._text
        colon = self._skip(key.end)
        if text[colon : colon + 1] != ":":
            raise Unpatchable
        after = colon + 1
        head, lines = self._said(part, value, column(text, key.start))
        body_from, body_to, head_to = self._line_end(part.end), self._line_end(part.end), part.end
        if part.is_block:
            head_to = self._line_end(after) if part.anchored else after
            body_from = self._line_end(after)
        elif part.is_block_scalar:
            head_to = header_end(text, part)
            body_from = self._line_end(head_to)
        beside = head and after < part.start <= head_to and not _has_break(text[after : part.start])
        head_from = part.start if beside else after
        self._edits.append((head_from, head_to, head if beside or not head else " " + head))
        self._edits.append((body_from, body_to, self._below(lines)))

    def _replace_item(self, holder: Part, part: Part, value: Any) -> None:
        text = self._text
        dash = self._dash(holder, holder.children.index(part))
        lead = " " if text[part.start - 1 : part.start] == "-" else ""
        if isinstance(value, (dict, list)) and value:
            indent = column(text, part.start) + len(lead)
            first, *lines = self._block.lines(cast("dict[str, Any] | list[Any]", value), indent)
            head = first[indent:]
        else:
            head, lines = self._said(part, value, column(text, dash))
        if part.is_block or part.is_block_scalar:
            self._edits.append((part.start, self._line_end(part.end), lead + head + self._below(lines)))
            return
        self._edits.append((part.start, part.end, lead + head))
        self._insert_lines(self._line_end(part.end), lines)

    def _said(self, part: Part, value: Any, indent: int) -> tuple[str, list[str]]:
        """A value where the part stood: in brackets or quotes if the part was, and they can hold it."""
        if isinstance(value, str):
            said = quoted(value, part.style)
            if said is not None:
                return said, []
        brief = isinstance(value, list) and not any(
            isinstance(item, (dict, list)) for item in cast("list[Any]", value)
        )
        if part.is_flow and isinstance(value, (dict, list)) and (brief or part.children):
            said = self._flow.value(value)
            if len(said) + indent < _LONG_LINE or part.children:
                return said, []
        return self._block.below(value, indent)

    def _add_to_flow(
        self,
        units: list[tuple[int, int]],
        after: int,
        writers: list[Callable[[str | None], str]],
    ) -> None:
        text = self._text
        spread = self._is_first_of_line(units[0][0])
        margin = self._margin(units[0][0]) if spread else None
        between = text[units[0][1] : units[1][0]] if len(units) > 1 else ""
        comma = between if re.fullmatch(r"[ \t]*,[ \t]*", between) else self._flow.comma
        gap = f",{self._newline}{margin}" if spread else comma
        said = gap.join(write(margin) for write in writers)
        if after < 0:
            self._edits.append((units[0][0], units[0][0], said + gap))
            return
        end = units[after][1]
        rest = _REST_OF_FLOW_LINE.match(text, end)
        if not spread or rest is None or not rest[2]:
            self._edits.append((end, end, gap + said))
            return
        # What is said beside an item stays there: the new ones begin on the next line.
        if not rest[1]:
            self._edits.append((end, end, ","))
        self._edits.append((rest.end(), rest.end(), gap[1:] + said + rest[1]))

    def _remove_from_flow(self, units: list[tuple[int, int]], removed: Collection[int]) -> None:
        first_kept = _first_kept(len(units), removed)
        for index in removed:
            start, end = units[index]
            rest = _REST_OF_FLOW_LINE.match(self._text, end)
            if rest is not None and rest[2] and self._is_first_of_line(start):
                self._edits.append((self._before(line_start(self._text, start)), rest.end(), ""))
            elif index < first_kept:
                self._edits.append((start, units[index + 1][0], ""))
            else:
                self._edits.append((units[index - 1][1], end, ""))

    def _insert_lines(self, at: int, lines: list[str]) -> None:
        if lines:
            self._edits.append((at, at, self._below(lines)))

    def _below(self, lines: list[str]) -> str:
        return "".join(self._newline + line for line in lines)

    def _dash(self, part: Part, index: int) -> int:
        if index:
            at = self._skip(part.children[index - 1].end)
        else:
            at = part.start
            while self._text[at] in "&!":
                at = self._skip(at + len(re.split(r"\s", self._text[at : at + 1_000], maxsplit=1)[0]))
        if self._text[at] != "-":
            raise Unpatchable
        return at

    def _tail(self, end: int, indent: int) -> int:
        """The end of the line of an offset, and of the comments below it that stand further in."""
        text, at = self._text, self._line_end(end)
        while True:
            start = self._next_line(at)
            line = text[start : self._line_end(start)]
            comment = line.lstrip(" \t")
            if start == at or not comment.startswith("#") or len(line) - len(comment) <= indent:
                return at
            at = self._line_end(start)

    def _top(self, first: int, floor: int, indent: int) -> int:
        """The start of the topmost comment line directly above an offset and below ``floor``."""
        top = line_start(self._text, first)
        while True:
            start = line_start(self._text, self._before(top))
            line = self._text[start : self._before(top)]
            comment = line.lstrip(" \t")
            if start <= floor or not comment.startswith("#") or len(line) - len(comment) > indent:
                return top
            top = start

    def _skip_blank_above(self, top: int, floor: int) -> int:
        """The end of the last line above that is not blank."""
        at = self._before(top)
        while at > floor:
            start = line_start(self._text, at)
            if start <= floor or self._text[start:at].strip():
                return at
            at = self._before(start)
        return at

    def _skip(self, at: int) -> int:
        """The next character that is neither blank nor in a comment."""
        found = _BLANKS.match(self._text, at)
        return found.end() if found else at

    def _is_first_of_line(self, at: int) -> bool:
        return not self._text[line_start(self._text, at) : at].strip()

    def _margin(self, at: int) -> str:
        """What the line of an offset is indented with."""
        start = line_start(self._text, at)
        line = self._text[start : self._line_end(start)]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _line_end(self, at: int) -> int:
        found = _LINE_END.match(self._text, at)
        return found.end() if found else at

    def _next_line(self, end: int) -> int:
        """The start of the line after a line's end, or that end if it is the last line."""
        return end + (2 if self._text.startswith("\r\n", end) else 1 if end < len(self._text) else 0)

    def _before(self, start: int) -> int:
        """The end of the line before a line's start."""
        return start - (2 if self._text.endswith("\r\n", 0, start) else 1 if start else 0)


def _first_kept(count: int, removed: Collection[int]) -> int:
    return next((index for index in range(count) if index not in removed), count)


def _has_break(text: str) -> bool:
    return "\n" in text or "\r" in text
