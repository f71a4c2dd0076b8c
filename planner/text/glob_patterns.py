"""The globs of a plan: which paths they name, and whether two of them can name the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

EVERYTHING = frozenset({"*", "**", "**/*", ".", "./", "./**", "./**/*", "*/**"})
"""Patterns that grant the whole root."""

_WILDCARD = re.compile(r"[*?\[]")

MAX_LENGTH = 255
"""The longest name that common file systems allow, in characters; comparing two parts takes the product of
their lengths."""


def allowed(path: str, patterns: Iterable[str]) -> bool:
    """Return whether patterns name a path; those that begin with ``!`` take it out again."""
    granted = False
    for pattern in patterns:
        if pattern.startswith("!"):
            granted = granted and not matches(path, pattern[1:])
        elif not granted:
            granted = matches(path, pattern)
    return granted


def matches(path: str, pattern: str) -> bool:
    """Return whether a glob names a path.

    ``**`` is any number of folders; a folder names all that it holds; a pattern of one part with a
    wildcard names files of any folder, as ``*.py`` does.
    """
    return _regex(pattern).fullmatch("/" + plain(path)) is not None


def globs_overlap(one: str, other: str) -> bool:
    """Return whether some path is named by both globs.

    Exact, except that a part of more than :data:`MAX_LENGTH` characters overlaps with any other.
    """
    # Whatever a glob names, it names all that lies below. So what stands behind `**` in one glob may always
    # stand below a path of the other, and only the parts before the first `**` can keep two globs apart.
    for part, second in zip(_fixed_parts(one), _fixed_parts(other), strict=False):
        if isinstance(part, str) and isinstance(second, str):
            if part != second:
                return False
        elif not _parts_overlap(part, second):
            return False
    return True


def literal_prefix(pattern: str) -> str:
    """Return the text that every path of a glob begins with.

    Two globs can overlap only where the prefix of one begins with that of the other.
    """
    parts = takewhile(lambda part: part != "**" and len(part) <= MAX_LENGTH, _parts(pattern))
    return _WILDCARD.split("/".join(parts), maxsplit=1)[0]


@lru_cache(maxsize=8192)
def _fixed_parts(pattern: str) -> tuple[str | _Tokens, ...]:
    """Return the parts of a glob before its first ``**``: texts, and tokens where there are wildcards."""
    return tuple(
        _tokens(part) if is_glob(part) or len(part) > MAX_LENGTH else part
        for part in takewhile(lambda part: part != "**", _parts(pattern))
    )


def seen_from_above(pattern: str, folder: str) -> str:
    """A glob that is written in a folder, as it is written above that folder; an exclusion stays one."""
    if pattern.startswith("!"):
        return f"!{seen_from_above(pattern[1:], folder)}"
    path = plain(pattern)
    if folder == "." or path in ("", "."):
        return folder if path in ("", ".") else path
    return f"{folder}/**/{path}" if "*" in path and "/" not in path else f"{folder}/{path}"


def plain(path: str) -> str:
    """A path without what means nothing: ``./a//b/`` is ``a/b``."""
    if path[:2] != "./" and "//" not in path and path[-1:] != "/" and "/./" not in path:
        return path
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


def is_glob(path: str) -> bool:
    """Return whether a path has wildcards."""
    return _WILDCARD.search(path) is not None


def _parts(pattern: str) -> tuple[str, ...]:
    path = plain(pattern)
    if path in ("", "."):
        return ("**",)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if len(parts) == 1 and "*" in path:
        parts = ("**", *parts)
    # What a folder holds is meant by its name; of a file, nothing can lie below it.
    return parts if parts[-1] == "**" else (*parts, "**")


@lru_cache(maxsize=4096)
def _regex(pattern: str) -> re.Pattern[str]:
    """For paths with a slash in front."""
    return re.compile(
        "".join("(?:/[^/]+)*" if part == "**" else "/" + _part_regex(part) for part in _parts(pattern))
    )


def _part_regex(part: str) -> str:
    return "".join("[^/]*" if token is None else token.regex for token in _tokens(part))


@dataclass(frozen=True, slots=True)
class _Characters:
    """The characters that one place of a part may hold: those of the ranges, or all others."""

    ranges: tuple[tuple[str, str], ...]
    others: bool = False

    def __contains__(self, code: int) -> bool:
        held = any(ord(low) <= code <= ord(high) for low, high in self.ranges)
        return code != ord("/") and held is not self.others

    @property
    def regex(self) -> str:
        ranges = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in self.ranges)
        if self.others:
            return f"[^/{ranges}]"
        return f"(?!/)[{ranges}]" if ranges else "(?!)"

    def overlaps(self, other: _Characters) -> bool:
        # The least common character begins a range, follows one that is left out, or follows the slash,
        # which no part holds.
        edges = [
            code for each in (*self.ranges, *other.ranges) for code in (ord(each[0]), ord(each[1]) + 1)
        ]
        return any(code in self and code in other for code in (1, ord("/") + 1, *edges))


_Tokens: TypeAlias = "tuple[_Characters | None, ...]"
_TOKENS = re.compile(r"(?P<star>\*+)|(?P<any>\?)|\[(?P<not>!?+)(?P<held>\]?+[^\]]*)\]|.", re.DOTALL)
_RANGES = re.compile(r"(.)(?:-(.))?", re.DOTALL)


def _tokens(part: str) -> _Tokens:
    """Return what a part consists of: ``None`` for a star, else the characters of one place."""
    return tuple(map(_token, _TOKENS.finditer(part)))


def _token(found: re.Match[str]) -> _Characters | None:
    if found["star"]:
        return None
    if found["any"]:
        return _Characters((), others=True)
    if found["held"] is None:
        return _Characters(((found[0], found[0]),))
    ranges = [(low, high or low) for low, high in _RANGES.findall(found["held"])]
    return _Characters(tuple(each for each in ranges if each[0] <= each[1]), others=bool(found["not"]))


@lru_cache(maxsize=8192)
def _parts_overlap(one: str | _Tokens, other: str | _Tokens) -> bool:
    """Return whether some name is named by both of two parts, neither being ``**``."""
    first, second = (_tokens(each) if isinstance(each, str) else each for each in (one, other))
    if len(first) > MAX_LENGTH or len(second) > MAX_LENGTH:
        return True
    # Each row tells of a beginning of the first part which beginnings of the second may be the same text.
    row = [True, *accumulate((token is None for token in second), min)]
    for token in first:
        below = [row[0] and token is None]
        for at, beside in enumerate(second):
            if token is None or beside is None:
                below.append(row[at + 1] or below[at])
            else:
                below.append(row[at] and token.overlaps(beside))
        row = below
    return row[-1]
