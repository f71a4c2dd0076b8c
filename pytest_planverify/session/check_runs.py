"""The checks of a plan: made from whatever looked at a criterion, masked where a failure blocks it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from planner.model.verdicts import EvidenceKind, Isolation, Verdict, Witness
from planner.policy.dependencies import blockers
from pytest_planverify.checks.result import CheckRun

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from planner.model.evidence import Evidence
    from planner.model.outcome import Check, FixtureUse
    from planner.model.plan import Quarantine, Todo
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion
    from pytest_planverify.checks.result import CheckResult, Judgement
    from pytest_planverify.session.records import WorkerRecord
    from pytest_planverify.session.schedule import Job


@dataclass(slots=True)
class PlanResult:
    """All verdicts of one plan."""

    flat: FlatPlan
    todos: list[Todo]
    checks: dict[str, dict[str, CheckRun]]
    """By todo id and check id."""
    blocked: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By todo id, the failed todos in its way."""
    notes: list[str] = field(default_factory=list[str])
    records: list[WorkerRecord] = field(default_factory=list["WorkerRecord"])
    """The workers whose answers count, for those who ask who had a say in them."""
    unexplained: str | None = None
    """Why the run is not accepted though no criterion is red: an option of the user's asks for more."""

    @property
    def plan(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded


def of_tests(
    job: Job,
    judgement: Judgement,
    *,
    isolation: Isolation,
    isolation_reason: str | None,
    witness: Witness,
    fixture: FixtureUse | None,
    fixture_problem: Evidence | None,
) -> CheckRun:
    """Make the check of a command's tests; a data file that cannot be used fails it as well."""
    verdict, evidence = judgement.verdict, judgement.evidence
    if fixture_problem is not None and verdict is not Verdict.NOT_RUN:
        verdict, evidence = Verdict.FAILED, (fixture_problem, *evidence)
    first = evidence[0] if verdict.is_red and evidence else None
    # Why a check failed that no failing test explains.
    said = first.headline if first is not None and first.kind is not EvidenceKind.TEST else None
    check = _check(
        job.criterion,
        verdict,
        judgement.reason or said,
        duration_ms=judgement.duration_ms,
        isolation=isolation,
        isolation_reason=isolation_reason,
        exit_code=judgement.exit_code,
        runs=judgement.runs,
        reds=int(verdict.is_red) if judgement.reds is None else judgement.reds,
        witness=witness,
        tests=judgement.tests,
        events=judgement.events,
        fixture=fixture,
    )
    return CheckRun(check=check, evidence=evidence, properties=judgement.properties)


def of_result(
    todo: Todo, criterion: Criterion, result: CheckResult, *, isolation: Isolation = Isolation.PARENT
) -> CheckRun:
    """Make the check of a criterion that is no pytest session."""
    check = _check(
        criterion,
        result.verdict,
        result.reason,
        duration_ms=result.duration_ms,
        isolation=isolation,
        exit_code=result.exit_code,
    )
    if result.title and check.cmd is None:
        check = check.model_copy(update={"title": result.title})
    evidence = tuple(
        each.model_copy(update={"contract_path": todo.contract_path}) for each in result.evidence
    )
    return CheckRun(check=check, evidence=evidence)


def of_skip(criterion: Criterion, reason: str, verdict: Verdict) -> CheckRun:
    """A criterion that was not looked at, and why."""
    return CheckRun(check=_check(criterion, verdict, reason))


def _check(criterion: Criterion, verdict: Verdict, reason: str | None, **more: Any) -> Check:
    from planner.model.outcome import Check  # once there is something to tell: a run begins sooner

    spec = criterion.spec
    if isinstance(spec, CommandSpec):
        more |= {"cmd": spec.cmd, "timeout_seconds": spec.timeout_seconds}
    else:
        more["title"] = title_of(criterion)
    return Check(id=criterion.id, kind=criterion.kind, verdict=verdict, reason=reason, **more)


def unreached(criterion: Criterion, blocked: Sequence[str], why: str = "not reached") -> CheckRun:
    """A criterion that the run did not come to: a failed todo is in the way, or the run was stopped."""
    if blocked:
        return of_skip(criterion, blocked_reason(blocked), Verdict.BLOCKED)
    return of_skip(criterion, why, Verdict.NOT_RUN)


def masked(run: CheckRun, blocked: Sequence[str]) -> CheckRun:
    """The same check where a failed dependency stands before it: what it said is not counted."""
    update = {"verdict": Verdict.BLOCKED, "reason": blocked_reason(blocked)}
    return CheckRun(check=run.check.model_copy(update=update), properties=run.properties)


def is_settled(check: Check) -> bool:
    """Return whether a verdict is an answer. A flaky check in quarantine is run again: that may end."""
    return check.verdict is Verdict.PASSED or check.counts_as.is_red


def failed_todos(
    checks: Mapping[str, Mapping[str, CheckRun]],
    order: Iterable[str],
    by_id: Mapping[str, Todo],
    parent_of: Mapping[str, str],
) -> set[str]:
    """Return the todos of which a check is red and which nothing blocks, and the parents above them."""
    failed: set[str] = set()
    for todo_id in order:
        red = any(run.check.counts_as.is_red for run in checks.get(todo_id, {}).values())
        if red and not blockers(todo_id, failed, by_id):
            name: str | None = todo_id
            while name is not None and name in by_id:
                failed.add(name)
                name = parent_of.get(name)
    return failed


def quarantined(run: CheckRun, entries: Sequence[Quarantine]) -> CheckRun:
    """Return a flaky check as the plan's quarantine has it today."""
    from datetime import UTC, datetime

    tests = {name for piece in run.evidence for name in (piece.nodeid, *piece.tests) if name}
    entry = quarantine_of(tests, entries)
    if entry is None:
        return run
    whose = f"({entry.ticket}, {entry.owner})"
    if entry.expires < datetime.now(UTC).date().isoformat():
        update = {"quarantine_ended": entry.expires}
        said = f"its quarantine ended on {entry.expires} {whose}"
    else:
        update, said = {"quarantined": entry.ticket}, f"quarantined until {entry.expires} {whose}"
    update["reason"] = "; ".join(filter(None, (run.check.reason, said)))
    return replace(run, check=run.check.model_copy(update=update))


def quarantine_of(tests: Collection[str], entries: Sequence[Quarantine]) -> Quarantine | None:
    """Return the entry that ends first of those that hold for the tests of a check.

    An entry holds for its node id and for all parameters of it, and the longest for each test counts.
    ``None`` where the plan says nothing of one of the tests: a check is quarantined as a whole or not.
    """
    longest = [
        max(
            (entry for entry in entries if entry.nodeid in (test, test.partition("[")[0])),
            key=lambda entry: entry.expires,
            default=None,
        )
        for test in tests
    ]
    held = [entry for entry in longest if entry is not None]
    return min(held, key=lambda entry: entry.expires) if held and len(held) == len(longest) else None


def blocked_reason(blocked: Sequence[str]) -> str:
    """Whose failure is in the way."""
    return f"blocked by {', '.join(blocked)}"


def title_of(criterion: Criterion) -> str:
    """Return the title of a criterion that is no command: its path, comparison or question."""
    spec = criterion.spec
    if isinstance(spec, ArtifactSpec):
        return spec.path
    if isinstance(spec, MetricSpec):
        return f"{spec.name} {spec.operator} {spec.value:.12g}"
    if isinstance(spec, ManualSpec):
        return spec.question
    return spec.cmd if isinstance(spec, CommandSpec) else spec


def recorded_values(runs: Iterable[CheckRun]) -> dict[str, list[Any]]:
    """Every value that a todo's tests recorded, by name, in the order of the checks."""
    values: dict[str, list[Any]] = {}
    for run in runs:
        for name, value in run.properties:
            values.setdefault(name, []).append(value)
    return values
