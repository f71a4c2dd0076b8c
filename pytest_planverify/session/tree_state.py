"""State of the files at the start of a run, from which a later run determines what changed.

Under git: the commit, and digests of all files that differ from it; elsewhere digests of all files.
Caches and this plugin's own files are excluded.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from planner.errors import FileWriteError
from planner.planfile.file_writer import replace_file
from planner.planfile.project_files import GONE, digest_of, is_cache_or_report, is_code, walk
from pytest_planverify.baseline.repository import GitFailed, git, top_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

VERSION = 1
MOST_FILES = 5_000
"""Limit of compared files; under git only files that differ from the commit count."""


@dataclass(frozen=True, slots=True)
class TreeState:
    """The files below one or several roots at one time."""

    heads: Mapping[str, str] = field(default_factory=dict[str, str])
    """Commits by top folder of the repository. All paths are relative to the plan's root."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digest by file; ``gone`` for a deleted one."""
    loose: frozenset[str] = frozenset()
    """Files that no commit contains."""

    def write(self, path: Path) -> None:
        """Write the state beside a journal. Raises :class:`planner.errors.FileWriteError`."""
        data = {
            "version": VERSION,
            "heads": dict(self.heads),
            "files": dict(self.files),
            "loose": sorted(self.loose),
        }
        replace_file(path, json.dumps(data))

    @classmethod
    def read(cls, path: Path) -> TreeState | None:
        """Read a state; ``None`` if it is missing, foreign or of a newer version."""
        try:
            data: Any = json.loads(path.read_bytes())
            if data["version"] > VERSION:
                return None
            heads, files = cast("dict[str, str]", data["heads"]), cast("dict[str, str]", data["files"])
            return cls(dict(heads), dict(files), frozenset(data["loose"]))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None


def read_tree(roots: Sequence[Path], apart: Sequence[Path] = ()) -> TreeState | None:
    """Return the current state; the first root is the plan's own, files in ``apart`` are excluded.

    ``None`` if git fails or there are too many files.
    """
    base = roots[0]
    heads: dict[str, str] = {}
    files: dict[str, str] = {}
    loose: set[str] = set()
    for top in dict.fromkeys(top_of(root) or root for root in roots):
        head, names = None, {}
        if (top / ".git").exists():
            found = _under_git(top)
            if found is None:
                return None
            head, names = found
        else:
            names = dict.fromkeys(islice(walk(top), MOST_FILES + 1), True)
        if len(names) > MOST_FILES:
            return None
        if head is not None:
            heads[os.path.relpath(top, base)] = head
        for name, is_loose in names.items():
            path = top / name
            if _lies_in(path, apart):
                continue
            shown = os.path.relpath(path, base)
            files[shown] = digest_of(path)
            if is_loose:
                loose.add(shown)
    return TreeState(heads, files, frozenset(loose))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Changed files, relative to the plan's root."""

    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    """New files, without uncommitted data that the run wrote itself."""
    unknown: str | None = None
    """Reason why the changes are unknown."""


def difference(
    then: TreeState,
    now: TreeState,
    root: Path,
    *,
    began: float,
    ended: float,
    apart: Sequence[Path] = (),
) -> Difference:
    """Compare the current files with ``then``, the state at the start of a past run.

    ``began`` and ``ended`` are the times of that run in epoch seconds. ``apart`` are excluded files, as in
    :func:`read_tree`.
    """
    if now.heads.keys() != then.heads.keys():
        return Difference(unknown="the files were added to git, or removed from it")
    changed: list[str] = []
    gone: list[str] = []
    added: list[str] = []
    committed = _between_commits(then, now, root, apart)
    if committed is None:
        return Difference(unknown="HEAD is another commit, and git cannot list the changes between them")
    for name in sorted({*then.files, *now.files, *committed}):
        is_new = committed.get(name, name in now.loose)  # and so not in the earlier commit
        # A file without a digest was as in its commit then, or did not exist.
        before = then.files.get(name, GONE if is_new else "as committed")
        after = now.files.get(name) or digest_of(root / name)
        if before == after:
            continue
        if after == GONE:
            gone.append(name)
        elif before != GONE:
            changed.append(name)
        elif name not in now.loose or not _is_own(root / name, name, began, ended):
            added.append(name)
    return Difference(changed=tuple(changed), gone=tuple(gone), added=tuple(added))


