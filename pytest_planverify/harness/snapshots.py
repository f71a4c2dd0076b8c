"""Snapshots of a work tree, in a git repository of the harness's own, below ``.planverify``.

The user's repository, its index and its branches are never touched, and a project needs none: the files
that git does not ignore are committed to ``.planverify/harness/objects.git`` before and after each turn.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from planner.planfile.plan_folder import make_home
from pytest_planverify.baseline.repository import GitFailed, git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LOCK_SECONDS = 5.0
_MOST_ARGUMENTS = 200
_IGNORED = """\
.planverify/
__pycache__/
*.pyc
.pytest_cache/
.mypy_cache/
.ruff_cache/
.hypothesis/
.coverage
.venv/
.tox/
.nox/
node_modules/
"""
# Contents are stored byte for byte, regardless of the user's git configuration.
_PLAIN = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.quotePath=false"),
    *("-c", "advice.addEmbeddedRepo=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "user.name=planverify", "-c", "user.email=planverify@localhost"),
)


class SnapshotError(PlannerError):
    """The files cannot be kept or put back; ``str()`` says why, and what to do."""


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Differences between two snapshots, relative to the root."""

    changed: tuple[str, ...] = ()
    """Edited, deleted and new files."""
    new: tuple[str, ...] = ()
    """New files among them."""


class Snapshots:
    """Snapshots of one work tree."""

    def __init__(
        self, root: Path, name: str, *, store: Path | None = None, index: Path | None = None
    ) -> None:
        """``name`` separates the runs of a project. Raises :class:`SnapshotError`.

        ``store`` and ``index`` are given for another work tree that shares the store.
        """
        self._root = root
        self._refs = f"refs/planverify/{name}"
        self._index = index
        self._last = ("", "")
        self.store = store or _home_store(root)
        """Git repository that stores the snapshots."""
        if not (self.store / "HEAD").exists():
            self._git("init", "--quiet", "--bare", str(self.store), bare=True)
        exclude = self.store / "info" / "exclude"
        exclude.parent.mkdir(exist_ok=True)
        if not exclude.exists() or exclude.read_text() != _IGNORED:
            exclude.write_text(_IGNORED)

    def take(self, label: str, *parents: str) -> str:
        """Store the current files; return the snapshot's id."""
        # Unreadable files are skipped.
        self._git("add", "--all", "--ignore-errors", ".")
        tree = self._git("write-tree").strip()
        if self._last[0] != tree or parents:
            self._last = (tree, self._commit(tree, label, *parents))
        self._git("update-ref", f"{self._refs}/{label}", self._last[1])
        return self._last[1]

    def unlock(self) -> None:
        """Remove git's lock of a killed driver; a git process that is still alive ends first."""
        lock = self.store / "index.lock"
        give_up = time.monotonic() + LOCK_SECONDS
        while lock.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        lock.unlink(missing_ok=True)

    def find(self, label: str) -> str | None:
        """Return the snapshot with that label, or ``None``."""
        return self.resolve(f"{self._refs}/{label}")

    def resolve(self, name: str) -> str | None:
        """Return the full id for a ref or an id prefix, or ``None``."""
        with suppress(SnapshotError):
            return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
        return None

    def labels(self) -> list[str]:
        """Return the labels of all snapshots."""
        listed = self._git("for-each-ref", "--format=%(refname)", self._refs).split()
        return [each.removeprefix(f"{self._refs}/") for each in listed]

    def forget(self, label: str) -> None:
        """Remove a label, if it exists."""
        self._git("update-ref", "-d", f"{self._refs}/{label}")

    def compare(self, before: str, after: str) -> FileChanges:
        """Return the differing files."""
        listing = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)
        fields = listing.split("\0")
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        return FileChanges(
            changed=tuple(path for _, path in pairs), new=tuple(path for kind, path in pairs if kind == "A")
        )

    def diff(self, before: str, after: str) -> str:
        """Return the unified diff."""
        return self._git("diff-tree", "-p", "--no-color", "--no-renames", before, after)

    def read(self, snapshot: str, path: str) -> bytes | None:
        """Return the content of a file, or ``None``."""
        with suppress(SnapshotError):
            return self._ask("cat-file", "blob", f"{snapshot}:{path}")
        return None

    def files(self, snapshot: str) -> frozenset[str]:
        """Return all paths."""
        listing = self._git("ls-tree", "-r", "-z", "--name-only", snapshot)
        return frozenset(path for path in listing.split("\0") if path)

    def restore(self, snapshot: str) -> None:
        """Restore all files; files created since are removed."""
        if self.take("before-restore") != snapshot:
            self.lay_out(snapshot)

    def lay_out(self, snapshot: str) -> None:
        """Write a snapshot's files over a work tree that equals the latest one, or is empty."""
        self._git("read-tree", "--reset", "-u", snapshot)

    def merge(self, before: str, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Return the snapshot with both sides' changes, and the conflicting files."""
        sides = [self._commit(f"{side}^{{tree}}", "side", before) for side in (ours, theirs)]
        try:
            told = self._git(
                "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *sides, accepted=(0, 1)
            )
        except SnapshotError as error:
            raise SnapshotError(f"{error}; turns side by side need git 2.38") from None
        tree, *files = told.rstrip("\0").split("\0")
        return self._commit(tree, "merged"), tuple(dict.fromkeys(files))

    def bundle(self, path: Path, snapshot: str, *without: str) -> bytes:
        """Return a snapshot as a git bundle, given that the receiver has ``without``."""
        ref = f"{self._refs}/bundle-{snapshot[:12]}"
        self._git("update-ref", ref, snapshot)
        self._git("bundle", "create", "--quiet", str(path), ref, *(f"^{each}" for each in without))
        return path.read_bytes()

    def unbundle(self, path: Path, content: bytes) -> None:
        """Import a bundle of :meth:`bundle`."""
        path.write_bytes(content)
        self._git("bundle", "unbundle", str(path))

    def _commit(self, tree: str, label: str, *parents: str) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        return self._git("commit-tree", tree, *named, "-m", label).strip()

    def restore_files(self, snapshot: str, changes: FileChanges) -> None:
        """Restore the files changed since a snapshot, leaving others alone."""
        for path in changes.new:
            (self._root / path).unlink(missing_ok=True)
        there = [path for path in changes.changed if path not in changes.new]
        for start in range(0, len(there), _MOST_ARGUMENTS):
            some = there[start : start + _MOST_ARGUMENTS]
            self._git("--literal-pathspecs", "checkout", "--quiet", snapshot, "--", *some)

    def _git(self, *words: str, accepted: Sequence[int] = (0,), bare: bool = False) -> str:
        return os.fsdecode(self._ask(*words, accepted=accepted, bare=bare))

    def _ask(self, *words: str, accepted: Sequence[int] = (0,), bare: bool = False) -> bytes:
        own = {} if self._index is None else {"GIT_INDEX_FILE": str(self._index)}
        where = () if bare else (f"--git-dir={self.store}", f"--work-tree={self._root}")
        try:
            return git(self._root, *where, *_PLAIN, *words, env=own, accepted=accepted)
        except GitFailed as error:
            raise SnapshotError(
                f"{self._root}: git {words[0]} failed ({error}); the files of a turn cannot be kept"
            ) from None


def _home_store(root: Path) -> Path:
    try:
        folder = make_home(root) / "harness"
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SnapshotError(
            f"{root}: nothing can be kept there ({error.strerror}); make it writable"
        ) from None
    return folder / "objects.git"
