"""Past repairs, and what they say about each role's chance to repair a failure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.memory.similarity import TextIndex, shape
from planner.memory.tallies import NOTHING, Belief, Counts, Experience, Tally, believe, together
from planner.memory.texts import compared
from planner.model.taxonomy import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.past import Correction, PastRecords, PastRepair
    from planner.model.taxonomy import Category

ELSEWHERE = 0.5
"""What an experience of another repository is worth."""

GENERAL = 2.0
"""What a role did about other categories weighs no more than so many experiences."""

CORRECTED = 2.0
"""A person's word about one failure is worth so many repairs, to other failures of its category: one alone
changes no role, two do where nothing speaks against them."""

LIKE_THE_SAME = 0.3
"""Texts of which so much is in common tell as much about each other as equal ones; others less."""

MOST_TEXTS = 200
"""So many remembered texts are compared with that of a failure."""

Group: TypeAlias = tuple[Role, bool]
"""Who repaired, and whether it was in the repository that is worked on."""

_ABSENT = Tally.of(())


@dataclass(frozen=True)
class _Pile:
    """Some repairs, or words of persons; counted as soon as somebody asks."""

    found: list[tuple[Group, Experience]]

    @cached_property
    def tallies(self) -> Mapping[Group, Tally]:
        groups: dict[Group, list[Experience]] = {}
        for group, experience in self.found:
            groups.setdefault(group, []).append(experience)
        return {group: Tally.of(each) for group, each in groups.items()}

    def of(self, group: Group) -> Tally:
        return self.tallies.get(group, _ABSENT)


class Standing(NamedTuple):
    """What is known about one role and one failure."""

    belief: Belief
    seen: float
    """The weight of all repairs of the category by this role, and of what persons said."""
    alike: int
    alike_fixed: int
    """Repairs of the same signature or of a similar text: all of them, and those that held."""
    kindred: int
    kindred_fixed: int
    """Repairs of the same category."""


class _Same(NamedTuple):
    """The repairs of one signature."""

    whole: _Pile
    by_text: dict[int, _Pile]
    """By the place of the text."""


_NO_SAME = _Same(_Pile([]), {})


@dataclass(frozen=True)
class _Shelf:
    """The repairs of one category, and what persons said about its failures."""

    repairs: list[PastRepair]
    corrections: list[Correction]
    here: str

    @cached_property
    def whole(self) -> _Pile:
        return _Pile([self._found(repair) for repair in self.repairs])

    @cached_property
    def shapes(self) -> list[str]:
        """Of the text of each repair."""
        return [shape(compared(repair.task_kind, repair.text)) for repair in self.repairs]

    @cached_property
    def texts(self) -> Mapping[str, int]:
        """Each shape, with its place in the index."""
        return {text: place for place, text in enumerate(sorted(set(self.shapes)))}

    @cached_property
    def index(self) -> TextIndex:
        return TextIndex.of(self.texts)

    @cached_property
    def by_text(self) -> list[_Pile]:
        """At the places of the index."""
        piles = [_Pile([]) for _ in self.texts]
        for text, repair in zip(self.shapes, self.repairs, strict=True):
            piles[self.texts[text]].found.append(self._found(repair))
        return piles

    @cached_property
    def by_signature(self) -> Mapping[str, _Same]:
        found: dict[str, _Same] = {}
        for text, repair in zip(self.shapes, self.repairs, strict=True):
            if repair.signature:
                same = found.setdefault(repair.signature, _Same(_Pile([]), {}))
                for pile in (same.whole, same.by_text.setdefault(self.texts[text], _Pile([]))):
                    pile.found.append(self._found(repair))
        return found

    @cached_property
    def corrected(self) -> _Pile:
        return _Pile([self._said(word) for word in self.corrections])

    def corrected_so(self, signature: str) -> list[tuple[Group, Experience]]:
        return [self._said(word) for word in self.corrections if word.signature == signature]

    def _found(self, repair: PastRepair) -> tuple[Group, Experience]:
        return (repair.role, repair.fingerprint == self.here), experience(repair)

    def _said(self, word: Correction) -> tuple[Group, Experience]:
        return (word.role, word.fingerprint == self.here), Experience(word.at.timestamp(), True, CORRECTED)


_BARE = _Shelf([], [], "")


@dataclass(frozen=True, slots=True)
class PastRepairs:
    """All repairs, each in its place."""

    shelves: Mapping[Category, _Shelf]
    by_role: _Pile

    @classmethod
    def of(cls, records: PastRecords) -> PastRepairs:
        here = records.fingerprint
        shelves: dict[Category, _Shelf] = {}
        for repair in records.repairs:
            shelves.setdefault(repair.category, _Shelf([], [], here)).repairs.append(repair)
        for word in records.corrections:
            shelves.setdefault(word.category, _Shelf([], [], here)).corrections.append(word)
        found = [((each.role, each.fingerprint == here), experience(each)) for each in records.repairs]
        return cls(shelves, _Pile(found))

    def standings(
        self, category: Category, signature: str | None, text: str, now: float
    ) -> dict[Role, Standing]:
        """What is known about each role, in the order of roles."""
        shelf = self.shelves.get(category, _BARE)
        match = _Match(
            near=shelf.index.like(shape(text), MOST_TEXTS),
            same=shelf.by_signature.get(signature or "", _NO_SAME),
            said=_Pile([] if signature is None else shelf.corrected_so(signature)),
        )
        return {role: self._standing(shelf, role, match, now) for role in Role}

    def _standing(self, shelf: _Shelf, role: Role, match: _Match, now: float) -> Standing:
        general = together(self.by_role.of((role, here)).at(now).scaled(worth) for here, worth in _PLACES)
        rest: list[Counts] = []
        near: list[Counts] = []
        exact: list[Counts] = []
        for here, worth in _PLACES:
            levels = _levels(shelf, (role, here), match, now)
            for level, counts in zip((rest, near, exact), levels, strict=True):
                level.append(counts.scaled(worth))
        # What was said about this very signature keeps its weight when the repository's manifests change.
        said = together([*exact, *(match.said.of((role, here)).at(now) for here, _ in _PLACES)])
        alike = [tally for here, _ in _PLACES for tally in _alike(shelf, (role, here), match)]
        kindred = [shelf.whole.of((role, here)) for here, _ in _PLACES]
        return Standing(
            belief=believe(
                [
                    general.scaled(min(1.0, GENERAL / (general.all or 1.0))),
                    *rest,
                    together(near),
                    said,
                ]
            ),
            seen=together([*rest, *near, said]).all,
            alike=sum(sign * tally.number for sign, tally in alike),
            alike_fixed=sum(sign * tally.number_well for sign, tally in alike),
            kindred=sum(tally.number for tally in kindred),
            kindred_fixed=sum(tally.number_well for tally in kindred),
        )


def experience(repair: PastRepair) -> Experience:
    """A repair that took several attempts went well, but is worth less: another role might need one."""
    return Experience(repair.at.timestamp(), repair.fixed, 1.0 / repair.attempts if repair.fixed else 1.0)


class _Match(NamedTuple):
    """What of a shelf is like a failure."""

    near: tuple[tuple[int, float], ...]
    """The places of similar texts, and how similar they are."""
    same: _Same
    said: _Pile
    """Persons' words about the same signature."""


