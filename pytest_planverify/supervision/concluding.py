"""From plans that were run to what the user is told: outcome file, screen, exit status."""

from __future__ import annotations

import os
import platform
import time
from json import dumps
from typing import TYPE_CHECKING

import pytest

from planner.edges.outcome_file import write_outcomes
from planner.model.outcome import RunInfo
from pytest_planverify.guards.guarding import hygiene_of
from pytest_planverify.supervision.documenting import document_of, find_outcomes
from pytest_planverify.supervision.exit_status import ExitStatus
from pytest_planverify.supervision.opinions import Opinions
from pytest_planverify.supervision.run_facts import now
from pytest_planverify.supervision.run_records import append, close_journal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.outcome import OutcomeDocument
    from pytest_planverify.supervision.documenting import Longreprs
    from pytest_planverify.supervision.prepared import Prepared
    from pytest_planverify.supervision.run_facts import RunFacts
    from pytest_planverify.supervision.sessions import Sessions


def conclude(facts: RunFacts, prepared: Sequence[Prepared], *, interrupted: bool) -> int:
    """Write and say what was found. Returns the exit status."""
    from pytest_planverify.reports.terminal import render_summary

    settings = facts.settings
    for each in prepared:
        each.folder.restore()
        _echo_summaries(facts, each.sessions)
        if not settings.recording:
            each.guards.remember()
            narrowed = settings.narrows
            each.run.hold(each.guards.violations(each.run.spent, each.run.result, narrowed=narrowed))
        elif written := each.guards.written():
            append(each.folder.journal, [("artifacts_written", f'"artifacts": {dumps(written)}')])
    document, longreprs = _document(facts, prepared, interrupted=interrupted)
    path = settings.outcomes or prepared[0].folder.outcomes
    write_outcomes(document, path)
    _write_junit(facts, prepared)
    for each in prepared:  # last, so that a journal with an end has all its files beside it
        close_journal(each.folder.journal, each.plan.plan.todo_list_id, document)
    render_summary(
        facts.tw,
        document,
        plans=[each.plan for each in prepared],
        verbosity=settings.verbosity,
        outcomes_path=os.path.relpath(path, settings.invocation_dir),
        answers_path=os.path.relpath(prepared[0].folder.answers, settings.invocation_dir),
        longreprs=longreprs,
    )
    return document.run.exit_status


def show_tree(facts: RunFacts, prepared: Sequence[Prepared], *, interrupted: bool) -> int:
    """Show what was collected. Returns the exit status."""
    from pytest_planverify.reports.tree import render_tree

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
            facts.tw,
            each.plan,
            selected,
            problems,
            verbosity=facts.settings.verbosity,
            todo_ids=[todo.id for todo in each.todos],
        )
    if interrupted:
        return ExitStatus.INTERRUPTED
    return ExitStatus.FAILED if problems_found else ExitStatus.ACCEPTED


def _document(
    facts: RunFacts, prepared: Sequence[Prepared], *, interrupted: bool
) -> tuple[OutcomeDocument, Longreprs]:
    settings = facts.settings
    opinions = Opinions(facts.config.pluginmanager)
    found = find_outcomes(
        prepared,
        opinions,
        run_id=facts.run_id,
        recording=settings.recording,
    )
    run = RunInfo(
        run_id=facts.run_id,
        started_at=facts.started_at,
        finished_at=now(),
        duration_ms=round((time.monotonic() - facts.started) * 1000),
        exit_status=int(found.status(settings.scope, interrupted=interrupted)),
        scope=settings.scope,
        python=platform.python_version(),
        pytest=pytest.__version__,
        hygiene=hygiene_of(each.guards.hygiene for each in prepared),
        interrupted=interrupted,
        notes=(*_notes(facts, prepared, interrupted=interrupted), *opinions.notes),
    )
    return document_of(prepared, found, run), found.longreprs


def _notes(facts: RunFacts, prepared: Sequence[Prepared], *, interrupted: bool) -> Iterator[str]:
    if interrupted:
        yield "interrupted: what had not been verified by then is not run"
    if facts.settings.narrows:
        yield "only a part of the plan was asked for; what was left out is not verified"
    if facts.budget.refused:
        count = facts.budget.refused
        yield (
            f"{count} {'check was' if count == 1 else 'checks were'} not confirmed: the "
            f"{facts.budget.seconds:g} s for confirmations were used up"
        )
    for each in prepared:
        yield from each.run.result.notes
        yield from each.guards.notes
        if each.run.result.unexplained is not None:
            yield f"not accepted: {each.run.result.unexplained}"


def _echo_summaries(facts: RunFacts, sessions: Sessions) -> None:
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
        if text and facts.settings.verbosity >= 0:
            facts.tw.line(text)


def _write_junit(facts: RunFacts, prepared: Sequence[Prepared]) -> None:
    if facts.settings.junit is None:
        return
    from pytest_planverify.reports.junit import merge_junit

    parts = [part for each in prepared for part in each.sessions.junit_parts if part[0].exists()]
    files, roots = [file for file, _ in parts], [root for _, root in parts]
    for problem in merge_junit(files, facts.settings.junit, roots):
        facts.tw.line(problem, yellow=True)


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
