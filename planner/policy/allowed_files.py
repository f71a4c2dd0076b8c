"""Allowlists of files relative to the plan's root: when one pattern lies within another, what widens.

``*`` matches within one part of a path, ``**`` any number of parts; ``!`` in front takes files out again.
Which files a pattern names stands in :mod:`planner.text.glob_patterns`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WILDCARDS = frozenset("*?[")


def is_exclusion(pattern: str) -> bool:
    """Whether a pattern takes files out instead of letting them in."""
    return pattern.startswith("!")


def lies_within(pattern: str, other: str) -> bool:
    """Whether every file of a pattern is one of the other's, as far as the two texts show it.

    Conservative: where it cannot be seen part by part, the answer is no. Parts are compared as text; a part
    with wildcards is within ``*`` or within its equal only.
    """
    if pattern == other:
        return True
    inner = _parts(pattern)
    return ".." not in inner and _covers(_parts(other), inner)


def widened_by(old: Iterable[str], new: Sequence[str]) -> str | None:
    """The first pattern of a new allowlist that may let in what the old one does not, or that is missing.

    Exclusions of the old list must stand in the new one, behind everything that it lets in.
    """
    allowed = [pattern for pattern in old if not is_exclusion(pattern)]
    for pattern in new:
        if not is_exclusion(pattern) and not any(lies_within(pattern, each) for each in allowed):
            return pattern
    lets_in = [index for index, pattern in enumerate(new) if not is_exclusion(pattern)]
    tail = new[max(lets_in, default=-1) + 1 :]
    kept = tail if lets_in else ()
    return next((each for each in old if is_exclusion(each) and lets_in and each not in kept), None)


def without_covered(patterns: Iterable[str]) -> tuple[str, ...]:
    """The patterns, each once, without those that lie within another."""
    unique = list(dict.fromkeys(patterns))
    return tuple(
        each for each in unique if not any(other != each and lies_within(each, other) for other in unique)
    )


def _parts(pattern: str) -> tuple[str, ...]:
    plain = pattern.removeprefix("./")
    return tuple(f"{plain}**".split("/") if plain.endswith("/") else plain.split("/"))


def _covers(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """Part by part; at a dead end the last ``**`` takes one part more, so that the cost stays bounded."""
    at = here = 0
    wild = taken = -1
    while here < len(inner):
        part = outer[at] if at < len(outer) else None
        if part == "**":
            wild, taken, at = at, here, at + 1
        elif part is not None and inner[here] != "**" and _part_covers(part, inner[here]):
            at, here = at + 1, here + 1
        elif wild >= 0:
            taken += 1
            at, here = wild + 1, taken
        else:
            return False
    # What is left would have to match nothing, and even ``**`` at the end stands for a part or more.
    return at == len(outer)


def _part_covers(outer: str, inner: str) -> bool:
    if outer in (inner, "*"):
        return True
    return not WILDCARDS & set(inner) and fnmatchcase(inner, outer)