def _between_commits(
    then: TreeState, now: TreeState, root: Path, apart: Sequence[Path]
) -> dict[str, bool] | None:
    """Return the files that differ between the commits, with whether each is new; ``None`` if git fails."""
    found: dict[str, bool] = {}
    for top, head in then.heads.items():
        if now.heads[top] == head:
            continue
        folder = root / top
        try:
            output = git(folder, "diff", "--name-status", "-z", "--no-renames", head, now.heads[top], "--")
        except GitFailed:
            return None
        words = os.fsdecode(output).split("\0")
        for status, name in zip(words[::2], words[1::2], strict=False):
            path = folder / name
            if not is_cache_or_report(name) and not _lies_in(path, apart):
                found[os.path.relpath(path, root)] = status == "A"
    return found


def _lies_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == each or each in path.parents for each in folders)


def _is_own(path: Path, name: str, began: float, ended: float) -> bool:
    """Return whether a new file was written by the run itself, judged by its ctime (nobody can set it).

    Files of outcomes always count as its own, code never does.
    """
    if _is_outcome_file(path):
        return True
    try:
        return not is_code(name) and began <= path.lstat().st_ctime <= ended
    except OSError:
        return False


class TreeWatch:
    """Reads the state in a thread while the run starts, and writes it once there is a verdict."""

    def __init__(
        self, roots: Sequence[Path], apart: Sequence[Path] = (), known: TreeState | None = None
    ) -> None:
        """``known`` is the state if it was read already."""
        self._state = known
        self._thread = threading.Thread(
            target=self._read, args=(tuple(roots), tuple(apart)), name="planverify-tree", daemon=True
        )
        if known is None:
            self._thread.start()

    def keep(self, path: Path) -> None:
        """Write the state. If it is unknown or cannot be written, the run cannot be resumed."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._state is not None:
            with suppress(FileWriteError):
                self._state.write(path)

    def _read(self, roots: tuple[Path, ...], apart: tuple[Path, ...]) -> None:
        with suppress(OSError):
            self._state = read_tree(roots, apart)


def _under_git(top: Path) -> tuple[str, dict[str, bool]] | None:
    """Return the commit and the files that differ from it, with whether each is untracked."""
    try:
        output = git(
            *(top, "status", "--porcelain=v2", "--branch", "-z", "--no-renames"),
            *("--untracked-files=all", "--ignored=matching"),
        )
    except GitFailed:
        return None
    head = ""
    names: dict[str, bool] = {}
    for entry in os.fsdecode(output).split("\0"):
        if entry.startswith("# branch.oid "):
            head = entry.removeprefix("# branch.oid ")
        place = _FIELDS_BEFORE_PATH.get(entry[:2])
        if place is None:
            continue
        name = entry.split(" ", place)[place]
        # Of ignored files only code counts; the rest are artifacts of builds and tests.
        if not is_cache_or_report(name) and (entry[0] != "!" or (is_code(name) and not name.endswith("/"))):
            names[name] = entry[0] in "?!"
    return head, names


_FIELDS_BEFORE_PATH = {"1 ": 8, "u ": 10, "? ": 1, "! ": 1}
"""Number of fields before the path, by kind of entry in ``git status --porcelain=v2``."""


def _is_outcome_file(path: Path) -> bool:
    """Return whether a file holds outcomes, which no verdict depends on."""
    with suppress(OSError):
        if path.suffix == ".json" and stat.S_ISREG(path.lstat().st_mode):
            with open(path, "rb") as file:
                head = file.read(400)
            return head.lstrip(b"{ \n").startswith(b'"schema_version"') and b'"todo_list_id"' in head
    return False
