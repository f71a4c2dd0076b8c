"""Quotes untrusted text in Markdown, so that nothing in it can end the quotation or join the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.text.display import listed
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

_RUNS = re.compile(r"`+")
_INFO = re.compile(r"[^A-Za-z0-9_+.#-]")
_LONGEST_INFO = 30


def fence(text: str, info: str = "") -> str:
    """Return the text in a fenced code block, whose fence is longer than any run of backticks in the text.

    ``info`` names the language; of it only what a language's name may hold is kept.
    """
    bar = "`" * max(3, _longest_run(text) + 1)
    language = _INFO.sub("", info)[:_LONGEST_INFO]
    body = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    return f"{bar}{language}\n{body}\n{bar}"


def inline(text: str, *, limit: int = 300) -> str:
    """Return a code span on one line, of at most ``limit`` characters; ``(empty)`` if nothing is left."""
    line = " ".join(text.split())
    if not line:
        return "(empty)"
    if len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    bar = "`" * (_longest_run(line) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{bar}{pad}{line}{pad}{bar}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _RUNS.findall(text)), default=0)


# -- without control sequences and secrets -------------------------------------------------------------

_LONGEST_TEXT = 20_000
"""Characters of one text that are looked at."""

_LONGEST_SPAN = 300


def safe(text: str) -> str:
    """Return the text without control sequences and secrets; it still has to be quoted."""
    return redact(clean(text, limit=_LONGEST_TEXT)).strip("\n")


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


def spans(names: Iterable[str], most: int = 5) -> str:
    """Return the first names as code spans, and how many there are more."""
    return listed(map(code, names), most)
