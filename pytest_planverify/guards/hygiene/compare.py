"""Two snapshots of a tree compared: every signal of tampering, with its place."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.planfile.loader import collector_paused, plan_as_it_stands
from pytest_planverify.guards.hygiene.changes import Changes
from pytest_planverify.guards.hygiene.configuration import configuration_findings
from pytest_planverify.guards.hygiene.files import path_findings
from pytest_planverify.guards.hygiene.judges import judge_findings
from pytest_planverify.guards.hygiene.plan_changes import plan_findings
from pytest_planverify.guards.hygiene.product import product_findings
from pytest_planverify.guards.hygiene.signals import Finding, weigh
from pytest_planverify.guards.hygiene.source import room_for_deep_trees
from pytest_planverify.guards.hygiene.special_cases import special_case_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.baseline.snapshots import Snapshot
    from pytest_planverify.guards.hygiene.grants import Grants


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
