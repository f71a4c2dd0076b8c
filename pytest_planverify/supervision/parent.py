"""The process that was started: loads the plans, has them verified, says what was found."""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from json import dumps
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import create_terminal_writer

from pytest_planverify.options import REWRITING, Settings, read_settings
from pytest_planverify.supervision.forkserver import ForkServer, ForkServerDied
from pytest_planverify.supervision.sessions import Sessions, planned_paths, start_paths

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from planner.edges.plan_tree import FlatPlan
    from planner.model.outcome import OutcomeDocument
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.guards.budget import BudgetWatch
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.chosen import ChosenPlan
    from pytest_planverify.supervision.demands import Demands
    from pytest_planverify.supervision.documenting import Longreprs
    from pytest_planverify.supervision.prepared import Prepared


PATIENCE = 3
"""So many requests to stop are one; who asks more often is not listened to, and the run ends at once."""


def supervise(config: pytest.Config) -> int:
    """Verify the plans of this command line. Returns the exit status; expected errors are printed."""
    if not hasattr(os, "fork"):
        raise pytest.UsageError("--planverify forks its sessions, and this platform cannot fork")
    paths = start_paths(config)
    settings = read_settings(config)
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    server = ForkServer(config.stash.get(REWRITING, None))
    _put_last(paths)
    try:
        with _own_interrupts(), _rare_collections():
            return _verify(config, settings, server, paths)
    finally:
        server.close()
        if capture is not None:
            capture.resume_global_capture()


