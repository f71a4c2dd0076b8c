"""Two snapshots of a tree compared: every sign that a verdict was bought, with its place and weight."""

from __future__ import annotations

import posixpath
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.configuration import compare_configuration
from pytest_planverify.guards.hygiene.judge_files import JudgeFiles
from pytest_planverify.guards.hygiene.judges import CONFIGURATIONS
from pytest_planverify.guards.hygiene.product_files import ProductFiles
from pytest_planverify.guards.hygiene.reading import parse
from pytest_planverify.guards.hygiene.signs import SIGNS, Find, Leave, weigh
from pytest_planverify.guards.hygiene.trees import compare_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from planner.model.plan import Plan
    from pytest_planverify.baseline.kinds import Judges
    from pytest_planverify.guards.hygiene.grants import Grants
    from pytest_planverify.guards.hygiene.reading import Module
    from pytest_planverify.snapshots import Snapshot


def compare(
    before: Snapshot,
    now: Snapshot,
    *,
    kinds: Mapping[str, JudgeKind],
    grants: Grants,
    accepted: Callable[[str, str | None], bool] | None = None,
) -> tuple[HygieneSignal, ...]:
    """What is suspicious in the difference of two trees, the hardest signs first.

    ``kinds`` says what the files of before are; of others the name decides. ``accepted`` says whether a
    person has blessed a content, by its sha256.
    """
    changes = Changes(before, now, kinds, grants, accepted)
    signals = [signal for find in changes.finds() if (signal := weigh(find, grants.leave(find.path)))]
    unique = {(signal.sign, signal.path, signal.line, signal.message): signal for signal in signals}
    return tuple(sorted(_gathered(unique.values(), grants), key=lambda each: each.hardness))


class Changes:
    """What differs between two snapshots, read as far as it is needed."""

    def __init__(
        self,
        before: Snapshot,
        now: Snapshot,
        kinds: Mapping[str, JudgeKind],
        grants: Grants,
        accepted: Callable[[str, str | None], bool] | None = None,
    ) -> None:
        self.before, self.now, self.grants = before, now, grants
        self._kinds = kinds
        self.old, self.new = before.digests(), now.digests()
        self.changed = frozenset(
            path
            for path in self.old.keys() | self.new.keys()
            if self.old.get(path) != self.new.get(path)
            and not (accepted is not None and accepted(path, self.new.get(path)))
        )
        self._parsed: dict[tuple[str, bool], Module | None] = {}

    def finds(self) -> Iterator[Find]:
        """Everything that the detectors find, once."""
        if not self.changed:
            return
        judges = JudgeFiles(self)
        yield from judges.finds()
        product = ProductFiles(self)
        tricks = list(product.finds())
        yield from tricks
        tests = [path for path in self.old if path in self.new and self.kind(path) is JudgeKind.TEST]
        configured = {
            path for path in self.changed if posixpath.basename(path) in CONFIGURATIONS | {"setup.py"}
        }
        yield from compare_configuration(self.before, self.now, configured, tests)
        yield from compare_names(
            self.old,
            self.new,
            self.changed,
            self.grants,
            made_anew=product.has_sources and all(find.sign != "artifact-kept" for find in tricks),
        )
        for path in self.of_kind(JudgeKind.PLAN):
            yield from self._plan(path)

    def kind(self, path: str) -> JudgeKind:
        """What a file has to do with verdicts."""
        known = self._kinds.get(path)
        return known if known is not None else self._named.kind_of(path)

    def of_kind(self, *kinds: JudgeKind) -> list[str]:
        """The changed files of some kinds, sorted."""
        return sorted(path for path in self.changed if self.kind(path) in kinds)

    def module(self, path: str, *, now: bool) -> Module | None:
        """A source file of before or of now."""
        if (path, now) not in self._parsed:
            self._parse(path)
        return self._parsed[path, now]

    def _parse(self, path: str) -> None:
        """Both versions at once: each knows the other."""
        if self.old.get(path) == self.new.get(path):
            self._parsed[path, True] = self._parsed[path, False] = parse(path, self.now.read(path))
            return
        before, now = (parse(path, tree.read(path)) for tree in (self.before, self.now))
        if before is not None and now is not None:
            before.other, now.other = now, before
        self._parsed[path, False], self._parsed[path, True] = before, now

    @cached_property
    def data(self) -> frozenset[str]:
        """The data files of criteria and tests, as they are now."""
        named = {path for reach in self.grants.todos for path in reach.data}
        return frozenset(named | {path for path in self.new if self.kind(path) is JudgeKind.FIXTURE})

    @cached_property
    def _named(self) -> Judges:
        from pytest_planverify.baseline.kinds import Judges

        todos = self.grants.todos
        return Judges(
            plans=frozenset(self.grants.plans),
            contracts=frozenset(reach.contract for reach in todos if reach.contract),
            data=frozenset(path for reach in todos for path in reach.data),
            artifacts=tuple(path for reach in todos for path in reach.artifacts),
        )

    def _plan(self, path: str) -> Iterator[Find]:
        from planner.edges.plan_file import plan_as_it_stands
        from pytest_planverify.guards.hygiene.plans import compare_plans

        plans: list[Plan | None] = [
            plan_as_it_stands(content, path) if (content := tree.read(path)) is not None else None
            for tree in (self.before, self.now)
        ]
        if plans[0] is None:
            return
        if plans[1] is None:
            yield Find(sign="judge-unreadable", message="The plan is gone or cannot be read", path=path)
            return
        yield from compare_plans(plans[0], plans[1], path)


def _gathered(signals: Iterable[HygieneSignal], grants: Grants) -> Iterator[HygieneSignal]:
    """Soft signs of tests that may be changed are one: a change of behaviour changes many of them."""
    first: HygieneSignal | None = None
    more = Counter[str]()
    for signal in signals:
        mild = (
            signal.hardness == "soft"
            and signal.path is not None
            and not SIGNS[signal.sign].in_product
            and grants.leave(signal.path) is not Leave.FORBIDDEN
        )
        if not mild:
            yield signal
            continue
        more[signal.sign] += 1
        first = first or signal
    if first is not None:
        count = more.total()
        said = f"{first.message}; {count - 1} more of the kind" if count > 1 else first.message
        yield first.model_copy(update={"message": said})
