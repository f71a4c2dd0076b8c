"""The parent's records in the journal of a run: written as it goes on, and read of runs that are over."""

from __future__ import annotations

import os
import platform
import stat
import sys
from contextlib import suppress
from json import dumps
from typing import TYPE_CHECKING, Any

import pytest

from planner.catalog.pytest_arguments import split_options
from planner.planfile.past_runs import JOURNAL_VERSION, PARENT
from pytest_planverify.checks.result import CheckRun
from pytest_planverify.journal import JournalWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from planner.model.base import ReadValue
    from planner.model.journal import (
        CheckJudged,
    )
    from planner.model.outcome import OutcomeDocument, PlanRef
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.options import Settings
    from pytest_planverify.session.tree_state import TreeWatch

TREE = "tree.json"
"""In the run's folder: what the files were like when it began."""


class RunJournal:
    """The parent's hand in the journal of one plan of the run.

    Each record opens the file again, for what runs may have removed it, or have put something else in its
    place; that is left alone.
    """

    def __init__(self, path: Path, plan_id: str, tree: TreeWatch | None = None) -> None:
        """``tree`` is written beside the journal before the first verdict, which says little without it."""
        self._path = path
        self._plan_id = plan_id
        self._tree = tree

    def check_judged(self, todo_id: str, run: CheckRun, *, final: bool) -> None:
        """Write down a verdict that has just been reached."""
        if self._tree is not None:
            tree, self._tree = self._tree, None
            tree.keep(self._path.with_name(TREE))
        facts = {
            "plan": self._plan_id,
            "todo_id": todo_id,
            "final": final,
            "check": _data(run.check),
            "evidence": [_data(each) for each in run.evidence],
            "properties": run.properties,
            "rests_on": None if run.rests_on is None else _data(run.rests_on),
        }
        append(self._path, ("check_judged", facts))

    def unexplained(self, reason: str) -> None:
        """Write down that the run cannot be accepted, whatever its checks say."""
        append(self._path, ("run_unexplained", {"reason": reason}))


def open_journal(
    path: Path,
    run_id: str,
    reference: PlanRef,
    settings: Settings,
    todos: Iterable[Todo],
    *,
    boundary: Path | None = None,
    baseline: KeptBaseline | None = None,
    remarks: Sequence[str] = (),
) -> None:
    """Write the first record: which run, and of which plan. Raises ``OSError``."""
    journal = JournalWriter(path, PARENT)
    journal.write(
        "run_started",
        version=JOURNAL_VERSION,
        run_id=run_id,
        plan=reference.path,
        digest=reference.digest,
        python=platform.python_version(),
        pytest=pytest.__version__,
        argv=sys.argv[1:],
        pid=os.getpid(),
        reference=_data(reference),
        todos=[todo.id for todo in todos],
        scope=settings.scope,
        keep_going=settings.keep_going,
        verifies=not settings.collect_only and not settings.recording,
        boundary=None if boundary is None else str(boundary),
        conditions=dict(conditions(settings, baseline)),
        remarks=list(remarks),
    )
    journal.close()


def close_journal(path: Path, plan_id: str, document: OutcomeDocument) -> None:
    """Write the last records: what was found of each todo, how it stands, and how the run ended."""
    mine = [outcome for outcome in document.outcomes if outcome.plan == plan_id]
    found = [("todo_found", {"todo_id": each.todo_id, "outcome": _data(each)}) for each in mine]
    judged = [
        ("todo_judged", {"todo_id": each.todo_id, "state": each.state, "blocked_by": each.blocked_by})
        for each in mine
    ]
    run = document.run
    causes = (each for each in document.causes if any(todo.plan == plan_id for todo in each.todos))
    end = {
        "run_id": run.run_id,
        "exit_status": run.exit_status,
        "interrupted": run.interrupted,
        "run": _data(run),
        "causes": [_data(each) for each in causes],
    }
    records: list[tuple[str, dict[str, Any]]] = [*found, *judged, ("run_finished", end)]
    append(path, *((name, {"plan": plan_id, **facts}) for name, facts in records))


def append(path: Path, *records: tuple[str, Mapping[str, Any]]) -> None:
    """Append records of the parent, unless something that is no plain file stands in the journal's place.

    A disk that is full costs the record, not the run.
    """
    with suppress(OSError):
        if path.is_symlink() or (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
            return
        journal = JournalWriter(path, PARENT)
        try:
            for name, facts in records:
                journal.write(name, **facts)
        finally:
            journal.close()


def conditions(settings: Settings, baseline: KeptBaseline | None) -> Mapping[str, str]:
    """Return the conditions of a verdict besides the plan and the files: equal ones give equal verdicts."""
    words: dict[str, Any] = {
        "isolate": settings.isolate,
        "every worker": [
            word
            for option in split_options(settings.worker_args)
            if option.name not in _SHOWING
            for word in option.words
        ],
        "confirmations": settings.confirmations,
    }
    followed = ("PYTHON", "PYTEST_")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(followed) and name not in _OF_ONE_PROCESS
    }
    return {
        "interpreter": f"{sys.implementation.name} {sys.version}",
        "pytest": pytest.__version__,
        "installed packages": _packages(),
        "options": dumps(words),
        "environment": dumps(environment, sort_keys=True),
        "baseline": "" if baseline is None else baseline_digest(baseline),
    }


_SHOWING = frozenset(
    {"-v", "-q", "--verbose", "--quiet", "--no-header", "--no-summary", "-l", "--showlocals", "-r", "--tb"}
    | {"--color", "--durations", "--show-capture", "--pdb", "--trace", "--full-trace"}
)
"""Options that only say what is shown, or that stop in a debugger."""


def baseline_digest(baseline: KeptBaseline) -> str:
    """Two baselines with the same one say the same."""
    from hashlib import sha256

    return sha256(dumps(_data(baseline.document)).encode()).hexdigest()


_OF_ONE_PROCESS = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_XDIST_TESTRUNUID", "PYTEST_XDIST_WORKER"})


def _packages() -> str:
    """A digest of the names and versions of what is installed."""
    from hashlib import sha256

    names: set[str] = set()
    for entry in sys.path:
        with suppress(OSError):
            names |= {
                name for name in os.listdir(entry or ".") if name.endswith((".dist-info", ".egg-info"))
            }
    return sha256("\n".join(sorted(names)).encode("utf-8", "surrogateescape")).hexdigest()


def _data(value: ReadValue) -> Any:
    return value.model_dump(mode="json")


def check_run_of(judged: CheckJudged) -> CheckRun:
    """Return a verdict of a journal with its evidence."""
    return CheckRun(
        check=judged.check,
        evidence=judged.evidence,
        properties=list(judged.properties),
        rests_on=judged.rests_on,
    )
