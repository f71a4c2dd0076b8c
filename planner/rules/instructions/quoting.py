"""Puts untrusted text into the instructions: stripped, without secrets, unable to leave its quotation."""

from __future__ import annotations

from functools import lru_cache

from planner.text.budgets import Section, estimate_tokens, keep_first
from planner.text.fencing import fence, inline
from planner.text.redaction import redact
from planner.text.sanitizing import clean

LONGEST_TEXT = 20_000
"""Characters of one text that are looked at; more of it could not be shown anyway."""


_ROOM_FOR_A_CUT = 24
"""Tokens."""


def said(text: str) -> str:
    """The text without control sequences and secrets; it still has to be quoted."""
    return redact(clean(text, limit=LONGEST_TEXT)).strip("\n")


@lru_cache(maxsize=4096)
def span(text: str, *, limit: int = 300) -> str:
    """The text as a quotation within a sentence."""
    return inline(said(text), limit=limit)


def block(text: str, info: str = "text") -> str:
    """The text as a quotation of its own."""
    return fence(said(text), info)


def prose(heading: str, *lines: str, priority: int, required: bool = False) -> Section:
    """A section of the page's own words, in which quotations are spans."""
    return Section(
        text="\n".join(lines),
        wrap=_under(heading, ""),
        # A line that is cut would leave a quotation open.
        cut=lambda _, max_tokens: keep_first(lines, max_tokens),
        least=estimate_tokens(lines[0]) + _ROOM_FOR_A_CUT if lines else 0,
        priority=priority,
        required=required,
    )


def quotation(
    heading: str, text: str, *, intro: str = "", info: str = "text", priority: int, required: bool = False
) -> Section:
    """A section that quotes one text in a block; only the text may be cut."""
    under = _under(heading, intro)
    return Section(
        text=said(text),
        wrap=lambda shown: under(fence(shown, info)),
        priority=priority,
        required=required,
    )


def _under(heading: str, intro: str) -> _Wrap:
    return _Wrap("\n\n".join(part for part in (heading, intro) if part))


class _Wrap:
    """Puts a heading and an introduction in front of a text."""

    def __init__(self, before: str) -> None:
        self._before = before

    def __call__(self, text: str) -> str:
        return "\n\n".join(part for part in (self._before, text) if part)
