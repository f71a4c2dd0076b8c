"""A criterion with its verdict and what stands behind it, made from whatever looked at it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from planner.model.kinds import EvidenceKind
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from planner.model.verdicts import CheckKind, Isolation, Verdict, Witness
from planner.rules.dependencies import blockers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.model.evidence import Evidence
    from planner.model.journal import RestsOn
    from planner.model.outcome import Check, FixtureUse
    from planner.model.plan import Quarantine, Todo
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from planner.rules.criteria import Criterion
    from pytest_planverify.checks.result import CheckResult, Judgement
    from pytest_planverify.session.records import WorkerRecord
    from pytest_planverify.session.schedule import Job


@dataclass(slots=True, kw_only=True)
class CheckRun:
    """One criterion with its verdict and the evidence behind it."""

    check: Check
    evidence: tuple[Evidence, ...] = ()
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    rests_on: RestsOn | None = None
    """The files that the verdict rests on; ``None`` where nobody knows, so on all of them."""


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
    """What a command's tests said; a data file that cannot be used fails it as well."""
    from planner.model.outcome import Check  # once there is something to tell: a run begins sooner

    verdict, evidence = judgement.verdict, judgement.evidence
    if fixture_problem is not None and verdict is not Verdict.NOT_RUN:
        verdict, evidence = Verdict.FAILED, (fixture_problem, *evidence)
    check = Check(
        id=job.criterion.id,
        kind=CheckKind.TEST,
        verdict=verdict,
        duration_ms=judgement.duration_ms,
        cmd=job.spec.cmd,
        isolation=isolation,
        isolation_reason=isolation_reason,
        reason=judgement.reason or _said(verdict, evidence),
        timeout_seconds=job.spec.timeout_seconds,
        exit_code=judgement.exit_code,
        runs=judgement.runs,
        reds=int(verdict.is_red) if judgement.reds is None else judgement.reds,
        witness=witness,
        tests=judgement.tests,
        events=judgement.events,
        fixture=fixture,
    )
    return CheckRun(check=check, evidence=evidence, properties=judgement.properties)


def _said(verdict: Verdict, evidence: Sequence[Evidence]) -> str | None:
    """Why a check failed that no failing test explains."""
    first = evidence[0] if verdict.is_red and evidence else None
    return first.headline if first is not None and first.kind is not EvidenceKind.TEST else None


def of_result(
    todo: Todo, criterion: Criterion, result: CheckResult, *, isolation: Isolation = Isolation.PARENT
) -> CheckRun:
    """What a check that is no pytest session said."""
    from planner.model.outcome import Check

    command = criterion.spec if isinstance(criterion.spec, CommandSpec) else None
    check = Check(
        id=criterion.id,
        kind=criterion.kind,
        verdict=result.verdict,
        duration_ms=result.duration_ms,
        cmd=None if command is None else command.cmd,
        title=(result.title or title_of(criterion)) if command is None else None,
        isolation=isolation,
        reason=result.reason,
        timeout_seconds=None if command is None else command.timeout_seconds,
        exit_code=result.exit_code,
    )
    evidence = tuple(
        each.model_copy(update={"contract_path": todo.contract_path}) for each in result.evidence
    )
    return CheckRun(check=check, evidence=evidence)


def of_skip(criterion: Criterion, reason: str, verdict: Verdict) -> CheckRun:
    """A criterion that was not looked at, and why."""
    from planner.model.outcome import Check

    command = criterion.spec if isinstance(criterion.spec, CommandSpec) else None
    check = Check(
        id=criterion.id,
        kind=criterion.kind,
        verdict=verdict,
        cmd=None if command is None else command.cmd,
        title=None if command is not None else title_of(criterion),
        reason=reason,
        timeout_seconds=None if command is None else command.timeout_seconds,
    )
    return CheckRun(check=check)


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
    """A flaky check as the plan wants it taken: borne under a ticket, or not any longer."""
    from datetime import UTC, datetime

    from planner.rules.quarantine import bearing

    tests = {name for piece in run.evidence for name in (piece.nodeid, *piece.tests) if name}
    said = bearing(tests, entries, datetime.now(UTC).date().isoformat())
    if said is None:
        return run
    reason = "; ".join(filter(None, (run.check.reason, said.reason)))
    update: dict[str, str] = {"reason": reason}
    update |= {"quarantined": said.ticket} if said.borne else {"quarantine_ended": said.until}
    return replace(run, check=run.check.model_copy(update=update))


def blocked_reason(blocked: Sequence[str]) -> str:
    """Whose failure is in the way."""
    return f"blocked by {', '.join(blocked)}"


def title_of(criterion: Criterion) -> str:
    """What a person calls a criterion that is no command: its path, comparison or question."""
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


def not_passed(runs: Sequence[CheckRun]) -> CheckRun | None:
    """The first check that did not pass."""
    return next((run for run in runs if run.check.counts_as is not Verdict.PASSED), None)
