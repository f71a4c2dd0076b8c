"""From the diagnosed failures of a run to its root causes, in the order in which they are best repaired.

Failures with one signature are one cause, and so are those that :mod:`.cause_marks` proves to be one. First
comes what keeps tests from running, then what tests found; an earlier todo before a later one."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.model.outcome import Cause, CauseTodo
from planner.model.taxonomy import Category, Family, Repeatability
from planner.model.verdicts import EvidenceKind, Phase, Side
from pytest_planverify.diagnosis.case import is_a
from pytest_planverify.diagnosis.cause_marks import ASSERTIONS, Mark, changed_mark, focus, marks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from planner.model.evidence import Evidence
    from planner.model.outcome import Diagnosis

TodoKey: TypeAlias = tuple[str | None, str]
"""The id of a plan, and of a todo in it."""


class TodoOrder:
    """The todos of a run. Dependencies in a circle, and on what is not there, are passed over."""

    def __init__(self, depends: Mapping[TodoKey, Sequence[TodoKey]], seen: Iterable[TodoKey] = ()) -> None:
        """``depends`` holds the todos in the plan's order; those in ``seen`` alone come after them."""
        unknown = {each for each in seen if each not in depends}
        known = (*depends, *sorted(unknown, key=lambda key: (key[0] or "", key[1])))
        self._place = {key: place for place, key in enumerate(known)}
        self._depends = depends
        self._depth: dict[TodoKey, int] = {}

    def place(self, todo: TodoKey) -> int:
        """Where it stands in the plan."""
        return self._place[todo]

    def depth(self, todo: TodoKey) -> int:
        """How many todos must be done before it, one after the other."""
        if not self._depth:
            for each in self._place:  # in one order, for a circle is as deep as where it is entered
                self._measure(each)
        return self._depth[todo]

    def rests_on(self, late: TodoKey, early: TodoKey) -> bool:
        """Whether one todo depends on another, also by way of others."""
        seen, waiting = {late}, [late]
        while waiting:
            above = [each for each in self._above(waiting.pop()) if each not in seen]
            if early in above:
                return True
            seen.update(above)
            waiting.extend(above)
        return False

    def _above(self, todo: TodoKey) -> list[TodoKey]:
        return [each for each in self._depends.get(todo, ()) if each in self._place]

    def _measure(self, todo: TodoKey) -> None:
        """Without recursion, for a plan may be a chain of thousands."""
        stack, under_way = [todo], {todo}
        while stack:
            above = self._above(stack[-1])
            waiting = [each for each in above if each not in self._depth and each not in under_way]
            if waiting:
                under_way.update(waiting)
                stack.extend(waiting)
                continue
            done = stack.pop()
            self._depth[done] = 1 + max((self._depth.get(each, -1) for each in above), default=-1)


@dataclass(frozen=True, slots=True)
class Seen:
    """A failure, its diagnosis, and the todo that it fails."""

    todo: TodoKey
    evidence: Evidence
    diagnosis: Diagnosis
    root: str = ""
    """Names the folder that its paths are relative to: equal paths of two folders are two files."""

    @property
    def shown_by(self) -> tuple[str, ...]:
        """The tests that show it, or the file whose tests could not be collected."""
        evidence = self.evidence
        return evidence.tests or ((evidence.nodeid,) if evidence.nodeid else ())


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
        for mark in filter(None, (*marks_of(case), changed_mark(each.diagnosis))):
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


class Stage(IntEnum):
    """The stages, the one to mend first first."""

    STOPS = 0
    """A violation, or a spent budget."""
    SURROUNDS = 1
    """The machine lacks something that most of what failed needs."""
    UNLOADED = 2
    """Code that could not be imported or parsed."""
    UNPREPARED = 3
    """A set-up that failed."""
    FOUND = 4
    """What tests found."""
    FOLLOWS = 5
    """A result that is not there."""
    REMARKED = 6
    """What a linter found."""
    UNSTEADY = 7
    """What is not red every time."""


_STOPPING = (Family.SANDBOX, Family.BUDGET)
_UNLOADED = (Category.COMPILATION_ERROR, Category.IMPORT_ERROR)
_LOADING = (EvidenceKind.COLLECTION, EvidenceKind.SESSION)


