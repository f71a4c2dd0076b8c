"""Checks of a plan: evaluation of criteria that need no worker, and blocking by failed dependencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from planner.model.journal import CheckRun
from planner.model.outcome import Check
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from planner.model.verdicts import CheckKind, EvidenceKind, Isolation, Verdict
from planner.policy.dependencies import blockers
from pytest_planverify.checks.result import title_of
from pytest_planverify.observe.redaction import evidence_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from planner.model.evidence import Evidence
    from planner.model.outcome import FixtureUse
    from planner.model.plan import Quarantine, Todo
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion
    from pytest_planverify.checks.manual import AnswersOnFile
    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.session.records import WorkerRecord


@dataclass(slots=True)
class PlanResult:
    """All verdicts of one plan."""

    flat: FlatPlan
    todos: list[Todo]
    checks: dict[str, dict[str, CheckRun]]
    """By todo id, then check id."""
    asked: frozenset[str] | None = None
    """Ids of the requested todos; ``None`` means all."""
    failed: set[str] = field(default_factory=set[str])
    """Ids of todos that have failed so far, with the parents above them."""
    blocked: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By todo id, the failed todos that block it."""
    notes: list[str] = field(default_factory=list[str])
    records: list[WorkerRecord] = field(default_factory=list["WorkerRecord"])
    """Records of the workers whose verdicts count; the guards inspect what influenced them."""
    unexplained: str | None = None
    """Reason why the run fails although no criterion does, for example a coverage threshold."""

    @property
    def plan(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded

    @property
    def by_id(self) -> dict[str, Todo]:
        """Todos by id."""
        return {each.id: each for each in self.todos}

    def note_failed(self, todos: Iterable[Todo]) -> None:
        """Add to :attr:`failed` those of ``todos`` that have a failed check and are not blocked.

        ``todos`` must be in dependency order. A failed todo fails every parent above it, so that what
        depends on the parent is blocked, too.
        """
        by_id = self.by_id
        parents = {each: parent for parent, below in self.flat.children.items() for each in below}
        for todo in todos:
            red = any(run.check.counts_as.is_red for run in self.checks[todo.id].values())
            if red and not self.blockers(todo):
                name: str | None = todo.id
                while name in by_id:
                    self.failed.add(name)
                    name = parents.get(name)

    def blockers(self, todo: Todo) -> tuple[str, ...]:
        """Return the ids of failed todos that block ``todo``.

        A todo that was not requested blocks no requested one, as its verdict may be of an earlier run.
        """
        among = self.by_id
        if self.asked is not None and todo.id in self.asked:
            among = {name: each for name, each in among.items() if name in self.asked}
        return blockers(todo.id, self.failed & among.keys(), among)

    def fill_in(self, why: str, *, keep_going: bool) -> list[tuple[Todo, CheckRun]]:
        """Mark the checks of blocked todos; return a check for each criterion that has none.

        With ``keep_going`` existing checks of blocked todos keep their verdicts. ``why`` is the reason of
        criteria that were not run. The missing checks are returned, not added.
        """
        missing: list[tuple[Todo, CheckRun]] = []
        for todo in self.todos:
            runs, blocked = self.checks[todo.id], self.blockers(todo)
            if blocked:
                self.blocked[todo.id] = blocked
            for criterion in self.plan.criteria[todo.id]:
                if criterion.id in runs and blocked and not keep_going:
                    runs[criterion.id] = masked(runs[criterion.id], blocked)
                elif criterion.id not in runs and blocked:
                    skip = skipped(criterion, blocked_reason(blocked), Verdict.BLOCKED)
                    missing.append((todo, skip))
                elif criterion.id not in runs:
                    missing.append((todo, skipped(criterion, why)))
        return missing


def check_run(
    todo: Todo,
    criterion: Criterion,
    judgement: Judgement,
    *,
    isolation: Isolation = Isolation.PARENT,
    fixture: tuple[FixtureUse, Evidence | None] | None = None,
) -> CheckRun:
    """Return the check of a judged criterion; an unusable data file fails it, too."""
    verdict, evidence = judgement.verdict, judgement.evidence
    if criterion.kind is not CheckKind.TEST:  # workers have redacted theirs
        evidence = tuple(map(evidence_without_secrets, evidence))
    use, unusable = fixture or (None, None)
    # Whatever its tests said, as they may not have used the data that the criterion is about.
    if unusable is not None and verdict is not Verdict.NOT_RUN:
        verdict, evidence = Verdict.FAILED, (unusable, *evidence)
    reason, more = judgement.reason, {}
    if criterion.kind is CheckKind.TEST:
        if reason is None and verdict.is_red and evidence and evidence[0].kind is not EvidenceKind.TEST:
            reason = evidence[0].headline  # no failing test explains why the check failed
        more = {
            "runs": judgement.runs,
            "reds": int(verdict.is_red) if judgement.reds is None else judgement.reds,
            "witness": judgement.witness,
            "tests": judgement.tests,
            "events": judgement.events,
            "fixture": use,
        }
    else:
        evidence = tuple(each.model_copy(update={"contract_path": todo.contract_path}) for each in evidence)
    check = _check(
        criterion,
        verdict,
        without_secrets(reason),
        duration_ms=judgement.duration_ms,
        isolation=isolation,
        exit_code=judgement.exit_code,
        **more,
    )
    return CheckRun(check=check, evidence=evidence, properties=tuple(judgement.properties))


def skipped(criterion: Criterion, reason: str, verdict: Verdict = Verdict.NOT_RUN) -> CheckRun:
    """Return the check of a criterion that was not evaluated, with the reason."""
    return CheckRun(check=_check(criterion, verdict, reason))


def _check(criterion: Criterion, verdict: Verdict, reason: str | None, **more: Any) -> Check:
    spec = criterion.spec
    if isinstance(spec, CommandSpec):
        more |= {"cmd": spec.cmd, "timeout_seconds": spec.timeout_seconds}
    else:
        more["title"] = title_of(criterion)
    return Check(id=criterion.id, kind=criterion.kind, verdict=verdict, reason=reason, **more)


def masked(run: CheckRun, blocked: Sequence[str]) -> CheckRun:
    """Return the check as blocked by failed dependencies: its own verdict does not count."""
    update = {"verdict": Verdict.BLOCKED, "reason": blocked_reason(blocked)}
    return CheckRun(check=run.check.model_copy(update=update), properties=run.properties)


def is_settled(check: Check) -> bool:
    """Return whether a verdict needs no further run.

    A flaky check in quarantine does, as the quarantine may end before the next run.
    """
    return check.verdict is Verdict.PASSED or check.counts_as.is_red


def quarantined(run: CheckRun, entries: Sequence[Quarantine]) -> CheckRun:
    """Return a flaky check under the plan's current quarantine entries."""
    tests = {name for piece in run.evidence for name in (piece.nodeid, *piece.tests) if name}
    entry = quarantine_of(tests, entries)
    if entry is None:
        return run
    whose = f"({entry.ticket}, {entry.owner})"
    # ISO dates sort as texts. The day itself is included.
    if entry.expires < datetime.now(UTC).date().isoformat():
        update = {"quarantine_ended": entry.expires}
        note = f"its quarantine ended on {entry.expires} {whose}"
    else:
        update, note = {"quarantined": entry.ticket}, f"quarantined until {entry.expires} {whose}"
    update["reason"] = "; ".join(filter(None, (run.check.reason, note)))
    return run.model_copy(update={"check": run.check.model_copy(update=update)})


def quarantine_of(tests: Collection[str], entries: Sequence[Quarantine]) -> Quarantine | None:
    """Return the quarantine entry that covers a check's tests and ends first.

    An entry covers its node id with all parameters; of several for one test the longest counts.
    ``None`` if a test has no entry: a check is quarantined as a whole or not at all.
    """
    covering: list[Quarantine] = []
    for test in tests:
        entries_of_test = [entry for entry in entries if entry.nodeid in (test, test.partition("[")[0])]
        if not entries_of_test:
            return None
        covering.append(max(entries_of_test, key=lambda entry: entry.expires))
    return min(covering, key=lambda entry: entry.expires, default=None)


def blocked_reason(blocked: Sequence[str]) -> str:
    """Return a phrase that names the blocking todos."""
    return f"blocked by {', '.join(blocked)}"


def recorded_values(runs: Iterable[CheckRun]) -> dict[str, list[Any]]:
    """Return all values that a todo's tests recorded, by name, in the order of the checks."""
    values: dict[str, list[Any]] = {}
    for run in runs:
        for name, value in run.properties:
            values.setdefault(name, []).append(value)
    return values


def evaluate(
    flat: FlatPlan,
    todo: Todo,
    criterion: Criterion,
    before: Sequence[CheckRun],
    answers: Callable[[], AnswersOnFile],
) -> CheckRun:
    """Evaluate a criterion that is not a command, given the todo's command checks in ``before``.

    Paths are relative to the root of the todo's own plan. ``answers`` loads people's answers.
    """
    from pytest_planverify.checks.artifact import check_artifact
    from pytest_planverify.checks.manual import check_manual
    from pytest_planverify.checks.metric import check_metric

    spec, name, root = criterion.spec, criterion.id, flat.owner(todo.id).root
    if isinstance(spec, ArtifactSpec):
        found = check_artifact(spec, root, check_id=name)
    elif isinstance(spec, ManualSpec):
        alone = len(todo.acceptance_criteria.manual) == 1
        found = check_manual(spec, flat.loaded, todo.id, name, answers(), alone=alone)
    elif isinstance(spec, MetricSpec):
        values = recorded_values(before).get(spec.name, [])
        # A missing value is a failure only if all tests passed that could have recorded it.
        waiting = next((run for run in before if run.check.counts_as is not Verdict.PASSED), None)
        if not values and waiting is not None:
            reason = f"nothing recorded it, because {waiting.check.id} did not pass"
            return skipped(criterion, reason, Verdict.INCONCLUSIVE)
        found = check_metric(spec, values, check_id=name)
    else:
        from pytest_planverify.checks.contract import check_contract

        found = check_contract(str(spec), root, check_id=name)
    return check_run(todo, criterion, found)
