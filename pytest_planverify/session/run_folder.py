"""The folder of one run below ``.planverify``, and the parent's records in its journal."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import stat
import sys
import time
from contextlib import suppress
from hashlib import sha256
from json import dumps
from typing import TYPE_CHECKING, Any

import pytest

from planner.catalog.pytest_arguments import split_options
from planner.errors import FileWriteError
from planner.planfile.file_writer import replace_file
from planner.planfile.latest_outcomes import JOURNAL, JOURNAL_VERSION, PARENT
from planner.planfile.plan_folder import HOME, make_home
from planner.planfile.record_files import outcomes_text
from pytest_planverify import interpreter_flags
from pytest_planverify.journal import JournalWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from planner.model.base import ReadValue
    from planner.model.journal import CheckRun
    from planner.model.outcome import OutcomeDocument, PlanRef, RunInfo
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.options import Settings

KEPT_RUNS = 20
_ABANDONED_SECONDS = 600
"""Age in seconds after which a partially written file is abandoned."""


class RunFolder:
    """Folder of one run of one plan; concurrent runs never share one."""

    def __init__(self, root: Path, run_id: str) -> None:
        self.root = root
        self.home = root / HOME
        self.path = self.home / "runs" / run_id
        self.journal = self.path / JOURNAL
        self.outcomes = self.path / "outcomes.json"
        """The plan's outcomes of this run, for the history."""

    def create(self) -> None:
        """Create the folders, exclude them from version control, and remove old runs.

        Raises ``OSError`` if the plan's root is not writable.
        """
        make_home(self.root)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self.path.mkdir(mode=0o700)
        ages: dict[Path, float] = {}
        for entry in self.path.parent.iterdir():
            with suppress(OSError):  # another run may remove it concurrently
                if entry.is_dir():
                    ages[entry] = entry.stat().st_mtime
        for entry in sorted(ages, key=lambda each: ages[each])[:-KEPT_RUNS]:
            if entry != self.path:  # a wrong clock may have made this run the oldest
                shutil.rmtree(entry, ignore_errors=True)
        # Temporary files of killed runs, never renamed to their final name.
        for temporary in (*self.home.glob(".*.tmp"), *self.home.glob("plans/*/.*.tmp")):
            with suppress(OSError):
                if time.time() - temporary.stat().st_mtime > _ABANDONED_SECONDS:
                    temporary.unlink()

    def restore(self) -> None:
        """Recreate the run's folder if tests removed it, and clear the path of its journal."""
        clear_path(self.journal)


def keep_outcomes(document: OutcomeDocument, path: Path) -> None:
    """Write an outcome document below ``.planverify``; what a test put in its place is moved aside.

    Raises ``OSError`` and :class:`planner.errors.FileWriteError`.
    """
    clear_path(path)
    replace_file(path, outcomes_text(document))


def clear_path(file: Path) -> None:
    """Make it possible to write ``file``: create its folder and move aside whatever is in the way.

    That is anything in the file's place that is no regular file, or in the place of a folder below
    ``.planverify`` that is no folder. Prevents writing into pipes or through links. Raises ``OSError``.
    """
    # Only below .planverify, whose contents are ours; a link above it may be the user's own.
    for folder in reversed(file.parents):
        if HOME in folder.parts and os.path.lexists(folder) and not folder.is_dir():
            _set_aside(folder)
    file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(file.lstat().st_mode):
            _set_aside(file)


