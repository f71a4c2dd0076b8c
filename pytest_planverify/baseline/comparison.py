"""Comparison of a run with the baseline: which tests, failures, checks and todos were already failing.

The policy of the comparison is in :mod:`planner.policy.outcomes`; this module maps node ids and looks up
the recorded results.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckAtBase, CheckKind, Since, TestOutcome, TodoAtBase, TodoState
from planner.policy.outcomes import BEFORE_THE_WORK, check_at_base, since_of, since_of_check, since_of_tests
from pytest_planverify.baseline import below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.evidence import Evidence
    from planner.model.outcome import Check, Outcome
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline

_ALWAYS_NEW = frozenset({"hygiene", "allowlist"})
"""Ids of guards that compare with the baseline themselves, so that their findings are always new."""


class BaselineComparison:
    """Compares the outcomes of one plan with its baseline.

    In a baseline that a run with agents recorded for itself, all failures count as the work of their todos,
    as the run was started to repair them.
    """

    def __init__(self, flat: FlatPlan, kept: KeptBaseline) -> None:
        self._flat = flat
        self._kept = kept

    def todo(self, todo_id: str) -> TodoAtBase | None:
        """Return the state of a todo at the baseline; ``None`` if the baseline lacks it."""
        recorded = self._kept.document.todos.get(todo_id)
        if recorded is None:
            return None
        # Whatever was recorded, the work on a claimed todo had begun, so the baseline may include it.
        if recorded.claimed and not self._kept.begins_run:
            return TodoAtBase.CLAIMED
        return TodoAtBase.DONE if recorded.state is TodoState.DONE else TodoAtBase.OPEN

    def check(self, todo_id: str, check: Check) -> Check:
        """Return the check with ``since`` set for its tests, and ``at_base`` to its state at the baseline.

        Guards and sub-plan checks are returned unchanged.
        """
        if check.kind in (CheckKind.GUARD, CheckKind.SUB_PLAN):
            return check
        tests = tuple(
            test.model_copy(update={"since": self._since(todo_id, test.nodeid, test.outcome)})
            for test in check.tests
        )
        known = (self._kept.test(below(self._flat, todo_id, test.nodeid)) for test in check.tests)
        recorded = self._kept.check(todo_id, check.id)
        at_base = check_at_base(recorded, [test for test in known if test is not None])
        # Of a red check the todo itself has to repair all failures, of a mixed one only the new ones.
        if at_base is CheckAtBase.MIXED and self._kept.begins_run:
            at_base = CheckAtBase.RED
        return check.model_copy(update={"tests": tests, "at_base": at_base})

    def parts(
        self, todo_id: str, evidence: Evidence, signature: str, tests: Sequence[str]
    ) -> list[tuple[Since, tuple[str, ...]]]:
        """Split the failing tests of one failure into those that are new and those that failed before.

        Returns up to two pairs of ``since`` and tests, the new failures first. ``signature`` is the
        failure's. Without tests the check's own failures at the baseline decide, or the state of the file
        that could not be collected.
        """
        if evidence.check_id in _ALWAYS_NEW:
            return [(Since.NEW, tuple(tests))]
        by_check = since_of_check(self._kept.check(todo_id, evidence.check_id), signature)
        if not tests:
            if evidence.nodeid is None:
                return [(by_check, ())]
            of_file = self._since(todo_id, evidence.nodeid, TestOutcome.FAILED)
            return [(by_check if of_file is Since.UNKNOWN else of_file, ())]
        sinces: dict[str, Since] = {}
        for test in tests:
            since = self._since(todo_id, test, TestOutcome.FAILED)
            # A test without a record is old if its check failed with the same signature before.
            known = since is not Since.UNKNOWN or by_check is not Since.PRE_EXISTING
            sinces[test] = since if known else by_check
        # Two parts, as a separate todo repairs what failed before the work.
        parts: list[tuple[Since, tuple[str, ...]]] = []
        for before in (False, True):
            named = tuple(test for test in tests if (sinces[test] in BEFORE_THE_WORK) is before)
            if named:
                parts.append((since_of_tests({sinces[test] for test in named}), named))
        return parts

    def _since(self, todo_id: str, nodeid: str, outcome: TestOutcome) -> Since:
        """Return since when a test of a todo has its outcome."""
        name = below(self._flat, todo_id, nodeid)
        recorded = self._kept.test(name)
        # Whether an unrecorded test existed matters, and is searched in its file, only if it fails now.
        missing = recorded is None and outcome.is_red
        return since_of(outcome, recorded, may_have_been_there=missing and self._kept.had_test(name))


def count_since(outcomes: Iterable[Outcome]) -> dict[Since, int]:
    """Return the number of tests by ``since``, sorted.

    A test that several checks ran is counted once: with its first failure, or else its first result.
    """
    found: dict[tuple[str | None, str], tuple[bool, Since]] = {}
    for outcome in outcomes:
        for check in outcome.checks:
            for test in check.tests:
                key = (outcome.plan, test.nodeid)
                if key not in found or (test.outcome.is_red and not found[key][0]):
                    found[key] = (test.outcome.is_red, test.since)
    return dict(sorted(Counter(since for _, since in found.values()).items()))
