"""Reads a Markdown list with check boxes: its items, their commands, and what is nested below them.

``- [ ] Write the parser`` is a todo, ``- [x]`` one that is claimed. A command in a code span of an item, in
a fenced block or a plain item below it is what proves it, where the catalog accepts it. Items below an item
are todos that it depends on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from planner.authoring.repository import accepted

_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,9}[.)])\s+\[([ xX])\]\s+(.*)$")
_PLAIN_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s+(?!\[)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_SPAN = re.compile(r"(`+)(.+?)\1")
_TAB = 4


@dataclass(slots=True, kw_only=True)
class ListItem:
    """One item with a check box."""

    title: str
    is_checked: bool
    indent: int
    line: int
    commands: list[str] = field(default_factory=list[str])
    children: list[ListItem] = field(default_factory=list["ListItem"])


@dataclass(slots=True, kw_only=True)
class MarkdownList:
    """What a page holds."""

    title: str | None = None
    """Of its first heading."""
    items: list[ListItem] = field(default_factory=list[ListItem])


def read_list(text: str) -> MarkdownList:
    """Read the items with check boxes of a page. Other text is passed over."""
    found = MarkdownList()
    open_items: list[ListItem] = []
    fence: str | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.expandtabs(_TAB)
        marker = _FENCE.match(line)
        if fence is not None:
            if marker is not None and marker[1].startswith(fence):
                fence = None
            elif open_items:
                _add_command(open_items[-1], line.strip().removeprefix("$ "))
            continue
        if marker is not None:
            fence = marker[1]
            continue
        if (heading := _HEADING.match(line)) is not None:
            found.title = found.title or heading[1]
            open_items.clear()
            continue
        matched = _ITEM.match(line)
        if matched is not None:
            item = _item(matched, number)
            while open_items and open_items[-1].indent >= item.indent:
                open_items.pop()
            (open_items[-1].children if open_items else found.items).append(item)
            open_items.append(item)
            continue
        indent = len(line) - len(line.lstrip())
        while line.strip() and len(open_items) > 1 and open_items[-1].indent >= indent:
            open_items.pop()  # the text goes on with an item further up
        if (
            open_items
            and line.strip()
            and (indent > open_items[-1].indent or _PLAIN_ITEM.match(line) is None)
        ):
            for _, span in _SPAN.findall(line):
                _add_command(open_items[-1], span)
    return found


def _item(matched: re.Match[str], number: int) -> ListItem:
    text = "".join(char if char.isprintable() else " " for char in matched[3]).strip()
    item = ListItem(title=text, is_checked=matched[2] != " ", indent=len(matched[1]), line=number)
    for whole in _SPAN.finditer(text):
        if _add_command(item, whole[2]):
            item.title = item.title.replace(whole[0], "")
    item.title = _plain_title(item.title) or _plain_title(text) or f"Line {number}"
    return item


def _plain_title(text: str) -> str:
    """Return a text without marks of emphasis and links, and without what introduced a command."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[*_]{2,3}(?=\S)|(?<=\S)[*_]{2,3}|`", "", text)
    text = re.sub(r"\s*\(\s*\)", "", text)
    return re.sub(r"[\s:;,\u2013\u2014-]+$", "", " ".join(text.split()))


def _add_command(item: ListItem, text: str) -> bool:
    """Keep a text that the catalog accepts as a command; return whether it did."""
    text = " ".join(text.split())
    if " " not in text and not text.startswith("pytest"):
        return False  # a single word in a code span is a name, seldom a command
    if accepted(text) is None:
        return False
    if text not in item.commands:
        item.commands.append(text)
    return True
