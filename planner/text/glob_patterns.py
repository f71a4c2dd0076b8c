"""The globs of a plan: which paths they name, and whether two of them can name the same."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

EVERYTHING = frozenset({"*", "**", "**/*", ".", "./", "./**", "./**/*", "*/**"})
"""Patterns that grant the whole root."""

_WILDCARD = re.compile(r"[*?\[]")

_LAST_WILDCARD = re.compile(r".*[*?\]]", re.DOTALL)


def allowed(path: str, patterns: Iterable[str]) -> bool:
    """Return whether patterns name a path; those that begin with ``!`` take it out again."""
    granted = False
    for pattern in patterns:
        if pattern.startswith("!"):
            granted = granted and not matches(path, pattern[1:])
        elif not granted:
            granted = matches(path, pattern)
    return granted


@lru_cache(maxsize=65_536)
def matches(path: str, pattern: str) -> bool:
    """Return whether a glob names a path.

    ``**`` is any number of folders; a folder names all that it holds; a pattern of one part with a
    wildcard names files of any folder, as ``*.py`` does.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    reached = {0}  # how many parts of the path the pattern so far may have named
    for wanted in _parts(pattern):
        if wanted == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], wanted)}
        if not reached:
            return False
    return len(parts) in reached


def globs_overlap(one: str, other: str) -> bool:
    """Return whether some path may be named by both globs.

    Of two names with wildcards only the beginnings and the ends are compared: a doubt means that they
    overlap, which costs no more than that two todos are not worked on side by side.
    """
    # Whatever a glob names, it names all that lies below. So what stands behind `**` in one glob may always
    # stand below a path of the other, and only the parts before the first `**` can keep two globs apart.
    both = zip(_parts(one), _parts(other), strict=False)
    return all(_parts_overlap(*parts) for parts in takewhile(lambda parts: "**" not in parts, both))


def literal_prefix(pattern: str) -> str:
    """Return the text that every path of a glob begins with.

    Two globs can overlap only where the prefix of one begins with that of the other.
    """
    parts = takewhile(lambda part: part != "**", _parts(pattern))
    return _WILDCARD.split("/".join(parts), maxsplit=1)[0]


def seen_from_above(pattern: str, folder: str) -> str:
    """Return a glob of a folder as it is written above that folder; an exclusion stays one."""
    if pattern.startswith("!"):
        return f"!{seen_from_above(pattern[1:], folder)}"
    path = plain(pattern)
    if folder == "." or path in ("", "."):
        return folder if path in ("", ".") else path
    return f"{folder}/**/{path}" if "*" in path and "/" not in path else f"{folder}/{path}"


def plain(path: str) -> str:
    """Return a path without what means nothing: ``./a//b/`` is ``a/b``."""
    if path[:2] != "./" and "//" not in path and path[-1:] != "/" and "/./" not in path:
        return path
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


def is_glob(path: str) -> bool:
    """Return whether a path has wildcards."""
    return _WILDCARD.search(path) is not None


@lru_cache(maxsize=4096)
def _parts(pattern: str) -> tuple[str, ...]:
    path = plain(pattern)
    if path in ("", "."):
        return ("**",)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if len(parts) == 1 and "*" in path:
        parts = ("**", *parts)
    # What a folder holds is meant by its name; of a file, nothing can lie below it.
    return parts if parts[-1] == "**" else (*parts, "**")


@lru_cache(maxsize=8192)
def _parts_overlap(one: str, other: str) -> bool:
    """Return whether some name may be named by both of two parts, neither being ``**``."""
    if not is_glob(one) and not is_glob(other):
        return one == other  # most parts are plain, and a pattern is compiled for each other one
    if not is_glob(one) or not is_glob(other):
        return fnmatchcase(one, other) or fnmatchcase(other, one)
    heads = [_WILDCARD.split(part, maxsplit=1)[0] for part in (one, other)]
    ends = [_LAST_WILDCARD.sub("", part) for part in (one, other)]
    return (heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])) and (
        ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
    )
