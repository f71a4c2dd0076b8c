"""Runs one plan: its commands in workers, confirmations, the other criteria, and what a failure blocks."""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.verdicts import CheckKind, Isolation, TestOutcome, Verdict, Witness
from pytest_planverify.checks.result import CheckRun, JudgedCommand
from pytest_planverify.guards.budget import BudgetExceeded
from pytest_planverify.session.check_runs import (
    Evaluator,
    PlanResult,
    check_run,
    is_settled,
    quarantined,
    skipped,
)
from pytest_planverify.session.confirm import confirm, is_worth_confirming
from pytest_planverify.session.interrupts import raise_if_requested
from pytest_planverify.session.judge import (
    expression_of,
    judge,
    judge_missing_files,
)
from pytest_planverify.session.last_verdicts import COMMANDS, FileDigests
from pytest_planverify.session.schedule import Job, Schedule, run_order
from pytest_planverify.session.spectrum import Executed, choose_recorded_tests, with_executed
from pytest_planverify.session.workers import file_part, line_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from planner.model.evidence import BudgetFact
    from planner.model.outcome import Check
    from planner.model.plan import Todo
    from planner.policy.criteria import Criterion
    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.guards import Violation
    from pytest_planverify.guards.plan_guards import Guards
    from pytest_planverify.session.plans import PreparedPlan, RunFacts
    from pytest_planverify.session.records import WorkerRecord
    from pytest_planverify.session.workers import Workers

LEFT_OUT = "left out of this run"
_WAIT_SECONDS = 0.1


class Stopped(Exception):
    """The run was interrupted or has spent its budget; raised in the threads that watch workers."""


