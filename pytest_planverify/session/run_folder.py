"""The folder ``.planverify`` below a plan's root, and the run's own folder in it."""

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
_HALF_SECONDS = 600
"""After so long nobody is still writing it."""


class RunFolder:
    """The folder that one run of one plan writes to. Two runs at once never share one."""

    def __init__(self, root: Path, run_id: str) -> None:
        self.root = root
        self.home = root / HOME
        self.path = self.home / "runs" / run_id
        self.journal = self.path / JOURNAL

    @property
    def outcomes(self) -> Path:
        """Return those of the latest run of any plan of the root."""
        return self.root / LATEST

    def create(self) -> None:
        """Make the folders, keep them out of version control, and drop runs of long ago.

        Raises ``OSError`` if the plan's root cannot be written to.
        """
        make_home(self.root)
        self.path.mkdir(parents=True, mode=0o700)
        ages: dict[Path, float] = {}
        for entry in self.path.parent.iterdir():
            with contextlib.suppress(OSError):  # another run may drop it at the same time
                if entry.is_dir():
                    ages[entry] = entry.stat().st_mtime
        for entry in sorted(ages, key=lambda each: ages[each])[:-KEPT_RUNS]:
            if entry != self.path:
                shutil.rmtree(entry, ignore_errors=True)
        # Files that a run which was killed had not written to their end, and so not renamed.
        for half in (*self.home.glob(".*.tmp"), *self.home.glob("plans/*/.*.tmp")):
            with contextlib.suppress(OSError):
                if time.time() - half.stat().st_mtime > _HALF_SECONDS:
                    half.unlink()

    def restore(self) -> None:
        """Make the run's folder again if what ran has removed it, and clear the place of its journal."""
        make_way(self.journal)


def keep_outcomes(document: OutcomeDocument, path: Path) -> None:
    """Write a record of outcomes below ``.planverify``, whatever was put in its place.

    Raises ``OSError`` and :class:`planner.errors.FileWriteError`.
    """
    make_way(path)
    replace_file(path, outcomes_text(document))


def make_way(file: Path) -> None:
    """See to it that a record of ours can be written, whatever was put in its place: that is set aside.

    Nothing is written into a pipe, or through a link in the file's place. Raises ``OSError``.
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
    """Sorts by time; two runs of one second still differ."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"-{os.getpid()}-{secrets.token_hex(3)}"
