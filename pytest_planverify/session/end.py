"""End of a run: from its results to the outcome file, the screen and the exit status."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planner.model.outcome import OutcomeDocument, RunInfo
from planner.model.verdicts import Verdict
from planner.planfile.file_writer import STANDARD_OUTPUT
from planner.planfile.plan_folder import LATEST, PlanFolder
from planner.planfile.record_files import write_outcomes
from planner.text.sanitizing import clean
from pytest_planverify.baseline.kept_baseline import now
from pytest_planverify.guards.plan_guards import hygiene_of
from pytest_planverify.session.exit_status import ExitStatus, counting, exit_status
from pytest_planverify.session.judge import DESELECTED, LEFT_OUT
from pytest_planverify.session.outcomes import Opinions, find_outcomes, summary_of
from pytest_planverify.session.run_folder import keep_outcomes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planner.model.outcome import Cause
    from planner.model.plan import Todo
    from pytest_planverify.session.outcomes import Assembled
    from pytest_planverify.session.plans import RunFacts
    from pytest_planverify.session.run import SessionRun


def conclude(facts: RunFacts, runs: Sequence[SessionRun], *, interrupted: bool) -> int:
    """Write and show the outcomes of a run; return the exit status."""
    from pytest_planverify.reports.terminal import render_summary

    settings = facts.settings
    for each in runs:
        each.folder.restore()  # a test may have removed the run's folder
        if not settings.recording:
            each.hold(each.guards.violations(each.spent, each.result, narrowed=settings.narrows))
    opinions = Opinions(facts.config.pluginmanager)
    results, causes = find_outcomes(runs, opinions, run_id=facts.run_id, recording=settings.recording)
    duration_ms = round((time.monotonic() - facts.started) * 1000)
    documents = Documents(facts, results, causes, opinions.notes, interrupted, now(), duration_ms)
    document = documents.document(runs)
    report = None
    facts.reporting.decide_without_workers(settings.worker_args, settings.invocation_dir)
    if facts.reporting.given is not None:
        from pytest_planverify.reports.reporter_session import report_criteria

        report = report_criteria(
            facts.reporting,
            document,
            [each.flat for each in runs],
            scratch=runs[0].folder.path / "reports",
            script_paths=facts.script_paths,
            color=facts.tw.hasmarkup,
        )
        # Reporters get what pytest would give them, secrets included; it is not kept.
        for each in runs:
            shutil.rmtree(each.folder.path / "reports", ignore_errors=True)
    if report is not None and report.reason is not None:
        for each in runs:
            each.explain(report.reason)
        document = documents.document(runs)  # again, as the reason changes its exit status
    parts = [document] if len(runs) == 1 else [documents.document([each]) for each in runs]
    # Written before everything that is shown: an interrupt from here on loses no outcome.
    places = list(_write_documents(documents, document, runs, parts))
    longreprs: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for each in results:
        for piece in filter(lambda piece: piece.longrepr, each.evidence):
            texts = longreprs.setdefault((each.plan_id, each.todo.id, piece.check_id), [])
            texts.append((piece.nodeid or piece.check_id, piece.longrepr))
    for each, part in zip(runs, parts, strict=True):
        # Last, so that a journal that has its end record has all of its files.
        each.journal.close(part.run)
    if report is not None and report.text:
        facts.tw.line(report.text)
    if not settings.recording:
        from pytest_planverify.reports.formats import report_input, report_to_github, write_reports

        # After the outcomes are safely written; a report that fails costs one line.
        given = report_input(document, [each.flat for each in runs])
        for line in write_reports(given, settings.reports, runs[0].loaded.root):
            facts.tw.line(line)
        for line in report_to_github(given, os.environ):
            facts.tw.line(line)
        for each in runs:
            each.guards.remember()  # after the reports, which are no todo's work either
    render_summary(
        facts.tw,
        document,
        plans=[each.loaded for each in runs],
        verbosity=settings.verbosity,
        outcomes_path=", ".join(places),
        longreprs=longreprs,
    )
    return document.run.exit_status


def show_tree(facts: RunFacts, runs: Sequence[SessionRun], *, interrupted: bool) -> int:
    """Show the collected tests by criterion; return the exit status."""
    from pytest_planverify.reports.terminal import render_tree

    problems_found = False
    for each in runs:
        selected: dict[tuple[str, str], list[str]] = {}
        problems: dict[tuple[str, str], list[str]] = {}
        for todo_id, checks in each.result.checks.items():
            for check_id, run in checks.items():
                tests = selected[todo_id, check_id] = [test.nodeid for test in run.check.tests]
                problems[todo_id, check_id] = [
                    piece.headline for piece in run.evidence if piece.vacuous is None or not tests
                ]
        problems_found |= any(problems.values())
        render_tree(
            facts.tw,
            each.loaded,
            selected,
            problems,
            verbosity=facts.settings.verbosity,
            todo_ids=[todo.id for todo in each.todos],
        )
    if interrupted:
        return ExitStatus.INTERRUPTED
    return ExitStatus.FAILED if problems_found else ExitStatus.ACCEPTED


@dataclass(frozen=True, slots=True)
class Documents:
    """Builds the outcome document of all plans of a run, or of some of them."""

    facts: RunFacts
    results: Sequence[Assembled]
    causes: Sequence[Cause]
    opinions: Sequence[str]
    interrupted: bool
    finished_at: str
    duration_ms: int

    def document(self, runs: Sequence[SessionRun]) -> OutcomeDocument:
        """Return the outcomes of these plans, with the exit status that they alone determine."""
        facts, settings = self.facts, self.facts.settings
        ids = {each.id for each in runs}
        results = [each for each in self.results if each.plan_id in ids]
        outcomes = tuple(each.outcome for each in results)
        todos: dict[tuple[str | None, str], Todo] = {
            (each.plan_id, each.todo.id): each.todo for each in results
        }
        # Todos that were not requested keep their last verdicts.
        asked = {(each.id, todo_id) for each in runs for todo_id in each.asked}
        counted = counting(outcomes, todos, settings.scope, todos.keys() - asked)
        unexplained = "; ".join(filter(None, (each.result.unexplained for each in runs))) or None
        status = exit_status(counted, interrupted=self.interrupted, unexplained=unexplained is not None)
        run = RunInfo(
            run_id=facts.run_id,
            started_at=facts.started_at,
            finished_at=self.finished_at,
            duration_ms=self.duration_ms,
            exit_status=int(status),
            scope=settings.scope,
            python=platform.python_version(),
            pytest=pytest.__version__,
            hygiene=hygiene_of(each.guards.hygiene for each in runs),
            interrupted=self.interrupted,
            unexplained=unexplained,
            notes=(*_notes(runs, interrupted=self.interrupted), *self.opinions),
        )
        compared = [each.id for each in runs if each.baseline is not None]
        return OutcomeDocument(
            plans=tuple(each.reference for each in runs),
            run=run,
            summary=summary_of(outcomes, compared=compared),
            outcomes=outcomes,
            causes=tuple(each for each in self.causes if any(todo.plan in ids for todo in each.todos)),
        )


def _write_documents(
    documents: Documents,
    document: OutcomeDocument,
    runs: Sequence[SessionRun],
    parts: Sequence[OutcomeDocument],
) -> Iterator[str]:
    """Write the outcome documents. Yield the paths to show to the user.

    The whole document goes to the file that the user requested. Without one, each plan's part goes to the
    plan's folder, and each root gets a document of its plans as its latest. In both cases each run's own
    folder gets its plan's part.
    """
    settings = documents.facts.settings
    for each, part in zip(runs, parts, strict=True):
        keep_outcomes(part, each.folder.outcomes)
    if settings.outcomes is not None:
        given = settings.outcomes
        write_outcomes(document, given)
        written = os.path.relpath(given, settings.invocation_dir)
        yield "standard output" if given == STANDARD_OUTPUT else written
        return
    by_root: dict[Path, list[SessionRun]] = {}
    for each, part in zip(runs, parts, strict=True):
        by_root.setdefault(each.loaded.root, []).append(each)
        keep_outcomes(part, PlanFolder(each.loaded.root, each.id).outcomes)
    for root, runs_of_root in by_root.items():
        latest = root / LATEST
        keep_outcomes(document if len(by_root) == 1 else documents.document(runs_of_root), latest)
        yield os.path.relpath(latest, settings.invocation_dir)


def _notes(runs: Sequence[SessionRun], *, interrupted: bool) -> Iterator[str]:
    """Yield the remarks on the run for its document and its summary."""
    if interrupted:
        yield "interrupted: criteria without a verdict did not run"
    checks = (run.check for each in runs for found in each.result.checks.values() for run in found.values())
    if not interrupted and any(
        check.verdict is Verdict.NOT_RUN
        and any(each in (check.reason or "") for each in (LEFT_OUT, DESELECTED))
        for check in checks
    ):  # a check that keeps its last verdict is not "not run"
        yield "only a part of the plan was selected; the exit status says nothing about the rest"
    for each in runs:
        yield from each.result.notes
        returning = list(dict.fromkeys(name for record in each.result.records for name in record.returning))
        if returning:
            others = f" and {len(returning) - 1} more" if len(returning) > 1 else ""
            yield f"pytest ignores what a test returns; assert it in {returning[0]}{others}"
        imported = dict.fromkeys(name for record in each.result.records for name in record.modules)
        with contextlib.suppress(OSError):  # an unreadable folder is no reason to lose the other notes
            yield from _stale_copy(imported, each.loaded.root)
        yield from each.guards.notes
        refusal = each.changes[each.loaded.root].refusal()
        if refusal is not None:
            yield f"git cannot report what has changed: {refusal}"
        if each.result.unexplained is not None:
            yield f"not accepted: {each.result.unexplained}"


def _stale_copy(modules: Iterable[str], root: Path) -> Iterator[str]:
    """Yield one warning if tests import an installed copy of the project that differs from its files.

    ``modules`` are the dotted names of installed modules that the tests imported. Results with such a
    copy do not depend on the tree. An identical copy is no problem, as where the project is reinstalled
    for each run.
    """
    # The two usual layouts: the package beside the tests, and below src.
    bases = [base for base in (root, root / "src") if base.is_dir()]
    own_names = {path.stem for base in bases for path in base.iterdir()}
    installed = [Path(each) for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    for name in modules:
        if name.partition(".")[0] not in own_names:
            continue
        own, copy = _source(name, bases), _source(name, installed)
        if own is not None and copy is not None and own.read_bytes() != copy.read_bytes():
            yield (
                f"the tests import {clean(str(copy), limit=300)}, which differs from "
                f"{own.relative_to(root).as_posix()}: changes here are not tested; install the project "
                "with pip install -e ."
            )
            return


def _source(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the source file of a module in the first folder that has it, or ``None``."""
    path = name.replace(".", "/")
    files = (folder / f"{path}{suffix}" for folder in folders for suffix in (".py", "/__init__.py"))
    return next((file for file in files if file.is_file()), None)