def stage_of(group: Group, *, failing: int, consequences: int) -> Stage:
    """The stage of one cause in a run with so many failing todos and consequences of any cause."""
    category = group.clearest.diagnosis.category
    if category.facts.family in _STOPPING:
        return Stage.STOPS
    if category.facts.family is Family.ENVIRONMENT and (
        len(group.todos) == failing or 2 * group.consequences >= consequences
    ):
        return Stage.SURROUNDS
    if all(each.diagnosis.repeatability is Repeatability.FLAKY for each in group.members):
        return Stage.UNSTEADY
    if category in _UNLOADED or any(_of_loading(each.evidence) for each in group.members):
        return Stage.UNLOADED
    if any(each.evidence.phase is Phase.SETUP for each in group.members):
        return Stage.UNPREPARED
    if category is Category.LINT_ERROR:
        return Stage.REMARKED
    follows = all(each.evidence.artifact or each.evidence.metric for each in group.members)
    return Stage.FOLLOWS if follows else Stage.FOUND


def _of_loading(evidence: Evidence) -> bool:
    """Whether it was seen before any test could run."""
    return evidence.kind in _LOADING and bool(evidence.exceptions or evidence.phase is Phase.COLLECT)


Staged = tuple[Stage, "Group"]
Link = tuple[int, int]
"""The places of two causes: the first probably explains the second."""

MOST_READ = 50
"""Of one cause so many failures are read for links: the others are like them."""

_STANDS_BEFORE = (Stage.SURROUNDS, Stage.UNLOADED, Stage.UNPREPARED)


def explanations(causes: Sequence[Staged]) -> list[Link]:
    """Each link once. ``causes`` are in the order in which they are mended but for these links."""
    links = {link for read in _READERS for link in read(causes) if link[0] < link[1]}
    return sorted(links)


def _unwritten(causes: Sequence[Staged]) -> Iterator[Link]:
    """What kept a todo's programs from their end explains what they should have written."""
    following = [
        (place, group.todos) for place, (stage, group) in enumerate(causes) if stage is Stage.FOLLOWS
    ]
    wanted = {todo for _, todos in following for todo in todos}
    stopping: dict[object, list[int]] = defaultdict(list)
    for place, (stage, group) in enumerate(causes):
        if group.todos & wanted and (
            stage in _STANDS_BEFORE or any(_ends_early(each.evidence) for each in group.members[:MOST_READ])
        ):
            for todo in group.todos:
                stopping[todo].append(place)
    for place, todos in following:
        yield from ((early, place) for todo in todos for early in stopping.get(todo, ()))


def _ends_early(evidence: Evidence) -> bool:
    """Whether a program came to an end before it was through: it raised, died, or was stopped."""
    if evidence.timed_out or (evidence.process is not None and evidence.process.signal is not None):
        return True
    case = focus(evidence)
    return case.error is not None and case.in_product and not is_a(case.error, *ASSERTIONS)


def _one_function(causes: Sequence[Staged]) -> Iterator[Link]:
    """A function of the product raises here, and gives a wrong value there."""
    raising: dict[tuple[str, ...], list[int]] = defaultdict(list)
    giving: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, (_, group) in enumerate(causes):
        for root, mark in sorted(group.marks):
            if mark.what == "raised":
                raising[root, *mark.name[:2]].append(place)
            elif mark.what == "value":
                giving[root, *mark.name].append(place)
    for function, places in giving.items():
        for place in places:
            for other in raising.get(function, ()):
                yield min(place, other), max(place, other)


_READERS: tuple[Callable[[Sequence[Staged]], Iterator[Link]], ...] = (
    _unwritten,
    _one_function,
)


BECAUSE: Mapping[Stage, str] = {
    Stage.STOPS: "a person has to decide before work goes on",
    Stage.SURROUNDS: "most failures need it, whatever the code does",
    Stage.UNLOADED: "what imports it cannot be loaded, which hides other failures there",
    Stage.UNPREPARED: "the tests that use this set-up did not run",
    Stage.FOLLOWS: "it should come out of other work",
    Stage.REMARKED: "a remark about the code: it keeps no test from running",
    Stage.UNSTEADY: "not reproducible, so it comes after what is",
}
"""Why a cause of that stage comes where it does; what tests found is ordered among itself."""


