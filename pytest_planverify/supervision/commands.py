"""Decides on the criteria of a plan one by one: commands that share no session, and what is no command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.verdicts import CheckKind, Isolation, Verdict, Witness
from pytest_planverify.confirmation import confirm_alone
from pytest_planverify.supervision.asked import Asked, expression_of
from pytest_planverify.supervision.check_runs import of_skip, of_tests, quarantined
from pytest_planverify.supervision.evaluating import Evaluator
from pytest_planverify.supervision.judging import judge_alone
from pytest_planverify.supervision.records import SessionRecord
from pytest_planverify.supervision.repeating import Repeating, RepeatingElsewhere, SeedRuns

if TYPE_CHECKING:
    from pathlib import Path

    from planner.edges.plan_tree import FlatPlan
    from planner.model.plan import Todo
    from pytest_planverify.confirmation_time import ConfirmationBudget
    from pytest_planverify.judgement import Judgement
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.demands import Demands
    from pytest_planverify.supervision.run_folder import RunFolder
    from pytest_planverify.supervision.schedule import Fold, Job
    from pytest_planverify.supervision.sessions import Sessions
    from pytest_planverify.supervision.verdicts import Verdicts

LEFT_OUT = "left out of this run"


class Commands:
    """The criteria of one plan; what is found is kept among its verdicts."""

    def __init__(
        self,
        flat: FlatPlan,
        verdicts: Verdicts,
        settings: Settings,
        sessions: Sessions,
        folder: RunFolder,
        progress: Progress,
        budget: ConfirmationBudget,
        demands: Demands | None = None,
    ) -> None:
        self._flat = flat
        self._plan = flat.loaded
        self._verdicts = verdicts
        self._settings = settings
        self._sessions = sessions
        self._folder = folder
        self._progress = progress
        self._budget = budget
        self._demands = demands
        self._evaluators: dict[Path, Evaluator] = {}
        self._seeds = SeedRuns()

    def run(self, job: Job) -> None:
        """Run a command by itself, and decide on it."""
        self._progress.check_started(job.todo.id, job.spec.cmd)
        if job.is_pytest:
            self._run_own_session(job)
        elif self._settings.collect_only or self._settings.narrows:
            self._verdicts.add(job.todo, of_skip(job.criterion, LEFT_OUT, Verdict.NOT_RUN))
        elif job.criterion.kind is CheckKind.TEST:
            self._run_foreign(job)
        else:
            self._verdicts.add(job.todo, self._evaluator(job.todo.id).command(job))

    def evaluate(self, todo: Todo) -> None:
        """Look at the criteria that are no commands, once the todo's commands are through."""
        if self._settings.collect_only:
            return
        runs = self._verdicts.result.checks[todo.id]
        before = list(runs.values())
        for criterion in self._plan.criteria[todo.id]:
            if criterion.id in runs or criterion.kind in (CheckKind.TEST, CheckKind.COMMAND):
                continue
            if self._settings.narrows:
                self._verdicts.add(todo, of_skip(criterion, LEFT_OUT, Verdict.NOT_RUN))
            elif not self._verdicts.is_over:
                self._verdicts.add(todo, self._evaluator(todo.id).criterion(todo, criterion, before))

    def keep(
        self,
        job: Job,
        judgement: Judgement,
        *,
        isolation: Isolation,
        reason: str | None = None,
        witness: Witness = Witness.PLUGIN,
        final: bool = True,
    ) -> Verdict:
        """Keep what a command's tests said. Returns what its verdict counts as.

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
        self._verdicts.add(job.todo, run, final=final)
        return run.check.counts_as

    def asked(self, job: Job) -> Asked:
        """What the judges of a session's records need to know of a command."""
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

    def repeating(
        self, job: Job, fold: Fold | None = None, record: SessionRecord | None = None
    ) -> Repeating:
        """What runs a command again; ``fold`` and ``record`` are of the session that it shared."""
        return Repeating(
            job,
            self.asked(job),
            self._sessions,
            self._progress,
            self._seeds,
            attempts=self._settings.confirmations,
            fold=fold,
            record=record,
            witnessed=self._verdicts.result.sessions.append,
        )

    # -- by itself -------------------------------------------------------------------------------

    def _run_own_session(self, job: Job) -> None:
        refused = self._budget.refused
        record = SessionRecord()
        self._sessions.run_alone(job, record, first=True)
        self._verdicts.result.sessions.append(record)
        first = judge_alone(self.asked(job), record)
        if first.is_red and is_worth_repeating(first) and not self._settings.collect_only:
            first = confirm_alone(first, self.repeating(job), budget=self._budget).judgement
        final = self._budget.refused == refused
        self.keep(job, first, isolation=Isolation.FORKED, reason=job.own_session, final=final)

    def _run_foreign(self, job: Job) -> None:
        witnesses: list[Witness] = []

        def run() -> Judgement:
            judgement, witness = self._evaluator(job.todo.id).foreign(
                job, self.asked(job), self._folder.path
            )
            witnesses.append(witness)
            return judgement

        refused = self._budget.refused
        judgement = run()
        if judgement.is_red and is_worth_repeating(judgement):
            judgement = confirm_alone(judgement, RepeatingElsewhere(run), budget=self._budget).judgement
        self.keep(
            job,
            judgement,
            isolation=Isolation.SPAWNED,
            reason=job.own_session,
            witness=witnesses[-1],
            final=self._budget.refused == refused,
        )

    def _evaluator(self, todo_id: str) -> Evaluator:
        owner = self._flat.owner(todo_id)
        known = self._evaluators.get(owner.root)
        if known is None:
            known = Evaluator(self._plan, owner.root, self._sessions.watch.check)
            self._evaluators[owner.root] = known
        return known


def is_worth_repeating(judgement: Judgement) -> bool:
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
