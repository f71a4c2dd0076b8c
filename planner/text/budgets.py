"""How many tokens a text costs at most, and how several texts share a budget of them.

The estimate needs no tokenizer and errs high. It counts one token for every three letters of a run, every
two digits of a run, every eight blanks of a run, every line break and every other ASCII character, and for
a character that is not ASCII one for each of its UTF-8 bytes, which is the most that a byte-level tokenizer
can make of it. Prose comes out at about one and a half times its real price.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LINES_CUT = "… {count} lines cut …"
"""What stands where lines were cut."""

CHARACTERS_CUT = " … {count} characters cut … "
"""What stands where a part of one line was cut."""

_PIECES = re.compile(r"[A-Za-z]{1,3}|[0-9]{1,2}|[ \t]{2,9}|[^ \tA-Za-z0-9]", re.ASCII)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LEAST = 12
"""Tokens. A smaller piece of a required section says nothing."""

_LEAST_OPTIONAL = 40
"""Tokens. Less of a section that may as well be left out is only noise."""


def estimate_tokens(text: str) -> int:
    """How many tokens the text costs, at most. Lines cost together what each costs, and their breaks."""
    pieces = len(_PIECES.findall(text))
    if text.isascii():
        return pieces
    beyond = len(_NOT_ASCII.findall(text))
    # Each such character was counted once; it costs as many as it has bytes.
    bytes_beyond = len(text.encode("utf-8", "surrogatepass")) - (len(text) - beyond)
    return pieces - beyond + bytes_beyond


def _most_tokens(text: str) -> int:
    """No estimate is higher: a character is one token, or as many as it has bytes."""
    return len(text) if text.isascii() else 4 * len(text)


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page that has to share a budget with others."""

    text: str
    """What may be cut."""
    wrap: Callable[[str], str] = _as_it_is
    """Puts around it what must not be cut, such as a heading and a fence."""
    cut: Callable[[str, int], str] | None = None
    """Makes the text cost that many tokens at most; without it, :func:`cut_middle`."""
    least: int = _LEAST * 2
    """Tokens of the text below which nothing of it is worth having; kept free for a required section."""
    priority: int = 0
    """Lower is served first; equals share alike."""
    required: bool = False
    """It is served before all others, and never left out."""

    @property
    def whole(self) -> str:
        return self.wrap(self.text)


def fit(sections: Sequence[Section], max_tokens: int, *, separator: str = "\n\n") -> tuple[str | None, ...]:
    """Each section as it fits, in the order given, ``None`` where one is left out.

    Joined by ``separator`` they cost ``max_tokens`` at most. A section that is too long loses its middle.
    Where even the wrappings of the required sections are too long for the budget, required sections are
    left out too, the last ones first.
    """
    wholes = tuple(section.whole for section in sections)
    if sum(map(_most_tokens, wholes)) + len(wholes) * _most_tokens(separator) <= max_tokens:
        return wholes  # mostly it is so, and counting would be most of the work
    costs = [estimate_tokens(whole) + estimate_tokens(separator) for whole in wholes]
    if sum(costs) <= max_tokens:
        return wholes
    fitted: list[str | None] = [None] * len(sections)
    left = max_tokens
    levels = sorted({(not section.required, section.priority) for section in sections})
    for level in levels:
        members = [
            index
            for index, section in enumerate(sections)
            if (not section.required, section.priority) == level
        ]
        # The small ones first: what they do not need is shared by the others.
        members.sort(key=lambda index: (costs[index], index))
        reserved = sum(
            min(cost, _floor(section))
            for section, cost in zip(sections, costs, strict=True)
            if section.required and (not section.required, section.priority) > level
        )
        for position, index in enumerate(members):
            share = max(left - reserved, 0) // (len(members) - position)
            room = min(costs[index], share) - estimate_tokens(separator)
            text = _fitted(sections[index], room)
            if text is not None:
                fitted[index] = text
                left -= estimate_tokens(text) + estimate_tokens(separator)
    return tuple(fitted)


def cut_middle(text: str, max_tokens: int) -> str:
    """The head and the tail of the text, by whole lines, with a visible cut between; at most that long."""
    if _most_tokens(text) <= max_tokens or estimate_tokens(text) <= max_tokens:
        return text
    lines = text.split("\n")
    left = max_tokens - estimate_tokens(f"\n{LINES_CUT.format(count=len(lines))}\n")
    head, tail = 0, len(lines)
    take_tail = False
    while head < tail:
        line = lines[tail - 1] if take_tail else lines[head]
        price = estimate_tokens(line) + 2
        if price > left:
            break
        left -= price
        head, tail = (head, tail - 1) if take_tail else (head + 1, tail)
        take_tail = not take_tail
    if head == 0 and tail == len(lines):
        return _cut_line(text, max_tokens)
    cut = LINES_CUT.format(count=tail - head)
    shown = "\n".join([*lines[:head], cut, *lines[tail:]])
    return shown if estimate_tokens(shown) <= max_tokens else _cut_line(text, max_tokens)


def keep_first(items: Sequence[str], max_tokens: int) -> str:
    """As many of the items as there is room for, none of them cut, each on lines of its own."""
    whole = "\n".join(items)
    if _most_tokens(whole) <= max_tokens or estimate_tokens(whole) <= max_tokens:
        return whole
    left = max_tokens - estimate_tokens(f"\n{LINES_CUT.format(count=len(whole))}")
    kept: list[str] = []
    for item in items:
        left -= estimate_tokens(item) + 1
        if left < 0:
            break
        kept.append(item)
    rest = "\n".join(items[len(kept) :])
    return "\n".join([*kept, LINES_CUT.format(count=rest.count("\n") + 1)]) if any(kept) else ""


def _floor(section: Section) -> int:
    return estimate_tokens(section.wrap("")) + section.least


def _fitted(section: Section, room: int) -> str | None:
    whole = section.whole
    if estimate_tokens(whole) <= room:
        return whole
    around = estimate_tokens(whole) - estimate_tokens(section.text)
    for around_now in (around, around + 4):
        if room - around_now < (_LEAST if section.required else _LEAST_OPTIONAL):
            break
        text = (section.cut or cut_middle)(section.text, room - around_now)
        shown = section.wrap(text)
        if text and estimate_tokens(shown) <= room:
            return shown
    return None


def _cut_line(text: str, max_tokens: int) -> str:
    """The ends of a text whose lines are too long to be kept whole; nothing where not even they fit."""
    kept = len(text)
    while kept:
        kept = kept * 2 // 3
        cut = CHARACTERS_CUT.format(count=len(text) - kept)
        shown = f"{text[: kept - kept // 2]}{cut}{text[len(text) - kept // 2 :]}" if kept else ""
        if estimate_tokens(shown) <= max_tokens:
            return shown
    return ""
