"""Comparison of a run with its baseline: since when results hold, and the demands of todos on it.

:class:`BaselineComparison` compares tests and failures. :class:`Demands` judges ``must_turn_green`` and
``must_stay_green``: both run like any test check, then the baseline adjusts their verdicts. A test that
must turn green proves something only if it failed or was missing before the work. Tests that must stay
green may fail only if they did not pass before.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from planner.model.evidence import Evidence, Selector
from planner.model.verdicts import (
    CheckAtBase,
    CheckKind,
    EvidenceKind,
    Phase,
    Since,
    TestOutcome,
    TodoAtBase,
    TodoState,
    Verdict,
)
from planner.planfile.project_files import digest_of
from planner.policy.criteria import STAY_GREEN, TURN_GREEN
from planner.policy.outcomes import BEFORE_THE_WORK, GREEN, covers
from planner.text.display import counted, listed
from pytest_planverify.baseline import below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from planner.model.baseline import BaselineCheck
    from planner.model.evidence import CommandFact
    from planner.model.journal import CheckRun
    from planner.model.outcome import Check, Diagnosis, Outcome
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline, Standing
    from pytest_planverify.checks.result import Judgement

_ALWAYS_NEW = frozenset({"hygiene", "allowlist"})
"""Ids of guards that compare with the baseline themselves, so that their findings are always new."""


_PRECEDENCE = (Since.NEW, Since.UNKNOWN, Since.PRE_EXISTING, Since.FLAKY_AT_BASE)
"""Order of precedence for a failure of several tests: one new test makes it new."""

_IDLE = ("skipped", "expected")
"""States at the baseline of a test that ran there, but neither passed nor failed."""

_BY_VERDICT = {
    Verdict.PASSED: CheckAtBase.GREEN,
    Verdict.FAILED: CheckAtBase.RED,
    Verdict.FLAKY: CheckAtBase.MIXED,
}


class BaselineComparison:
    """Compares the outcomes of one plan with its baseline.

    In a baseline that a run with agents recorded for itself, all failures count as the work of their todos,
    as the run was started to repair them.
    """

    def __init__(self, flat: FlatPlan, kept: KeptBaseline) -> None:
        self._flat = flat
        self._kept = kept
        self._unchanged: dict[str, bool] = {}

    def todo(self, todo: Todo) -> TodoAtBase | None:
        """Return the state of a todo at the baseline; ``None`` if the baseline lacks it.

        That of a branch is the state of the todo that it repairs.
        """
        recorded = self._kept.document.todos.get(todo.parent_id or todo.id)
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
        known: list[Standing] = [
            self._kept.standing(below(self._flat, todo_id, test.nodeid)) for test in check.tests
        ]
        at_base = check_at_base(self._kept.check(todo_id, check.id), known)
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
        by_check = self._since_of_check(todo_id, evidence, signature)
        if not tests:
            if evidence.nodeid is None:
                return [(by_check, ())]
            of_file = self._since(todo_id, evidence.nodeid, TestOutcome.FAILED)
            return [(by_check if of_file is Since.UNKNOWN else of_file, ())]
        sinces: dict[str, Since] = {}
        for test in tests:
            since = self._since(todo_id, test, TestOutcome.FAILED)
            if evidence.kind is EvidenceKind.SELECTION and self._was_idle(todo_id, test):
                since = Since.UNKNOWN  # the test does not fail: it is idle as before
            # A test without a record is old if its check failed with the same signature before.
            known = since is not Since.UNKNOWN or by_check is not Since.PRE_EXISTING
            sinces[test] = since if known else by_check
        # Two parts, as a separate todo repairs what failed before the work.
        parts: list[tuple[Since, tuple[str, ...]]] = []
        for before in (False, True):
            named = tuple(test for test in tests if (sinces[test] in BEFORE_THE_WORK) is before)
            if named:
                parts.append((min((sinces[test] for test in named), key=_PRECEDENCE.index), named))
        return parts

    def _was_idle(self, todo_id: str, nodeid: str) -> bool:
        """Return whether a test of a todo was skipped or expected to fail at the baseline."""
        return self._kept.standing(below(self._flat, todo_id, nodeid)) in _IDLE

    def failed_alike(self, todo: Todo, evidence: Evidence, signature: str) -> bool:
        """Return whether the baseline has the failure with this signature, and no pass since."""
        by_check = self._since_of_check(todo.parent_id or todo.id, evidence, signature)
        sinces = (self._since(todo.id, test, TestOutcome.FAILED) for test in evidence.tests)
        has_passed = evidence.changed_since == "green"
        return by_check is Since.PRE_EXISTING and not has_passed and Since.NEW not in sinces

    def _since_of_check(self, todo_id: str, evidence: Evidence, signature: str) -> Since:
        """Return how a failure compares with its check at the baseline, as if no file had been renamed."""
        then, command = self._kept.check(todo_id, evidence.check_id), evidence.command
        if then is not None and then.findings and command is not None:
            findings = [
                each.model_copy(update={"path": each.path and self._former(todo_id, each.path)})
                for each in command.findings
            ]
            command = command.model_copy(update={"findings": tuple(findings)})
        return since_of_check(then, signature, command)

    def _former(self, todo_id: str, path: str) -> str:
        """Return the path that a file had at the baseline, relative to the root of a todo's plan."""
        within = below(self._flat, todo_id, path)
        former = self._kept.former(within)
        return path if former == within else os.path.relpath(former, below(self._flat, todo_id, "."))

    def diagnosis(
        self, todo: Todo, evidence: Evidence, rules: Callable[[Evidence], Diagnosis]
    ) -> Diagnosis:
        """Return the diagnosis of a failure by ``rules``.

        That of a failure that the baseline has alike ignores changes in files that have changed since then:
        they may be the finished work of other todos, and would be blamed instead of what is at fault.
        """

        def older(changes: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(
                each for each in changes if self._is_unchanged(below(self._flat, todo.id, each.path))
            )

        tests = evidence.tests if evidence.changed == () and evidence.changed_since != "commit" else ()
        standings = {self._kept.standing(below(self._flat, todo.id, test)) for test in tests}
        if standings == {"green"}:
            evidence = evidence.model_copy(update={"passed_unchanged": True})
        found = rules(evidence)
        changed = None if evidence.changed is None else older(evidence.changed)
        hunks = older(evidence.hunks)
        if (changed, hunks) == (evidence.changed, evidence.hunks):
            return found
        before = rules(evidence.model_copy(update={"changed": changed, "hunks": hunks}))
        return before if self.failed_alike(todo, evidence, before.signature) else found

    def _is_unchanged(self, path: str) -> bool:
        """Return whether a file is as it was at the baseline; many failures ask for the same files."""
        if path not in self._unchanged:
            self._unchanged[path] = digest_of(self._kept.root / path) == f"sha256:{self._digests.get(path)}"
        return self._unchanged[path]

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        return self._kept.digests()

    def _since(self, todo_id: str, nodeid: str, outcome: TestOutcome) -> Since:
        """Return since when a test of a todo has its outcome."""
        return since_of(outcome, self._kept.standing(below(self._flat, todo_id, nodeid)))


def since_of(now: TestOutcome, then: Standing) -> Since:
    """Return how a test's result compares with its state at the baseline."""
    # A skipped test, for example, shows neither a failure nor its absence.
    if not now.is_red and now not in GREEN:
        return Since.UNKNOWN
    if then == "flaky":
        return Since.FLAKY_AT_BASE
    if now.is_red:
        return {"red": Since.PRE_EXISTING, "unknown": Since.UNKNOWN}.get(then, Since.NEW)
    return Since.FIXED if then in ("red", "expected") else Since.UNKNOWN


def since_of_check(
    then: BaselineCheck | None, signature: str | None, command: CommandFact | None = None
) -> Since:
    """Return how a failure without tests compares with the baseline, by its check's verdict and signatures.

    ``then`` is the check at the baseline, or ``None`` if it is not known. The findings of a ``command`` are
    compared one by one, if the baseline has them.
    """
    if then is None:
        return Since.UNKNOWN
    if then.verdict is Verdict.FLAKY:
        return Since.FLAKY_AT_BASE
    if then.findings and command is not None and command.findings:
        from pytest_planverify.diagnosis.signatures import count_findings  # late: loads the rules

        return Since.NEW if count_findings(command) - Counter(then.findings) else Since.PRE_EXISTING
    if signature is not None and signature in then.signatures:
        return Since.PRE_EXISTING
    return Since.NEW if then.verdict is Verdict.PASSED or then.verdict.is_red else Since.UNKNOWN


def check_at_base(then: BaselineCheck | None, tests: Iterable[Standing]) -> CheckAtBase | None:
    """Return the state of a check at the baseline: by its tests that passed or failed, else by its verdict.

    Returns ``None`` if the baseline decides neither.
    """
    known = {"red": CheckAtBase.RED, "flaky": CheckAtBase.MIXED}
    found = {
        known.get(each, CheckAtBase.GREEN) for each in tests if each not in ("unknown", "absent", *_IDLE)
    }
    if not found:
        return None if then is None else _BY_VERDICT.get(then.verdict)
    return found.pop() if len(found) == 1 else CheckAtBase.MIXED


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


# -- demands on the baseline ---------------------------------------------------------------------------

NO_BASELINE = (
    "there is no baseline to compare with; record one before the work starts: planverify baseline PLAN"
)

_MISSING = ("missing_file", "missing_id")

_UNPROVED: dict[Standing, str] = {
    "unknown": "not run for the baseline, so it is unknown whether it failed",
    "flaky": "flaky at the baseline, so a pass proves nothing",
    "skipped": "skipped at the baseline, so it never failed",
    "green": "passed at the baseline already, so a pass proves nothing",
}
"""Why a test that passes now is no proof, by its state at the baseline; of several the first counts."""


class Demands:
    """Judges ``must_turn_green`` and ``must_stay_green`` of one plan's todos."""

    def __init__(self, flat: FlatPlan, kept: KeptBaseline | None) -> None:
        self._flat = flat
        self._kept = kept

    def view(self, todo: Todo, check_id: str) -> Callable[[Judgement], Judgement] | None:
        """Return a function that removes failures of tests that did not pass at the baseline.

        ``None`` for checks other than ``must_stay_green``, and without a baseline.
        """
        if check_id != STAY_GREEN or self._kept is None:
            return None
        return lambda judgement: self._drop_preexisting(todo, judgement)

    def decide(self, todo: Todo, run: CheckRun) -> CheckRun:
        """Return the result of a demand adjusted by the baseline; other checks are returned unchanged.

        A passed demand becomes failed or inconclusive if the baseline contradicts it or proves nothing.
        """
        check = run.check
        if check.id not in (TURN_GREEN, STAY_GREEN) or check.verdict in (Verdict.NOT_RUN, Verdict.BLOCKED):
            return run
        if check.id == STAY_GREEN and self._kept is None:
            # Tests that are named one by one have to pass anyway; "all" is defined by the baseline alone.
            return _inconclusive(run, NO_BASELINE) if todo.must_stay_green == "all" else run
        if check.verdict is not Verdict.PASSED:
            return run
        return self._check_turned(todo, run) if check.id == TURN_GREEN else self._check_stayed(todo, run)

    # -- must_stay_green -------------------------------------------------------------------------

    def _drop_preexisting(self, todo: Todo, judgement: Judgement) -> Judgement:
        """Drop the failures of tests that did not pass at the baseline.

        Passes if no failure is left and all tests ran; the reason then states how many were dropped.
        """
        if judgement.verdict is not Verdict.FAILED or not judgement.evidence:
            return judgement
        outcomes = {test.nodeid: test.outcome for test in judgement.tests}
        kept = tuple(each for each in judgement.evidence if not self._is_preexisting(todo, each, outcomes))
        if len(kept) == len(judgement.evidence):
            return judgement
        if kept:
            return replace(judgement, evidence=kept)
        missing = sum(outcome is TestOutcome.NOT_RUN for outcome in outcomes.values())
        if missing:
            unknown = f"{missing} of its tests did not run"
            return replace(judgement, verdict=Verdict.INCONCLUSIVE, evidence=(), reason=unknown)
        dropped = sum(test.outcome.is_red for test in judgement.tests) or len(judgement.evidence)
        are = "is" if dropped == 1 else "are"
        reason = f"{counted(dropped, 'failing test')} did not pass at the baseline, and {are} not counted"
        # Forgiven: pytest's exit status is still 1, which must not count as a failure of its own.
        return replace(judgement, verdict=Verdict.PASSED, evidence=(), reason=reason, forgiven=True)

    def _is_preexisting(self, todo: Todo, evidence: Evidence, outcomes: dict[str, TestOutcome]) -> bool:
        """Return whether none of the tests that a failure concerns passed at the baseline.

        ``outcomes`` maps the tests of this run to their results. A failure that names no test is not
        pre-existing.
        """
        names = [name for name in (*evidence.tests, evidence.nodeid) if name]
        if evidence.kind is EvidenceKind.SELECTION:
            if not all(each.problem in _MISSING for each in evidence.selectors):
                return False
            names = [each.text for each in evidence.selectors]
        elif any(outcomes.get(name) in GREEN for name in names):
            # The failure concerns passing tests as well, such as a time limit that all exceeded together.
            return False
        return bool(names) and all(self._did_not_pass(todo, name) for name in names)

    def _did_not_pass(self, todo: Todo, name: str) -> bool:
        """Return whether a test, or every test of a file or class, is known not to have passed before."""
        if "::" in name and self._standing(todo, name) == "unknown":
            return False  # it may have passed
        wanted = self._baseline_name(todo, name)
        return not any(covers((wanted,), nodeid) for nodeid in self._passing_before)

    def _check_stayed(self, todo: Todo, run: CheckRun) -> CheckRun:
        """Fail a passed check if a test that passed at the baseline is gone or did not run to a pass.

        Inconclusive if no such test existed.
        """
        assert self._kept is not None
        named, root = todo.must_stay_green, self._flat.owner(todo.id).root
        wanted = named if named == "all" else [self._baseline_name(todo, each) for each in named]
        # "all" is the suite of the todo's own root.
        above = os.path.relpath(root, self._flat.loaded.root)
        start = f"{above}/" if named == "all" and above != "." else ""
        now = {self._baseline_name(todo, test.nodeid): test.outcome for test in run.check.tests}
        demanded = [
            nodeid
            for nodeid in self._passing_before
            if covers(wanted, nodeid) and nodeid.startswith(start)
            # A person may have accepted the removal of its file.
            if nodeid in now or not self._kept.accepted(nodeid.partition("::")[0], None)
        ]
        lost = [nodeid for nodeid in demanded if nodeid not in now]
        idle = [nodeid for nodeid in demanded if nodeid in now and now[nodeid] not in GREEN]
        if lost:
            missing = [Selector(text=name, problem="missing_id") for name in lost]
            return _failed(run, lost, f"{listed(lost)}: passed at the baseline, but missing now", missing)
        if idle:
            return _failed(run, idle, f"{listed(idle)}: passed at the baseline, but not now")
        if not demanded:
            return _inconclusive(run, "none of its tests passed at the baseline")
        return run

    # -- must_turn_green -------------------------------------------------------------------------

    def _check_turned(self, todo: Todo, run: CheckRun) -> CheckRun:
        """Fail a passed check if a test did not run to a pass; inconclusive if the passes prove nothing.

        Each named test, file or class has to contain a test that failed or was missing at the baseline.
        """
        # pytest itself is satisfied with skipped tests and expected failures.
        idle = [test.nodeid for test in run.check.tests if test.outcome not in GREEN]
        if idle:
            return _failed(run, idle, f"{listed(idle)}: must pass, but did not")
        if self._kept is None:
            return _inconclusive(run, NO_BASELINE)
        tests = [test.nodeid for test in run.check.tests]
        for each in ("all",) if todo.must_turn_green == "all" else todo.must_turn_green:
            chosen = [name for name in tests if each == "all" or covers((each,), name)]
            why = self._why_unproved(todo, chosen)
            if why is not None:
                return _inconclusive(run, f"{each}: {why}")
        return run

    def _why_unproved(self, todo: Todo, tests: Sequence[str]) -> str | None:
        """Return why passing tests prove nothing; ``None`` if one of them failed or was missing before."""
        standings = {self._standing(todo, name) for name in tests}
        # A test that was expected to fail shows that the feature was missing, like a failed one.
        if standings & {"red", "expected", "absent"}:
            return None
        assert self._kept is not None
        whole = self._kept.check(todo.id, TURN_GREEN)
        # The demand itself failed before, perhaps at the import of a file, so that no test was reached.
        if "unknown" in standings and whole is not None and whole.verdict is Verdict.FAILED:
            return None
        return next((why for each, why in _UNPROVED.items() if each in standings), _UNPROVED["unknown"])

    # -- at the baseline -------------------------------------------------------------------------

    def _standing(self, todo: Todo, nodeid: str) -> Standing:
        """Return the state of a todo's test at the baseline."""
        assert self._kept is not None
        return self._kept.standing(below(self._flat, todo.id, nodeid))

    @cached_property
    def _passing_before(self) -> Sequence[str]:
        """Tests that passed at the baseline and are not flaky, relative to the top plan's root."""
        assert self._kept is not None
        tests = self._kept.document.tests.items()
        return [nodeid for nodeid, test in tests if test.outcome in GREEN and not test.flaky]

    def _baseline_name(self, todo: Todo, nodeid: str) -> str:
        """Return the name of a todo's test in the baseline, whose file may have been renamed since."""
        assert self._kept is not None
        return self._kept.former(below(self._flat, todo.id, nodeid))


def _failed(run: CheckRun, tests: Sequence[str], reason: str, missing: Sequence[Selector] = ()) -> CheckRun:
    """Return the result as failed, with evidence that names the tests, missing ones as selectors."""
    evidence = Evidence(
        kind=EvidenceKind.SELECTION,
        check_id=run.check.id,
        phase=Phase.COLLECT,
        headline=reason,
        selectors=tuple(missing),
        tests=tuple(tests),
    )
    check = run.check.model_copy(update={"verdict": Verdict.FAILED, "reason": reason})
    return run.model_copy(update={"check": check, "evidence": (*run.evidence, evidence)})


def _inconclusive(run: CheckRun, reason: str) -> CheckRun:
    """Return the result as inconclusive, without evidence."""
    check = run.check.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})
    return run.model_copy(update={"check": check, "evidence": ()})