def _put_last(paths: tuple[str, ...]) -> None:
    """Let nothing of the repository stand in for what the parent itself imports from now on."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [os.path.abspath(entry) for entry in given if entry]
    late = [entry for entry in sys.path if entry in (*paths, *named)]
    sys.path[:] = [entry for entry in sys.path if entry not in late] + late


def _verify(config: pytest.Config, settings: Settings, server: ForkServer, paths: tuple[str, ...]) -> int:
    from planner.errors import PlannerError
    from pytest_planverify.supervision.exit_status import ExitStatus

    tw = create_terminal_writer(config, sys.stdout)
    try:
        return _Run(config, settings, server, paths, tw).run()
    except PlannerError as error:
        tw.line(str(error), red=True)
        return ExitStatus.USAGE_ERROR
    except ForkServerDied as error:
        tw.line(f"internal error: {error}; nothing was accepted", red=True)
        return ExitStatus.INTERNAL_ERROR
    except pytest.UsageError:
        raise
    except Exception as error:  # a fault of the verifier must not look like a failed criterion
        tw.line("".join(traceback.format_exception(error)))
        tw.line("internal error: this is a fault of pytest-planverify; nothing was accepted", red=True)
        return ExitStatus.INTERNAL_ERROR


@contextlib.contextmanager
def _rare_collections() -> Generator[None]:
    """Let the parent's imports and records, which hardly hold a cycle, not be searched for any."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def _own_interrupts() -> Generator[None]:
    """Let Ctrl-C and a request to terminate stop the run in order, whatever it was started under.

    Asked again while it stops, it goes on stopping: it would leave processes behind and write nothing.
    """
    asked = 0

    def interrupt(number: int, frame: object) -> None:
        nonlocal asked
        asked += 1
        if asked == 1 or asked > PATIENCE:
            raise KeyboardInterrupt

    wanted = {signal.SIGINT: interrupt, signal.SIGTERM: interrupt}
    previous: dict[signal.Signals, Any] = {}
    try:
        for number, handler in wanted.items():
            previous[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread of a program that called pytest.main()
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Run:
    """One run over one or several plans."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        server: ForkServer,
        paths: tuple[str, ...],
        tw: TerminalWriter,
    ) -> None:
        from pytest_planverify.confirmation import ConfirmationBudget
        from pytest_planverify.reports.progress import Progress
        from pytest_planverify.supervision.run_folder import new_run_id

        self._config = config
        self._settings = settings
        self._server = server
        self._script_paths = paths
        self._tw = tw
        self._run_id = new_run_id()
        self._started = time.monotonic()
        self._started_at = _now()
        self._budget = ConfirmationBudget(settings.confirmation_seconds)
        self._progress: Progress = Progress(tw, verbosity=settings.verbosity)
        self._interrupted = False
        self._roots: Counter[Path] = Counter()

    def run(self) -> int:
        from pytest_planverify.supervision.chosen import load_plans

        plans = load_plans(self._settings.plans)
        if self._settings.last_failed and not any(
            tests for each in plans for tests in self._last_failed(each.flat).values()
        ):
            self._settings = replace(self._settings, last_failed=False)
        for file in (self._settings.outcomes, self._settings.junit):
            _require_place(file)
        prepared = [self._prepare(each) for each in plans]
        if not self._settings.collect_only:
            self._progress.run_started(
                len(prepared),
                sum(len(each.plan.criteria[todo.id]) for each in prepared for todo in each.todos),
                sum(len(stage.folds) for each in prepared for stage in each.run.stages),
            )
        try:
            reds = 0
            if not self._settings.collect_only and not self._settings.recording:
                for each in prepared:
                    each.guards.look()
            for each in prepared:
                each.run.reds = reds
                each.run.run(each.guards.added)
                reds = each.run.reds
        except KeyboardInterrupt:
            self._interrupted = True
        self._progress.finished()
        if self._settings.collect_only:
            return self._show_tree(prepared)
        return self._conclude(prepared)

    # -- before ----------------------------------------------------------------------------------

    def _prepare(self, chosen: ChosenPlan) -> Prepared:
        from pytest_planverify.guards.guarding import Guards
        from pytest_planverify.reports.failure_report import FOLDER
        from pytest_planverify.supervision.changes import Changes
        from pytest_planverify.supervision.chosen import todos_in_scope
        from pytest_planverify.supervision.prepared import Prepared, reference_of
        from pytest_planverify.supervision.resuming import resume
        from pytest_planverify.supervision.run_folder import RunFolder
        from pytest_planverify.supervision.run_records import RunJournal, open_journal
        from pytest_planverify.supervision.running import PlanRun
        from pytest_planverify.supervision.tree_state import TreeWatch

        plan = chosen.plan
        baseline = self._baseline(chosen)
        folder = RunFolder(plan.root, self._folder_name(plan.root))
        try:
            folder.create()
        except OSError as error:
            raise pytest.UsageError(
                f"{folder.home}: the run's records cannot be written: {error.strerror}; make the plan's "
                "root writable"
            ) from None
        todos = todos_in_scope(chosen, self._settings.scope)
        flat = chosen.flat
        own = (*(part.path for part in flat.parts), plan.root / FOLDER)
        changes = {root: Changes(root, own) for root in {part.root for part in flat.parts}}
        if baseline is not None and not changes[plan.root].under_git:
            from pytest_planverify.work_tree import WorkTree

            changes[plan.root].compare(baseline.snapshot().digests(), WorkTree(plan.root).digests())
        sessions = Sessions(
            self._settings,
            self._server,
            folder,
            self._progress,
            self._script_paths,
            self._last_failed(flat) if self._settings.last_failed else None,
            planned_paths(flat),
            flat.loaded,
            self._watch(flat),
        )
        reference, journal, resumed = reference_of(flat, chosen.shown), None, None
        if not self._settings.collect_only:
            if self._settings.resume:
                resumed = resume(flat, todos, self._settings, reference, own, baseline)
            roots = [part.root for part in flat.parts]
            journal = RunJournal(folder.journal, plan.plan.todo_list_id, TreeWatch(roots, own))
        remarks = [] if resumed is None else [resumed.note]
        open_journal(
            folder.journal,
            self._run_id,
            reference,
            self._settings,
            todos,
            boundary=chosen.boundary,
            baseline=baseline,
            remarks=remarks,
        )
        run = PlanRun(
            flat,
            todos,
            self._settings,
            sessions,
            folder,
            self._progress,
            self._budget,
            journal,
            None if resumed is None else resumed.taken,
            self._demands(flat, todos, baseline),
        )
        run.result.notes += remarks
        guards = Guards(flat, todos, changes, chosen.todo_ids, baseline)
        singles = (job for stage in run.stages for job in stage.singles if not job.is_pytest)
        guards.leave_unwatched([f"{job.todo.id} {job.criterion.id}" for job in singles])
        return Prepared(
            flat=flat,
            shown=chosen.shown,
            todos=todos,
            folder=folder,
            sessions=sessions,
            run=run,
            changes=changes,
            guards=guards,
            baseline=baseline,
        )

    def _baseline(self, chosen: ChosenPlan) -> KeptBaseline | None:
        """What the run is compared with: a revision that was asked for, else what was recorded."""
        if self._settings.recording or self._settings.collect_only:
            return None
        if self._settings.baseline is not None:
            from pytest_planverify.baseline.revisions import baseline_at

            return baseline_at(self._settings.baseline, chosen.flat, self._settings.invocation_dir)
        from pytest_planverify.baseline import load_baseline

        return load_baseline(chosen.plan.root, chosen.plan.plan.todo_list_id)

    def _demands(
        self, flat: FlatPlan, todos: Sequence[Todo], baseline: KeptBaseline | None
    ) -> Demands | None:
        settings = self._settings
        asked = any(todo.must_turn_green or todo.must_stay_green for todo in todos)
        if not asked or settings.recording or settings.collect_only or settings.narrows:
            return None
        from pytest_planverify.supervision.demands import Demands

        return Demands(flat, baseline)

    def _watch(self, flat: FlatPlan) -> BudgetWatch:
        """The budget of a plan; a run that is only compared with has none."""
        from planner.model.plan import Budget
        from pytest_planverify.guards.budget import BudgetWatch

        plan = flat.loaded
        own = (self._settings.outcomes, self._settings.junit)
        return BudgetWatch(
            Budget() if self._settings.recording else plan.plan.metadata.budget,
            plan.root,
            spared=(self._server.pid,),
            expected=[
                *(path for paths in planned_paths(flat).values() for path in paths),
                *(os.path.relpath(path, plan.root) for path in own if path is not None),
            ],
        )

    def _last_failed(self, flat: FlatPlan) -> dict[Path, tuple[str, ...]]:
        from pytest_planverify.supervision.chosen import last_failed
        from pytest_planverify.supervision.run_folder import RunFolder

        outcomes = RunFolder(flat.loaded.root, self._run_id).outcomes
        return last_failed(self._settings.outcomes or outcomes, flat)

    def _folder_name(self, root: Path) -> str:
        """The run's id; further plans of the same root have folders, and so journals, of their own."""
        self._roots[root] += 1
        return self._run_id if self._roots[root] == 1 else f"{self._run_id}.{self._roots[root]}"

    # -- after -----------------------------------------------------------------------------------

    def _show_tree(self, prepared: list[Prepared]) -> int:
        from pytest_planverify.reports.tree import render_tree
        from pytest_planverify.supervision.exit_status import ExitStatus

        problems_found = False
        for each in prepared:
            checks = each.run.result.checks
            selected = {
                (todo_id, check_id): [test.nodeid for test in run.check.tests]
                for todo_id, runs in checks.items()
                for check_id, run in runs.items()
            }
            problems = {
                (todo_id, check_id): [
                    piece.headline for piece in run.evidence if piece.vacuous is None or not run.check.tests
                ]
                for todo_id, runs in checks.items()
                for check_id, run in runs.items()
            }
            problems_found |= any(problems.values())
            render_tree(
                self._tw,
                each.plan,
                selected,
                problems,
                verbosity=self._settings.verbosity,
                todo_ids=[todo.id for todo in each.todos],
            )
        if self._interrupted:
            return ExitStatus.INTERRUPTED
        return ExitStatus.FAILED if problems_found else ExitStatus.ACCEPTED

    def _conclude(self, prepared: list[Prepared]) -> int:
        from planner.edges.outcome_file import write_outcomes
        from pytest_planverify.reports.terminal import render_summary
        from pytest_planverify.supervision.run_records import append, close_journal

        for each in prepared:
            each.folder.restore()
            self._echo_summaries(each.sessions)
            if not self._settings.recording:
                each.guards.remember()
                narrowed = self._settings.narrows
                held = each.guards.violations(each.run.spent, each.run.result, narrowed=narrowed)
                each.run.hold(held)
            elif written := each.guards.written():
                append(each.folder.journal, [("artifacts_written", f'"artifacts": {dumps(written)}')])
        document, longreprs = self._document(prepared)
        path = self._settings.outcomes or prepared[0].folder.outcomes
        write_outcomes(document, path)
        self._write_junit(prepared)
        for each in prepared:  # last, so that a journal with an end has all its files beside it
            close_journal(each.folder.journal, each.plan.plan.todo_list_id, document)
        render_summary(
            self._tw,
            document,
            plans=[each.plan for each in prepared],
            verbosity=self._settings.verbosity,
            outcomes_path=os.path.relpath(path, self._settings.invocation_dir),
            answers_path=os.path.relpath(prepared[0].folder.answers, self._settings.invocation_dir),
            longreprs=longreprs,
        )
        return document.run.exit_status

    def _document(self, prepared: list[Prepared]) -> tuple[OutcomeDocument, Longreprs]:
        from planner.model.outcome import RunInfo
        from pytest_planverify.supervision.documenting import document_of, find_outcomes

        hook = self._config.hook
        found = find_outcomes(
            prepared,
            lambda evidence: hook.pytest_planverify_diagnose(evidence=evidence),
            run_id=self._run_id,
            recording=self._settings.recording,
        )
        run = RunInfo(
            run_id=self._run_id,
            started_at=self._started_at,
            finished_at=_now(),
            duration_ms=round((time.monotonic() - self._started) * 1000),
            exit_status=int(found.status(self._settings.scope, interrupted=self._interrupted)),
            scope=self._settings.scope,
            python=platform.python_version(),
            pytest=pytest.__version__,
            hygiene=next((each.guards.hygiene for each in prepared), ""),
            interrupted=self._interrupted,
            notes=tuple(self._notes(prepared)),
        )
        return document_of(prepared, found, run), found.longreprs

    def _notes(self, prepared: list[Prepared]) -> Iterator[str]:
        if self._interrupted:
            yield "interrupted: what had not been verified by then is not run"
        if self._settings.narrows:
            yield "only a part of the plan was asked for; what was left out is not verified"
        if self._budget.refused:
            count = self._budget.refused
            yield (
                f"{count} {'check was' if count == 1 else 'checks were'} not confirmed: the "
                f"{self._budget.seconds:g} s for confirmations were used up"
            )
        for each in prepared:
            yield from each.run.result.notes
            yield from each.guards.notes
            if each.run.result.unexplained is not None:
                yield f"not accepted: {each.run.result.unexplained}"

    def _echo_summaries(self, sessions: Sessions) -> None:
        """What other plugins say at the end of a session, such as a coverage table."""
        last = len(sessions.summaries) - 1
        for number, (log, start, end) in enumerate(sessions.summaries):
            if not log.exists():  # removed by what ran
                continue
            with open(log, "rb") as stream:
                stream.seek(start)
                text = stream.read(end - start).decode("utf-8", "replace").strip("\n")
            if number < last:
                text = _without_coverage(text)
            if text and self._settings.verbosity >= 0:
                self._tw.line(text)

    def _write_junit(self, prepared: list[Prepared]) -> None:
        if self._settings.junit is None:
            return
        from pytest_planverify.reports.junit import merge_junit

        parts = [part for each in prepared for part in each.sessions.junit_parts if part[0].exists()]
        files, roots = [file for file, _ in parts], [root for _, root in parts]
        for problem in merge_junit(files, self._settings.junit, roots):
            self._tw.line(problem, yellow=True)


def _without_coverage(text: str) -> str:
    """A session's summary without its coverage report: the last session's tells of all of them."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("===") and line.endswith("==="):
            inside = " tests coverage " in line
        if not inside:
            kept.append(line)
    return "\n".join(kept)


def _require_place(file: Path | None) -> None:
    """See to it, before anything runs, that what the run finds can be written there."""
    if file is None:
        return
    if file.is_dir():
        raise pytest.UsageError(f"{file} is a folder: name a file to write to")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"{file}: its folder cannot be made: {error.strerror}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
