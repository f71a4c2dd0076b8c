"""The process that was started: loads the plans, has them verified, says what was found."""

from __future__ import annotations

import contextlib
import difflib
import os
import platform
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import create_terminal_writer

from pytest_planverify.options import Settings, read_settings
from pytest_planverify.supervision.forkserver import ForkServer, ForkServerDied
from pytest_planverify.supervision.sessions import Sessions, start_paths

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from _pytest._io import TerminalWriter

    from planner.edges.plan_file import LoadedPlan
    from planner.model.outcome import Outcome, OutcomeDocument
    from planner.model.plan import Todo
    from pytest_planverify.reports.progress import Progress


def supervise(config: pytest.Config) -> int:
    """Verify the plans of this command line. Returns the exit status; expected errors are printed."""
    if not hasattr(os, "fork"):
        raise pytest.UsageError("--planverify forks its sessions, and this platform cannot fork")
    paths = start_paths(config)
    settings = read_settings(config)
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    server = ForkServer()
    _put_last(paths)
    try:
        with _own_interrupts():
            return _verify(config, settings, server, paths)
    finally:
        server.close()
        if capture is not None:
            capture.resume_global_capture()


def _put_last(paths: tuple[str, ...]) -> None:
    """Let nothing of the repository stand in for what the parent itself imports from now on."""
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
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


