"""Hygiene of one plan of a run: the tree before anything of it runs against the plan's baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.compare import compare
from pytest_planverify.guards.hygiene.files import ignored_packages
from pytest_planverify.guards.hygiene.grants import Grants, Permission
from pytest_planverify.guards.hygiene.signals import Finding, violations, weigh

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from planner.model.evidence import HygieneSignal
    from planner.model.plan import Plan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.baseline.snapshots import Snapshot
    from pytest_planverify.guards import Violation

_SHOWN = 3


class HygieneWatch:
    """What was found in the tree; looked at when made, so that the run itself is no part of it."""

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
            baseline.snapshot(),
            tree,
            kinds={path: file.kind for path, file in baseline.document.files.items()},
            grants=self.grants,
            accepted=baseline.accepted,
            is_red=self._is_red,
        )
        self.notes = list(self._unknown(tree))
        beside = self._beside_the_tree(tree, flat.loaded.root)
        self.signals = (*self._doubts(), *found, *beside)

    @property
    def said(self) -> str:
        """How the outcome file speaks of hygiene."""
        revision = self._baseline.document.revision
        return f"checked against the baseline of {self._baseline.document.made_at}" + (
            f" ({revision[:12]})" if revision else ""
        )

    def violations(
        self, passed: Collection[str], present: Collection[str], more: Collection[HygieneSignal] = ()
    ) -> Iterator[Violation]:
        """What is held against todos of the run; ``more`` are signs that the run has shown."""
        yield from violations((*self.signals, *more), grants=self.grants, passed=passed, present=present)

    def _doubts(self) -> Iterator[HygieneSignal]:
        for doubt in self._baseline.doubts:
            finding = Finding(
                sign="records-touched", message=doubt, path=self._baseline.path.name, after=doubt
            )
            signal = weigh(finding, Permission.FORBIDDEN)
            if signal is not None:
                yield signal.model_copy(update={"message": doubt, "path": None})

    def _beside_the_tree(self, tree: Snapshot, root: Path) -> Iterator[HygieneSignal]:
        """What is imported and stands in no snapshot: ignored packages, caches of bytecode."""
        from pytest_planverify.guards.hygiene.bytecode import forged

        files = tree.digests().keys()
        found, left = forged(root, files, _since(self._baseline))
        if left:
            self.notes.append(
                f"{left} caches of bytecode were not compared with their sources: remove them"
            )
        for finding in (*found, *ignored_packages(root, files)):
            signal = weigh(finding, self.grants.permission(finding.path))
            if signal is not None:
                yield signal

    def _is_red(self, nodeid: str) -> bool:
        """Return whether a test failed at the baseline, or its file could not be collected."""
        path = nodeid.partition("::")[0]
        return nodeid in self._red or (path not in self._collected and bool(self.grants.dependants(path)))

    def _unknown(self, tree: Snapshot) -> Iterator[str]:
        """Files that have changed, and of which nobody knows any more what they held."""
        before, now = self._baseline.snapshot(), tree.digests()
        lost = [
            path
            for path, digest in before.digests().items()
            if now.get(path, digest) != digest and before.read(path) is None
        ]
        if lost:
            shown = ", ".join(lost[:_SHOWN]) + (
                f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            )
            yield (
                f"what the baseline held is not known of {shown}: fetch the commit of the baseline, or "
                "make it anew: planverify baseline PLAN"
            )


def _since(baseline: KeptBaseline) -> float:
    """The moment after which caches are work; of a baseline that was made of a commit nobody knows it."""
    from datetime import datetime

    document = baseline.document
    if document.revision and baseline.path.name.startswith(document.revision):
        return 0.0
    try:
        return datetime.fromisoformat(document.made_at).timestamp() + 1
    except ValueError:
        return 0.0


def _plan_of(flat: FlatPlan, baseline: KeptBaseline) -> Plan | None:
    """The plan as the baseline has it."""
    from planner.planfile.loader import plan_as_it_stands

    path = flat.loaded.path
    if not path.is_relative_to(flat.loaded.root):
        return None
    name = path.relative_to(flat.loaded.root).as_posix()
    content = baseline.snapshot().read(name)
    return plan_as_it_stands(content, name) if content is not None else None
