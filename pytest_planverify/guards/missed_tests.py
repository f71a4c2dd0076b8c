"""Tests that a run misses: no longer collected since the baseline, or skipped since then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.verdicts import TestOutcome
from pytest_planverify.baseline.nodeids import below
from pytest_planverify.guards.shown import HARD, SOFT, Ground, Shown, named, signal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.baseline import BaselineCheck
    from planner.model.evidence import HygieneSignal
    from planner.model.outcome import Check
    from planner.planfile.tree import FlatPlan


def missed(shown: Shown, flat: FlatPlan, ground: Ground) -> Iterator[HygieneSignal]:
    """Tests of the baseline that a command no longer selects, or that are skipped by now."""
    blessed = ground.judges_were_blessed()
    unread = {name.partition("::")[0] for each in shown.sessions for name in each.collection_failures}
    for todo_id, checks in shown.checks.items():
        known = ground.kept.document.todos.get(todo_id)
        for check in checks if known is not None else ():
            was = known.checks.get(check.id) if known is not None else None
            if was is None or was.cmd != check.cmd or not check.tests or not was.tests:
                continue
            if not blessed:
                yield from _vanished(todo_id, check, was, flat, ground, unread)
            yield from _skipped(todo_id, check, flat, ground)


def _vanished(
    todo_id: str, check: Check, was: BaselineCheck, flat: FlatPlan, ground: Ground, unread: set[str]
) -> Iterator[HygieneSignal]:
    present = {_function(test.nodeid) for test in check.tests}
    gone: dict[str, list[str]] = {}
    for nodeid in was.tests:
        if _function(nodeid) not in present and nodeid.partition("::")[0] not in unread:
            name = below(flat, todo_id, _function(nodeid))
            gone.setdefault(name.partition("::")[0], []).append(name)
    for file, names in gone.items():
        if not ground.is_kept_from_change(file):
            continue
        different = list(dict.fromkeys(names))
        said = f"{named(different)} of {check.id} of {todo_id} {_are(different)} no longer collected"
        yield signal("test-vanished", said, path=file, nodeid=different[0])


def _skipped(todo_id: str, check: Check, flat: FlatPlan, ground: Ground) -> Iterator[HygieneSignal]:
    """A red test that is skipped by now has bought its verdict, whoever may change it; a green one may have
    its reasons."""
    found: dict[tuple[str, bool], list[str]] = {}
    for test in check.tests:
        if test.outcome not in (TestOutcome.SKIPPED, TestOutcome.XFAILED):
            continue
        nodeid = below(flat, todo_id, test.nodeid)
        file = nodeid.partition("::")[0]
        was = ground.kept.test(nodeid)
        if was is None or was.flaky or was.outcome in (TestOutcome.SKIPPED, TestOutcome.XFAILED):
            continue
        is_red = was.outcome.is_red and not ground.is_blessed(file)
        if is_red or ground.is_kept_from_change(file):
            found.setdefault((file, was.outcome.is_red), []).append(nodeid)
    for (file, was_red), names in found.items():
        said = f"{named(names)} {_are(names)} skipped or expected to fail since the baseline"
        if was_red:
            said += f", where {'it was' if len(names) == 1 else 'they were'} red"
        yield signal("test-skipped-since", said, HARD if was_red else SOFT, path=file, nodeid=names[0])


def _function(nodeid: str) -> str:
    """A test without its parameters, which may come from the product."""
    return nodeid.partition("[")[0]


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