@contextlib.contextmanager
def _own_interrupts() -> Generator[None]:
    """Let Ctrl-C reach this process as ``KeyboardInterrupt``, whatever it was started under."""
    try:
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not the main thread of a program that called pytest.main()
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


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
        self._budget = ConfirmationBudget()
        self._progress: Progress = Progress(tw, verbosity=settings.verbosity)
        self._interrupted = False
        self._roots: Counter[Path] = Counter()

    def run(self) -> int:
        plans = self._load()
        if self._settings.last_failed and not any(self._last_failed(plan) for plan, _, _ in plans):
            self._settings = replace(self._settings, last_failed=False)
        for file in (self._settings.outcomes, self._settings.junit):
            _require_place(file)
        prepared = [self._prepare(plan, shown, todo_ids) for plan, shown, todo_ids in plans]
        if not self._settings.collect_only:
            self._progress.run_started(
                len(prepared),
                sum(len(each.plan.criteria[todo.id]) for each in prepared for todo in each.todos),
                sum(len(stage.folds) for each in prepared for stage in each.run.stages),
            )
        try:
            reds = 0
            for each in prepared:
                each.run.reds = reds
                each.run.run()
                reds = each.run.reds
        except KeyboardInterrupt:
            self._interrupted = True
        self._progress.finished()
        if self._settings.collect_only:
            return self._show_tree(prepared)
        return self._conclude(prepared)

    # -- before ----------------------------------------------------------------------------------

    def _load(self) -> list[tuple[LoadedPlan, str, list[str] | None]]:
        """Every plan once, with the todos asked for; ``None`` is all of them."""
        from planner.edges.plan_file import load_plan
        from planner.errors import PlanFileError

        loaded: dict[Path, tuple[LoadedPlan, str, list[str] | None]] = {}
        errors: list[PlanFileError] = []
        for argument in self._settings.plans:
            if argument.path not in loaded:
                try:
                    plan = load_plan(argument.path, boundary=argument.boundary)
                except PlanFileError as error:
                    if not any(str(error) == str(each) for each in errors):
                        errors.append(error)
                    continue
                loaded[argument.path] = (plan, argument.shown, [])
            plan, shown, todo_ids = loaded[argument.path]
            if argument.todo_id is None:
                loaded[argument.path] = (plan, shown, None)
            elif todo_ids is not None:
                _require_todo(plan, shown, argument.todo_id)
                todo_ids.append(argument.todo_id)
        if errors:
            raise _several(errors)
        _require_different_ids([plan for plan, _, _ in loaded.values()])
        return list(loaded.values())

    def _prepare(self, plan: LoadedPlan, shown: str, todo_ids: list[str] | None) -> _Prepared:
        from pytest_planverify.supervision.changes import Changes
        from pytest_planverify.supervision.run_folder import RunFolder
        from pytest_planverify.supervision.running import PlanRun

        folder = RunFolder(plan.root, self._folder_name(plan.root))
        try:
            folder.create()
        except OSError as error:
            raise pytest.UsageError(
                f"{folder.home}: the run's records cannot be written: {error.strerror}; make the plan's root "
                "writable"
            ) from None
        todos = self._in_scope(plan, todo_ids)
        changes = Changes(plan.root)
        sessions = Sessions(
            self._settings,
            self._server,
            folder,
            self._progress,
            self._script_paths,
            self._last_failed(plan) if self._settings.last_failed else None,
        )
        _open_journal(folder.journal, self._run_id, shown, plan.digest)
        run = PlanRun(
            plan,
            todos,
            self._settings,
            sessions,
            folder,
            self._progress,
            self._budget,
        )
        return _Prepared(plan, shown, todos, folder, sessions, run, changes)

    def _folder_name(self, root: Path) -> str:
        """The run's id; further plans of the same root have folders, and so journals, of their own."""
        self._roots[root] += 1
        return self._run_id if self._roots[root] == 1 else f"{self._run_id}.{self._roots[root]}"

    def _in_scope(self, plan: LoadedPlan, todo_ids: list[str] | None) -> list[Todo]:
        from planner.model.plan import TodoStatus

        items = plan.plan.items
        if todo_ids is not None:
            return [todo for todo in items if todo.id in todo_ids]
        if self._settings.scope != "claimed":
            return list(items)
        by_id = {todo.id: todo for todo in items}
        wanted: set[str] = set()
        pending = [todo.id for todo in items if todo.status is TodoStatus.CLAIMED]
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted.add(name)
                pending += by_id[name].dependencies
        return [todo for todo in items if todo.id in wanted]

    def _last_failed(self, plan: LoadedPlan) -> tuple[str, ...]:
        """The tests that failed in the last run of this plan."""
        from planner.edges.outcome_file import read_outcomes
        from planner.errors import OutcomeFileError
        from pytest_planverify.supervision.run_folder import RunFolder

        path = self._settings.outcomes or RunFolder(plan.root, self._run_id).outcomes
        if not path.exists():
            return ()
        try:
            document = read_outcomes(path)
        except OutcomeFileError as error:
            raise pytest.UsageError(f"--lf: {error}") from None
        failed = {
            test.nodeid: None
            for outcome in document.outcomes
            if outcome.plan == plan.plan.todo_list_id
            for check in outcome.checks
            for test in check.tests
            if test.outcome.is_red
        }
        return tuple(failed)

    # -- after -----------------------------------------------------------------------------------

    def _show_tree(self, prepared: list[_Prepared]) -> int:
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
            render_tree(self._tw, each.plan, selected, problems, verbosity=self._settings.verbosity)
        if self._interrupted:
            return ExitStatus.INTERRUPTED
        return ExitStatus.FAILED if problems_found else ExitStatus.ACCEPTED

    def _conclude(self, prepared: list[_Prepared]) -> int:
        from planner.edges.outcome_file import write_outcomes
        from pytest_planverify.reports.terminal import render_summary

        for each in prepared:
            self._echo_summaries(each.sessions)
        document, longreprs = self._document(prepared)
        path = self._settings.outcomes or prepared[0].folder.outcomes
        write_outcomes(document, path)
        self._write_junit(prepared)
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

    def _document(self, prepared: list[_Prepared]) -> tuple[OutcomeDocument, Any]:
        from planner.model.outcome import OutcomeDocument, PlanRef, RunInfo
        from pytest_planverify.supervision.assembling import Assembler, summary_of
        from pytest_planverify.supervision.exit_status import counting, exit_status

        outcomes: list[Outcome] = []
        longreprs: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
        todos: dict[tuple[str | None, str], Todo] = {}
        for each in prepared:
            plan_id = each.plan.plan.todo_list_id
            todos |= {(plan_id, todo.id): todo for todo in each.todos}
            assembler = Assembler(
                each.run.result,
                shown_path=each.shown,
                changes=each.changes,
                first_opinion=lambda evidence: self._config.hook.pytest_planverify_diagnose(
                    evidence=evidence
                ),
            )
            for outcome, evidence in assembler.outcomes():
                outcomes.append(outcome)
                for piece in evidence:
                    if piece.longrepr:
                        key = (plan_id, outcome.todo_id, piece.check_id)
                        longreprs.setdefault(key, []).append(
                            (piece.nodeid or piece.check_id, piece.longrepr)
                        )
                if outcome.failure_evidence is not None and not outcome.blocked_by:
                    from pytest_planverify.reports.failure_report import (
                        failure_report,
                        write_failure_report,
                    )

                    report = failure_report(outcome, evidence, plan=each.plan)
                    write_failure_report(report, root=each.plan.root)
        status = exit_status(
            counting(outcomes, todos, self._settings.scope),
            interrupted=self._interrupted,
        )
        run = RunInfo(
            run_id=self._run_id,
            started_at=self._started_at,
            finished_at=_now(),
            duration_ms=round((time.monotonic() - self._started) * 1000),
            exit_status=int(status),
            scope=self._settings.scope,
            python=platform.python_version(),
            pytest=pytest.__version__,
            interrupted=self._interrupted,
            notes=tuple(self._notes(prepared)),
        )
        document = OutcomeDocument(
            plans=tuple(
                PlanRef(todo_list_id=each.plan.plan.todo_list_id, path=each.shown, digest=each.plan.digest)
                for each in prepared
            ),
            run=run,
            summary=summary_of(outcomes),
            outcomes=tuple(outcomes),
        )
        return document, longreprs

    def _notes(self, prepared: list[_Prepared]) -> Iterator[str]:
        if self._interrupted:
            yield "interrupted: what had not been verified by then is not run"
        if self._settings.narrows:
            yield "only a part of the plan was asked for; what was left out is not verified"
        if self._budget.refused:
            yield (
                f"{self._budget.refused} failures were not confirmed: the {self._budget.seconds:g} s for "
                "confirmations were used up"
            )
        for each in prepared:
            yield from each.run.result.notes

    def _echo_summaries(self, sessions: Sessions) -> None:
        """What other plugins say at the end of a session, such as a coverage table."""
        for log, start, end in sessions.summaries:
            with open(log, "rb") as stream:
                stream.seek(start)
                text = stream.read(end - start).decode("utf-8", "replace").strip("\n")
            if text and self._settings.verbosity >= 0:
                self._tw.line(text)

    def _write_junit(self, prepared: list[_Prepared]) -> None:
        if self._settings.junit is None:
            return
        from pytest_planverify.reports.junit import merge_junit

        parts = [part for each in prepared for part in each.sessions.junit_parts if part.exists()]
        for problem in merge_junit(parts, self._settings.junit):
            self._tw.line(problem, yellow=True)


