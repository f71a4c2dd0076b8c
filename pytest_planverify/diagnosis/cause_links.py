"""Which causes probably explain others, though nothing proves that they are one.

Every link leads from a cause that is mended earlier to one that is mended later.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_planverify.diagnosis.cause_stages import Stage
from pytest_planverify.diagnosis.reading import PROJECT_SIDES, is_a
from pytest_planverify.diagnosis.same_cause import ASSERTIONS, focus, is_syntax, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from planner.model.evidence import Evidence, Finding
    from pytest_planverify.diagnosis.grouping import Group

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


def _complaints(causes: Sequence[Staged]) -> Iterator[Link]:
    """A tool complains of the place where a test fails, or of the name that it misses."""
    complaining = [
        (place, each.root, finding)
        for place, (_, group) in enumerate(causes)
        for each in group.members[:MOST_READ]
        if each.evidence.command is not None
        for finding in each.evidence.command.findings
    ]
    if not complaining:
        return
    places = _Places(causes)
    for place, root, finding in complaining:
        for other in places.beside(root, finding) - {place}:
            yield min(place, other), max(place, other)


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


class _Places:
    """Where the failures of the causes were seen, for complaints to be laid beside."""

    def __init__(self, causes: Sequence[Staged]) -> None:
        self.lines: dict[tuple[str, str, int], set[int]] = defaultdict(set)
        self.broken: dict[tuple[str, str], set[int]] = defaultdict(set)
        self.names: list[tuple[frozenset[str], int]] = []
        for place, (_, group) in enumerate(causes):
            for each in group.members[:MOST_READ]:
                for frame in focus(each.evidence).frames:
                    if frame.side in PROJECT_SIDES:
                        self.lines[each.root, tidy(frame.path), frame.line].add(place)
            for root, mark in group.marks:
                if mark.what == "syntax":
                    self.broken[root, mark.name[0]].add(place)
                elif mark.what in ("name", "module"):
                    self.names.append((frozenset(mark.name), place))

    def beside(self, root: str, finding: Finding) -> set[int]:
        """The causes that were seen where a tool complains, or that lack the names it complains of."""
        path = tidy(finding.path or "")
        found = set(self.lines.get((root, path, finding.line or 0), ()))
        words = set(_QUOTED.findall(finding.message))
        found |= {place for names, place in self.names if names <= words}
        return found | self.broken.get((root, path), set()) if is_syntax(finding) else found


_QUOTED = re.compile(r"[\"'`]([\w.]+)[\"'`]")

_READERS: tuple[Callable[[Sequence[Staged]], Iterator[Link]], ...] = (
    _unwritten,
    _complaints,
    _one_function,
)
