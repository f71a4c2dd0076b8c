"""What the process that was started writes into the journal: the run's beginning, verdicts and end."""

from __future__ import annotations

import os
import platform
import stat
import sys
from contextlib import suppress
from json import dumps
from typing import TYPE_CHECKING, Any

import pytest

from pytest_planverify.journal import VERSION, JournalWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.base import ReadValue
    from planner.model.outcome import OutcomeDocument, PlanRef
    from planner.model.plan import Todo
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.options import Settings
    from pytest_planverify.session.check_runs import CheckRun
    from pytest_planverify.session.tree_state import TreeWatch

WRITER = "parent"
"""Who writes these records, beside the sessions."""

TREE = "tree.json"
"""In the run's folder: what the files were like when it began."""


class RunJournal:
    """The parent's hand in the journal of one plan of the run.

    Each record opens the file anew, for what runs may have removed it, or have put something else in its
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
        evidence = ", ".join(map(_json, run.evidence))
        rests_on = "null" if run.rests_on is None else _json(run.rests_on)
        self._write(
            "check_judged",
            f'"plan": {dumps(self._plan_id)}, "todo_id": {dumps(todo_id)}, "final": {dumps(final)}, '
            f'"check": {_json(run.check)}, "evidence": [{evidence}], '
            f'"properties": {dumps(run.properties, default=str)}, "rests_on": {rests_on}',
        )

    def unexplained(self, reason: str) -> None:
        """Write down that the run cannot be accepted, whatever its checks say."""
        self._write("run_unexplained", f'"reason": {dumps(reason)}')

    def _write(self, record: str, body: str) -> None:
        append(self._path, [(record, body)])


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
    journal = JournalWriter(path, WRITER)
    journal.write(
        "run_started",
        version=VERSION,
        run_id=run_id,
        plan=reference.path,
        digest=reference.digest,
        python=platform.python_version(),
        pytest=pytest.__version__,
        argv=sys.argv[1:],
        pid=os.getpid(),
        reference=reference.model_dump(mode="json"),
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
    plan = f'"plan": {dumps(plan_id)}'
    found = [
        (
            "todo_found",
            f'"todo_id": {dumps(outcome.todo_id)}, {plan}, "outcome": {_json(outcome)}',
        )
        for outcome in mine
    ]
    judged = [
        (
            "todo_judged",
            f'"todo_id": {dumps(outcome.todo_id)}, {plan}, "state": {dumps(outcome.state)}, '
            f'"blocked_by": {dumps(outcome.blocked_by)}',
        )
        for outcome in mine
    ]
    run = document.run
    causes = ", ".join(
        _json(cause) for cause in document.causes if any(todo.plan == plan_id for todo in cause.todos)
    )
    end = (
        "run_finished",
        f'"run_id": {dumps(run.run_id)}, {plan}, "exit_status": {run.exit_status}, '
        f'"interrupted": {dumps(run.interrupted)}, "run": {_json(run)}, "causes": [{causes}]',
    )
    append(path, [*found, *judged, end])


def append(path: Path, records: Iterable[tuple[str, str]]) -> None:
    """Append records of the parent, unless something that is no plain file stands in the journal's place.

    A disk that is full costs the record, not the run.
    """
    with suppress(OSError):
        if path.is_symlink() or (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
            return
        journal = JournalWriter(path, WRITER)
        try:
            for record, body in records:
                journal.write_raw(record, body)
        finally:
            journal.close()


def conditions(settings: Settings, baseline: KeptBaseline | None) -> Mapping[str, str]:
    """What verdicts hold under, besides the plan and the files: the same words here, the same verdicts."""
    words: dict[str, Any] = {
        "isolate": settings.isolate,
        "every worker": list(_deciding(settings.worker_args)),
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


_SHOWING = ("-v", "-q", "--verbose", "--quiet", "--no-header", "--no-summary", "-l", "--showlocals")
_SHOWING_VALUES = ("--tb", "--color", "--durations", "--show-capture", "-r")
_DEBUGGING = ("--pdb", "--trace", "--full-trace")


def _deciding(words: Sequence[str]) -> Iterator[str]:
    """Pass over options that only say what is shown, or that stop in a debugger."""
    pending = iter(words)
    for word in pending:
        if word in _SHOWING_VALUES:
            next(pending, None)
        elif word.partition("=")[0] not in (*_SHOWING, *_SHOWING_VALUES, *_DEBUGGING):
            yield word


def baseline_digest(baseline: KeptBaseline) -> str:
    """Two baselines with the same one say the same."""
    from hashlib import sha256

    return sha256(_json(baseline.document).encode()).hexdigest()


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


def _json(value: ReadValue) -> str:
    try:
        return value.model_dump_json()
    except ValueError:  # text of the run that is no text: half of a surrogate pair
        return dumps(value.model_dump(mode="json"))
