"""The commit at which each todo of a plan was green last: what has changed since is what broke it.

A todo that was green with uncommitted work was green at the first later commit that holds just that work.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from planner.errors import FileWriteError
from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import PlanFolder, make_home
from pytest_planverify.baseline.repository import GitFailed, Repository, git

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pytest_planverify.baseline.changes import Changes

MOST_FILES = 200
"""Uncommitted files whose contents are noted; a state with more is not."""

MOST_COMMITS = 50
"""Commits after a green run that are looked at for its uncommitted work."""


class GreenRevisions:
    """The green states of the todos of one plan, below its root."""

    def __init__(self, root: Path, plan_id: str) -> None:
        self._path = PlanFolder(root, plan_id).green
        self._root = root
        self._commits: dict[str, str | None] = {}
        self._changes: dict[tuple[Changes, str], Changes] = {}

    def note(self, todo_ids: Collection[str], changes: Changes) -> None:
        """Note that todos are green now. Where there is no commit nothing is."""
        files = changes.files_of_work()
        repository = None if files is None or not todo_ids else Repository.around(self._root)
        commit = None if repository is None else repository.commit("HEAD")
        if files is None or repository is None or commit is None or len(files) > MOST_FILES:
            return
        there = [path for path in files if (self._root / path).is_file()]
        try:
            listed = git(self._root, "hash-object", "--", *there).decode().split() if there else []
        except GitFailed:
            return
        state = {"commit": commit, "files": dict.fromkeys(files) | dict(zip(there, listed, strict=True))}
        known = self._read()
        now = known | dict.fromkeys(todo_ids, state)
        if now != known:
            with suppress(OSError, FileWriteError):  # an older state is told next time
                make_home(self._root)
                replace_file(self._path, json.dumps({"schema_version": 1, "todos": now}))

    def changes_since(self, todo_id: str, changes: Changes) -> Changes | None:
        """Return the changes of a root since a todo was green; ``None`` where nobody knows that state."""
        if todo_id not in self._commits:
            self._commits[todo_id] = self.revision_of(todo_id)
        commit = self._commits[todo_id]
        if commit is None:
            return None
        if (changes, commit) not in self._changes:
            self._changes[changes, commit] = changes.at(commit)
        return self._changes[changes, commit]

    def revision_of(self, todo_id: str) -> str | None:
        """Return the commit with which a todo was green last; ``None`` where no commit has that state."""
        state = self._read().get(todo_id)
        repository = Repository.around(self._root) if isinstance(state, dict) else None
        if repository is None:
            return None
        held = cast("dict[str, Any]", state)
        files: dict[str, str | None] = held.get("files") or {}
        commit = repository.commit(str(held.get("commit")))
        if commit is None or not files:
            return commit
        with suppress(GitFailed):
            words = ("rev-list", "--reverse", "--ancestry-path", f"{commit}..HEAD")
            for later in git(self._root, *words).decode().split()[:MOST_COMMITS]:
                blobs = repository.blobs(later)
                # What was never committed, as a file of notes, says nothing.
                if all(blobs.get(path) in (blob, None) for path, blob in files.items()) and any(
                    blobs.get(path) == blob for path, blob in files.items()
                ):
                    return later
        return None

    def _read(self) -> dict[str, Any]:
        try:
            held: Any = json.loads(self._path.read_bytes())
            return dict(held["todos"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}
