"""Runs one plan: its stages in order, each criterion's verdict, and which todos that leaves blocked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import CheckKind, Isolation, Verdict, Witness
from planner.rules.dependencies import blockers
from pytest_planverify.confirmation import confirm_alone, confirm_shared
from pytest_planverify.guards.budget import BudgetExceeded
from pytest_planverify.supervision.asked import Asked, expression_of
from pytest_planverify.supervision.check_runs import (
    CheckRun,
    PlanResult,
    masked,
    of_skip,
    of_tests,
    quarantined,
    unreached,
)
from pytest_planverify.supervision.judging import judge_alone, judge_shared
from pytest_planverify.supervision.records import SessionRecord
from pytest_planverify.supervision.resuming import failed_todos, is_settled, without
from pytest_planverify.supervision.schedule import Fold, Job, Stage, run_order, schedule
from pytest_planverify.supervision.stopping import at_work, being_verified

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from planner.edges.plan_tree import FlatPlan
    from planner.model.evidence import BudgetFact
    from planner.model.plan import Todo
    from pytest_planverify.confirmation import ConfirmationBudget, Repeats
    from pytest_planverify.guards import Violation
    from pytest_planverify.judgement import Judgement
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.demands import Demands
    from pytest_planverify.supervision.evaluating import Evaluator
    from pytest_planverify.supervision.repeating import SeedRuns
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.run_records import RunJournal
    from pytest_planverify.supervision.sessions import Sessions

LEFT_OUT = "left out of this run"


@dataclass(slots=True)
class _Unsettled:
    """A command, and what its shared session says of it."""

    job: Job
    judgement: Judgement
    fold: Fold
    record: SessionRecord


TESTS_FAILED = 1
"""pytest's exit status where tests failed or files could not be collected; a red explains no other."""


