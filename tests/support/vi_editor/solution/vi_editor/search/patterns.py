"""Patterns of searches."""

from __future__ import annotations

import re


class PatternError(ValueError):
    """A pattern that cannot be read."""


def compile_pattern(text: str) -> re.Pattern[str]:
    r"""Return the pattern; a text without capital letters finds both cases.

    ``\<`` and ``\>`` stand for the start and the end of a word. Raises :class:`PatternError`.
    """
    if not text:
        raise PatternError("no pattern")
    flags = re.NOFLAG if any(character.isupper() for character in text) else re.IGNORECASE
    try:
        return re.compile(text.replace(r"\<", r"\b").replace(r"\>", r"\b"), flags)
    except re.error as error:
        raise PatternError(f"{text}: {error}") from None
