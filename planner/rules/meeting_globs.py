"""Which of many globs may meet each other, found without comparing each with each."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from planner.rules.glob_patterns import MAX_LENGTH, is_glob, parts_meet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_START = re.compile(r"[^*?\[]*")
_END = re.compile(r"[^*?\]]*\Z")

_MANY = 8
"""More names than these are worth another look at how they differ."""

_T = TypeVar("_T")


def meetings(starts: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Each pair of globs that may meet, by their numbers, once.

    Of each glob the start that decides is given: see :func:`planner.rules.glob_patterns.fixed_start`.
    """
    wild = {start: number for start, number in starts.items() if _has_wild_part(start)}
    root = _Folder()
    for start, number in wild.items():
        root.enter(start).ends.append(number)
    above: dict[str, tuple[int, ...]] = {}
    for start, number in starts.items():
        if start not in wild:
            yield from ((number, other) for other in _folders_above(start, starts, above))
            if wild:
                on_the_way, reached = root.walk(start)
                below = (end for folder in reached for end in folder.all_below())
                yield from ((number, other) for other in chain(on_the_way, below))
    depths = {number: start.count("/") for start, number in wild.items()}
    for start, number in wild.items():
        for other in root.walk(start)[0]:
            # The longer of two meets the other on its way; of two that are as long, both do. So the first
            # ones tell of nearly all: who is not prepared for too many need not wait long to see it.
            if (depths[other], number) < (depths[number], other):
                yield number, other


def _folders_above(
    path: str, starts: Mapping[str, int], known: dict[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """The numbers of the folders that hold a path: of ``a/b/c`` a/b, a, and the root of all."""
    if not path:
        return ()
    folder = path.rpartition("/")[0]
    found = known.get(folder)
    if found is None:
        own = (starts[folder],) if folder in starts else ()
        found = known[folder] = (*own, *_folders_above(folder, starts, known))
    return found


def _has_wild_part(start: str) -> bool:
    if len(start) <= MAX_LENGTH:
        return is_glob(start)
    return any(map(_is_wild, start.split("/")))


@dataclass(slots=True)
class _Folder:
    """What stands in one place of globs: the names and the wildcards that follow there."""

    below: dict[str, _Folder] = field(default_factory=dict[str, "_Folder"])
    ends: list[int] = field(default_factory=list[int])
    """The globs that end here."""
    _names: _Names | None = None

    def enter(self, start: str) -> _Folder:
        """The folder of a glob; call it for all before anything is asked."""
        folder = self
        for part in start.split("/"):
            folder = folder.below.setdefault(part, _Folder())
        return folder

    def walk(self, start: str) -> tuple[list[int], list[_Folder]]:
        """The globs that end where a glob leads by or ends, and the folders where it ends."""
        folders: list[_Folder] = [self]
        found: list[int] = []
        for part in start.split("/") if start else ():
            folders = [folder.below[name] for folder in folders for name in folder.like(part)]
            found += [end for folder in folders for end in folder.ends]
        return found, folders

    def all_below(self) -> Iterator[int]:
        """The globs that end below this folder."""
        pending = [*self.below.values()]
        while pending:
            folder = pending.pop()
            yield from folder.ends
            pending += folder.below.values()

    def like(self, part: str) -> Iterator[str]:
        """The names and wildcards here that may meet a part."""
        if self._names is None:
            self._names = _Names(self.below)
        return self._names.like(part)


class _Names:
    """The names and wildcards of one folder; complete when it is made."""

    def __init__(self, names: Iterable[str]) -> None:
        self._all = dict.fromkeys(names)
        self._wild = [name for name in self._all if _is_wild(name)]

    def like(self, part: str) -> Iterator[str]:
        """Those that a part may meet."""
        if _is_wild(part):
            return self._tried(self._everything, part)
        return chain((part,) if part in self._all else (), self._tried(self._wildcards, part))

    def _tried(self, names: _Ends, part: str) -> Iterator[str]:
        return (name for name in names.like(part) if parts_meet(name, part))

    @cached_property
    def _wildcards(self) -> _Ends:
        return _Ends(self._wild)

    @cached_property
    def _everything(self) -> _Ends:
        return _Ends(self._all)


class _Ends:
    """Names by the characters that they begin and end with.

    Two names may meet only where one's beginning begins with the other's, and the same backwards.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def like(self, part: str) -> Iterator[str]:
        """Those that may meet a part as far as both ends show it."""
        start, end = _start_and_end(part)
        # What is longer tells more of the names apart.
        if len(start) >= len(end):
            return self._by_start.like(start, end)
        return self._by_end.like(end, start)

    @cached_property
    def _by_start(self) -> _Pairs:
        return _Pairs((start, end, name) for name in self._names for start, end in (_start_and_end(name),))

    @cached_property
    def _by_end(self) -> _Pairs:
        return _Pairs((end, start, name) for name in self._names for start, end in (_start_and_end(name),))


class _Pairs:
    """Names by two texts."""

    def __init__(self, rows: Iterable[tuple[str, str, str]]) -> None:
        self._rows: _Texts[list[tuple[str, str, str]]] = _Texts()
        for row in rows:
            self._rows.setdefault(row[0], []).append(row)
        self._by_second: dict[str, _Pairs] = {}

    def like(self, first: str, second: str) -> Iterator[str]:
        """Those whose first text begins with this one, or the other way round; of many, the second too."""
        for rows in self._rows.like(first):
            if second and len(rows) > _MANY:
                key = rows[0][0]
                if key not in self._by_second:
                    self._by_second[key] = _Pairs((row[1], row[0], row[2]) for row in rows)
                yield from self._by_second[key].like(second, "")
            else:
                yield from (name for _, _, name in rows)


class _Texts(dict[str, _T]):
    """Values by text, to be asked for those whose text begins with another one, or the other way round."""

    _sorted: list[str] | None = None

    def like(self, text: str) -> Iterator[_T]:
        """Call it when no more texts are added."""
        if self._sorted is None:
            self._sorted = sorted(self)
        for length in range(len(text)):
            if text[:length] in self:
                yield self[text[:length]]
        for place in range(bisect_left(self._sorted, text), len(self._sorted)):
            if not self._sorted[place].startswith(text):
                break
            yield self[self._sorted[place]]


def _is_wild(part: str) -> bool:
    return len(part) > MAX_LENGTH or is_glob(part)


def _start_and_end(part: str) -> tuple[str, str]:
    """The characters before the first wildcard, and those behind the last one, backwards."""
    if len(part) > MAX_LENGTH:
        return "", ""
    start, end = _START.match(part), _END.search(part)
    return start[0] if start else "", end[0][::-1] if end else ""