class PlanRun:
    """One plan of the run, from its first session to its last check."""

    def __init__(
        self,
        flat: FlatPlan,
        todos: Sequence[Todo],
        settings: Settings,
        sessions: Sessions,
        folder: RunFolder,
        progress: Progress,
        budget: ConfirmationBudget,
        journal: RunJournal | None = None,
        taken: Mapping[tuple[str, str], CheckRun] | None = None,
        demands: Demands | None = None,
    ) -> None:
        """``taken`` are verdicts of an earlier run, by todo and check; what they judge is not run again."""
        self._plan = flat.loaded
        self._flat = flat
        self._settings = settings
        self._sessions = sessions
        self._folder = folder
        self._progress = progress
        self._budget = budget
        self._by_id = {todo.id: todo for todo in todos}
        self._order = [todo.id for todo in run_order(todos, flat.children)]
        self._parent_of = {each: parent for parent, below in flat.children.items() for each in below}
        self._evaluators: dict[Path, Evaluator] = {}
        self._failed: set[str] = set()
        self._seeds: SeedRuns | None = None
        self._journal = journal
        self._taken = taken or {}
        self._demands = demands
        self._current: tuple[str, ...] = ()
        self.spent: tuple[BudgetFact, tuple[str, ...]] | None = None
        """The limit of the budget that was passed, and the todos that were being verified then."""
        self.reds = 0
        """How many criteria of the run are red by now; set by the caller where a plan went before."""
        self.stages = without(schedule(flat, self._by_id, isolate=settings.isolate), self._taken)
        self.result = PlanResult(flat, list(todos), {todo.id: {} for todo in todos})
        demanded = any(word.startswith("--cov-fail-under") for word in settings.shared_args)
        if demanded and not any(stage.folds for stage in self.stages):
            self.result.unexplained = "--cov-fail-under is measured in shared sessions, and none is run"

    def run(self, added: Iterable[str] = ()) -> None:
        """Run all stages. After ``KeyboardInterrupt`` the result holds what was known by then.

        ``added`` are the files that the work has added; they count as the run's own do.
        """
        watch = self._sessions.watch
        try:
            self._take_over()
            watch.start(added)
            for stage in self.stages:
                self._run_stage(stage)
            watch.finish()
        except BudgetExceeded as over:
            criteria = self._plan.criteria
            self.spent = over.fact, being_verified(self._order, self._current, self.result.checks, criteria)
        finally:
            self._fill_in()

    def hold(self, violations: Iterable[Violation]) -> None:
        """Add what the guards hold against todos; what depends on those is blocked."""
        held = [each for each in violations if each.todo_id in self.result.checks]
        for violation in held:
            check, evidence = violation.check()
            self.result.checks[violation.todo_id][check.id] = CheckRun(check=check, evidence=(evidence,))
            self._fail(violation.todo_id)
        if held:
            self._fill_in()

    def _take_over(self) -> None:
        for (todo_id, _), run in self._taken.items():
            self._add(self._by_id[todo_id], run, final=True)
        for todo_id in failed_todos(self.result.checks, self._order, self._by_id, self._parent_of):
            self._fail(todo_id)

    def _evaluator(self, todo_id: str) -> Evaluator:
        """Made when the first session is through, so that its imports do not delay the session."""
        from pytest_planverify.supervision.evaluating import Evaluator

        owner = self._flat.owner(todo_id)
        known = self._evaluators.get(owner.root)
        if known is None:
            known = Evaluator(self._plan, owner.root, self._sessions.watch.check)
            self._evaluators[owner.root] = known
        return known

    # -- one stage -------------------------------------------------------------------------------

    def _run_stage(self, stage: Stage) -> None:
        records: list[tuple[Fold, SessionRecord]] = []
        judged: dict[str, list[_Unsettled]] = {}
        try:
            for fold in map(self._without_blocked, stage.folds):
                if not fold.jobs or self._is_over():
                    continue
                record = SessionRecord()
                records.append((fold, record))
                self._current = tuple(dict.fromkeys(job.todo.id for job in fold.jobs))
                self._progress.session_started(_title(fold.jobs), 0)
                self._sessions.run_fold(fold, record, maxfail=self._left())
            judged = self._judge_folds(records)
            self._settle_stage(stage, judged)
        except (KeyboardInterrupt, BudgetExceeded):
            self._current = at_work(records) or self._current
            if judged:
                self._keep_unsettled(judged)
            else:
                self._keep_interrupted(records)
            raise

    def _settle_stage(self, stage: Stage, judged: Mapping[str, Sequence[_Unsettled]]) -> None:
        self._settle_reds(judged)
        finishing = {todo.id for todo in stage.todos}
        for todo_id in self._order:
            for unsettled in judged.get(todo_id, ()):
                if not unsettled.judgement.is_red:
                    self._settle(unsettled)
            for job in stage.singles:
                if job.todo.id == todo_id and not self._is_blocked(job.todo) and not self._is_over():
                    self._run_single(job)
            if todo_id in finishing:
                self._finish_todo(self._by_id[todo_id])

    def _without_blocked(self, fold: Fold) -> Fold:
        return Fold(fold.key, [job for job in fold.jobs if not self._is_blocked(job.todo)])

    def _is_blocked(self, todo: Todo) -> bool:
        return not self._settings.keep_going and bool(blockers(todo.id, self._failed, self._by_id))

    def _fail(self, todo_id: str) -> None:
        """With a todo fails every parent above it, so that what depends on the parent is blocked."""
        name: str | None = todo_id
        while name in self._by_id:
            self._failed.add(name)
            name = self._parent_of.get(name)

    def _left(self) -> int:
        return max(self._settings.maxfail - self.reds, 1) if self._settings.maxfail else 0

    def _is_over(self) -> bool:
        return bool(self._settings.maxfail) and self.reds >= self._settings.maxfail

    # -- shared sessions -------------------------------------------------------------------------

    def _judge_folds(self, records: Sequence[tuple[Fold, SessionRecord]]) -> dict[str, list[_Unsettled]]:
        """What the stage's shared sessions say of each of their commands, by todo."""
        judged: dict[str, list[_Unsettled]] = {}
        for fold, record in records:
            self.result.sessions.append(record)
            judgements = [
                judge_shared(self._asked(job), record, narrowed_run=self._settings.narrows)
                for job in fold.jobs
            ]
            unexplained = None
            if record.journal_lost:
                _take_back_reds(judgements)
            if self._is_unexplained(record, judgements):
                unexplained = f"the shared session returned {record.exit_status}, which no test explains"
                _put_in_doubt(judgements, unexplained)
            if self._settings.shared_args:  # seen by shared sessions only; the last has all coverage data
                because = "a coverage that is too low, perhaps"
                self.result.unexplained = f"{unexplained}: {because}" if unexplained else None
                if self._journal is not None and unexplained:
                    self._journal.unexplained(f"{unexplained}: {because}")
            for job, judgement in zip(fold.jobs, judgements, strict=True):
                judged.setdefault(job.todo.id, []).append(_Unsettled(job, judgement, fold, record))
        return judged

    def _settle_reds(self, judged: Mapping[str, Sequence[_Unsettled]]) -> None:
        """Confirm what is red, before what is green is believed.

        A failure that does not show alone was some other test's, so the greens of its session are put in
        doubt; a failure that does, blocks what depends on its todo.
        """
        everything = [each for entries in judged.values() for each in entries]
        for todo_id in self._order:
            for unsettled in judged.get(todo_id, ()):
                if not unsettled.judgement.is_red:
                    continue
                verdict = self._settle(unsettled)
                if verdict is not None and verdict.is_red:
                    self._fail(todo_id)
                elif verdict is not None:
                    beside = [each.judgement for each in everything if each.record is unsettled.record]
                    _put_in_doubt(
                        beside, f"a failure of {unsettled.job.spec.cmd!r} beside it did not show alone"
                    )

    def _is_unexplained(self, record: SessionRecord, judgements: Sequence[Judgement]) -> bool:
        if record.exit_status in (0, 5, None) or self._settings.collect_only:
            return False
        if record.exit_status != TESTS_FAILED:
            return True
        explained = any(judgement.is_red or judgement.forgiven for judgement in judgements)
        return not explained and not record.collection_failures

    def _settle(self, unsettled: _Unsettled) -> Verdict | None:
        """Decide on a command of a shared session; ``None`` if it is left blocked."""
        job, first, record = unsettled.job, unsettled.judgement, unsettled.record
        if first.verdict is Verdict.INCONCLUSIVE and self._settings.maxfail and record.stopped:
            first.verdict, first.reason = Verdict.NOT_RUN, f"the run stopped: {record.stopped}"
        in_question = first.is_red or first.verdict is Verdict.INCONCLUSIVE or first.doubt is not None
        settled = first.verdict is Verdict.NOT_RUN or not in_question or not _worth_repeating(first)
        if settled or self._settings.collect_only:
            return self._keep(job, first, isolation=Isolation.SESSION)
        if self._is_blocked(job.todo):
            return None
        reason = first.doubt or "the shared session's red was confirmed alone"
        refused = self._budget.refused
        confirmed = confirm_shared(
            first,
            self._repeating(job, unsettled.fold, record),
            attempts=self._settings.confirmations,
            budget=self._budget,
        )
        judgement = confirmed.judgement
        if first.verdict is Verdict.PASSED and judgement.verdict is Verdict.FAILED:
            judgement.reason = f"green beside the other tests of the run, red alone; {reason}"
        isolation = Isolation.FORKED if confirmed.alone else Isolation.SESSION
        final = self._budget.refused == refused
        return self._keep(job, judgement, isolation=isolation, reason=reason, final=final)

    def _repeating(
        self, job: Job, fold: Fold | None = None, record: SessionRecord | None = None
    ) -> Repeats:
        from pytest_planverify.supervision.repeating import Repeating, SeedRuns

        if self._seeds is None:
            self._seeds = SeedRuns()
        return Repeating(
            job,
            self._asked(job),
            self._sessions,
            self._progress,
            self._seeds,
            attempts=self._settings.confirmations,
            fold=fold,
            record=record,
        )

    def _asked(self, job: Job) -> Asked:
        command = job.criterion.command
        assert command is not None
        invocation = command.pytest
        return Asked(
            key=job.key,
            check_id=job.criterion.id,
            limit_seconds=job.spec.timeout_seconds,
            selections=() if invocation is None else invocation.selections,
            expression="" if invocation is None else expression_of(invocation),
            contract_path=job.todo.contract_path,
            view=None if self._demands is None else self._demands.view(job),
        )

    # -- commands that share no session ----------------------------------------------------------

    def _run_single(self, job: Job) -> None:
        self._progress.check_started(job.todo.id, job.spec.cmd)
        self._current = (job.todo.id,)
        if job.is_pytest:
            self._run_own_session(job)
        elif self._settings.collect_only or self._settings.narrows:
            self._add(job.todo, of_skip(job.criterion, LEFT_OUT, Verdict.NOT_RUN))
        elif job.criterion.kind is CheckKind.TEST:
            self._run_foreign(job)
        else:
            self._add(job.todo, self._evaluator(job.todo.id).command(job))

    def _run_own_session(self, job: Job) -> None:
        refused = self._budget.refused
        record = SessionRecord()
        self._sessions.run_alone(job, record, first=True)
        self.result.sessions.append(record)
        first = judge_alone(self._asked(job), record)
        if first.is_red and _worth_repeating(first) and not self._settings.collect_only:
            first = confirm_alone(first, self._repeating(job), budget=self._budget).judgement
        final = self._budget.refused == refused
        self._keep(job, first, isolation=Isolation.FORKED, reason=job.own_session, final=final)

    def _run_foreign(self, job: Job) -> None:
        from pytest_planverify.supervision.repeating import RepeatingElsewhere

        witnesses: list[Witness] = []

        def run() -> Judgement:
            judgement, witness = self._evaluator(job.todo.id).foreign(
                job, self._asked(job), self._folder.path
            )
            witnesses.append(witness)
            return judgement

        refused = self._budget.refused
        judgement = run()
        if judgement.is_red and _worth_repeating(judgement):
            judgement = confirm_alone(judgement, RepeatingElsewhere(run), budget=self._budget).judgement
        self._keep(
            job,
            judgement,
            isolation=Isolation.SPAWNED,
            reason=job.own_session,
            witness=witnesses[-1],
            final=self._budget.refused == refused,
        )

    # -- verdicts --------------------------------------------------------------------------------

    def _keep(
        self,
        job: Job,
        judgement: Judgement,
        *,
        isolation: Isolation,
        reason: str | None = None,
        witness: Witness = Witness.PLUGIN,
        final: bool = True,
    ) -> Verdict:
        """Returns what the verdict counts as.

        ``final`` is a verdict that need not be looked at again, as long as nothing changes.
        """
        reading = None
        if job.spec.fixture is not None:
            reading = self._evaluator(job.todo.id).fixture(job.spec.fixture, job.criterion.id)
        run = of_tests(
            job,
            judgement,
            isolation=isolation,
            isolation_reason=reason,
            witness=witness,
            fixture=None if reading is None else reading.use,
            fixture_problem=None if reading is None else reading.evidence,
        )
        if self._demands is not None:
            run = self._demands.decide(job.todo, run)
        if run.check.verdict is Verdict.FLAKY:
            run = quarantined(run, self._plan.plan.metadata.flaky_retry.quarantine)
        self._add(job.todo, run, final=final)
        return run.check.counts_as

    def _add(self, todo: Todo, run: CheckRun, *, final: bool = True) -> None:
        verdict = run.check.counts_as
        self.result.checks[todo.id][run.check.id] = run
        self.reds += verdict.is_red
        if self._journal is not None and verdict not in (Verdict.BLOCKED, Verdict.NOT_RUN):
            self._journal.check_judged(todo.id, run, final=final and is_settled(run.check))
        self._progress.check_finished(todo.id, verdict)

    def _finish_todo(self, todo: Todo) -> None:
        blocked = blockers(todo.id, self._failed, self._by_id)
        if blocked:
            self.result.blocked[todo.id] = blocked
        if not blocked or self._settings.keep_going:
            self._evaluate(todo)
        runs = self.result.checks[todo.id]
        if not blocked and any(run.check.counts_as.is_red for run in runs.values()):
            self._fail(todo.id)

    def _evaluate(self, todo: Todo) -> None:
        """Look at the criteria that are no commands, once the todo's commands are through."""
        if self._settings.collect_only:
            return
        runs = self.result.checks[todo.id]
        before = list(runs.values())
        for criterion in self._plan.criteria[todo.id]:
            if criterion.id in runs or criterion.kind in (CheckKind.TEST, CheckKind.COMMAND):
                continue
            if self._settings.narrows:
                self._add(todo, of_skip(criterion, LEFT_OUT, Verdict.NOT_RUN))
            elif not self._is_over():
                self._add(todo, self._evaluator(todo.id).criterion(todo, criterion, before))

    def _keep_interrupted(self, records: Sequence[tuple[Fold, SessionRecord]]) -> None:
        """What an interrupted stage had found: a red is kept, what is not complete is not run."""
        for fold, record in records:
            for job in fold.jobs:
                judgement = judge_shared(self._asked(job), record) if record.collected else None
                if judgement is None or judgement.doubt is not None:
                    continue
                if judgement.is_red or judgement.verdict is Verdict.PASSED:
                    self._keep(job, judgement, isolation=Isolation.SESSION, final=False)

    def _keep_unsettled(self, judged: Mapping[str, Sequence[_Unsettled]]) -> None:
        """What sessions that came to their end had found, and nothing was left to find out or no time."""
        for unsettled in (each for entries in judged.values() for each in entries):
            job, judgement = unsettled.job, unsettled.judgement
            known = job.criterion.id in self.result.checks[job.todo.id]
            if known or judgement.doubt is not None:
                continue
            if judgement.is_red or judgement.verdict is Verdict.PASSED:
                self._keep(job, judgement, isolation=Isolation.SESSION, final=False)

    def _fill_in(self) -> None:
        """Every criterion without a verdict is blocked or was not run; none is left out of the outcome."""
        passed = "" if self.spent is None else f": the budget's {self.spent[0].name} was passed"
        for todo in self.result.todos:
            runs = self.result.checks[todo.id]
            blocked = blockers(todo.id, self._failed, self._by_id)
            if blocked:
                self.result.blocked[todo.id] = blocked
            for criterion in self._plan.criteria[todo.id]:
                if criterion.id not in runs:
                    self._add(todo, unreached(criterion, blocked, f"not reached{passed}"))
                elif blocked and not self._settings.keep_going:
                    runs[criterion.id] = masked(runs[criterion.id], blocked)


def _take_back_reds(judgements: Sequence[Judgement]) -> None:
    """Where records were lost nothing is known for sure: each red is for a run alone to find out."""
    for judgement in judgements:
        if judgement.is_red:
            judgement.verdict = Verdict.INCONCLUSIVE
            judgement.reason = "the records of the shared session were removed while it ran"


def _put_in_doubt(judgements: Sequence[Judgement], reason: str) -> None:
    for judgement in judgements:
        judgement.doubt = judgement.doubt or reason


def _title(jobs: Sequence[Job]) -> str:
    todos = list(dict.fromkeys(job.todo.id for job in jobs))
    return todos[0] if len(todos) == 1 else f"{todos[0]} to {todos[-1]}"


def _worth_repeating(judgement: Judgement) -> bool:
    """Not what a second look cannot change: a file that does not exist, or what was reached for already."""
    if any(each.kind is EvidenceKind.SANDBOX for each in judgement.evidence):
        return False
    return not (
        judgement.evidence
        and all(
            each.selectors and all(selector.problem == "missing_file" for selector in each.selectors)
            for each in judgement.evidence
        )
    )
