"""The globs of a plan: which paths they name, and whether two of them can name the same."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EVERYTHING = frozenset({"*", "**", "**/*", ".", "./", "./**", "./**/*", "*/**"})
"""Patterns that grant the whole root."""

_WILDCARD = re.compile(r"[*?\[]")
_PLAIN_PATH = re.compile(r"[^*?\[/.][^*?\[/]*+(?:/[^*?\[/.][^*?\[/]*+)*+")
"""A path without wildcards, each of whose parts means something; those with a dot in front are let go."""
_SINGLE = re.compile(r"[?\[]")
_MAX_PARTS = 64
MAX_LENGTH = 255
"""Longer parts, and globs of more parts, are not compared: they may meet anything."""


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


def literal_start(pattern: str) -> tuple[str, ...]:
    """The folders and names that every path of a glob begins with, as far as its text shows them.

    Two globs may meet only where one's literal start begins with the other's.
    """
    start = fixed_start(pattern)
    parts = start.split("/") if start else ()
    return tuple(takewhile(lambda part: not is_glob(part) and len(part) <= MAX_LENGTH, parts))


def fixed_start(pattern: str) -> str:
    """The parts of a glob before its first ``**``: they alone decide which other globs it may meet.

    For whatever a glob names, it names all that lies below; so what stands behind ``**`` may always stand
    below a path that the other one names.
    """
    if _PLAIN_PATH.fullmatch(pattern) and pattern.count("/") < _MAX_PARTS - 1:
        return pattern
    parts = _parts(pattern)
    return "/".join(parts[: parts.index("**")]) if len(parts) <= _MAX_PARTS else ""


def seen_from_above(pattern: str, folder: str) -> str:
    """A glob that is written in a folder, as it is written above that folder; an exclusion stays one."""
    if pattern.startswith("!"):
        return f"!{seen_from_above(pattern[1:], folder)}"
    path = plain(pattern)
    if folder == "." or path in ("", "."):
        return folder if path in ("", ".") else path
    return f"{folder}/**/{path}" if "*" in path and "/" not in path else f"{folder}/{path}"


def parts_meet(one: str, other: str) -> bool:
    """Whether some name may be named by both of two parts, neither being ``**``."""
    return _parts_meet(one, other)


def plain(path: str) -> str:
    """A path without what means nothing: ``./a//b/`` is ``a/b``."""
    if path[:2] != "./" and "//" not in path and path[-1:] != "/" and "/./" not in path:
        return path
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


def is_glob(path: str) -> bool:
    """Whether a path has wildcards."""
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
    text = ""
    for token in _tokens(part):
        if token.startswith("*"):
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
    if len(one) > MAX_LENGTH or len(other) > MAX_LENGTH:
        return True
    if not _SINGLE.search(one + other):
        return _starred_meet(one, other)
    return _overlap(
        tuple(_tokens(one)), tuple(_tokens(other)), lambda token: token.startswith("*"), _tokens_meet
    )


def _starred_meet(one: str, other: str) -> bool:
    """Of parts that have no other wildcard than ``*``.

    Where both have one, only the ends can differ: what stands between may always stand side by side.
    """
    (start, *first), (second_start, *second) = one.split("*"), other.split("*")
    if first and second:
        ends = (first[-1][::-1], second[-1][::-1])
        return _begin_alike(start, second_start) and _begin_alike(*ends)
    if not first and not second:
        return one == other
    name, (start, *rest) = (one, other.split("*")) if not first else (other, one.split("*"))
    if len(rest) > 1:
        pieces = map(re.escape, (start, *rest))
        return re.fullmatch(".*".join(pieces), name, re.DOTALL) is not None
    return name.startswith(start) and name.endswith(rest[0]) and len(name) >= len(start) + len(rest[0])


def _begin_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


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
