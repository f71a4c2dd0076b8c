"""Records of a run that agents must not change, and a copy of them outside of the project.

The contents of the records are kept in memory (:meth:`Records.note`) and written back when they differ
(:meth:`Records.put_back`). The snapshots that turns are undone with are too large for that. An agent that
cleans the tree, for example by ``git clean -fdx``, removes ``.planverify`` with all of them, so they are
copied to a temporary folder: git objects as hard links where the file system supports it, other files as
copies.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import HOME
from pytest_planverify.baseline.worktrees import delete_folder
from pytest_planverify.harness.turns import tree_prefix

if TYPE_CHECKING:
    from planner.store.session import RunSession

_WRITTEN_BY_TURNS = ("turns", "outcomes.json")
"""Names in the folder of the run that turns and verifications write; these are no protected records."""


class Records:
    """Protected records of one run: its plan, its log, the baselines, and the answers of people."""

    def __init__(self, root: Path, run: Path, session: RunSession) -> None:
        """Create the records below ``root``, with an empty copy; ``run`` is the folder of the run."""
        self._root, self._run, self._session = root, run, session
        self._harness = run.parent
        self._copy = Path(
            # The prefix identifies the run: if this process is killed, its successor deletes the folder.
            tempfile.mkdtemp(prefix=tree_prefix(run))
        )
        self._accepted: dict[Path, bytes] = {}

    def note(self, *, own: bool = False) -> None:
        """Accept the current content of the records as correct.

        With ``own`` only the records that the run itself writes are accepted: while it writes them, a
        running agent may change the others.
        """
        now = self._read()
        others = self._accepted if own else now
        self._accepted = {path: content for path, content in others.items() if not self._is_own(path)}
        self._accepted |= {path: content for path, content in now.items() if self._is_own(path)}

    def _is_own(self, path: Path) -> bool:
        """Return whether the run itself writes a record: its log, and files in its folder."""
        return path == self._session.log or path.is_relative_to(self._run)

    def keep_copy(self) -> None:
        """Update the copy outside of the project; called before each turn."""
        _copy_files(self._harness, self._copy)

    def put_back(self, *, by_people: bool = True) -> tuple[list[str], bool]:
        """Restore the records that changed since they were accepted.

        Returns their names relative to the root, and whether the store of snapshots was removed. Records
        that were removed together with the store are restored, but not named. The log and the answers are
        included only with ``by_people``: while no agent works, people may add to them.
        """
        was_removed = not (self._harness / "objects.git/HEAD").exists()
        if was_removed:
            _copy_files(self._copy, self._harness)
        now, log = self._read(), self._session.log
        spared = () if by_people else (log, self._root / HOME / "answers.json")
        changed = [path for path in {**now, **self._accepted} if now.get(path) != self._accepted.get(path)]
        changed = [path for path in changed if path not in spared]
        for path in changed:
            content = self._accepted.get(path)
            if content is None:
                path.unlink()
            elif path == log:
                self._session.restore_log(content)
            else:
                replace_file(path, content, mode=0o644)
        altered = changed if not was_removed else [path for path in changed if path in now]
        return [path.relative_to(self._root).as_posix() for path in sorted(altered)], was_removed

    def close(self) -> None:
        """Delete the copy outside of the project."""
        delete_folder(self._copy)

    def _read(self) -> dict[Path, bytes]:
        """Return the current contents of all records."""
        home, log = self._root / HOME, self._session.log
        of_run = [path for path in self._run.glob("*") if path.name not in _WRITTEN_BY_TURNS]
        below = [file for path in of_run for file in (path, *path.rglob("*"))]
        paths = [*home.glob("plans/*/*baseline*.json"), home / "answers.json", log, *below]
        return {path: path.read_bytes() for path in paths if path.is_file()}


def _copy_files(source: Path, target: Path) -> None:
    """Copy the files that are missing in the target, or have another modification time there."""
    for folder, folders, names in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        folders[:] = [name for name in folders if not (place / name).is_symlink()]
        for name in names:
            original, copy = Path(folder, name), place / name
            with suppress(OSError):  # the file was removed in the meantime
                # Git never changes an object after it is written, so a link is as good as a copy.
                if "objects" in place.parts and not copy.exists():
                    with suppress(OSError):  # another file system, or one without hard links
                        os.link(original, copy)
                if not copy.exists() or copy.stat().st_mtime_ns != original.stat().st_mtime_ns:
                    shutil.copy2(original, copy)
