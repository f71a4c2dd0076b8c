"""The parent's records in the journal of a run: written as it goes on, and read of runs that are over."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from json import dumps
from typing import TYPE_CHECKING, Any

import pytest

from planner.catalog.pytest_arguments import split_options
from planner.planfile.latest_outcomes import JOURNAL_VERSION, PARENT
from pytest_planverify.checks.result import CheckRun
from pytest_planverify.journal import JournalWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from planner.model.base import ReadValue
    from planner.model.journal import CheckJudged
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

    def open(
        self,
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
        journal = JournalWriter(self._path, PARENT)
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

    def check_judged(self, todo_id: str, run: CheckRun, *, final: bool) -> None:
        """Write down a verdict that has just been reached."""
        if self._tree is not None:
            tree, self._tree = self._tree, None
            tree.keep(self._path.with_name(TREE))
        self.append(
            "check_judged",
            plan=self._plan_id,
            todo_id=todo_id,
            final=final,
            check=_data(run.check),
            evidence=[_data(each) for each in run.evidence],
            properties=run.properties,
            rests_on=None if run.rests_on is None else _data(run.rests_on),
        )

    def append(self, record: str, **facts: Any) -> None:
        """Append a record, unless something that is no plain file stands in the journal's place.

        A disk that is full costs the record, not the run.
        """
        with suppress(OSError):
            if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
                return
            journal = JournalWriter(self._path, PARENT)
            try:
                journal.write(record, **facts)
            finally:
                journal.close()

    def close(self, document: OutcomeDocument) -> None:
        """Write the last records: how each todo stands, and how the run ended.

        What was found of them is in the file of outcomes beside the journal, which is written before.
        """
        plan, run = self._plan_id, document.run
        for each in document.outcomes:
            if each.plan == plan:
                facts = {"todo_id": each.todo_id, "state": each.state, "blocked_by": each.blocked_by}
                self.append("todo_judged", plan=plan, **facts)
        end = {"run_id": run.run_id, "exit_status": run.exit_status, "interrupted": run.interrupted}
        self.append("run_finished", plan=plan, **end)


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