class SessionRun:
    """One plan of the run, from its first worker to its last check."""

    def __init__(self, facts: RunFacts, plan: PreparedPlan, guards: Guards) -> None:
        """Only the todos that are asked for are run; the others keep their last verdict."""
        self.plan = plan
        self.guards = guards
        self._settings = facts.settings
        self._progress = facts.progress
        self._confirmations = facts.budget
        self._flat = flat = plan.flat
        self._last = plan.last
        self._digests = FileDigests(plan.loaded.root)
        self._by_id = {todo.id: todo for todo in plan.todos}
        self._asked = {name: todo for name, todo in self._by_id.items() if name in plan.asked}
        self._order = [todo.id for todo in run_order(plan.todos, flat.children)]
        self._evaluators: dict[Path, Evaluator] = {}
        self._stop = threading.Event()
        self._main = threading.get_ident()
        self._workers: Workers
        unasked = {
            (todo_id, each.id)
            for todo_id in self._by_id.keys() - self._asked.keys()
            for each in flat.loaded.criteria[todo_id]
            if each.kind in COMMANDS
        }
        self._decided = self._last.taken | unasked
        """Commands that are not run: they keep their last verdict, or were not asked for."""
        self.schedule = Schedule(flat, plan.todos, self._decided)
        self.result = PlanResult(flat, plan.todos, {todo.id: {} for todo in plan.todos}, plan.asked)
        self.result.notes += self._last.remarks
        self.reds = 0
        """How many criteria of the run are red by now; set by the caller where a plan went before."""
        self.spent: tuple[BudgetFact, tuple[str, ...]] | None = None
        """The limit of the budget that was passed, and the todos that were being verified then."""

    @property
    def kept_note(self) -> str | None:
        """One line on the todos that keep their verdicts of earlier runs."""
        origins = [
            {run.check.taken_from for run in runs.values() if run.check.kind in COMMANDS}
            for runs in self.result.checks.values()
        ]
        kept = [each for each in origins if each and None not in each]
        if not kept:
            return None
        runs = ", ".join(sorted({run for each in kept for run in each if run is not None}))
        who = f"{len(kept)} of {sum(map(bool, origins))} todos keep"
        return f"{who} the verdicts of run {runs}; nothing they rest on has changed"

    def look_around(self) -> None:
        """Raise where the run is to end, in whatever thread that is noticed; called again and again."""
        if threading.get_ident() == self._main:
            raise_if_requested()
            self.plan.budget.check()
            self._progress.tick()
        elif self._stop.is_set():
            raise Stopped

    def run(self, workers: Workers) -> None:
        """Run everything. After ``KeyboardInterrupt`` the result holds what was known by then."""
        why = "not reached"
        self._workers = workers
        running: dict[Future[Judgement], Job] = {}
        try:
            self._add_decided()
            self.plan.budget.start(self.guards.added)
            self._run_all(running)
            self.plan.budget.finish()
        except BudgetExceeded as over:
            self.spent = over.fact, self._being_verified(running.values())
            why += f": the budget's {over.fact.name} was passed"
        finally:
            self._keep_cut_short(running.values())
            if self._is_over:
                self._keep_unreached()
            self._fill_in(why)

    def _run_all(self, running: dict[Future[Judgement], Job]) -> None:
        """Hand out commands to as many threads as workers may run at once, and take in what they find."""
        with ThreadPoolExecutor(self._settings.workers, "planverify-worker") as threads:
            try:
                self._schedule(threads, running)
            except BaseException:
                self._stop.set()
                raise

    def _schedule(self, threads: ThreadPoolExecutor, running: dict[Future[Judgement], Job]) -> None:
        """Do what ``_run_all`` says, once its threads run.

        A function of its own because CPython takes an interrupt at a jump back to a loop that begins a
        ``try`` for one outside of it: the ``finally`` beside the loop was passed over, one time in twenty.
        """
        count = self._settings.workers
        suspects: list[tuple[Job, Judgement]] = []
        """Reds of workers that were not alone, and records that a neighbour may have cut."""
        while True:
            self._finish_todos()
            while len(running) < count and not suspects and not self._is_over:
                job = self.schedule.next()
                if job is None:
                    break
                if self._start(job):
                    running[threads.submit(self._judged, job)] = job
                else:
                    self.schedule.done(job)
                    self._finish_todos()
            if not running and not suspects:
                break
            if not running:
                for job, judgement in suspects:
                    self._confirm_alone(job, judgement)
                    self.schedule.done(job)
                suspects.clear()
                continue
            self.look_around()
            for ended in wait(running, timeout=_WAIT_SECONDS, return_when=FIRST_COMPLETED).done:
                job = running.pop(ended)
                self._progress.worker_finished(job.key)
                found = ended.result()
                if count > 1 and (_is_cut(job) or self._confirms(found)):
                    suspects.append((job, found))
                else:
                    self._settle(job, found)
                    self.schedule.done(job)
        self._finish_todos()

    def _judged(self, job: Job) -> Judgement:
        return judge(self._command(job), self._workers.run(job))

    def _confirms(self, judgement: Judgement) -> bool:
        return self._settings.confirmations > 0 and is_worth_confirming(judgement)

    # -- commands --------------------------------------------------------------------------------

    def _start(self, job: Job) -> bool:
        """Begin a command. Return whether a worker runs it; else it is decided."""
        if self._is_blocked(job.todo):
            return False
        if not job.is_pytest:
            self._run_here(job)
            return False
        missing = self._missing_files(job)
        if missing:
            self._keep(job, judge_missing_files(self._command(job), missing), isolation=Isolation.PARENT)
            return False
        self._progress.worker_started(job.key, job.todo.id, job.spec.cmd, job.spec.timeout_seconds)
        return True

    def _settle(self, job: Job, judgement: Judgement) -> None:
        """Decide on a command whose worker ran alone."""
        if self._confirms(judgement) and not self._settings.collect_only:
            judgement = self._confirmed(job, judgement, company=False)
        self._keep_worker(job, judgement)

    def _confirm_alone(self, job: Job, judgement: Judgement) -> None:
        """Decide on a command whose worker had company, now that nothing else runs."""
        if _is_cut(job):
            self._settle(job, judge(self._command(job), self._again(job)))
        else:
            self._keep_worker(job, self._confirmed(job, judgement, company=True))

    def _confirmed(self, job: Job, judgement: Judgement, *, company: bool) -> Judgement:
        record = job.record
        executed: list[Executed] = []
        wanted = choose_recorded_tests(judgement.tests)

        def again() -> Judgement:
            # What is recorded once is enough.
            found = self._again(job, () if any(executed) else wanted)
            executed.append(found.executed)
            return judge(self._command(job), found)

        try:
            judgement = confirm(
                judgement,
                again,
                most=self._settings.confirmations,
                budget=self._confirmations,
                root=job.plan.root,
                company=company,
                executed=executed,
            )
            return with_executed(judgement, next(filter(None, executed), None))
        finally:
            job.record = record

    def _again(self, job: Job, recorded_tests: Sequence[str] = ()) -> WorkerRecord:
        key = f"{job.key} again"
        self._progress.worker_started(
            key, job.todo.id, job.spec.cmd, job.spec.timeout_seconds, confirming=True
        )
        try:
            return self._workers.run(job, confirming=True, recorded_tests=recorded_tests)
        finally:
            self._progress.worker_finished(key)

    def _keep_worker(self, job: Job, judgement: Judgement) -> None:
        assert job.record is not None
        self.result.records.append(job.record)
        isolation = Isolation.COLD if self._settings.isolate else Isolation.WORKER
        if judgement.verdict is Verdict.NOT_RUN and job.record.narrowed:
            ran = any(test.outcome is not TestOutcome.NOT_RUN for test in judgement.tests)
            if self._keep_last(job.todo, job.criterion, passed=ran):
                return
            why = self._last.why_not((job.todo.id, job.criterion.id))
            judgement = replace(judgement, reason=f"{judgement.reason or LEFT_OUT}; {why}")
        stopped = self._confirmations.refused > 0 and judgement.is_red and judgement.runs == 1
        self._keep(job, judgement, isolation=isolation, final=not stopped)

    def _run_here(self, job: Job) -> None:
        """Run a command that is no worker, while nothing else runs."""
        if self._settings.collect_only:
            self._add(job.todo, skipped(job.criterion, LEFT_OUT))
            return
        if self._settings.narrows:
            self._keep_last_or_skip(job.todo, job.criterion)
            return
        self._progress.worker_started(job.key, job.todo.id, job.spec.cmd, job.spec.timeout_seconds)
        try:
            if job.criterion.kind is CheckKind.TEST:
                self._run_foreign(job)
            else:
                self._add(job.todo, self._evaluator(job.todo.id).command(job))
        finally:
            self._progress.worker_finished(job.key)

    def _run_foreign(self, job: Job) -> None:
        witnesses: list[Witness] = []

        def run() -> Judgement:
            judgement, witness = self._evaluator(job.todo.id).foreign(
                job, self._command(job), self.plan.folder.path
            )
            witnesses.append(witness)
            return judgement

        judgement = run()
        if self._confirms(judgement):
            judgement = confirm(
                judgement,
                run,
                most=self._settings.confirmations,
                budget=self._confirmations,
                root=job.plan.root,
            )
        self._keep(
            job, judgement, isolation=Isolation.SPAWNED, reason=job.not_observed, witness=witnesses[-1]
        )

    def _missing_files(self, job: Job) -> list[tuple[str, list[str]]]:
        command = job.criterion.command
        assert command is not None
        assert command.pytest is not None
        if command.pytest.guessed or "--pyargs" in (*command.pytest.args, *self._settings.worker_args):
            return []
        from pytest_planverify.observe.selection import alike_paths

        root = job.plan.root
        paths = ((text, root / file_part(text)) for text in command.pytest.selections)
        return [(text, alike_paths(path)) for text, path in paths if not os.path.lexists(path)]

    def _command(self, job: Job) -> JudgedCommand:
        command = job.criterion.command
        assert command is not None
        invocation = command.pytest
        return JudgedCommand(
            check_id=job.criterion.id,
            limit_seconds=job.spec.timeout_seconds,
            args=() if invocation is None else invocation.args,
            place=f"{job.plan.path.name}:{line}" if (line := line_of(job.plan.path, job.spec.cmd)) else "",
            selections=() if invocation is None else invocation.selections,
            expression="" if invocation is None else expression_of(invocation),
            contract_path=job.todo.contract_path,
            view=None if self.plan.demands is None else self.plan.demands.view(job.todo, job.criterion.id),
        )

    def _keep(
        self,
        job: Job,
        judgement: Judgement,
        *,
        isolation: Isolation,
        reason: str | None = None,
        witness: Witness = Witness.PLUGIN,
        final: bool = True,
    ) -> None:
        """Keep the verdict of a command; a ``final`` one holds for as long as nothing changes."""
        fixture = None
        if job.spec.fixture is not None:
            from pytest_planverify.checks.artifact import read_fixture  # many runs name none

            fixture = read_fixture(job.spec.fixture, job.plan.root, check_id=job.criterion.id)
        run = check_run(
            job.todo,
            job.criterion,
            judgement,
            isolation=isolation,
            isolation_reason=reason,
            witness=witness,
            fixture=fixture,
        )
        if self.plan.demands is not None:
            run = self.plan.demands.decide(job.todo, run)
        if run.check.verdict is Verdict.FLAKY:
            run = quarantined(run, self._flat.loaded.plan.metadata.flaky_retry.quarantine)
        stayed = True
        if isolation in (Isolation.WORKER, Isolation.COLD) and job.record is not None:
            root, fixture = job.plan.root, job.spec.fixture
            named = (job.record.inifile, None if fixture is None else str(root / fixture))
            run.rests_on, stayed = self._digests.basis(job.record, named)
        self._add(job.todo, run, final=final and stayed)

    def _keep_cut_short(self, running: Iterable[Job]) -> None:
        """Keep the reds of workers that were ended in the middle; what is not complete was not run."""
        for job in running:
            if job.record is None or not job.record.collected or not job.is_pytest:
                continue
            judgement = judge(self._command(job), job.record)
            if any(test.outcome.is_red for test in judgement.tests):
                self._keep(job, judgement, isolation=Isolation.WORKER, final=False)

    # -- todos -----------------------------------------------------------------------------------

    def _finish_todos(self) -> None:
        """Look at the criteria that are no commands of each todo whose commands are through."""
        while todos := self.schedule.finished_todos():
            for todo in todos:
                if not self._is_blocked(todo):
                    self._evaluate(todo, over=self._is_over)
                runs = self.result.checks[todo.id].values()
                self.result.settle([todo])
                if not self._settings.collect_only and todo.id in self._asked:
                    self._tell(todo, [run.check for run in runs])

    def _tell(self, todo: Todo, checks: Sequence[Check]) -> None:
        """Show a todo of which every criterion has its verdict."""
        seen = {check.counts_as for check in checks}
        order = (Verdict.FAILED, Verdict.FLAKY, *(each for each in Verdict if each is not Verdict.PASSED))
        worst = next((each for each in order if each in seen), Verdict.PASSED if seen else Verdict.NOT_RUN)
        state = Verdict.BLOCKED if self.result.blockers(todo) else worst
        self._progress.todo_decided(todo.id, todo.title, state, checks)

    def _evaluate(self, todo: Todo, *, over: bool = False) -> None:
        """Look at the criteria that are no commands, unless commands before them were left out."""
        if self._settings.collect_only:
            return
        runs = self.result.checks[todo.id]
        before = list(runs.values())
        left_out = any(run.check.verdict is Verdict.NOT_RUN for run in before)
        for criterion in self._flat.loaded.criteria[todo.id]:
            if criterion.id in runs or criterion.kind in COMMANDS:
                continue
            if left_out:
                self._add(todo, skipped(criterion, LEFT_OUT))
            elif not over:
                self._add(todo, self._evaluator(todo.id).criterion(todo, criterion, before))

    def _evaluator(self, todo_id: str) -> Evaluator:
        owner = self._flat.owner(todo_id)
        known = self._evaluators.get(owner.root)
        if known is None:
            known = Evaluator(self._flat.loaded, owner.root, self.plan.budget.check)
            self._evaluators[owner.root] = known
        return known

    def explain(self, unexplained: str) -> None:
        """Note why the run is not accepted though no criterion is red."""
        self.result.unexplained = unexplained
        if self.plan.journal is not None:
            self.plan.journal.unexplained(unexplained)

    def hold(self, violations: Iterable[Violation]) -> None:
        """Add what the guards hold against todos; what depends on those is blocked."""
        held = [each for each in violations if each.todo_id in self.result.checks]
        for violation in held:
            check, evidence = violation.check()
            self.result.checks[violation.todo_id][check.id] = CheckRun(check=check, evidence=(evidence,))
            self.result.settle([self._by_id[violation.todo_id]])
        if held:
            self._fill_in()

    # -- verdicts --------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        """Return whether ``-x`` or ``--maxfail`` ends the run."""
        return bool(self._settings.maxfail) and self.reds >= self._settings.maxfail

    def _add(self, todo: Todo, run: CheckRun, *, final: bool = True) -> None:
        verdict = run.check.counts_as
        self.result.checks[todo.id][run.check.id] = run
        # What was red before counts where this run continues that one, which was to stop early as well.
        is_counted = run.check.taken_from is None or (todo.id, run.check.id) in self._last.taken
        self.reds += verdict.is_red and is_counted
        if self.plan.journal is not None and verdict not in (Verdict.BLOCKED, Verdict.NOT_RUN):
            self.plan.journal.check_judged(todo.id, run, final=final and is_settled(run.check))
        self._progress.check_decided(todo.id, run.check.id, verdict)

    def _add_decided(self) -> None:
        """Let the last verdicts count of what is not run."""
        for todo in self.result.todos:
            for criterion in self._flat.loaded.criteria[todo.id]:
                if (todo.id, criterion.id) in self._decided:
                    self._keep_last_or_skip(todo, criterion)
        self.result.settle(self._by_id[name] for name in self._order)

    def _keep_last(self, todo: Todo, criterion: Criterion, *, passed: bool = False) -> bool:
        """Let the last verdict count, if it holds; with ``passed`` only if that is what it was."""
        run = self._last.held.get((todo.id, criterion.id))
        if run is None or (passed and run.check.verdict is not Verdict.PASSED):
            return False
        self._add(todo, run)
        return True

    def _keep_last_or_skip(self, todo: Todo, criterion: Criterion) -> None:
        if not self._keep_last(todo, criterion):
            why = f"{LEFT_OUT}; {self._last.why_not((todo.id, criterion.id))}"
            self._add(todo, skipped(criterion, why))

    def _keep_unreached(self) -> None:
        """Let the last verdicts count of commands that a run which stopped early did not reach."""
        for todo in self.result.todos:
            runs = self.result.checks[todo.id]
            if not self.result.blockers(todo):
                commands = [each for each in self._flat.loaded.criteria[todo.id] if each.kind in COMMANDS]
                missing = [each for each in commands if each.id not in runs]
                if [self._keep_last(todo, each) for each in missing].count(False) == 0:
                    self._evaluate(todo)

    def _is_blocked(self, todo: Todo) -> bool:
        return not self._settings.keep_going and bool(self.result.blockers(todo))

    def _fill_in(self, why: str = "not reached") -> None:
        """Give every criterion a verdict, blocked or not run; none is left out of the outcome."""
        keep_going = self._settings.keep_going
        for todo, run in self.result.fill_in(lambda _todo, _check: why, keep_going=keep_going):
            self._add(todo, run)

    def _being_verified(self, running: Iterable[Job]) -> tuple[str, ...]:
        """Return the todos that were being verified, or else the first that has no verdict yet."""
        current = tuple(dict.fromkeys(job.todo.id for job in running))
        waiting = [
            todo_id
            for todo_id in self._order
            if any(
                each.id not in self.result.checks[todo_id] for each in self._flat.loaded.criteria[todo_id]
            )
        ]
        return current or tuple(waiting[:1] or self._order[-1:])


def _is_cut(job: Job) -> bool:
    """Return whether records of the job's worker are missing."""
    return job.record is not None and job.record.journal_lost
