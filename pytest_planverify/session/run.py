"""The run of one plan: its commands in workers, their confirmation, and the criteria that are no commands.

:class:`SessionRun` takes commands from a :class:`~.schedule.Schedule`, runs pytest commands in workers on a
pool of threads and all others in the main thread, and turns each worker's record into a verdict
(:mod:`.judge`, :mod:`.confirm`). When the commands of a todo have ended, its other criteria are evaluated
(:mod:`.check_runs`). Every verdict is appended to the run's journal as soon as it is known, so that a run
that was killed can be resumed. Only the main thread judges final verdicts and changes the
result; the threads of the pool run and watch workers.
"""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pytest

from planner.model.journal import CheckRun
from planner.model.plan import Budget
from planner.model.verdicts import CheckKind, Isolation, TestOutcome, Verdict
from planner.planfile.project_facts import misplaced_root
from planner.planfile.project_files import OWN_REPORTS
from planner.policy.outcomes import sub_plan_verdict
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.changes import Changes
from pytest_planverify.checks.result import JudgedCommand, file_of
from pytest_planverify.guards.budget import BudgetExceeded, BudgetWatch
from pytest_planverify.guards.plan_guards import Guards, since
from pytest_planverify.session.check_runs import (
    PlanResult,
    check_run,
    evaluate,
    is_settled,
    quarantined,
    skipped,
)
from pytest_planverify.session.confirm import (
    Executed,
    choose_recorded_tests,
    confirm,
    is_worth_confirming,
    with_executed,
)
from pytest_planverify.session.interrupts import raise_if_requested
from pytest_planverify.session.judge import (
    LEFT_OUT,
    expression_of,
    judge,
    judge_missing_files,
    options_of,
)
from pytest_planverify.session.last_verdicts import (
    COMMANDS,
    FileDigests,
    LastVerdicts,
    Present,
    start_reading,
    verdicts_to_keep,
)
from pytest_planverify.session.plans import reference_of, todos_in_scope
from pytest_planverify.session.run_folder import RunJournal
from pytest_planverify.session.schedule import Job, Schedule
from pytest_planverify.session.workers import line_of, planned_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from planner.model.evidence import BudgetFact
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import FlatPlan
    from planner.policy.criteria import Criterion
    from pytest_planverify.baseline.comparison import Demands
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.checks.manual import AnswersOnFile
    from pytest_planverify.checks.result import Judgement
    from pytest_planverify.guards import Violation
    from pytest_planverify.options import Settings
    from pytest_planverify.session.plans import ChosenPlan, RunFacts
    from pytest_planverify.session.records import WorkerRecord
    from pytest_planverify.session.run_folder import RunFolder
    from pytest_planverify.session.workers import Workers

_WAIT_SECONDS = 0.1
"""Interval in which the main thread looks for interrupts, the budget and the progress display."""


class Stopped(Exception):
    """Raised in the threads that watch workers when the main thread has stopped the run."""


