"""Cases and problems of a run, each with its place, for all report formats.

Cases are for programs that count: one a test, and one a criterion without tests. A case failed, or the run,
exactly where the exit status is not 0. Problems are for people: one a root cause.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.verdicts import TestOutcome, Verdict
from planner.policy.outcomes import failures_of
from planner.text.display import counted, listed
from planner.text.redaction import redact
from planner.text.sanitizing import clean
from pytest_planverify.reports.details import headline
from pytest_planverify.reports.terminal import EXIT_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.model.outcome import Check, Failure, Hunk, Outcome, OutcomeDocument
    from planner.model.plan import Todo

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

RUN = "run"
"""The todo of the case that stands for the run as a whole."""

_LONGEST_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class ReportCase:
    todo_id: str
    name: str
    status: str
    message: str = ""
    """Why it did not pass, in one line."""
    text: str = ""
    duration_ms: int = 0
    flaky: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One root cause, or one criterion that no diagnosis explains."""

    category: str
    headline: str
    signature: str
    todos: tuple[str, ...]
    tests: tuple[str, ...]
    path: str
    """Of the fault, as it is seen from the top of the repository; of the plan where nothing is known."""
    line: int = 1
    failure: Failure | None = None

    @property
    def hunk(self) -> Hunk | None:
        """Return what was changed in the likeliest function."""
        candidates = self.failure.candidates if self.failure else ()
        return next((each.hunk for each in candidates if each.hunk is not None), None)

    @property
    def consequences(self) -> str:
        """``38 tests in shop, cart``."""
        tests = f"{counted(len(self.tests), 'test')} in " if self.tests else ""
        return tests + listed(self.todos, 5)


@dataclass(frozen=True)
class ReportInput:
    """An outcome document as formats render it."""

    document: OutcomeDocument
    folders: Mapping[str, str]
    """By plan the folder of its root below the top of the repository; the top itself is the empty text."""
    todos: Mapping[str, Sequence[Todo]] = field(default_factory=dict[str, "Sequence[Todo]"])
    """By plan, those of its sub-plans included."""

    @property
    def holds(self) -> bool:
        return self.document.run.exit_status == 0

    @cached_property
    def cases(self) -> list[ReportCase]:
        """Return every case. Nothing failed where the exit status is 0: what is red does not count."""
        cases = [
            case for outcome in self.document.outcomes for case in _cases(outcome, counts=not self.holds)
        ]
        if not self.holds and not any(case.status == FAILED for case in cases):
            cases.append(ReportCase(RUN, "exit status", FAILED, self.exit_reason))
        return cases

    @property
    def exit_reason(self) -> str:
        """Return why the run as a whole is not accepted, in one line."""
        run = self.document.run
        said = EXIT_WORDS.get(run.exit_status, ("", None))[0]
        waiting = (
            f"{outcome.todo_id}: {check.id} is {check.verdict}"
            + (f", {check.reason}" if check.reason else "")
            for outcome in self.document.outcomes
            for check in outcome.checks
            if check.counts_as not in (Verdict.PASSED, Verdict.BLOCKED)
        )
        return safe(
            f"exit status {run.exit_status}: {run.unexplained or said or next(waiting, 'not accepted')}"
        )

    @cached_property
    def problems(self) -> list[Problem]:
        """Return the root causes, the first to fix first, then what nothing explains."""
        found: dict[str, list[tuple[Outcome, Failure]]] = {}
        unexplained: list[Problem] = []
        for outcome in self.document.outcomes:
            failures = list(failures_of(outcome))
            for failure in failures:
                found.setdefault(failure.signature or f"{outcome.todo_id} {failure.check_id}", []).append(
                    (outcome, failure)
                )
            explained = {failure.check_id for failure in failures}
            unexplained += [
                self._unexplained(outcome, check)
                for check in outcome.checks
                if check.counts_as.is_red and check.id not in explained
            ]
        groups: list[list[tuple[Outcome, Failure]]] = []
        for cause in self.document.causes:
            members = [each for signature in cause.signatures for each in found.pop(signature, ())]
            if members:
                groups.append(members)
        groups.extend(found.values())
        return [*(self._problem(group) for group in groups), *unexplained]

    def placed(self, plan: str | None, path: str) -> str:
        """Return a path of a plan's root as it is seen from the top of the repository."""
        folder = self.folders.get(plan or "", "") if plan else next(iter(self.folders.values()), "")
        return path if not folder or path.startswith("/") else f"{folder}/{path}"

    def _problem(self, members: list[tuple[Outcome, Failure]]) -> Problem:
        outcome, failure = members[0]
        tests = tuple(
            dict.fromkeys(test for _, each in members for test in (each.tests or each.top_failing_tests))
        )
        path, line = self._plan_path(outcome), 1
        for at, each in members:
            if each.location is not None:
                path, line = self.placed(at.plan, each.location.path), each.location.line or 1
                break
        return Problem(
            category=str(failure.category),
            headline=safe(headline(failure)),
            signature=failure.signature or f"{outcome.todo_id} {failure.check_id}",
            todos=tuple(dict.fromkeys(each.todo_id for each, _ in members)),
            tests=tests,
            path=path,
            line=max(line, 1),
            failure=failure,
        )

    def _unexplained(self, outcome: Outcome, check: Check) -> Problem:
        return Problem(
            category=check.kind.value,
            headline=safe(f"{check.id} {check.verdict}: {check.reason or check.title or check.cmd or ''}"),
            signature=f"{outcome.todo_id} {check.id}",
            todos=(outcome.todo_id,),
            tests=(),
            path=self._plan_path(outcome),
        )

    def _plan_path(self, outcome: Outcome) -> str:
        plans = self.document.plans
        named = next((each.path for each in plans if each.todo_list_id == outcome.plan), None)
        return named or (plans[0].path if plans else "plan.yaml")