@dataclass(eq=False)
class Ordered:
    """A group with its place among the others."""

    group: Group
    stage: Stage
    depth: int
    """Of the earliest todo that shows it."""
    key: tuple[int | str, ...]
    because: str = ""
    explained_by: list[Ordered] = field(default_factory=list["Ordered"])
    explains: set[str] = field(default_factory=set[str])
    """Signatures of other groups."""


def in_order(groups: Sequence[Group], order: TodoOrder) -> list[Ordered]:
    """The groups, the first to mend first."""
    failing = len({todo for group in groups for todo in group.todos})
    consequences = sum(group.consequences for group in groups)
    entries = [_entry(group, order, failing, consequences) for group in groups]
    entries.sort(key=lambda entry: entry.key)
    for early, late in explanations([(entry.stage, entry.group) for entry in entries]):
        entries[late].explained_by.append(entries[early])
        entries[early].explains.update(entries[late].group.signatures)
    places = {id(entry): place for place, entry in enumerate(entries, start=1)}
    for entry, following in zip(entries, [*entries[1:], None], strict=False):
        entry.because = _because(entry, following, places)
    return entries


def _entry(group: Group, order: TodoOrder, failing: int, consequences: int) -> Ordered:
    stage = stage_of(group, failing=failing, consequences=consequences)
    depth = min(order.depth(todo) for todo in group.todos)
    first = min(order.place(todo) for todo in group.todos)
    key = (int(stage), depth, -group.consequences, first, group.signatures[0])
    return Ordered(group=group, stage=stage, depth=depth, key=key)


def _because(entry: Ordered, following: Ordered | None, places: Mapping[int, int]) -> str:
    if len(places) == 1:
        return "every failure shows it"
    if entry.explained_by:
        return f"likely fixed by cause {min(places[id(each)] for each in entry.explained_by)}"
    if entry.stage in BECAUSE:
        return BECAUSE[entry.stage]
    if following is None or following.stage is not entry.stage or following.explained_by:
        return "independent of the others"
    if following.depth > entry.depth:
        return "in an earlier todo than the next"
    if following.group.consequences < entry.group.consequences:
        return "explains more failures than the next"
    return "before the next in the plan"


__all__ = ["Seen", "TodoKey", "find_causes", "grouping"]

TOP_TESTS = 10


def find_causes(seen: Sequence[Seen], depends: Mapping[TodoKey, Sequence[TodoKey]]) -> tuple[Cause, ...]:
    """The causes of a run's failures, the first to mend first; the order of ``seen`` does not matter.

    ``depends`` names, in the plan's order, every todo of the run with those that it depends on.
    """
    order = TodoOrder(depends, (each.todo for each in seen))
    return tuple(_cause(rank, each, order) for rank, each in enumerate(_ordered(seen, order), start=1))


def grouping(seen: Sequence[Seen], depends: Mapping[TodoKey, Sequence[TodoKey]]) -> list[list[int]]:
    """The failures of each cause by their places in ``seen``, the first cause to mend first."""
    order = TodoOrder(depends, (each.todo for each in seen))
    place = {id(each): number for number, each in enumerate(seen)}
    return [sorted(place[id(member)] for member in each.group.members) for each in _ordered(seen, order)]


def _ordered(seen: Sequence[Seen], order: TodoOrder) -> list[Ordered]:
    return in_order(grouped(seen, order), order)


def _cause(rank: int, ordered: Ordered, order: TodoOrder) -> Cause:
    group = ordered.group
    clearest = group.clearest
    tests = sorted(group.tests, key=lambda key: (order.place(key.todo), key.nodeid))
    return Cause(
        rank=rank,
        signatures=group.signatures,
        category=clearest.diagnosis.category,
        owner=clearest.diagnosis.owner,
        confidence=clearest.diagnosis.confidence,
        headline=clearest.evidence.headline,
        location=clearest.diagnosis.location,
        todos=tuple(_todo(todo, group) for todo in sorted(group.todos, key=order.place)),
        tests=group.test_count,
        files=group.file_count,
        top_tests=tuple(dict.fromkeys(key.nodeid for key in tests))[:TOP_TESTS],
        because=ordered.because,
        joined=tuple(sorted(group.joined)),
        explains=tuple(sorted(ordered.explains)),
    )


def _todo(todo: TodoKey, group: Group) -> CauseTodo:
    plan, todo_id = todo
    return CauseTodo(todo_id=todo_id, plan=plan, tests=group.tests_of[todo])
