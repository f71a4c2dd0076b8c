"""The signals of tampering in two snapshots of a tree, and in the tree of a run."""

from __future__ import annotations

import posixpath
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.model.verdicts import Hardness
from planner.planfile.loader import collector_paused, plan_as_it_stands
from planner.text.display import listed
from pytest_planverify.guards.hygiene.changes import TreeDifferences
from pytest_planverify.guards.hygiene.configuration import configuration_findings
from pytest_planverify.guards.hygiene.files import ignored_packages, path_findings, remove_young_caches
from pytest_planverify.guards.hygiene.grants import Grants
from pytest_planverify.guards.hygiene.judges import judge_findings
from pytest_planverify.guards.hygiene.plan_changes import plan_findings
from pytest_planverify.guards.hygiene.product import product_findings
from pytest_planverify.guards.hygiene.signals import SignalFinding, violations, weigh
from pytest_planverify.guards.hygiene.source import room_for_deep_trees
from pytest_planverify.guards.hygiene.special_cases import special_case_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from planner.model.plan import Plan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.baseline.work_tree import Snapshot
    from pytest_planverify.guards import Violation


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
    person has accepted a content, by its sha256; ``is_red`` whether a test, without its parameters, failed
    before.
    """
    changes = TreeDifferences(before, now, kinds, grants, accepted)
    # Trees of sources are many small objects, and no garbage in circles.
    with collector_paused(), room_for_deep_trees():
        signals = [
            signal
            for finding in _findings(changes)
            if (signal := weigh(finding, grants.permission(finding.path), is_red))
        ]
    return tuple({(each.sign, each.path, each.line, each.message): each for each in signals}.values())


def _findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
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
            yield SignalFinding(
                sign="judge-unreadable", message="The plan is gone or cannot be read", path=path
            )
        elif plans[0] is not None and plans[1] is not None:
            yield from plan_findings(plans[0], plans[1], path)


class HygieneWatch:
    """Hygiene of the tree, read when made, so that the run itself is no part of it."""

    def __init__(self, flat: FlatPlan, baseline: KeptBaseline, tree: Snapshot) -> None:
        self._baseline = baseline
        self.grants = Grants.of(flat, _plan_of(flat, baseline))
        tests = baseline.document.tests
        self._red = {
            nodeid.partition("[")[0]
            for nodeid, test in tests.items()
            if test.outcome.is_red and not test.flaky
        }
        self._collected = {nodeid.partition("::")[0] for nodeid in tests if "::" in nodeid}
        found = compare(
            baseline,
            tree,
            kinds={path: file.kind for path, file in baseline.document.files.items()},
            grants=self.grants,
            accepted=baseline.accepted,
            is_red=self._is_red,
        )
        self.notes = list(self._unknown(tree))
        files, root = tree.digests().keys(), flat.loaded.root
        self.signals = (*self._beside(files, root), *found)
        remove_young_caches(root, files, _since(baseline))

    @property
    def said(self) -> str:
        """Return how the outcome file speaks of hygiene."""
        revision = self._baseline.document.revision
        return f"checked against the baseline of {self._baseline.document.made_at}" + (
            f" ({revision[:12]})" if revision else ""
        )

    def violations(
        self, passed: Collection[str], present: Collection[str], more: Collection[HygieneSignal] = ()
    ) -> Iterator[Violation]:
        """Yield what is held against todos of the run; ``more`` are signs that the run has shown."""
        yield from violations((*self.signals, *more), grants=self.grants, passed=passed, present=present)

    def _beside(self, files: Collection[str], root: Path) -> Iterator[HygieneSignal]:
        """Yield what no snapshot holds: another record of the baseline than git has, ignored packages."""
        for doubt in self._baseline.doubts:
            yield HygieneSignal(sign="records-touched", hardness=Hardness.HARD, message=doubt, after=doubt)
        for finding in ignored_packages(root, files):
            if signal := weigh(finding, self.grants.permission(finding.path)):
                yield signal

    def _is_red(self, nodeid: str) -> bool:
        """Return whether a test failed at the baseline, or its file could not be collected."""
        path = nodeid.partition("::")[0]
        return nodeid in self._red or (path not in self._collected and bool(self.grants.dependants(path)))

    def _unknown(self, tree: Snapshot) -> Iterator[str]:
        """Files that have changed, and of which nobody knows any more what they held."""
        before, now = self._baseline, tree.digests()
        lost = [
            path
            for path, digest in before.digests().items()
            if now.get(path, digest) != digest and before.read(path) is None
        ]
        if lost:
            yield (
                f"what the baseline held is not known of {listed(lost)}: fetch the commit of the "
                "baseline, or make it again: planverify baseline PLAN"
            )


def _since(baseline: KeptBaseline) -> float:
    """The moment after which caches are work; of a baseline that was made of a commit nobody knows it."""
    document = baseline.document
    if document.revision and baseline.path.name.startswith(document.revision):
        return 0.0
    try:
        return datetime.fromisoformat(document.made_at).timestamp() + 1
    except ValueError:
        return 0.0


def _plan_of(flat: FlatPlan, baseline: KeptBaseline) -> Plan | None:
    """The plan as the baseline has it."""
    path = flat.loaded.path
    if not path.is_relative_to(flat.loaded.root):
        return None
    name = path.relative_to(flat.loaded.root).as_posix()
    content = baseline.read(name)
    return plan_as_it_stands(content, name) if content is not None else None