_PLACES = ((False, ELSEWHERE), (True, 1.0))
"""Elsewhere, then here: the more telling comes later."""


def _levels(shelf: _Shelf, group: Group, match: _Match, now: float) -> tuple[Counts, Counts, Counts]:
    """The repairs of one category, those of similar text, and those of the same signature.

    They are apart from each other, so that no repair counts twice.
    """
    same = match.same.by_text
    near = [
        (likeness, _without(tally.at(now), same[place].of(group).at(now) if place in same else NOTHING))
        for place, likeness in match.near
        if (tally := shelf.by_text[place].of(group)).number
    ]
    exact = match.same.whole.of(group).at(now)
    rest = _without(shelf.whole.of(group).at(now), together([exact, *(counts for _, counts in near)]))
    return (
        together([rest, shelf.corrected.of(group).at(now)]),
        together(counts.scaled(min(1.0, likeness / LIKE_THE_SAME)) for likeness, counts in near),
        exact,
    )


def _alike(shelf: _Shelf, group: Group, match: _Match) -> Iterator[tuple[int, Tally]]:
    """What is to be added, and what to be taken away again, to count the repairs that are alike."""
    yield 1, match.same.whole.of(group)
    for place, _ in match.near:
        yield 1, shelf.by_text[place].of(group)
        if place in match.same.by_text:
            yield -1, match.same.by_text[place].of(group)


def _without(whole: Counts, part: Counts) -> Counts:
    """The rest, never less than nothing: sums of fractions are not exact."""
    total = whole.all - part.all
    return NOTHING if total <= 1e-9 else Counts(min(max(0.0, whole.well - part.well), total), total)
