"""Globs of plans: matching of paths, and overlap of two globs.

In a glob, ``**`` is any number of folders. A glob that matches a folder matches everything below it. A glob
of one part with ``*``, such as ``*.py``, matches in all folders.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_WILDCARD = re.compile(r"[*?\[]")

# Also ends at "]", so that the end of a character class is no part of the fixed end of a name.
_LAST_WILDCARD = re.compile(r".*[*?\]]", re.DOTALL)


def allowed(path: str, patterns: Iterable[str]) -> bool:
    """Return whether patterns match a path; patterns with ``!`` exclude it again, the last one decides."""
    is_allowed = False
    for pattern in patterns:
        if pattern.startswith("!"):
            is_allowed = is_allowed and not matches(path, pattern[1:])
        elif not is_allowed:
            is_allowed = matches(path, pattern)
    return is_allowed


@lru_cache(maxsize=65_536)
def matches(path: str, pattern: str) -> bool:
    """Return whether a glob matches a path."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    return parts_match(parts, parts_of(pattern), fnmatchcase)


def parts_match(parts: Sequence[str], wanted: Sequence[str], fits: Callable[[str, str], bool]) -> bool:
    """Return whether the parts of a path fit those of a glob one by one, with any number for ``**``.

    ``fits(part, wanted)`` decides for one part.
    """
    # Positions are followed all at once: with recursion, several ** would take exponential time.
    reached = {0}  # numbers of parts that the wanted ones so far can match
    for each in wanted:
        if each == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fits(parts[at], each)}
        if not reached:
            return False
    return len(parts) in reached


def globs_overlap(one: str, other: str) -> bool:
    """Return whether both globs may match the same path.

    Of two parts with wildcards only prefix and suffix are compared. In doubt the globs overlap: the only
    cost is that two todos are not worked on in parallel.
    """
    # A glob matches everything below a matched path. So the parts after `**` in one glob can always match
    # below a path of the other, and only the parts before the first `**` can keep two globs apart.
    both = zip(parts_of(one), parts_of(other), strict=False)
    return all(_parts_overlap(*parts) for parts in takewhile(lambda parts: "**" not in parts, both))


def literal_prefix(pattern: str) -> str:
    """Return the text with which every path begins that a glob matches.

    Two globs can overlap only if the prefix of one begins with that of the other.
    """
    parts = takewhile(lambda part: part != "**", parts_of(pattern))
    return _WILDCARD.split("/".join(parts), maxsplit=1)[0]


def seen_from_above(pattern: str, folder: str) -> str:
    """Return a glob relative to ``folder`` as a glob relative to its parent; an exclusion stays one."""
    if pattern.startswith("!"):
        return f"!{seen_from_above(pattern[1:], folder)}"
    path = plain(pattern)
    if folder == "." or path in ("", "."):
        return folder if path in ("", ".") else path
    # Behind a folder, a single part with * no longer matches in all folders by itself.
    return f"{folder}/**/{path}" if "*" in path and "/" not in path else f"{folder}/{path}"


def plain(path: str) -> str:
    """Return a path without empty and ``.`` parts: ``./a//b/`` is ``a/b``."""
    if path[:2] != "./" and "//" not in path and path[-1:] != "/" and "/./" not in path:
        return path
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


def is_glob(path: str) -> bool:
    """Return whether a path has wildcards."""
    return _WILDCARD.search(path) is not None


@lru_cache(maxsize=4096)
def parts_of(pattern: str) -> tuple[str, ...]:
    """Return the parts of a glob, with the ``**`` that it implies."""
    parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
    if not parts:
        return ("**",)
    # As in .gitignore, *.py means the files of all folders.
    if len(parts) == 1 and "*" in pattern:
        parts = ("**", *parts)
    # A folder implies everything below it. For a file the `**` does no harm: nothing is below it.
    return parts if parts[-1] == "**" else (*parts, "**")


@lru_cache(maxsize=8192)
def _parts_overlap(one: str, other: str) -> bool:
    """Return whether both parts may match the same name; neither is ``**``."""
    if not is_glob(one) and not is_glob(other):
        return one == other  # the usual case, in which no pattern need be compiled
    if not is_glob(one) or not is_glob(other):
        return fnmatchcase(one, other) or fnmatchcase(other, one)
    # Both have wildcards: they can match one name if their fixed beginnings and their fixed ends fit.
    heads = [_WILDCARD.split(part, maxsplit=1)[0] for part in (one, other)]
    ends = [_LAST_WILDCARD.sub("", part) for part in (one, other)]
    return (heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])) and (
        ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
    )