class SessionRun:
    """The run of one plan, from its preparation to the verdict of its last criterion."""

    def __init__(self, facts: RunFacts, chosen: ChosenPlan, folder: RunFolder) -> None:
        """Prepare the run: baseline, folder, last verdicts, journal, budget, schedule and guards.

        Raises :class:`pytest.UsageError` and :class:`planner.errors.PlannerError`.
        """
        flat, settings, root = chosen.flat, facts.settings, chosen.plan.root
        self.flat, self.shown, self.folder = flat, chosen.shown, folder
        self._settings, self._progress = settings, facts.progress
        self.baseline = _baseline(settings, chosen)
        """The baseline that the verdicts are compared with; ``None`` if there is none."""
        try:
            folder.create()
        except OSError as error:
            raise _unwritable(folder, error) from None
        asked = todos_in_scope(chosen, settings.scope)
        self.asked = frozenset(todo.id for todo in asked)
        """Ids of the todos to verify; only these decide the exit status."""
        # If the user names todos, the others are shown with the verdicts of earlier runs.
        keeps_others = chosen.whole and chosen.todo_ids is not None
        keeps_others = keeps_others and not (settings.collect_only or settings.recording)
        self.todos = list(flat.loaded.plan.items) if keeps_others else asked
        """The todos that are verified or shown with their last verdicts, in the plan's order."""
        own = (*(part.path for part in flat.parts), root / OWN_REPORTS)
        self.changes = _changes(flat, own, self.baseline)
        """What the work has changed, by the root of the plan and of each sub-plan."""
        self.reference = reference_of(flat, chosen.shown)
        self._last_verdicts, reading = LastVerdicts(), None
        if not settings.collect_only:
            reading = start_reading([part.root for part in flat.parts], own)
            if settings.resume or settings.may_stop_or_narrow or len(asked) < len(self.todos):
                now = Present(
                    flat=flat,
                    settings=settings,
                    reference=self.reference,
                    tree=reading.result(),
                    apart=own,
                    baseline=self.baseline,
                )
                self._last_verdicts = verdicts_to_keep(now, [todo.id for todo in asked])
        self.journal = RunJournal(folder.journal, self.id, reading)
        try:
            self.journal.open(facts.run_id, self.reference, settings, self.baseline)
        except OSError as error:
            raise _unwritable(folder, error) from None
        self.budget = _budget(facts, flat)
        self._demands = _demands(settings, flat, asked, self.baseline)
        self._digests = FileDigests(root)
        self._verdicts: dict[str, Verdict] = {}  # by todo id
        self._by_id = {todo.id: todo for todo in self.todos}
        self._stop = threading.Event()
        self._main_thread = threading.get_ident()
        self._workers: Workers
        unasked = {
            (todo_id, each.id)
            for todo_id in self._by_id.keys() - self.asked
            for each in flat.loaded.criteria[todo_id]
            if each.kind in COMMANDS
        }
        self._decided = self._last_verdicts.taken | unasked
        """Todo and criterion ids of commands not to run: they keep a verdict, or nobody requested them."""
        self._schedule = Schedule(flat, self.todos, self._decided)
        self.result = PlanResult(flat, self.todos, {todo.id: {} for todo in self.todos}, self.asked)
        self.result.notes += self._last_verdicts.remarks
        own_plans = {each.path: each for each in map(flat.owner, self._by_id)}
        misplaced = filter(None, map(misplaced_root, own_plans.values()))
        self.result.notes += map("; ".join, misplaced)
        self.reds = 0
        """Number of failing criteria so far, for ``--maxfail``; the caller adds those of earlier plans."""
        self.spent: tuple[BudgetFact, tuple[str, ...]] | None = None
        """The budget limit that was exceeded, and the ids of the todos that were being verified then."""
        kept = None if settings.baseline is None else self.baseline  # only that of a requested revision
        commit = None if kept is None else kept.document.revision
        worked = (*(chosen.todo_ids or ()), *settings.worked)
        self.guards = Guards(flat, asked, self.changes, worked, self.baseline, commit)
        # No audit hook runs in them, so that access which the plan denies would go unnoticed.
        unwatched = (job for job in self._schedule.jobs if not job.is_pytest)
        self.guards.note_unobserved([f"{job.todo.id} {job.criterion.id}" for job in unwatched])

    @property
    def loaded(self) -> LoadedPlan:
        """The plan with the todos of its sub-plans."""
        return self.flat.loaded

    @property
    def id(self) -> str:
        """The plan's id."""
        return self.flat.loaded.plan.todo_list_id

    def raise_if_stopped(self) -> None:
        """Raise if the run has to stop; called many times a second by the main thread and by watchers.

        The main thread raises ``KeyboardInterrupt`` or :class:`~..guards.budget.BudgetExceeded` and updates
        the progress display; the other threads raise :class:`Stopped` once the main thread has stopped.
        """
        if threading.get_ident() == self._main_thread:
            raise_if_requested()
            self.budget.check()
            self._progress.tick()
        elif self._stop.is_set():
            raise Stopped

    def run(self, workers: Workers) -> None:
        """Run the plan. After ``KeyboardInterrupt`` the result holds the verdicts known by then.

        In every case each criterion has a verdict afterwards, ``blocked`` or ``not_run`` at least.
        """
        why = "not reached"
        self._workers = workers
        running: dict[Future[Judgement], Job] = {}
        try:
            for todo in self.result.todos:  # commands that are not run get their last verdicts first
                for criterion in self.flat.loaded.criteria[todo.id]:
                    if (todo.id, criterion.id) in self._decided:
                        self._keep_last_or_skip(todo, criterion)
            self.result.note_failed(self._schedule.order)
            self.budget.start(self.guards.added)
            self._run_all(running)
            self.budget.finish()
        except BudgetExceeded as over:
            self.spent = over.fact, self._current_todos(running.values())
            why += f": the budget {over.fact.name} was exceeded"
        finally:
            # In this order: a failure that was cut short may be the last one that --maxfail allows, and
            # only criteria that have neither a verdict nor a last one are marked as not run.
            self._keep_cut_short(running.values())
            if self._is_over:
                self._keep_unreached()
            self._fill_in(why)

    def _run_all(self, running: dict[Future[Judgement], Job]) -> None:
        """Run the schedule's commands, at most ``settings.workers`` workers at a time."""
        with ThreadPoolExecutor(self._settings.workers, "planverify-worker") as threads:
            try:
                # A function of its own: CPython may attribute an interrupt at the jump back to the head of
                # a loop to the code outside of a try that begins there. With the loop in this place, the
                # lines below were skipped for one interrupt in twenty.
                self._dispatch(threads, running)
            except BaseException:
                self._stop.set()  # the pool's exit waits for its threads, which watch their workers
                raise

    def _dispatch(self, threads: ThreadPoolExecutor, running: dict[Future[Judgement], Job]) -> None:
        """Run the schedule's commands on ``threads``; ``running`` holds those whose workers run now."""
        count = self._settings.workers
        suspects: list[tuple[Job, Judgement]] = []
        """Failures of workers that did not run alone, and records that another worker may have cut.

        Both are decided when nothing else runs; no new commands are started until then.
        """
        while True:
            self._finish_todos()
            while len(running) < count and not suspects and not self._is_over:
                job = self._schedule.next()
                if job is None:
                    break
                if self._start(job):
                    running[threads.submit(self._run_and_judge, job)] = job
                else:
                    self._schedule.done(job)
                    self._finish_todos()  # its end may free the todos that the next command belongs to
            if not running and not suspects:
                break
            if not running:
                for job, judgement in suspects:
                    if company := not _is_cut(job):
                        found = judgement
                    else:
                        # What is missing cannot be judged; if it is cut again, now alone, its tests did it.
                        found = judge(self._command(job), self._run_again(job))
                    self._keep_worker(job, found, company=company)
                suspects.clear()
                continue
            self.raise_if_stopped()
            for future in wait(running, timeout=_WAIT_SECONDS, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                self._progress.worker_finished(job.key)
                found = future.result()
                if count > 1 and (_is_cut(job) or self._needs_confirmation(found)):
                    suspects.append((job, found))
                else:
                    self._keep_worker(job, found)
        self._finish_todos()

    def _run_and_judge(self, job: Job) -> Judgement:
        """Run a command's worker and judge its record; called in a thread of the pool."""
        return judge(self._command(job), self._workers.run(job))

    def _needs_confirmation(self, judgement: Judgement) -> bool:
        """Return whether a judgement is to be confirmed by running its command again."""
        settings = self._settings
        return settings.confirmations > 0 and not settings.collect_only and is_worth_confirming(judgement)

    # -- commands --------------------------------------------------------------------------------

    def _start(self, job: Job) -> bool:
        """Prepare to run a command. Return whether it needs a worker.

        If not, it is blocked or has its verdict already: other commands run here, to their end.
        """
        if self._is_blocked(job.todo):
            return False
        if not job.is_pytest:
            self._run_here(job)
            return False
        if missing := self._missing_files(job):
            self._keep(job, judge_missing_files(self._command(job), missing), isolation=Isolation.PARENT)
            return False
        self._progress.worker_started(job.key, job.todo.id, job.spec.cmd, job.spec.timeout_seconds)
        return True

    def _confirmed(self, job: Job, judgement: Judgement, *, company: bool) -> Judgement:
        """Return the judgement after its confirmation, with the functions that its tests executed.

        ``job.record`` stays that of the first run.
        """
        record = job.record
        executed: list[Executed] = []
        wanted = choose_recorded_tests(judgement.tests)

        def again() -> Judgement:
            # One recording is enough; recording slows tests down.
            found = self._run_again(job, () if any(executed) else wanted)
            executed.append(found.executed)
            return judge(self._command(job), found)

        try:
            judgement = confirm(
                judgement,
                again,
                most=self._settings.confirmations,
                root=job.plan.root,
                company=company,
                executed=executed,
            )
            return with_executed(judgement, next(filter(None, executed), None))
        finally:
            # The guards and the last verdicts inspect what the first run did, not a confirmation of it.
            job.record = record

    def _run_again(self, job: Job, recorded_tests: Sequence[str] = ()) -> WorkerRecord:
        """Run a command once more, cold, and show that as a confirmation. Return the new record."""
        # Tests report to the command's own key, so that they are not counted a second time.
        key = f"{job.key} again"
        self._progress.worker_started(
            key, job.todo.id, job.spec.cmd, job.spec.timeout_seconds, confirming=True
        )
        try:
            return self._workers.run(job, confirming=True, recorded_tests=recorded_tests)
        finally:
            self._progress.worker_finished(key)

    def _keep_worker(self, job: Job, judgement: Judgement, *, company: bool = False) -> None:
        """Confirm the failure of a worker's command, keep the verdict, and mark the command as ended.

        ``company`` tells whether other workers ran during the first run. If the user's own options left out
        all or some of its tests, the last verdict counts where it still holds; if some tests ran, it counts
        only if it was a pass.
        """
        assert job.record is not None
        isolation = job.record.isolation
        if self._needs_confirmation(judgement):
            judgement = self._confirmed(job, judgement, company=company)
        self._schedule.done(job)
        self.result.records.append(job.record)
        if judgement.verdict is Verdict.NOT_RUN and job.record.narrowed:
            # A last failure may be one of a test that has just passed.
            ran = any(test.outcome is not TestOutcome.NOT_RUN for test in judgement.tests)
            if self._keep_last(job.todo, job.criterion, passed=ran):
                return
            why = self._last_verdicts.why_not((job.todo.id, job.criterion.id))
            judgement = replace(judgement, reason=f"{judgement.reason or LEFT_OUT}; {why}")
        self._keep(job, judgement, isolation=isolation)

    def _run_here(self, job: Job) -> None:
        """Run a command that needs no worker in this thread; the schedule runs nothing beside it."""
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
                from pytest_planverify.checks.command import run_command

                found = run_command(
                    job.command,
                    job.plan.root,
                    job.spec.timeout_seconds,
                    check_id=job.criterion.id,
                    watch=self.budget.check,
                )
                self._add(job.todo, check_run(job.todo, job.criterion, found, isolation=Isolation.SPAWNED))
        finally:
            self._progress.worker_finished(job.key)

    def _run_foreign(self, job: Job) -> None:
        """Run and confirm a pytest command without this plugin inside, such as one of another interpreter.

        Its reports are written into the run's folder; the first run's also where the command requests it.
        """
        from pytest_planverify.session.foreign_pytest import (
            remove_reports,
            run_foreign,
            without_reports,
            write_requested_report,
        )

        args = job.invocation.args

        def run(args: Sequence[str]) -> Judgement:
            return run_foreign(
                self._command(job),
                job.launcher,
                args,
                root=job.plan.root,
                env={**os.environ, **dict(job.command.env)},
                folder=self.folder.path,
                watch=self.budget.check,
            )

        judgement = run(args)
        write_requested_report(judgement, args, root=job.plan.root, folder=self.folder.path)
        if self._needs_confirmation(judgement):
            again = partial(run, without_reports(args))
            judgement = confirm(judgement, again, most=self._settings.confirmations, root=job.plan.root)
        remove_reports(self.folder.path)
        self._keep(job, judgement, isolation=Isolation.SPAWNED)

    def _missing_files(self, job: Job) -> list[tuple[str, list[str]]]:
        """Return the command's selections whose files do not exist, each with paths of similar names.

        Empty where a selection may be no path: with ``--pyargs``, which names modules, or if an unknown
        option makes it a guess which words are selections.
        """
        invocation = job.invocation
        if invocation.guessed or "--pyargs" in (*invocation.args, *self._settings.worker_args):
            return []
        from pytest_planverify.observe.recorder import alike_paths

        root = job.plan.root
        paths = ((text, root / file_of(text)) for text in invocation.selections)
        return [(text, alike_paths(path)) for text, path in paths if not os.path.lexists(path)]

    def _command(self, job: Job) -> JudgedCommand:
        """Return the facts about a command that its judgement needs."""
        line = line_of(job.plan.path, job.spec.cmd)
        given = options_of(job.invocation, dict(job.command.env))
        return JudgedCommand(
            check_id=job.criterion.id,
            limit_seconds=job.spec.timeout_seconds,
            args=given.args,
            place=f"{job.plan.path.name}:{line}" if line else "",
            selections=job.invocation.selections,
            expression=expression_of(given),
            contract_path=job.todo.contract_path,
            view=None if self._demands is None else self._demands.view(job.todo, job.criterion.id),
        )

    def _keep(self, job: Job, judgement: Judgement, *, isolation: Isolation, final: bool = True) -> None:
        """Turn a judgement into the command's check and add it to the result.

        A later run may keep a ``final`` verdict as long as the files that it rests on do not change. It is
        not final if one of these files changed while the command ran.
        """
        fixture = None
        if job.spec.fixture is not None:
            from pytest_planverify.checks.artifact import read_fixture  # late: rarely needed

            fixture = read_fixture(job.spec.fixture, job.plan.root, check_id=job.criterion.id)
        run = check_run(job.todo, job.criterion, judgement, isolation=isolation, fixture=fixture)
        if self._demands is not None:
            run = self._demands.decide(job.todo, run)
        if run.check.verdict is Verdict.FLAKY:
            run = quarantined(run, self.flat.loaded.plan.metadata.flaky_retry.quarantine)
        stayed = True
        # Only the audit hook of a worker knows which files were read.
        if isolation in (Isolation.WORKER, Isolation.COLD) and job.record is not None:
            data = None if job.spec.fixture is None else str(job.plan.root / job.spec.fixture)
            named = (job.record.inifile, data)
            rests_on, stayed = self._digests.basis(job.record, named)
            read_data = self._digests.read_data(job.record) if rests_on is None and run.evidence else ()
            run = run.model_copy(update={"rests_on": rests_on, "read_data": read_data})
        self._add(job.todo, run, final=final and stayed)

    def _keep_cut_short(self, running: Iterable[Job]) -> None:
        """Keep the failures of workers that were ended early; their other commands count as not run."""
        for job in running:
            if job.record is None or not job.record.collected or not job.is_pytest:
                continue
            judgement = judge(self._command(job), job.record)
            # A failed test is a failure, whatever the remaining tests would have shown. Without one, the
            # verdict may be due to the early end alone.
            if any(test.outcome.is_red for test in judgement.tests):
                self._keep(job, judgement, isolation=job.record.isolation, final=False)

    # -- todos -----------------------------------------------------------------------------------

    def _finish_todos(self) -> None:
        """Evaluate the remaining criteria of each todo whose commands have ended, and show the todo.

        Repeated until no todo is left, as a finished todo may complete the parent that waits for it.
        """
        while todos := self._schedule.finished_todos():
            for todo in todos:
                if not self._is_blocked(todo):
                    self._evaluate(todo, over=self._is_over)
                # At once, so that no command of a todo that depends on it is started.
                self.result.note_failed([todo])
                checks = [run.check for run in self.result.checks[todo.id].values()]
                seen = {check.counts_as for check in checks}
                below = self.flat.children.get(todo.id, ())
                seen |= {self._verdicts[each] for each in below if each in self._verdicts}
                # No todo of a sub-plan is flaky as such, so the order of their verdicts lacks it.
                red = (each for each in (Verdict.FAILED, Verdict.FLAKY) if each in seen)
                worst = next(red, sub_plan_verdict(seen))
                state = Verdict.BLOCKED if self.result.blockers(todo) else worst
                self._verdicts[todo.id] = state
                is_decided = bool(seen) or state is Verdict.BLOCKED  # nothing decides a todo without checks
                if is_decided and not self._settings.collect_only and todo.id in self.asked:
                    self._progress.todo_decided(todo.id, todo.title, state, checks)

    def _evaluate(self, todo: Todo, *, over: bool = False) -> None:
        """Evaluate a todo's criteria that are no commands; skip them if one of its commands was not run.

        With ``over`` none is evaluated, as the run stops early.
        """
        if self._settings.collect_only:
            return
        runs = self.result.checks[todo.id]
        before = list(runs.values())
        left_out = any(run.check.verdict is Verdict.NOT_RUN for run in before)
        for criterion in self.flat.loaded.criteria[todo.id]:
            if criterion.id in runs or criterion.kind in COMMANDS:
                continue
            if left_out:
                self._add(todo, skipped(criterion, LEFT_OUT))
            elif not over:
                self._add(todo, evaluate(self.flat, todo, criterion, before, lambda: self._answers))

    @cached_property
    def _answers(self) -> AnswersOnFile:
        """Return the answers that people have given."""
        # Read once per run: what a later test writes in their name does not count.
        from pytest_planverify.checks.manual import read_answers  # late: rarely needed

        return read_answers(self.flat.loaded.root)

    def explain(self, unexplained: str) -> None:
        """Record why the run is not accepted although no criterion failed."""
        self.result.unexplained = unexplained
        self.journal.append("run_unexplained", reason=unexplained)

    def hold(self, violations: Iterable[Violation]) -> None:
        """Add the guards' violations as failed checks of their todos, and block what depends on these."""
        held = [each for each in violations if each.todo_id in self.result.checks]
        for violation in held:
            check, evidence = violation.check()
            self.result.checks[violation.todo_id][check.id] = CheckRun(check=check, evidence=(evidence,))
            self.result.note_failed([self._by_id[violation.todo_id]])
        if held:
            self._fill_in()

    # -- verdicts --------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        """Return whether ``-x`` or ``--maxfail`` stops the run now."""
        return bool(self._settings.maxfail) and self.reds >= self._settings.maxfail

    def _add(self, todo: Todo, run: CheckRun, *, final: bool = True) -> None:
        """Add a check to the result, count it if it failed, write it to the journal, and show it."""
        verdict = run.check.counts_as
        self.result.checks[todo.id][run.check.id] = run
        # A failure kept from an earlier run counts for --maxfail only if this run resumes that one.
        is_counted = run.check.taken_from is None or (todo.id, run.check.id) in self._last_verdicts.taken
        self.reds += verdict.is_red and is_counted
        if verdict not in (Verdict.BLOCKED, Verdict.NOT_RUN) and not self._settings.collect_only:
            self.journal.check_judged(todo.id, run, final=final and is_settled(run.check))
        self._progress.check_decided(verdict)

    def _keep_last(self, todo: Todo, criterion: Criterion, *, passed: bool = False) -> bool:
        """Keep the last verdict if it still holds and, with ``passed``, was a pass. Return whether so."""
        run = self._last_verdicts.held.get((todo.id, criterion.id))
        if run is None or (passed and run.check.verdict is not Verdict.PASSED):
            return False
        self._add(todo, run)
        return True

    def _keep_last_or_skip(self, todo: Todo, criterion: Criterion) -> None:
        if not self._keep_last(todo, criterion):
            why = f"{LEFT_OUT}; {self._last_verdicts.why_not((todo.id, criterion.id))}"
            self._add(todo, skipped(criterion, why))

    def _keep_unreached(self) -> None:
        """Keep the last verdicts of commands that were not reached because the run stopped early.

        The other criteria of a todo are evaluated only if none of its commands lacks a verdict.
        """
        for todo in self.result.todos:
            runs = self.result.checks[todo.id]
            if not self.result.blockers(todo):
                commands = [each for each in self.flat.loaded.criteria[todo.id] if each.kind in COMMANDS]
                missing = [each for each in commands if each.id not in runs]
                if [self._keep_last(todo, each) for each in missing].count(False) == 0:
                    self._evaluate(todo)

    def _is_blocked(self, todo: Todo) -> bool:
        return not self._settings.keep_going and bool(self.result.blockers(todo))

    def _fill_in(self, why: str = "not reached") -> None:
        """Mark every criterion without a verdict as blocked or not run, so that no outcome lacks one."""
        for todo, run in self.result.fill_in(why, keep_going=self._settings.keep_going):
            self._add(todo, run)

    def _current_todos(self, running: Iterable[Job]) -> tuple[str, ...]:
        """Return the ids of todos whose commands run, else of the first todo without all its verdicts.

        If all have theirs, return the last todo of the order.
        """
        checks, criteria = self.result.checks, self.flat.loaded.criteria
        order = [todo.id for todo in self._schedule.order]
        waiting = [name for name in order if any(each.id not in checks[name] for each in criteria[name])]
        return tuple(dict.fromkeys(job.todo.id for job in running)) or tuple(waiting[:1] or order[-1:])


def _is_cut(job: Job) -> bool:
    """Return whether records of the job's worker are missing from the journal."""
    return job.record is not None and job.record.journal_lost


# -- preparation of a run -------------------------------------------------------------------------


def _baseline(settings: Settings, chosen: ChosenPlan) -> KeptBaseline | None:
    """Return the baseline of the revision that the user names, else the recorded one, else the file's.

    ``None`` if there is no baseline, and in runs that only record or collect.
    """
    if settings.recording or settings.collect_only:
        return None
    if settings.baseline is not None:
        from pytest_planverify.baseline.record import baseline_at

        return baseline_at(settings.baseline, chosen.flat, settings.invocation_dir)
    root = chosen.plan.root
    kept = load_baseline(root, chosen.plan.plan.todo_list_id)
    if kept is None and settings.baseline_file is not None:
        from planner.planfile.record_files import read_baseline
        from pytest_planverify.baseline.kept_baseline import KeptBaseline

        document, _ = read_baseline(settings.baseline_file)
        kept = KeptBaseline(root, document, path=settings.baseline_file, begins_run=True)
    return kept


def _demands(
    settings: Settings, flat: FlatPlan, todos: Sequence[Todo], baseline: KeptBaseline | None
) -> Demands | None:
    """Return the check of ``must_turn_green`` and ``must_stay_green``; ``None`` if it does not apply.

    It does not apply if no todo has these fields, and where the run's verdicts are incomplete.
    """
    asked = any(todo.must_turn_green or todo.must_stay_green for todo in todos)
    if not asked or settings.recording or settings.collect_only or settings.narrows:
        return None
    from pytest_planverify.baseline.comparison import Demands

    return Demands(flat, baseline)


def _unwritable(folder: RunFolder, error: OSError) -> pytest.UsageError:
    """Return the error for a run that cannot write its records."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free space" if is_full else "make the plan's root writable"
    return pytest.UsageError(
        f"{folder.home}: the run's records cannot be written: {error.strerror}; {remedy}"
    )


def _budget(facts: RunFacts, flat: FlatPlan) -> BudgetWatch:
    """Return the watch on the plan's budget; a run that records a baseline has no limits."""
    settings, root = facts.settings, flat.loaded.root
    return BudgetWatch(
        Budget() if settings.recording else flat.loaded.plan.metadata.budget,
        root,
        spared=lambda: () if facts.server is None else {facts.server.pid, *facts.server.pids},
        expected=[
            *(path for paths in planned_paths(flat).values() for path in paths),
            *([] if settings.outcomes is None else [os.path.relpath(settings.outcomes, root)]),
        ],
    )


def _changes(flat: FlatPlan, own: Sequence[Path], baseline: KeptBaseline | None) -> dict[Path, Changes]:
    """Return what has changed, by root. Without git the top root is compared with the baseline's files."""
    changes = {root: Changes(root, own) for root in {part.root for part in flat.parts}}
    top = flat.loaded.root
    if baseline is not None and not changes[top].under_git:
        differing = since(top, flat, baseline)
        changes[top].are(() if differing is None else differing[0])
    return changes
