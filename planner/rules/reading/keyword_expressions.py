"""What ``-k`` and ``-m`` leave of the tests, as far as reading their source can tell."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(?P<paren>[()])|(?P<word>[\w:+\-.\[\]\\/]+)(?P<call>\s*\([^()]*=[^()]*\))?)")
_MAX_WORDS = 1_000


class _Unreadable(Exception):
    """The expression is none, or is too large to be judged."""


def evaluate(expression: str, known: Callable[[str], bool | None]) -> bool | None:
    """Whether the expression holds, where ``known`` says so of each word; ``None`` where nobody can tell.

    An expression that cannot be read is ``None`` as well: pytest itself will refuse it.
    """
    try:
        words = _words(expression)
        if not words:
            return True
        reader = _Reader(words, known)
        value = reader.either()
    except (_Unreadable, RecursionError):
        return None
    return value if reader.at == len(words) else None


@lru_cache(maxsize=1024)
def _words(expression: str) -> tuple[str, ...]:
    words: list[str] = []
    at, text = 0, expression.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(words) >= _MAX_WORDS:
            raise _Unreadable
        # A mark with keyword arguments is a word of which only pytest can tell.
        words.append("?" if match["call"] else match["paren"] or match["word"])
        at = match.end()
    return tuple(words)


class _Reader:
    """Recursive descent over the words; each method leaves ``at`` behind what it has read."""

    def __init__(self, words: tuple[str, ...], known: Callable[[str], bool | None]) -> None:
        self.words = words
        self.known = known
        self.at = 0

    def either(self) -> bool | None:
        value = self.both()
        while self._takes("or"):
            other = self.both()
            value = True if True in (value, other) else None if None in (value, other) else False
        return value

    def both(self) -> bool | None:
        value = self.single()
        while self._takes("and"):
            other = self.single()
            value = False if False in (value, other) else None if None in (value, other) else True
        return value

    def single(self) -> bool | None:
        if self._takes("not"):
            value = self.single()
            return None if value is None else not value
        if self._takes("("):
            value = self.either()
            if not self._takes(")"):
                raise _Unreadable
            return value
        if self.at >= len(self.words) or self.words[self.at] in ("and", "or", ")"):
            raise _Unreadable
        word = self.words[self.at]
        self.at += 1
        return None if word == "?" else self.known(word)

    def _takes(self, word: str) -> bool:
        if self.at < len(self.words) and self.words[self.at] == word:
            self.at += 1
            return True
        return False
