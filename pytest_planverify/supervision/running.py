"""Runs one plan: its stages in order, each criterion's verdict, and which todos that leaves blocked."""

from __future__ import annotations

import os

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.model.outcome import Check, CheckKind, Isolation, Verdict, Witness
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from planner.rules.dependencies import blockers
from pytest_planverify.checks.artifact import check_artifact
from pytest_planverify.checks.command import run_command
from pytest_planverify.checks.fixture import read_fixture
from pytest_planverify.checks.manual import check_manual
from pytest_planverify.checks.metric import check_metric
from pytest_planverify.confirmation import ConfirmationBudget, confirm_alone, confirm_shared
from pytest_planverify.reports.tree import criterion_text
from pytest_planverify.supervision.foreign import run_foreign
from pytest_planverify.supervision.judging import Asked, Judgement, judge_alone, judge_shared
from pytest_planverify.supervision.records import SessionRecord
from pytest_planverify.supervision.schedule import Fold, Job, Stage, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.edges.plan_file import LoadedPlan
    from planner.model.evidence import Evidence
    from planner.model.plan import Todo
    from planner.rules.criteria import Criterion
    from pytest_planverify.checks.result import CheckResult
    from pytest_planverify.checks.manual import AnswersOnFile
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.sessions import Sessions


@dataclass(slots=True, kw_only=True)
class CheckRun:
    """One criterion with its verdict and the evidence behind it."""

    check: Check
    evidence: tuple[Evidence, ...] = ()
    properties: list[tuple[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class PlanResult:
    """All verdicts of one plan."""

    plan: LoadedPlan
    todos: list[Todo]
    checks: dict[str, dict[str, CheckRun]]
    """By todo id and check id."""
    blocked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By todo id, the failed todos in its way."""
    notes: list[str] = field(default_factory=list)
    unexplained: bool = False
    """A shared session returned a status that no criterion explains."""


class PlanRun:
    """One plan of the run, from its first session to its last check."""

    def __init__(
        self,
        plan: LoadedPlan,
        todos: Sequence[Todo],
        settings: Settings,
        sessions: Sessions,
        folder: RunFolder,
        answers: AnswersOnFile,
        progress: Progress,
        budget: ConfirmationBudget,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._sessions = sessions
        self._folder = folder
        self._answers = answers
        self._progress = progress
        self._budget = budget
        self._by_id = {todo.id: todo for todo in todos}
        self._judged: dict[str, CheckRun] = {}
        self._failed: set[str] = set()
        self._reds = 0
        self.stages = schedule(plan, self._by_id, isolate=settings.isolate)
        self.result = PlanResult(plan, list(todos), {todo.id: {} for todo in todos})

    def run(self) -> None:
        """Run all stages. After ``KeyboardInterrupt`` the result holds what was known by then."""
        try:
            for stage in self.stages:
                self._run_stage(stage)
        finally:
            self._fill_in()

    # -- one stage -------------------------------------------------------------------------------

    def _run_stage(self, stage: Stage) -> None:
        folds = [fold for fold in (self._without_blocked(fold) for fold in stage.folds) if fold.jobs]
        records: list[tuple[Fold, SessionRecord]] = []
        for fold in folds:
            if self._is_over():
                break
            record = SessionRecord()
            self._progress.session_started(self._title(fold.jobs), 0)
            records.append((fold, record))
            self._sessions.run_fold(fold, record, maxfail=self._left())
        for fold, record in records:
            self._judge_fold(fold, record)
        for job in stage.singles:
            if not self._is_blocked(job.todo) and not self._is_over():
                self._run_single(job)
        for todo in stage.todos:
            self._finish_todo(todo)

    def _without_blocked(self, fold: Fold) -> Fold:
        return Fold(fold.key, [job for job in fold.jobs if not self._is_blocked(job.todo)])

    def _is_blocked(self, todo: Todo) -> bool:
        return not self._settings.keep_going and bool(blockers(todo.id, self._failed, self._by_id))

    def _left(self) -> int:
        return max(self._settings.maxfail - self._reds, 1) if self._settings.maxfail else 0

    def _is_over(self) -> bool:
        return bool(self._settings.maxfail) and self._reds >= self._settings.maxfail

    def _judge_fold(self, fold: Fold, record: SessionRecord) -> None:
        narrowed = self._settings.narrows
        judgements = [judge_shared(self._asked(job), record, narrowed_run=narrowed) for job in fold.jobs]
        if self._is_unexplained(record, judgements):
            for judgement in judgements:
                judgement.doubt = judgement.doubt or (
                    f"the shared session returned {record.exit_status}, which no test explains"
                )
        for job, judgement in zip(fold.jobs, judgements, strict=True):
            self._settle(job, judgement, fold, record)

    def _is_unexplained(self, record: SessionRecord, judgements: Sequence[Judgement]) -> bool:
        if record.exit_status in (0, 5, None) or self._settings.collect_only:
            return False
        return not any(judgement.is_red for judgement in judgements) and not record.collection_failures

    def _settle(self, job: Job, first: Judgement, fold: Fold, record: SessionRecord) -> None:
        stopped = self._settings.maxfail and record.stopped
        if first.verdict is Verdict.INCONCLUSIVE and stopped:
            first.verdict, first.reason = Verdict.NOT_RUN, f"the run stopped: {record.stopped}"
        needs_confirming = first.is_red or first.verdict is Verdict.INCONCLUSIVE or first.doubt is not None
        if not needs_confirming or first.verdict is Verdict.NOT_RUN or not _worth_repeating(first):
            self._keep(job, first, isolation=Isolation.SESSION, reason=first.doubt)
            return
        if self._is_blocked(job.todo):
            return
        doubt = first.doubt or "the shared session's red was confirmed alone"
        confirmed = confirm_shared(
            first,
            lambda: self._confirm(job, "alone"),
            lambda: judge_shared(
                self._asked(job), self._sessions.run_fold(fold, SessionRecord(), again=True)
            ),
            attempts=self._settings.confirmations,
            budget=self._budget,
        )
        judgement = confirmed.judgement
        if first.verdict is Verdict.PASSED and judgement.is_red:
            judgement.reason = f"green beside the other tests of the run, red alone; {doubt}"
        isolation = Isolation.FORKED if confirmed.alone else Isolation.SESSION
        self._keep(job, judgement, isolation=isolation, reason=doubt)

    def _confirm(self, job: Job, where: str) -> Judgement:
        self._progress.confirming(job.spec.cmd, 1, self._settings.confirmations)
        return self._judge_alone(job, first=False)

    def _judge_alone(self, job: Job, *, first: bool) -> Judgement:
        record = SessionRecord()
        self._sessions.run_alone(job, record, first=first)
        return judge_alone(self._asked(job), record)

    def _asked(self, job: Job) -> Asked:
        command = job.criterion.command
        assert command is not None
        invocation = command.pytest
        return Asked(
            key=job.key,
            check_id=job.criterion.id,
            limit_seconds=job.spec.timeout_seconds,
            selections=() if invocation is None else invocation.selections,
            contract_path=job.todo.contract_path,
        )

    # -- commands that share no session ------------------------------------------------------------

    def _run_single(self, job: Job) -> None:
        self._progress.check_started(job.todo.id, job.spec.cmd)
        command = job.criterion.command
        assert command is not None
        if job.is_pytest:
            self._run_own_session(job)
        elif command.pytest is not None:
            self._run_foreign(job)
        elif self._settings.last_failed or self._settings.keyword or self._settings.collect_only:
            self._skip(job.todo, job.criterion, "left out of this run")
        else:
            result = run_command(
                command, self._plan.root, job.spec.timeout_seconds, env=_environment(command.env)
            )
            self._keep_result(job.todo, job.criterion, result, isolation=Isolation.SPAWNED)

    def _run_own_session(self, job: Job) -> None:
        first = self._judge_alone(job, first=True)
        if first.is_red and _worth_repeating(first) and not self._settings.collect_only:
            first = confirm_alone(
                first, lambda: self._confirm(job, "alone"), budget=self._budget
            ).judgement
        self._keep(job, first, isolation=Isolation.FORKED, reason=job.own_session)

    def _run_foreign(self, job: Job) -> None:
        if self._settings.collect_only or self._settings.narrows:
            self._skip(job.todo, job.criterion, "another interpreter's tests cannot be narrowed")
            return
        command = job.criterion.command
        assert command is not None
        assert command.pytest is not None
        asked, launcher, args = self._asked(job), command.pytest.launcher, command.pytest.args
        witnesses: list[Witness] = []

        def run() -> Judgement:
            judgement, witness = run_foreign(
                asked,
                launcher,
                args,
                root=self._plan.root,
                env=_environment(command.env),
                folder=self._folder.path,
            )
            witnesses.append(witness)
            return judgement

        judgement = run()
        if judgement.is_red and _worth_repeating(judgement):
            judgement = confirm_alone(judgement, run, budget=self._budget).judgement
        self._keep(
            job, judgement, isolation=Isolation.SPAWNED, reason=job.own_session, witness=witnesses[-1]
        )

    # -- keeping verdicts --------------------------------------------------------------------------

    def _keep(
        self,
        job: Job,
        judgement: Judgement,
        *,
        isolation: Isolation,
        reason: str | None,
        witness: Witness = Witness.PLUGIN,
    ) -> None:
        spec = job.spec
        fixture = None
        verdict, evidence = judgement.verdict, judgement.evidence
        if spec.fixture is not None:
            reading = read_fixture(spec.fixture, self._plan.root, check_id=job.criterion.id)
            fixture = reading.use
            if reading.evidence is not None and verdict is not Verdict.NOT_RUN:
                verdict, evidence = Verdict.FAILED, (reading.evidence, *evidence)
        check = Check(
            id=job.criterion.id,
            kind=CheckKind.TEST,
            verdict=verdict,
            duration_ms=judgement.duration_ms,
            cmd=spec.cmd,
            isolation=isolation,
            isolation_reason=reason if isolation is not Isolation.SESSION else None,
            reason=judgement.reason,
            timeout_seconds=spec.timeout_seconds,
            exit_code=judgement.exit_code,
            witness=witness,
            tests=judgement.tests,
            fixture=fixture,
        )
        self._add(job.todo, CheckRun(check=check, evidence=evidence, properties=judgement.properties))

    def _keep_result(
        self, todo: Todo, criterion: Criterion, result: CheckResult, *, isolation: Isolation = Isolation.PARENT
    ) -> None:
        spec = criterion.spec
        is_command = isinstance(spec, CommandSpec)
        check = Check(
            id=criterion.id,
            kind=criterion.kind,
            verdict=result.verdict,
            duration_ms=result.duration_ms,
            cmd=spec.cmd if is_command else None,
            title=None if is_command else result.title or criterion_text(criterion),
            isolation=isolation,
            reason=result.reason,
            timeout_seconds=spec.timeout_seconds if is_command else None,
            exit_code=result.exit_code,
        )
        evidence = tuple(
            each.model_copy(update={"contract_path": todo.contract_path}) for each in result.evidence
        )
        self._add(todo, CheckRun(check=check, evidence=evidence))

    def _skip(self, todo: Todo, criterion: Criterion, reason: str, verdict: Verdict = Verdict.NOT_RUN) -> None:
        spec = criterion.spec
        is_command = isinstance(spec, CommandSpec)
        check = Check(
            id=criterion.id,
            kind=criterion.kind,
            verdict=verdict,
            cmd=spec.cmd if is_command else None,
            title=None if is_command else criterion_text(criterion),
            reason=reason,
            timeout_seconds=spec.timeout_seconds if is_command else None,
        )
        self._add(todo, CheckRun(check=check))

    def _add(self, todo: Todo, run: CheckRun) -> None:
        self.result.checks[todo.id][run.check.id] = run
        self._reds += run.check.verdict.is_red
        self._progress.check_finished(todo.id, run.check.verdict)

    # -- the end of a todo -------------------------------------------------------------------------

    def _finish_todo(self, todo: Todo) -> None:
        blocked = blockers(todo.id, self._failed, self._by_id)
        if blocked:
            self.result.blocked[todo.id] = blocked
        if not blocked or self._settings.keep_going:
            self._evaluate(todo)
        runs = self.result.checks[todo.id]
        if not blocked and any(run.check.verdict.is_red for run in runs.values()):
            self._failed.add(todo.id)

    def _evaluate(self, todo: Todo) -> None:
        """The criteria that the parent looks at itself, once the todo's commands are through."""
        if self._settings.collect_only:
            return
        runs = self.result.checks[todo.id]
        recorded = recorded_values(runs.values())
        waiting = [run.check for run in runs.values() if run.check.verdict is not Verdict.PASSED]
        for criterion in self._plan.criteria[todo.id]:
            if criterion.id in runs or criterion.kind in (CheckKind.TEST, CheckKind.COMMAND):
                continue
            evaluate = self._evaluators.get(type(criterion.spec))
            if evaluate is None:
                continue
            if self._settings.narrows:
                self._skip(todo, criterion, "left out of this run")
                continue
            evaluate(self, todo, criterion, recorded, waiting)

    def _evaluate_artifact(
        self, todo: Todo, criterion: Criterion, recorded: dict[str, list[Any]], waiting: list[Check]
    ) -> None:
        assert isinstance(criterion.spec, ArtifactSpec)
        self._keep_result(todo, criterion, check_artifact(criterion.spec, self._plan.root, check_id=criterion.id))

    def _evaluate_metric(
        self, todo: Todo, criterion: Criterion, recorded: dict[str, list[Any]], waiting: list[Check]
    ) -> None:
        assert isinstance(criterion.spec, MetricSpec)
        values = recorded.get(criterion.spec.name, [])
        if not values and waiting:
            reason = f"nothing recorded it, for {waiting[0].id} did not pass"
            self._skip(todo, criterion, reason, Verdict.INCONCLUSIVE)
            return
        self._keep_result(todo, criterion, check_metric(criterion.spec, values, check_id=criterion.id))

    def _evaluate_manual(
        self, todo: Todo, criterion: Criterion, recorded: dict[str, list[Any]], waiting: list[Check]
    ) -> None:
        assert isinstance(criterion.spec, ManualSpec)
        result = check_manual(
            criterion.spec, self._plan.plan.todo_list_id, todo.id, criterion.id, self._answers
        )
        self._keep_result(todo, criterion, result)

    def _evaluate_contract(
        self, todo: Todo, criterion: Criterion, recorded: dict[str, list[Any]], waiting: list[Check]
    ) -> None:
        from pytest_planverify.checks.contract import check_contract

        assert isinstance(criterion.spec, str)
        self._keep_result(todo, criterion, check_contract(criterion.spec, self._plan.root, check_id=criterion.id))

    _evaluators: dict[type, Callable[[PlanRun, Todo, Criterion, dict[str, list[Any]], list[Check]], None]] = {
        ArtifactSpec: _evaluate_artifact,
        MetricSpec: _evaluate_metric,
        ManualSpec: _evaluate_manual,
        str: _evaluate_contract,
    }

    def _fill_in(self) -> None:
        """Every criterion without a verdict is blocked or was not run; none is left out of the outcome."""
        for todo in self.result.todos:
            runs = self.result.checks[todo.id]
            blocked = blockers(todo.id, self._failed, self._by_id)
            if blocked:
                self.result.blocked[todo.id] = blocked
            for criterion in self._plan.criteria[todo.id]:
                if criterion.id not in runs:
                    verdict = Verdict.BLOCKED if blocked else Verdict.NOT_RUN
                    reason = f"blocked by {', '.join(blocked)}" if blocked else "not reached"
                    self._skip(todo, criterion, reason, verdict)

    def _title(self, jobs: Sequence[Job]) -> str:
        todos = list(dict.fromkeys(job.todo.id for job in jobs))
        return todos[0] if len(todos) == 1 else f"{todos[0]} to {todos[-1]}"


def recorded_values(runs: Any) -> dict[str, list[Any]]:
    """Every value that a todo's tests recorded, by name, in the order of the checks."""
    values: dict[str, list[Any]] = {}
    for run in runs:
        for name, value in run.properties:
            values.setdefault(name, []).append(value)
    return values


def _worth_repeating(judgement: Judgement) -> bool:
    """Not what a second look cannot change: a file that does not exist."""
    return not (
        judgement.evidence
        and all(
            each.selectors and all(selector.problem == "missing_file" for selector in each.selectors)
            for each in judgement.evidence
        )
    )


def _environment(extra: Sequence[tuple[str, str]]) -> dict[str, str]:
    return {**os.environ, **dict(extra)}
