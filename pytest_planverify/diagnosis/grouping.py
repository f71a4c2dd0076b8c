"""Puts the failures of a run together that are proved to have one cause; every failure is in one group."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from planner.model.kinds import Side
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.same_cause import Mark, focus, marks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_planverify.diagnosis.seen import Seen
    from pytest_planverify.diagnosis.todo_order import TodoKey, TodoOrder

_SEVERITY = {category: category.facts.family.severity for category in Category}

LATER_TODO = "a todo that depends on the other fails in the same function of the product"

Scoped = tuple[str, Mark]
"""A mark, and the folder that its paths are relative to."""


class Shown(NamedTuple):
    """A test, or the file of tests, that shows a failure, and the first todo that it does so in."""

    root: str
    nodeid: str
    todo: TodoKey


@dataclass
class Group:
    """The failures of one cause."""

    members: list[Seen] = field(default_factory=list["Seen"])
    marks: set[Scoped] = field(default_factory=set[Scoped])
    joined: set[str] = field(default_factory=set[str])
    """Why failures with different signatures are in it."""

    @cached_property
    def clearest(self) -> Seen:
        """The failure that speaks for all: of the most severe family, then the most certain."""
        return min(
            self.members,
            key=lambda each: (
                _SEVERITY[each.diagnosis.category],
                -each.diagnosis.confidence,
                each.diagnosis.signature,
                each.todo[0] or "",
                each.todo[1],
                each.evidence.check_id,
                each.evidence.nodeid or "",
                each.evidence.headline,
                each.diagnosis.category.value,
                each.diagnosis.rule,
            ),
        )

    @cached_property
    def signatures(self) -> tuple[str, ...]:
        """Each once, that of the clearest failure first."""
        first = self.clearest.diagnosis.signature
        return (first, *sorted({each.diagnosis.signature for each in self.members} - {first}))

    @cached_property
    def todos(self) -> frozenset[TodoKey]:
        return frozenset(each.todo for each in self.members)

    @cached_property
    def tests(self) -> tuple[Shown, ...]:
        """Every test and file of tests that shows it, once."""
        todos: dict[tuple[str, str], TodoKey] = {}
        for each in self.members:
            for nodeid in each.shown_by:
                key = (each.root, nodeid)
                known = todos.get(key)
                if known is None or _by_name(each.todo) < _by_name(known):
                    todos[key] = each.todo
        return tuple(Shown(root, nodeid, todo) for (root, nodeid), todo in todos.items())

    @cached_property
    def test_count(self) -> int:
        return sum("::" in each.nodeid for each in self.tests)

    @property
    def file_count(self) -> int:
        """So many files of tests could not be collected."""
        return len(self.tests) - self.test_count

    @cached_property
    def tests_of(self) -> Counter[TodoKey]:
        """How many tests of each todo show it."""
        pairs = {(each.todo, nodeid) for each in self.members for nodeid in each.shown_by}
        return Counter(todo for todo, nodeid in pairs if "::" in nodeid)

    @cached_property
    def consequences(self) -> int:
        """Tests and files that show it; a criterion without tests counts as one."""
        without = {(each.todo, each.evidence.check_id) for each in self.members if not each.shown_by}
        return len(self.tests) + len(without)


def grouped(seen: Sequence[Seen], order: TodoOrder) -> list[Group]:
    """The groups, in no order that means anything."""
    joining = _Joining()
    for each in seen:
        joining.add(each)
    joining.join_later_todos(order)
    return joining.groups()


class _Joining:
    """Joins signatures by the marks of their failures."""

    def __init__(self) -> None:
        self._members: dict[str, list[Seen]] = {}
        self._marks: dict[str, set[Scoped]] = {}
        self._holder: dict[Scoped, str] = {}
        """By mark, the signature that had it first."""
        self._above: dict[str, str] = {}
        self._joined: list[tuple[str, str]] = []
        self._raising: dict[tuple[str, str, str], dict[str, set[TodoKey]]] = {}
        """By the product's function that raised, the todos that each signature fails there."""

    def add(self, each: Seen) -> None:
        signature = each.diagnosis.signature
        self._members.setdefault(signature, []).append(each)
        known = self._marks.setdefault(signature, set())
        case = focus(each.evidence)
        for mark in marks_of(case):
            scoped = (each.root, mark)
            if scoped in known:
                continue
            known.add(scoped)
            self._join(self._holder.setdefault(scoped, signature), signature, mark.sentence)
        frame = case.raised_at
        if frame is not None and frame.side is Side.PRODUCT:
            place = (each.root, frame.path, frame.function)
            self._raising.setdefault(place, {}).setdefault(signature, set()).add(each.todo)

    def join_later_todos(self, order: TodoOrder) -> None:
        """What fails in one function of the product, in a todo and in one that depends on it."""
        for signatures in self._raising.values():
            names = sorted(signatures)
            for place, one in enumerate(names):
                for other in names[place + 1 :]:
                    if self._root(one) != self._root(other) and _depend(
                        signatures[one], signatures[other], order
                    ):
                        self._join(one, other, LATER_TODO)

    def groups(self) -> list[Group]:
        found: dict[str, Group] = {}
        for signature, members in self._members.items():
            group = found.setdefault(self._root(signature), Group())
            group.members.extend(members)
            group.marks |= self._marks[signature]
        for signature, why in self._joined:
            found[self._root(signature)].joined.add(why)
        return list(found.values())

    def _join(self, one: str, other: str, why: str) -> None:
        if one == other:
            return
        self._joined.append((one, why))
        low, high = sorted((self._root(one), self._root(other)))
        if low != high:
            self._above[high] = low

    def _root(self, signature: str) -> str:
        root = signature
        while (above := self._above.get(root)) is not None:
            root = above
        while signature != root:
            self._above[signature], signature = root, self._above[signature]
        return root


def _depend(some: set[TodoKey], others: set[TodoKey], order: TodoOrder) -> bool:
    return any(
        order.rests_on(late, early) or order.rests_on(early, late)
        for early, late in _pairs(some, others)
        if early != late
    )


def _pairs(some: set[TodoKey], others: set[TodoKey]) -> Iterator[tuple[TodoKey, TodoKey]]:
    return ((one, other) for one in sorted(some, key=_by_name) for other in sorted(others, key=_by_name))


def _by_name(todo: TodoKey) -> tuple[str, str]:
    return todo[0] or "", todo[1]
