"""What the process that was started writes into the journal itself: how the run begins and how it ends."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_planverify.journal import VERSION, JournalWriter

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.outcome import OutcomeDocument

WRITER = "parent"
"""Who writes these records, beside the sessions."""


def open_journal(path: Path, run_id: str, shown: str, digest: str) -> None:
    """Write the first record: which run, and of which plan."""
    journal = JournalWriter(path, WRITER)
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


def close_journal(path: Path, plan_id: str, document: OutcomeDocument) -> None:
    """Write the last records: how each todo of the plan stands, and the exit status.

    What ran may have put something else in the journal's place; then it is left alone.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return
    journal = JournalWriter(path, WRITER)
    for outcome in document.outcomes:
        if outcome.plan == plan_id:
            journal.write(
                "todo_judged",
                todo_id=outcome.todo_id,
                plan=plan_id,
                state=outcome.state,
                blocked_by=list(outcome.blocked_by),
            )
    journal.write(
        "run_finished",
        run_id=document.run.run_id,
        plan=plan_id,
        exit_status=document.run.exit_status,
        interrupted=document.run.interrupted,
    )
    journal.close()
