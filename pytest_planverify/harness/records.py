"""Records of a run that agents must not change, and a copy of them outside of the project.

An agent that cleans the tree, as by ``git clean -fdx``, removes ``.planverify`` with all that a turn is
undone from. The copy has it: objects of git as hard links, where the file system can, other files copied.
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

_OF_TURNS = ("turns", "outcomes.json")
"""What a turn and a verification write into the folder of the run."""


class Records:
    """The records of one run: its plan, baselines and log, and the answers of people."""

    def __init__(self, root: Path, run: Path, session: RunSession) -> None:
        """``run`` is the folder of the run."""
        self._root, self._run, self._session = root, run, session
        self._harness = run.parent
        self._copy = Path(
            tempfile.mkdtemp(prefix=tree_prefix(run))
        )  # deleted by whoever resumes, if not here
        self._held: dict[Path, bytes] = {}

    def note(self, *, own: bool = False) -> None:
        """Take the records to be right as they are; with ``own`` those alone that the run itself writes.

        While it writes them an agent may change the others.
        """
        now = self._read()
        others = self._held if own else now
        self._held = {path: content for path, content in others.items() if not self._is_own(path)}
        self._held |= {path: content for path, content in now.items() if self._is_own(path)}

    def _is_own(self, path: Path) -> bool:
        return path == self._session.log or path.is_relative_to(self._run)

    def keep_copy(self) -> None:
        """Bring the copy up to date, before an agent begins."""
        _copy_files(self._harness, self._copy)

    def put_back(self, *, by_people: bool = True) -> tuple[list[str], bool]:
        """Put back what has changed since it was noted; return its names, and whether the store was gone.

        The log and the answers, to which people may add while no agent works, count by ``by_people``.
        """
        was_removed = not (self._harness / "objects.git/HEAD").exists()
        if was_removed:
            _copy_files(self._copy, self._harness)
        now, log = self._read(), self._session.log
        spared = () if by_people else (log, self._root / HOME / "answers.json")
        changed = [path for path in {**now, **self._held} if now.get(path) != self._held.get(path)]
        changed = [path for path in changed if path not in spared]
        for path in changed:
            content = self._held.get(path)
            if content is None:
                path.unlink()
            elif path == log:
                self._session.restore_log(content)
            else:
                replace_file(path, content, mode=0o644)
        altered = changed if not was_removed else [path for path in changed if path in now]
        return [path.relative_to(self._root).as_posix() for path in sorted(altered)], was_removed

    def close(self) -> None:
        """Delete the copy."""
        delete_folder(self._copy)

    def _read(self) -> dict[Path, bytes]:
        home, log = self._root / HOME, self._session.log
        of_run = [path for path in self._run.glob("*") if path.name not in _OF_TURNS]
        below = [file for path in of_run for file in (path, *path.rglob("*"))]
        paths = [*home.glob("plans/*/*baseline*.json"), home / "answers.json", log, *below]
        return {path: path.read_bytes() for path in paths if path.is_file()}


def _copy_files(source: Path, target: Path) -> None:
    """Copy files that are missing or older in the target."""
    for folder, folders, names in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        folders[:] = [name for name in folders if not (place / name).is_symlink()]
        for name in names:
            original, copy = Path(folder, name), place / name
            with suppress(OSError):  # gone in the meantime
                if "objects" in place.parts and not copy.exists():
                    with suppress(OSError):  # another file system, or one without links
                        os.link(original, copy)
                if not copy.exists() or copy.stat().st_mtime_ns != original.stat().st_mtime_ns:
                    shutil.copy2(original, copy)
