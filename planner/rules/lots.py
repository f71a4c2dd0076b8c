"""The files that todos may write, taken wave by wave: in each wave, a file is at most one todo's."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias

from planner.rules.file_claims import Grant, grants_of
from planner.rules.glob_patterns import fixed_start, literal_start
from planner.rules.meeting_globs import meetings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_MOST_PAIRS = 1_000_000
_MOST_PAIRS_EACH = 16
"""More lots that may meet than these would not fit in memory, and are not compared one by one."""

_Key: TypeAlias = "str | tuple[str, tuple[str, ...]]"
"""What tells lots apart: how a glob begins; or the glob, and those that are taken out of it."""

_Lots: TypeAlias = "tuple[list[tuple[int, ...]], list[tuple[int, int]]]"
"""The lots of each claimant, and each pair of lots that may meet."""


class Lots:
    """Who may write in which wave. A lot is what one glob lets in, or several globs that begin alike.

    Each claimant, a number from 0, names the globs of the files that it may write.
    """

    def __init__(self, claims: Sequence[tuple[str, ...]]) -> None:
        lots_of, pairs = _exact(claims) or _coarse(claims)
        self._minds = _minding(pairs)
        shared = {*_repeated(lots_of), *chain.from_iterable(pairs)}
        # What nobody else has, and no other may meet, keeps nobody apart.
        self._lots = [
            lots if shared.issuperset(lots) else tuple(lot for lot in lots if lot in shared)
            for lots in lots_of
        ]
        self._held = {lot: _Waves() for minded in self._minds.values() for lot in minded}
        """The waves in which somebody has it, of the lots that others mind."""
        self._closed = {lot: _Waves() for lot in shared}
        """The waves in which somebody has it, or has a lot that minds it."""
        self._known: dict[tuple[int, ...], _Waves] = {}
        """The waves that are known to be closed to all who have just these lots."""

    def take(self, claimant: int, first: int) -> int:
        """The first wave, from ``first`` on, that is open to the claimant, who then has it."""
        lots = self._lots[claimant]
        if not lots:
            return first
        wave = self._next_open(lots, first)
        for lot in lots:
            self._closed[lot].leap(wave, wave + 1)
            if lot in self._held:
                self._held[lot].leap(wave, wave + 1)
            for other in self._minds.get(lot, ()):
                self._closed[other].leap(wave, wave + 1)
        return wave

    def _next_open(self, lots: tuple[int, ...], first: int) -> int:
        asked = [self._closed[lot] for lot in lots]
        asked += [self._held[other] for lot in lots for other in self._minds.get(lot, ())]
        known = self._known.get(lots) or _Waves()
        wave = known.next_open(first)
        while True:
            following = wave
            for waves in asked:
                following = waves.next_open(following)
            if following == wave:
                return wave
            self._known[lots] = known
            known.leap(wave, following)
            wave = known.next_open(following)


class _Waves(dict[int, int]):
    """Waves that are closed, each with one to go on to; tells nearly at once which is open next."""

    def leap(self, wave: int, following: int) -> None:
        """Whoever comes to this wave goes on to a later one."""
        self.setdefault(wave, following)

    def next_open(self, wave: int) -> int:
        """The wave itself, or the first after it that is not closed."""
        found = wave
        while found in self:
            found = self[found]
        while wave != found:  # the way is short the next time
            self[wave], wave = found, self[wave]
        return found


def _exact(claims: Sequence[tuple[str, ...]]) -> _Lots | None:
    """The lots of the claimants, and those that may meet; nothing where they meet by the million."""
    # Where nothing is taken out of any glob, those that begin alike meet the same others.
    plain = not any(pattern.startswith("!") for patterns in claims for pattern in patterns)
    numbers: dict[_Key, int] = {}
    lots_of = [
        _numbered(map(fixed_start, patterns) if plain else map(_plain, grants_of(patterns)), numbers)
        for patterns in claims
    ]
    most = _MOST_PAIRS + _MOST_PAIRS_EACH * len(numbers)
    pairs = list(islice(_pairs(numbers), most + 1))
    return (lots_of, pairs) if len(pairs) <= most else None


def _coarse(claims: Sequence[tuple[str, ...]]) -> _Lots:
    """The same, a glob standing for all below its literal start: more is kept apart, never less."""
    numbers: dict[_Key, int] = {}
    lots_of = [
        _numbered(("/".join(literal_start(grant.pattern)) for grant in grants_of(patterns)), numbers)
        for patterns in claims
    ]
    return lots_of, list(_pairs(numbers))


def _numbered(keys: Iterable[_Key], numbers: dict[_Key, int]) -> tuple[int, ...]:
    """The numbers of the keys, each once; a key that is new gets the next one."""
    found = tuple([numbers.setdefault(key, len(numbers)) for key in keys])
    return found if len(found) < 2 else tuple(dict.fromkeys(found))


def _plain(grant: Grant) -> tuple[str, tuple[str, ...]]:
    """A tuple of texts is no load on the search for garbage; any instance of a class is."""
    return (grant.pattern, grant.without)


def _repeated(lots_of: Iterable[tuple[int, ...]]) -> Iterator[int]:
    """The lots that several claimants have."""
    held: set[int] = set()
    for lots in lots_of:
        for lot in lots:
            if lot in held:
                yield lot
            held.add(lot)


def _minding(pairs: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """By lot, those that it may meet and minds: it asks where they are held, and tells them where it is.

    Of two that may meet, the one that meets fewer others minds the other: of a glob that meets thousands of
    files each file minds the glob, and the glob none of them.
    """
    met = Counter(chain.from_iterable(pairs))
    minds: dict[int, list[int]] = {}
    for one, other in pairs:
        few, many = (one, other) if met[one] <= met[other] else (other, one)
        minds.setdefault(few, []).append(many)
    return minds


def _pairs(numbers: Mapping[_Key, int]) -> Iterator[tuple[int, int]]:
    """The lots that may meet, each pair once."""
    starts: dict[str, int] = {}
    grants: list[tuple[str, tuple[str, ...]]] = []
    alike: dict[int, list[int]] = {}
    """The other grants that begin as one of them does."""
    for key, number in numbers.items():
        if isinstance(key, str):
            starts[key] = number
        else:
            grants.append(key)
            first = starts.setdefault(fixed_start(key[0]), number)
            if first != number:
                alike.setdefault(first, []).append(number)
    if not grants:
        yield from meetings(starts)
        return
    same = ((first, first) for first in alike)
    for one, other in chain(same, meetings(starts)):
        for number in (one, *alike.get(one, ())):
            for second in (other, *alike.get(other, ())):
                if one == other and second >= number:
                    continue
                if Grant(*grants[number]).meets(Grant(*grants[second])):
                    yield number, second
