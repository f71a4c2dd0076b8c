"""The ``.planverify`` folder below a plan's root, and the folder of one run in it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import time
from typing import TYPE_CHECKING

from planner.planfile.file_writer import replace_file
from planner.planfile.latest_outcomes import JOURNAL
from planner.planfile.plan_folder import HOME, LATEST, make_home
from planner.planfile.record_files import outcomes_text

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.outcome import OutcomeDocument

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

    @property
    def outcomes(self) -> Path:
        """Path of the latest outcomes of any plan of the root."""
        return self.root / LATEST

    def create(self) -> None:
        """Create the folders, exclude them from version control, and remove old runs.

        Raises ``OSError`` if the plan's root is not writable.
        """
        make_home(self.root)
        self.path.mkdir(parents=True, mode=0o700)
        ages: dict[Path, float] = {}
        for entry in self.path.parent.iterdir():
            with contextlib.suppress(OSError):  # another run may remove it concurrently
                if entry.is_dir():
                    ages[entry] = entry.stat().st_mtime
        for entry in sorted(ages, key=lambda each: ages[each])[:-KEPT_RUNS]:
            if entry != self.path:
                shutil.rmtree(entry, ignore_errors=True)
        # Temporary files of killed runs, never renamed to their final name.
        for temporary in (*self.home.glob(".*.tmp"), *self.home.glob("plans/*/.*.tmp")):
            with contextlib.suppress(OSError):
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
    for folder in reversed(file.parents):
        if HOME in folder.parts and os.path.lexists(folder) and not folder.is_dir():
            _set_aside(folder)
    file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(file.lstat().st_mode):
            _set_aside(file)


def _set_aside(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}.{secrets.token_hex(3)}"))


def new_run_id() -> str:
    """Return a run id that sorts by time and is unique."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"-{os.getpid()}-{secrets.token_hex(3)}"
