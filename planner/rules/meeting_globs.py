"""Which of many globs may meet each other, found without comparing each with each."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from planner.rules.glob_patterns import MAX_LENGTH, is_glob, parts_meet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_START = re.compile(r"[^*?\[]*")
_END = re.compile(r"[^*?\]]*\Z")

_MANY = 8
"""More names than these are worth another look at how they differ."""


def meetings(starts: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Each pair of globs that may meet, by their numbers, once.

    Of each glob the start that decides is given: see :func:`planner.rules.glob_patterns.fixed_start`.
    """
    wild = {start: number for start, number in starts.items() if _has_wild_part(start)}
    root = _Folder()
    for start, number in wild.items():
        root.enter(start, number)
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

    below: dict[str, _Folder] | None = None
    ends: tuple[int, ...] = ()
    """The globs that end here."""
    _names: _Names | None = None

    def enter(self, start: str, number: int) -> None:
        """Add a glob; call it for all before anything is asked."""
        folder = self
        for part in start.split("/"):
            if folder.below is None:
                folder.below = {}
            following = folder.below.get(part)
            if following is None:
                following = folder.below[part] = _Folder()
            folder = following
        folder.ends = (*folder.ends, number)

    def walk(self, start: str) -> tuple[list[int], list[_Folder]]:
        """The globs that end where a glob leads by or ends, and the folders where it ends."""
        folders: list[_Folder] = [self]
        found: list[int] = []
        for part in start.split("/") if start else ():
            folders = [each for folder in folders for each in folder.like(part)]
            found += [end for folder in folders for end in folder.ends]
        return found, folders

    def all_below(self) -> Iterator[int]:
        """The globs that end below this folder."""
        pending = [*(self.below or {}).values()]
        while pending:
            folder = pending.pop()
            yield from folder.ends
            pending += (folder.below or {}).values()

    def like(self, part: str) -> Iterator[_Folder]:
        """What stands here under names and wildcards that may meet a part."""
        if self.below is not None:
            if self._names is None:
                self._names = _Names(self.below)
            for name in self._names.like(part):
                yield self.below[name]


class _Names:
    """The names and wildcards of one folder; complete when it is made."""

    def __init__(self, names: Iterable[str]) -> None:
        self._all = frozenset(names)

    def like(self, part: str) -> Iterator[str]:
        """Those that a part may meet."""
        if _is_wild(part):
            return self._tried(self._everything, part)
        return chain((part,) if part in self._all else (), self._tried(self._wildcards, part))

    def _tried(self, names: _Ends, part: str) -> Iterator[str]:
        return (name for name in names.like(part) if parts_meet(name, part))

    @cached_property
    def _wildcards(self) -> _Ends:
        return _Ends(filter(_is_wild, self._all))

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
    def _by_start(self) -> _Side:
        return _Side(self._names, 0)

    @cached_property
    def _by_end(self) -> _Side:
        return _Side(self._names, 1)


class _Side:
    """Names in the order of how they begin, or of how they end (``side`` 0 or 1)."""

    def __init__(self, names: Iterable[str], side: int) -> None:
        rows = sorted((_start_and_end(name)[side], name) for name in names)
        self._side = side
        self._texts = [text for text, _ in rows]
        self._names = [name for _, name in rows]
        self._first: dict[str, int] = {}
        """Where the names of one text begin."""
        for place, text in enumerate(self._texts):
            self._first.setdefault(text, place)
        self._other_sides: dict[int, _Side] = {}

    def like(self, text: str, other: str) -> Iterator[str]:
        """Those whose text begins with this one, or the other way round; of many also the other side."""
        for length in range(len(text)):
            place = self._first.get(text[:length])
            if place is not None:
                yield from self._of_one_text(place, self._end(place), other)
        place = bisect_left(self._texts, text)
        while place < len(self._texts) and self._texts[place].startswith(text):
            end = self._end(place)
            yield from self._of_one_text(place, end, other)
            place = end

    def _of_one_text(self, place: int, end: int, other: str) -> Iterable[str]:
        if not other or end - place <= _MANY:
            return self._names[place:end]
        if place not in self._other_sides:
            self._other_sides[place] = _Side(self._names[place:end], 1 - self._side)
        return self._other_sides[place].like(other, "")

    def _end(self, place: int) -> int:
        """Where the names of a text end that begin at a place."""
        text = self._texts[place]
        if place + 1 == len(self._texts) or self._texts[place + 1] != text:
            return place + 1
        return bisect_right(self._texts, text, place)


def _is_wild(part: str) -> bool:
    return len(part) > MAX_LENGTH or is_glob(part)


def _start_and_end(part: str) -> tuple[str, str]:
    """The characters before the first wildcard, and those behind the last one, backwards."""
    if len(part) > MAX_LENGTH:
        return "", ""
    start, end = _START.match(part), _END.search(part)
    return start[0] if start else "", end[0][::-1] if end else ""
