"""Test reports for what is no pytest test: artifacts, metrics, questions, guards, tests that never ended.

Reporters know nothing but reports of tests. A criterion becomes one whose node id names plan file, todo and
criterion: ``plan.yaml::t2_indicators::artifact out/x.json``. What failed is a failure with its reason; what
waits for somebody, was not run or could not be told is skipped with its reason, and never passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from planner.model.outcome import Check, Outcome, OutcomeDocument

_RED = frozenset({"failed", "error", "timeout", "crashed", "flaky"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """What one criterion of the run said, and where the reports of its tests are."""

    nodeid: str
    """Under which it is reported itself."""
    todo: str
    plan: str
    """The plan's file, relative to the root of the top plan."""
    line: int | None
    """Where the todo stands in the plan's file, from 1."""
    kind: str
    verdict: str
    quarantined: bool
    reason: str
    details: str
    """What the diagnosis adds to the reason; may be empty."""
    seconds: float
    taken_from: str | None
    """The run that reached the verdict, where it was not this one."""
    root: str
    """The node ids of its tests start here."""
    relay: str | None
    """The file with the reports of its worker."""
    tests: tuple[tuple[str, str, float, str], ...]
    """Node id, outcome, seconds, reason: of every test, also of those that the worker could not report."""

    @property
    def outcome(self) -> str:
        """The outcome of the criterion as reporters know outcomes."""
        if self.verdict in _RED and not self.quarantined:
            return "failed"
        return "passed" if self.verdict == "passed" else "skipped"

    def own_reports(self) -> list[dict[str, Any]]:
        """Return the reports of the criterion itself, as of a test."""
        reports = self._reports(self.nodeid, self.plan, self.line, self.outcome, self.reason, self.seconds)
        for report in reports:
            report["user_properties"] = [*self.properties, ("verdict", self.verdict)]
        return reports

    def reports_of_test(
        self, nodeid: str, outcome: str, seconds: float, reason: str
    ) -> list[dict[str, Any]]:
        """Return reports of a test that no worker reported to its end, by what the outcome says of it."""
        told = "passed" if outcome in ("passed", "xpassed") else "failed" if outcome in _RED else "skipped"
        why = reason or self.reason or f"the test was not reported: {outcome}"
        reports = self._reports(nodeid, nodeid.partition("::")[0], None, told, why, seconds)
        if outcome in ("xfailed", "xpassed"):
            reports[-2]["wasxfail"] = reason
        return reports

    def _reports(
        self, nodeid: str, path: str, line: int | None, outcome: str, reason: str, seconds: float
    ) -> list[dict[str, Any]]:
        """Return the reports of the phases; the one before the last is that of the outcome."""
        longrepr: object = None
        if outcome == "failed":
            longrepr = _failure(
                path, line, reason, f"{reason}\n\n{self.details}" if self.details else reason
            )
        elif outcome == "skipped":
            longrepr = (path, line or 1, f"Skipped: {reason}")
        common: dict[str, Any] = {
            "$report_type": "TestReport",
            "nodeid": nodeid,
            "location": (path, None if line is None else line - 1, _domain(nodeid)),
            "keywords": {},
            "sections": [],
            "start": 0,
            "stop": 0,
            "user_properties": self.properties,
        }
        passed = {**common, "outcome": "passed", "longrepr": None, "duration": 0}
        found = {**common, "outcome": outcome, "longrepr": longrepr, "duration": seconds}
        if outcome == "skipped":
            return [{**found, "when": "setup"}, {**passed, "when": "teardown"}]
        return [{**passed, "when": "setup"}, {**found, "when": "call"}, {**passed, "when": "teardown"}]

    @property
    def properties(self) -> list[tuple[str, str]]:
        """User properties that say which todo a report belongs to."""
        taken = [] if self.taken_from is None else [("from_run", self.taken_from)]
        return [("todo", self.todo), *taken]


def criterion_results(
    document: OutcomeDocument,
    *,
    roots: Callable[[Outcome], Path],
    relays: Callable[[Outcome, Check], Path | None],
    lines: Callable[[Outcome], int | None] = lambda outcome: None,
) -> Iterator[CriterionResult]:
    """Return the criteria of a run in the order of its outcomes, which is the plan's.

    ``roots`` gives the root that a todo's node ids start from, ``relays`` the file of a criterion's worker,
    ``lines`` the line of a todo in its plan file.
    """
    paths = {plan.todo_list_id: plan.path for plan in document.plans}
    for outcome in document.outcomes:
        plan = paths.get(outcome.plan or "", outcome.plan or document.plans[0].path)
        taken: set[str] = set()
        for check in outcome.checks:
            failures = [each for each in outcome.failures if each.check_id == check.id]
            yield CriterionResult(
                nodeid=_unique(f"{plan}::{outcome.todo_id}::{_name(check)}", check.id, taken),
                todo=outcome.todo_id,
                plan=plan,
                line=lines(outcome),
                kind=check.kind,
                verdict=check.verdict,
                quarantined=check.quarantined is not None,
                reason=check.reason
                or _because(f.because for f in failures)
                or f"the verdict is {check.verdict}",
                details="\n\n".join(
                    text
                    for each in failures
                    for text in (
                        each.stack_trace_head,
                        f"{each.category}: {each.suggestion or each.because}",
                    )
                    if text and text != check.reason
                ),
                seconds=check.duration_ms / 1000,
                taken_from=check.taken_from,
                root=str(roots(outcome)),
                relay=None if (path := relays(outcome, check)) is None else str(path),
                tests=tuple(
                    (test.nodeid, str(test.outcome), test.duration_ms / 1000, test.reason or "")
                    for test in check.tests
                ),
            )


def _failure(path: str, line: int | None, reason: str, text: str) -> dict[str, Any]:
    """Return what pytest serializes of an exception: summaries show its message, reports its text."""
    entry = {"type": "ReprEntryNative", "data": {"lines": [f"{text}\n"]}}
    return {
        "reprcrash": {"path": path, "lineno": line or 1, "message": reason},
        "reprtraceback": {"reprentries": [entry], "extraline": None, "style": "native"},
        "sections": [],
        "chain": None,
    }


def _because(reasons: Iterable[str | None]) -> str:
    return next((reason for reason in reasons if reason), "")


def _name(check: Check) -> str:
    """Name a criterion so that no reporter takes the name apart at brackets or double colons."""
    text = check.cmd if check.cmd and check.kind == "test" else check.title or check.cmd or check.id
    kind = f"{check.kind} ".replace("_", " ")
    return kind + text.replace("::", ":").replace("[", "(").replace("]", ")")


def _unique(nodeid: str, check_id: str, taken: set[str]) -> str:
    if nodeid in taken:
        nodeid += f" ({check_id.replace('[', ' ').replace(']', '')})"
    taken.add(nodeid)
    return nodeid


def _domain(nodeid: str) -> str:
    return nodeid.partition("::")[2].replace("::", ".") or nodeid
