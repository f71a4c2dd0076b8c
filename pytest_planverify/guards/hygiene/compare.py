"""Two snapshots of a tree compared: every signal of tampering, with its place."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.planfile.loader import collector_paused, plan_as_it_stands
from pytest_planverify.baseline.kinds import Judges
from pytest_planverify.guards.hygiene.configuration import configuration_findings
from pytest_planverify.guards.hygiene.files import path_findings
from pytest_planverify.guards.hygiene.judges import judge_findings, read_tests, unnamed_shape
from pytest_planverify.guards.hygiene.plan_changes import plan_findings
from pytest_planverify.guards.hygiene.product import product_findings
from pytest_planverify.guards.hygiene.signals import Finding, weigh
from pytest_planverify.guards.hygiene.source import parse, room_for_deep_trees, shape
from pytest_planverify.guards.hygiene.special_cases import special_case_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.guards.hygiene.grants import Grants
    from pytest_planverify.guards.hygiene.source import Module
    from pytest_planverify.snapshots import Snapshot


def compare(
    before: Snapshot,
    now: Snapshot,
    *,
    kinds: Mapping[str, JudgeKind],
    grants: Grants,
    accepted: Callable[[str, str | None], bool] | None = None,
    is_red: Callable[[str], bool] | None = None,
) -> tuple[HygieneSignal, ...]:
    """Return what is suspicious in the difference of two trees.

    ``kinds`` says what the files of before are; of others the name decides. ``accepted`` says whether a
    person has blessed a content, by its sha256; ``is_red`` whether a test, without its parameters, failed
    before.
    """
    changes = Changes(before, now, kinds, grants, accepted)
    # Trees of sources are many small objects, and no garbage in circles.
    with collector_paused(), room_for_deep_trees():
        signals = [
            signal
            for finding in _findings(changes)
            if (signal := weigh(finding, grants.permission(finding.path), is_red))
        ]
    return tuple({(each.sign, each.path, each.line, each.message): each for each in signals}.values())


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

    def kind(self, path: str) -> JudgeKind:
        """Return what a file has to do with verdicts."""
        known = self._kinds.get(path)
        return known if known is not None else self._judges_by_name.kind_of(path)

    def of_kind(self, *kinds: JudgeKind) -> list[str]:
        """Return the changed files of some kinds, sorted."""
        return sorted(path for path in self.changed if self.kind(path) in kinds)

    def module(self, path: str, *, now: bool) -> Module | None:
        """Return a source file of before or of now."""
        key = path, now
        if key not in self._parsed:
            self._parsed[key] = parse(path, (self.now if now else self.before).read(path))
        return self._parsed[key]

    def was_moved(self, path: str) -> bool:
        """Return whether a test file that is gone stands elsewhere, or all its tests do."""
        if self.old[path] in {self.new.get(each) for each in self.changed - self.old.keys()}:
            return True
        tests = read_tests(self.module(path, now=False))
        return bool(tests) and all(
            each.node.name in self.added_tests or unnamed_shape(each.node) in self.added_tests
            for each in tests.values()
        )

    @cached_property
    def added_tests(self) -> frozenset[str]:
        """The names and the bodies of collected tests in changed files that were not there before."""
        found: set[str] = set()
        for path in self.of_kind(JudgeKind.TEST):
            had = {
                name: shape(each.node) for name, each in read_tests(self.module(path, now=False)).items()
            }
            for name, each in read_tests(self.module(path, now=True)).items():
                if each.is_collected and name not in had:
                    found |= {each.node.name, unnamed_shape(each.node)}
        return frozenset(found)

    @cached_property
    def data(self) -> frozenset[str]:
        """The data files of criteria and tests, as they are now."""
        named = {path for reach in self.grants.todos for path in reach.data}
        return frozenset(named | {path for path in self.new if self.kind(path) is JudgeKind.FIXTURE})

    @cached_property
    def _judges_by_name(self) -> Judges:
        todos = self.grants.todos
        return Judges(
            plans=frozenset(self.grants.plans),
            contracts=frozenset(reach.contract for reach in todos if reach.contract),
            data=frozenset(path for reach in todos for path in reach.data),
            artifacts=tuple(path for reach in todos for path in reach.artifacts),
        )


def _findings(changes: Changes) -> Iterator[Finding]:
    if not changes.changed:
        return
    yield from judge_findings(changes)
    yield from product_findings(changes)
    yield from special_case_findings(changes)
    tests = [path for path in changes.old if path in changes.new and changes.kind(path) is JudgeKind.TEST]
    yield from configuration_findings(changes.before, changes.now, changes.changed, tests)
    yield from path_findings(changes)
    for path in changes.of_kind(JudgeKind.PLAN):
        plans = [
            plan_as_it_stands(content, posixpath.basename(path)) if content is not None else None
            for content in (changes.before.read(path), changes.now.read(path))
        ]
        if plans[0] is not None and plans[1] is None:
            yield Finding(sign="judge-unreadable", message="The plan is gone or cannot be read", path=path)
        elif plans[0] is not None and plans[1] is not None:
            yield from plan_findings(plans[0], plans[1], path)