def safe(text: str, limit: int = _LONGEST_TEXT) -> str:
    """Return untrusted text without control sequences, known secrets, and what no XML may hold."""
    return clean(redact(text), limit=limit).replace("\ufffe", "").replace("\uffff", "")


def _cases(outcome: Outcome, *, counts: bool) -> Iterator[ReportCase]:
    failures = list(failures_of(outcome))
    for check in outcome.checks:
        passed = check.counts_as is Verdict.PASSED
        status = PASSED if passed else FAILED if check.counts_as.is_red and counts else SKIPPED
        flaky = check.verdict is Verdict.FLAKY
        red_tests = False
        for test in check.tests:
            told = PASSED if test.outcome in (TestOutcome.PASSED, TestOutcome.XPASSED) else SKIPPED
            if test.outcome.is_red and status == FAILED:  # the plan may bear a red test
                told, red_tests = FAILED, True
            failure = _failure_of(failures, check, test.nodeid)
            message, text = (
                _said(failure) if told != PASSED and test.outcome.is_red else (test.reason or "", "")
            )
            if told != PASSED and not message:
                message = check.reason or test.outcome.value
            yield ReportCase(
                outcome.todo_id, safe(test.nodeid), told, safe(message), text, test.duration_ms, flaky
            )
        if not check.tests or not (passed or red_tests):
            failure = _failure_of(failures, check, None)
            message, text = _said(failure) if status == FAILED else ("", "")
            reason = check.reason or ("" if status == PASSED else check.verdict.value)
            name = " ".join(filter(None, (check.kind.value, check.title or check.cmd or check.id)))
            yield ReportCase(
                outcome.todo_id, safe(name), status, safe(message or reason), text, check.duration_ms, flaky
            )


def _failure_of(failures: list[Failure], check: Check, nodeid: str | None) -> Failure | None:
    own = [each for each in failures if each.check_id == check.id]
    return next((each for each in own if nodeid in each.tests), own[0] if own else None)


def _said(failure: Failure | None) -> tuple[str, str]:
    if failure is None:
        return "", ""
    place = failure.location
    lines = [
        failure.stack_trace_head,
        f"at {place.path}:{place.line or 1}" if place else None,
        failure.suggestion,
        f"rerun: {failure.rerun}" if failure.rerun else None,
    ]
    return headline(failure), safe("\n".join(filter(None, lines)))
