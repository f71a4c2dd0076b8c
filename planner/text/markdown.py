"""Quoting of untrusted text in Markdown, so that nothing in it can end the quotation and become markup.

:func:`fence` and :func:`inline` only quote. The functions below them also remove control sequences and
secrets first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.text.display import listed
from planner.text.redaction import redact_and_clip

if TYPE_CHECKING:
    from collections.abc import Iterable

_RUNS = re.compile(r"`+")
_INFO = re.compile(r"[^A-Za-z0-9_+.#-]")
_LONGEST_INFO = 30
"""Limit in characters of a language's name."""


def fence(text: str, info: str = "") -> str:
    """Return the text in a fenced code block, whose fence is longer than all runs of backticks in it.

    ``info`` names the language; characters that are unusual in such names are removed.
    """
    # CommonMark: a fence is closed by a line of at least as many backticks as it was opened with.
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
    # CommonMark: a code span ends at a run of exactly as many backticks, and loses one blank on each side.
    bar = "`" * (_longest_run(line) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{bar}{pad}{line}{pad}{bar}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _RUNS.findall(text)), default=0)


# -- without control sequences and secrets -------------------------------------------------------------

_LONGEST_TEXT = 20_000
"""Limit in characters of a quoted text; its middle is cut."""

_LONGEST_SPAN = 300
"""Limit in characters of a command in a code span."""


def safe(text: str) -> str:
    """Return the text without control sequences and secrets; the caller has to quote it."""
    return redact_and_clip(text, _LONGEST_TEXT).strip("\n")


def code(text: str, *, limit: int = 160) -> str:
    """Return the text as a code span on one line."""
    return inline(safe(text), limit=limit)


def block(text: str, language: str = "text") -> str:
    """Return the text as a code block."""
    return fence(safe(text), language)


def command(text: str) -> str:
    """Return a command as a code span, or as a block if a span would cut it or change its blanks."""
    shown = safe(text)
    # A code span joins its lines and is cut; what is left would be another command.
    if len(shown) <= _LONGEST_SPAN and " ".join(shown.split()) == shown:
        return inline(shown, limit=_LONGEST_SPAN)
    return f"\n\n{fence(shown, 'sh')}\n"


def spans(names: Iterable[str], most: int = 5) -> str:
    """Return the first ``most`` names as code spans, and the number of further ones."""
    return listed(map(code, names), most)
