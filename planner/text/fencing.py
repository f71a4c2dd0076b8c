"""Quotes untrusted text in Markdown, so that nothing in it can end the quotation or join the page."""

from __future__ import annotations

import re

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
