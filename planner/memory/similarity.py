"""How alike two texts are, and an index that finds the texts that are like another one.

Texts are compared by the trigrams of characters of their words. Titles of todos and heads of failures are
short: they seldom share whole words in a row, but ``compute_rsi`` and ``RSI computation`` share most of
their trigrams. Trigrams do not cross from word to word, so the order of words does not count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from math import ceil
from typing import TYPE_CHECKING

from planner.rules.task_kinds import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

LONGEST = 2_000
"""Characters of a text that are compared."""

ALIKE = 0.25
"""Texts whose similarity is lower have little in common but their language."""


def shape(text: str) -> str:
    """What of a text is compared: its words, in small letters, each number as ``0``."""
    return " ".join(words_of(text[:LONGEST]))


def ngrams(text: str) -> frozenset[str]:
    """The trigrams of the words of a text, with a blank at each end of a word."""
    return _of_shape(shape(text))


def jaccard(one: Set[str], other: Set[str]) -> float:
    """The share of what two sets have in common: 1 for equal sets, 0 for sets without a common member."""
    shared = len(one & other)
    together = len(one) + len(other) - shared
    return shared / together if together else 1.0


@dataclass(frozen=True, slots=True)
class TextIndex:
    """Texts, to be found by likeness."""

    rank: dict[str, int]
    """Every trigram; the fewer texts have it, the lower its rank."""
    masks: tuple[int, ...]
    """Of each text, a bit for each of its trigrams, at the place of its rank: what two share is counted so
    much faster than with sets."""
    sizes: tuple[int, ...]
    """How many trigrams each text has."""
    holders: dict[int, tuple[int, ...]]
    """Of a trigram, by rank, the places of the texts among whose rarest trigrams it is."""

    @classmethod
    def of(cls, shapes: Iterable[str]) -> TextIndex:
        """The index of texts, given by their shapes."""
        grams = [_of_shape(each) for each in shapes]
        common = Counter(chain.from_iterable(grams))
        rarest_first = sorted(common, key=lambda gram: (common[gram], gram))
        rank = {gram: place for place, gram in enumerate(rarest_first)}
        masks: list[int] = []
        holders: dict[int, list[int]] = {}
        for place, each in enumerate(grams):
            ranks = sorted(map(rank.__getitem__, each))
            masks.append(_mask(ranks))
            for number in ranks[: _telling(len(ranks))]:
                holders.setdefault(number, []).append(place)
        return cls(
            rank=rank,
            masks=tuple(masks),
            sizes=tuple(map(len, grams)),
            holders={number: tuple(places) for number, places in holders.items()},
        )

    def like(self, shape: str, most: int | None = None) -> tuple[tuple[int, float], ...]:
        """The places of the texts that are at least :data:`ALIKE`, and how much so, the most alike first.

        With ``most``, so many texts are looked at: those that share the rarest trigrams.
        """
        grams = _of_shape(shape)
        size = len(grams)
        known = sorted(self.rank[gram] for gram in grams if gram in self.rank)
        # Two sets that are as alike as that have one of their rarest members in common: only the texts that
        # share one of those need to be compared. What no text has is the rarest of all.
        places: dict[int, None] = {}
        for number in known[: max(0, _telling(size) - (size - len(known)))]:
            places.update(dict.fromkeys(self.holders.get(number, ())))
            if most is not None and len(places) >= most:
                break
        mask = _mask(known)
        found: list[tuple[int, float]] = []
        for place in islice(places, most):
            shared = (mask & self.masks[place]).bit_count()
            likeness = shared / (size + self.sizes[place] - shared)
            if likeness >= ALIKE:
                found.append((place, likeness))
        return tuple(sorted(found, key=lambda each: (-each[1], each[0])))


def _telling(size: int) -> int:
    """Of so many members of a set, how many of the rarest suffice to find every set that is alike."""
    return size - ceil(size * ALIKE) + 1 if size else 0


def _mask(ranks: Iterable[int]) -> int:
    bits = bytearray()
    for rank in ranks:
        byte = rank >> 3
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        bits[byte] |= 1 << (rank & 7)
    return int.from_bytes(bits, "little")


def _of_shape(shape: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(_of_word, shape.split())))


@lru_cache(maxsize=65_536)
def _of_word(word: str) -> tuple[str, ...]:
    padded = f" {word} "
    return tuple(padded[start : start + 3] for start in range(len(padded) - 2))
