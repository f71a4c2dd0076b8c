"""Baseline demands of a todo: tests that must turn green, or stay green."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from planner.model.evidence import Evidence, Selector
from planner.model.verdicts import EvidenceKind, Phase, TestOutcome, Verdict
from planner.policy.criteria import STAY_GREEN, TURN_GREEN
from planner.policy.since import GREEN, covers
from planner.text.display import listed
from pytest_planverify.baseline import below

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.checks.result import CheckRun, Judgement

NO_BASELINE = (
    "there is no baseline to compare with; make one before the work begins: planverify baseline PLAN"
)

_MISSING = ("missing_file", "missing_id")

Standing = Literal["red", "absent", "green", "flaky", "skipped", "unknown"]

_UNPROVED: dict[Standing, str] = {
    "green": "green at the baseline already, so turning green proves nothing",
    "flaky": "flaky at the baseline, so turning green proves nothing",
    "skipped": "skipped at the baseline, so nobody has seen it red",
    "unknown": "not run for the baseline, so nobody knows whether it was red",
}


class Demands:
    """Judges ``must_turn_green`` and ``must_stay_green`` of one plan's todos."""

    def __init__(self, flat: FlatPlan, kept: KeptBaseline | None) -> None:
        self._flat = flat
        self._kept = kept

    def view(self, todo: Todo, check_id: str) -> Callable[[Judgement], Judgement] | None:
        """Return a function that disregards failures of tests that failed at the baseline, for
        ``must_stay_green``.
        """
        if check_id != STAY_GREEN or self._kept is None:
            return None
        return lambda judgement: self._forgive(todo, judgement)

    def decide(self, todo: Todo, run: CheckRun) -> CheckRun:
        """Return the check adjusted by the baseline."""
        check = run.check
        if check.id not in (TURN_GREEN, STAY_GREEN) or check.verdict in _LEFT_ALONE:
            return run
        if check.id == TURN_GREEN:
            return self._turned(todo, run)
        if self._kept is None:
            return _undecided(run, NO_BASELINE) if todo.must_stay_green == "all" else run
        return self._stayed(todo, run)

    # -- must_stay_green -------------------------------------------------------------------------

    def _forgive(self, todo: Todo, judgement: Judgement) -> Judgement:
        """Drop the failures of tests that did not pass at the baseline."""
        if judgement.verdict is not Verdict.FAILED or not judgement.evidence:
            return judgement
        ended = {test.nodeid: test.outcome for test in judgement.tests}
        kept = tuple(each for each in judgement.evidence if not self._is_borne(todo, each, ended))
        if len(kept) == len(judgement.evidence):
            return judgement
        borne = sum(test.outcome.is_red for test in judgement.tests) or len(judgement.evidence) - len(kept)
        reason = f"{borne} red now were not green at the baseline, and are not counted"
        if kept:
            return replace(judgement, evidence=kept)
        missing = sum(outcome is TestOutcome.NOT_RUN for outcome in ended.values())
        if missing:
            unknown = f"{missing} of its tests did not run"
            return replace(judgement, verdict=Verdict.INCONCLUSIVE, evidence=(), reason=unknown)
        return replace(judgement, verdict=Verdict.PASSED, evidence=(), reason=reason, forgiven=True)

    def _is_borne(self, todo: Todo, evidence: Evidence, ended: dict[str, TestOutcome]) -> bool:
        """Return whether everything that a failure concerns existed at the baseline and did not pass."""
        names = [name for name in (*evidence.tests, evidence.nodeid) if name]
        if evidence.kind is EvidenceKind.SELECTION:
            if not all(each.problem in _MISSING for each in evidence.selectors):
                return False
            names = [each.text for each in evidence.selectors]
        elif any(
            ended.get(name) in GREEN for name in names
        ):  # for example exceeding the time limit together
            return False
        return bool(names) and all(self._none_was_green(todo, name) for name in names)

    def _none_was_green(self, todo: Todo, name: str) -> bool:
        """Return whether a test, or no test of a file or class, passed at the baseline."""
        if "::" in name and self._standing(todo, name) == "unknown":
            return False
        wanted = self._then(todo, name)
        return not any(covers((wanted,), nodeid) for nodeid in self._green)

    def _stayed(self, todo: Todo, run: CheckRun) -> CheckRun:
        if run.check.verdict is not Verdict.PASSED:
            return run
        assert self._kept is not None
        named = todo.must_stay_green
        now = {self._then(todo, test.nodeid): test for test in run.check.tests}
        wanted = named if named == "all" else [self._then(todo, each) for each in named]
        lost: list[str] = []
        idle: list[str] = []
        count = 0
        for nodeid in self._green:
            if not covers(wanted, nodeid) or (named == "all" and not self._is_below(todo, nodeid)):
                continue
            if nodeid not in now and self._kept.accepted(nodeid.partition("::")[0], None):
                continue  # a person accepted the removal of its file
            count += 1
            if nodeid not in now:
                lost.append(nodeid)
            elif now[nodeid].outcome not in GREEN:
                idle.append(nodeid)
        if lost:
            return _failed(run, lost, f"{listed(lost)}: green at the baseline, and not there any more")
        if idle:
            return _failed(
                run,
                idle,
                f"{listed(idle)}: green at the baseline, and did not run to a pass now",
            )
        if not count:
            return _undecided(
                run, "none of its tests was green at the baseline, so none can have stayed so"
            )
        return run

    # -- must_turn_green -------------------------------------------------------------------------

    def _turned(self, todo: Todo, run: CheckRun) -> CheckRun:
        if run.check.verdict is not Verdict.PASSED:
            return run
        idle = [test.nodeid for test in run.check.tests if test.outcome not in GREEN]
        if idle:
            return _failed(run, idle, f"{listed(idle)}: must be green, and did not run to a pass")
        if self._kept is None:
            return _undecided(run, NO_BASELINE)
        tests = [test.nodeid for test in run.check.tests]
        named = ("all",) if todo.must_turn_green == "all" else todo.must_turn_green
        for each in named:
            chosen = [name for name in tests if each == "all" or covers((each,), name)]
            why = self._unproved(todo, chosen)
            if why is not None:
                subject = "all" if each == "all" else each
                return _undecided(run, f"{subject}: {why}")
        return run

    def _unproved(self, todo: Todo, tests: Sequence[str]) -> str | None:
        """Return why passing tests prove nothing; ``None`` if one of them failed or was missing at the
        baseline.
        """
        standings = {self._standing(todo, name) for name in tests}
        if standings & {"red", "absent"}:
            return None
        if "unknown" in standings and self._was_red_as_a_whole(todo):
            return None
        order: tuple[Standing, ...] = ("unknown", "flaky", "skipped", "green")
        return next((_UNPROVED[each] for each in order if each in standings), _UNPROVED["unknown"])

    def _was_red_as_a_whole(self, todo: Todo) -> bool:
        """Return whether the demand itself failed at the baseline before reaching any test."""
        assert self._kept is not None
        held = self._kept.document.todos.get(todo.id)
        check = None if held is None else held.checks.get(TURN_GREEN)
        return check is not None and check.verdict is Verdict.FAILED

    # -- at the baseline -------------------------------------------------------------------------

    def _standing(self, todo: Todo, nodeid: str) -> Standing:
        assert self._kept is not None
        name = below(self._flat, todo.id, nodeid)
        then = self._kept.test(name)
        if then is None:
            return "unknown" if self._kept.had_test(name) else "absent"
        if then.flaky:
            return "flaky"
        if then.outcome.is_red or then.outcome is TestOutcome.XFAILED:
            return "red"
        return "green" if then.outcome in GREEN else "skipped"

    @cached_property
    def _green(self) -> Sequence[str]:
        """Tests that passed at the baseline."""
        assert self._kept is not None
        tests = self._kept.document.tests.items()
        return [nodeid for nodeid, test in tests if test.outcome in GREEN and not test.flaky]

    def _then(self, todo: Todo, nodeid: str) -> str:
        """Return the baseline's name of a todo's test, whose file may have been renamed."""
        assert self._kept is not None
        return self._kept.former(below(self._flat, todo.id, nodeid))

    def _is_below(self, todo: Todo, nodeid: str) -> bool:
        """Return whether a test belongs to the suite of the todo's root."""
        own, top = self._flat.owner(todo.id).root, self._flat.loaded.root
        return own == top or nodeid.startswith(os.path.relpath(own, top) + "/")


_LEFT_ALONE = (Verdict.NOT_RUN, Verdict.BLOCKED)


def _failed(run: CheckRun, tests: Sequence[str], reason: str) -> CheckRun:
    gone = [Selector(text=name, problem="missing_id") for name in tests if reason.endswith("any more")]
    evidence = Evidence(
        kind=EvidenceKind.SELECTION,
        check_id=run.check.id,
        phase=Phase.COLLECT,
        headline=reason,
        selectors=tuple(gone),
        tests=tuple(tests),
    )
    check = run.check.model_copy(update={"verdict": Verdict.FAILED, "reason": reason})
    return replace(run, check=check, evidence=(*run.evidence, evidence))


def _undecided(run: CheckRun, reason: str) -> CheckRun:
    check = run.check.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})
    return replace(run, check=check, evidence=())