def _set_aside(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.{secrets.token_hex(3)}"))


def new_run_id() -> str:
    """Return a run id that sorts by time and is unique."""
    # Two runs may start in the same second, and in containers with the same process id.
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"-{os.getpid()}-{secrets.token_hex(3)}"


# -- the parent's records in the journal ---------------------------------------------------------------


TREE = "tree.json"
"""File in the run's folder with the state of the tree at the run's start."""


class RunJournal:
    """The parent's writer for the journal of one plan.

    Each record reopens the file, as tests may have removed or replaced it; a replacement is not written
    to.
    """

    def __init__(self, path: Path, plan_id: str, tree: Future[Any] | None = None) -> None:
        """``tree`` is the state of the files at the run's start, which a verdict needs to be kept later."""
        self._path = path
        self._plan_id = plan_id
        self._tree = tree

    def open(
        self, run_id: str, reference: PlanRef, settings: Settings, baseline: KeptBaseline | None = None
    ) -> None:
        """Write the first record, which identifies run and plan. Raises ``OSError``."""
        self._write(
            "run_started",
            version=JOURNAL_VERSION,
            run_id=run_id,
            plan=reference.path,
            digest=reference.digest,
            python=platform.python_version(),
            pytest=pytest.__version__,
            argv=sys.argv[1:],
            pid=os.getpid(),
            reference=reference.model_dump(mode="json"),
            verifies=not settings.collect_only and not settings.recording,
            conditions=dict(conditions(settings, baseline)),
        )

    def check_judged(self, todo_id: str, run: CheckRun, *, final: bool) -> None:
        """Record a verdict."""
        # The state is written before the first verdict: without it, nobody could tell what has changed
        # since. If it is unknown or cannot be written, the run cannot be resumed.
        if self._tree is not None:
            with suppress(OSError, FileWriteError):
                state: ReadValue | None = self._tree.result()
                if state is not None:
                    # By the standard library: pydantic refuses file names that are not UTF-8.
                    replace_file(self._path.with_name(TREE), dumps(state.model_dump(mode="json")))
            self._tree = None
        self.append(
            "check_judged",
            plan=self._plan_id,
            todo_id=todo_id,
            final=final,
            **run.model_dump(mode="json", include={"check", "evidence", "rests_on", "read_data"}),
            properties=run.properties,  # pydantic would write null for a number that is not finite
        )

    def append(self, record: str, **facts: Any) -> None:
        """Append a record; a full disk, or another thing in the journal's place, costs it, not the run."""
        with suppress(OSError):
            self._write(record, **facts)

    def _write(self, record: str, **facts: Any) -> None:
        journal = JournalWriter(self._path, PARENT)
        try:
            journal.write(record, **facts)
        finally:
            journal.close()

    def close(self, run: RunInfo) -> None:
        """Write the last record; the outcome file beside the journal is written before."""
        end = {"run_id": run.run_id, "exit_status": run.exit_status, "interrupted": run.interrupted}
        self.append("run_finished", plan=self._plan_id, **end)


def conditions(settings: Settings, baseline: KeptBaseline | None) -> Mapping[str, str]:
    """Return the conditions that a verdict depends on besides the plan and the files, by name.

    A later run may keep a verdict only if all its conditions are equal.
    """
    words: dict[str, Any] = {
        "isolate": settings.isolate,
        "every worker": [
            word
            for option in split_options(settings.worker_args)
            if option.name not in _DISPLAY_OPTIONS
            for word in option.words
        ],
        "confirmations": settings.confirmations,
    }
    # Not all variables, as every shell has others; these change what Python and pytest do.
    followed = ("PYTHON", "PYTEST_")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(followed) and name not in _PROCESS_VARIABLES
    }
    return {
        "interpreter": " ".join([sys.implementation.name, sys.version, *interpreter_flags()]),
        "pytest": pytest.__version__,
        "installed packages": _packages(),
        "options": dumps(words),
        "environment": dumps(environment, sort_keys=True),
        "baseline": "" if baseline is None else baseline_digest(baseline),
    }


_DISPLAY_OPTIONS = frozenset(
    {"-v", "-q", "--verbose", "--quiet", "--no-header", "--no-summary", "-l", "--showlocals", "-r", "--tb"}
    | {"--color", "--durations", "--show-capture", "--pdb", "--trace", "--full-trace"}
)
"""Options that only affect output or debugging."""


def baseline_digest(baseline: KeptBaseline) -> str:
    """Return a digest of a baseline's contents."""
    # That of a revision is recorded in each run: its time and its run are no part of what it says.
    content = baseline.document.model_dump(mode="json", exclude={"made_at", "run_id"})
    return sha256(dumps(content).encode()).hexdigest()


_PROCESS_VARIABLES = frozenset(
    f"PYTEST_{name}" for name in ("CURRENT_TEST", "XDIST_TESTRUNUID", "XDIST_WORKER", "XDIST_WORKER_COUNT")
)


def _packages() -> str:
    """Return a digest of the installed distributions, their versions and when they were installed."""
    # By the names of their metadata folders, which contain the version; reading metadata takes much longer.
    # A reinstallation replaces the folder. Modules without metadata are files beside it.
    found: set[str] = set()
    for entry in sys.path:
        endings: tuple[str, ...] = (".dist-info", ".egg-info")
        if entry.endswith("-packages"):  # the project's own modules may lie in other folders
            endings += (".py", ".pth", ".egg-link")
        with suppress(OSError), os.scandir(entry or ".") as files:
            for each in files:
                if each.name.endswith(endings):
                    found.add(f"{each.name} {each.stat(follow_symlinks=False).st_mtime_ns}")
    return sha256("\n".join(sorted(found)).encode("utf-8", "surrogateescape")).hexdigest()
