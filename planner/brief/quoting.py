"""Quotes untrusted text in a brief: without control sequences and secrets, unable to end the quotation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.text.fencing import fence, inline
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 20_000
"""Characters of one text that are looked at."""

_LONGEST_SPAN = 300


def safe(text: str) -> str:
    """Return the text without control sequences and secrets; it still has to be quoted."""
    return redact(clean(text, limit=_LONGEST)).strip("\n")


def code(text: str, *, limit: int = 160) -> str:
    """Return the text as a code span on one line."""
    return inline(safe(text), limit=limit)


def block(text: str, language: str = "text") -> str:
    """Return the text as a code block."""
    return fence(safe(text), language)


def command(text: str) -> str:
    """Return a command, which must not be cut: as a span, or as a block where a span would change it."""
    shown = safe(text)
    if len(shown) <= _LONGEST_SPAN and " ".join(shown.split()) == shown:
        return inline(shown, limit=_LONGEST_SPAN)
    return f"\n\n{fence(shown, 'sh')}\n"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names as code spans, and how many there are more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(code, names[:most])) + more
