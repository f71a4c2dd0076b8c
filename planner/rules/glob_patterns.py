"""The globs of a plan: which paths they name, and whether two of them can name the same."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EVERYTHING = frozenset({"*", "**", "**/*", ".", "./", "./**", "./**/*", "*/**"})
"""Patterns that grant the whole root."""

_MAX_PARTS = 64


def allowed(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path is named by the patterns; those that begin with ``!`` take it out again."""
    granted = False
    for pattern in patterns:
        if pattern.startswith("!"):
            granted = granted and not matches(path, pattern[1:])
        elif not granted:
            granted = matches(path, pattern)
    return granted


def matches(path: str, pattern: str) -> bool:
    """Whether a glob names a path.

    ``**`` is any number of folders; a folder names all that it holds; a pattern of one part with a
    wildcard names files of any folder, as ``*.py`` does.
    """
    return _regex(pattern).fullmatch("/" + plain(path)) is not None


def may_meet(one: str, other: str) -> bool:
    """Whether some path may be named by both globs."""
    first, second = _parts(one), _parts(other)
    if len(first) > _MAX_PARTS or len(second) > _MAX_PARTS:
        return True
    return _meet(first, second)


def plain(path: str) -> str:
    """A path without what means nothing: ``./a//b/`` is ``a/b``."""
    if path[:2] != "./" and "//" not in path and path[-1:] != "/" and "/./" not in path:
        return path
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


def is_glob(path: str) -> bool:
    """Whether a path has wildcards."""
    return any(sign in path for sign in "*?[")


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
    text = ""
    for token in _tokens(part):
        if token in ("*", "**"):
            text += "[^/]*"
        elif token == "?" or (token.startswith("[") and len(token) > 2):
            text += "[^/]"
        else:
            text += re.escape(token)
    return text


def _tokens(part: str) -> list[str]:
    """``*``, ``?``, classes and single characters. What a class holds is not looked at: it is any one."""
    return re.findall(r"\*+|\?|\[!?\]?[^\]]*\]|.", part, re.DOTALL)


def _meet(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Two lists of parts, ``**`` being any number of parts."""
    return _overlap(first, second, lambda part: part == "**", _parts_meet)


@lru_cache(maxsize=4096)
def _parts_meet(one: str, other: str) -> bool:
    if one == other or "*" in (one, other):
        return True
    if len(one) > 255 or len(other) > 255:
        return True
    return _overlap(
        tuple(_tokens(one)), tuple(_tokens(other)), lambda token: token.startswith("*"), _tokens_meet
    )


def _tokens_meet(one: str, other: str) -> bool:
    return one == other or any(token == "?" or len(token) > 2 for token in (one, other))


def _overlap(
    first: tuple[str, ...],
    second: tuple[str, ...],
    is_many: Callable[[str], bool],
    meet: Callable[[str, str], bool],
) -> bool:
    """Whether two sequences can be the same one, where some elements stand for any number of others."""
    row = [True] + [False] * len(second)
    for at, other in enumerate(second):
        row[at + 1] = row[at] and is_many(other)
    for one in first:
        below = [row[0] and is_many(one)]
        for at, other in enumerate(second):
            if is_many(one) or is_many(other):
                below.append(row[at + 1] or below[at])
            else:
                below.append(row[at] and meet(one, other))
        row = below
    return row[-1]