class _Prepared:
    """A plan that is ready to be run, and what belongs to it."""

    def __init__(
        self,
        plan: LoadedPlan,
        shown: str,
        todos: list[Todo],
        folder: Any,
        sessions: Sessions,
        run: Any,
        changes: Any,
    ) -> None:
        self.plan = plan
        self.shown = shown
        self.todos = todos
        self.folder = folder
        self.sessions = sessions
        self.run = run
        self.changes = changes


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


def _require_todo(plan: LoadedPlan, shown: str, todo_id: str) -> None:
    known = [todo.id for todo in plan.plan.items]
    if todo_id in known:
        return
    alike = difflib.get_close_matches(todo_id, known, n=1)
    hint = f"did you mean {shown}::{alike[0]}?" if alike else f"it has {', '.join(known[:8])}"
    raise pytest.UsageError(f"{shown}: the plan has no todo {todo_id!r}; {hint}")


def _require_different_ids(plans: list[LoadedPlan]) -> None:
    seen: dict[str, LoadedPlan] = {}
    for plan in plans:
        other = seen.setdefault(plan.plan.todo_list_id, plan)
        if other is not plan:
            raise pytest.UsageError(
                f"{other.path} and {plan.path} are both {plan.plan.todo_list_id!r}: give each plan of a run "
                "a todo_list_id of its own"
            )


def _several(errors: list[Any]) -> Any:
    from planner.errors import PlannerError

    return errors[0] if len(errors) == 1 else PlannerError("\n\n".join(map(str, errors)))


def _open_journal(path: Path, run_id: str, shown: str, digest: str) -> None:
    from pytest_planverify.journal import VERSION, JournalWriter

    journal = JournalWriter(path, "parent")
    journal.write(
        "run_started",
        version=VERSION,
        run_id=run_id,
        plan=shown,
        digest=digest,
        python=platform.python_version(),
        pytest=pytest.__version__,
        argv=sys.argv[1:],
    )
    journal.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
