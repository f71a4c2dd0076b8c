"""Snapshots of a work tree, in a git repository of the harness's own, below ``.planverify``.

The user's repository, its index and its branches are never touched, and a project needs none: the files
that git does not ignore are committed to ``.planverify/harness/objects.git`` before and after each turn.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from planner.planfile.plan_folder import make_home
from pytest_planverify.repository import surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TIMEOUT_SECONDS = 120
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
_IDENTITY = ("-c", "user.name=planverify", "-c", "user.email=planverify@localhost")
_PLAIN = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-c", "gc.auto=0"),
    *("-c", "advice.addEmbeddedRepo=false", "-c", "core.attributesFile=/dev/null"),
)


class SnapshotError(PlannerError):
    """The files cannot be kept or put back; ``str()`` says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Files that differ between two snapshots, relative to the root."""

    changed: tuple[str, ...] = ()
    """Those that were edited, deleted or made."""
    new: tuple[str, ...] = ()
    """Those of them that were not there before."""


class Snapshots:
    """The snapshots of one work tree."""

    def __init__(self, root: Path, name: str) -> None:
        """``name`` tells the runs of one project apart. Raises :class:`SnapshotError`."""
        self._root = root
        self._refs = f"refs/planverify/{name}"
        try:
            folder = make_home(root) / "harness"
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise SnapshotError(
                f"{root}: nothing can be kept there ({error.strerror}); make it writable"
            ) from None
        self._store = folder / "objects.git"
        if not (self._store / "HEAD").exists():
            self._git("init", "--quiet", "--bare", str(self._store), bare=True)
        (self._store / "info").mkdir(exist_ok=True)
        (self._store / "info" / "exclude").write_text(_IGNORED)

    def take(self, label: str) -> str:
        """Keep the files as they are now; return the id of the snapshot."""
        self._git("add", "--all", "--ignore-errors", ".")
        tree = self._git("write-tree").strip()
        commit = self._git(*_IDENTITY, "commit-tree", tree, "-m", label).strip()
        self._git("update-ref", f"{self._refs}/{label}", commit)
        return commit

    def find(self, label: str) -> str | None:
        """Return the snapshot of that label, if it was taken."""
        return self.resolve(f"{self._refs}/{label}")

    def resolve(self, name: str) -> str | None:
        """Return the whole id of a snapshot, by the name of a reference or the first digits of the id."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
        except SnapshotError:
            return None

    def forget(self, label: str) -> None:
        """Take the label off a snapshot, if one has it."""
        self._git("update-ref", "-d", f"{self._refs}/{label}")

    def compare(self, before: str, after: str) -> Changes:
        """Return what differs."""
        listing = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)
        fields = listing.split("\0")
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        return Changes(
            changed=tuple(path for _, path in pairs), new=tuple(path for kind, path in pairs if kind == "A")
        )

    def diff(self, before: str, after: str, paths: Sequence[str] = ()) -> str:
        """Return the unified diff."""
        return self._git("diff-tree", "-p", "--no-color", "--no-renames", before, after, "--", *paths)

    def read(self, snapshot: str, path: str) -> bytes | None:
        """Return the content of a file; ``None`` where the snapshot has none of that path."""
        done = self._run(("cat-file", "blob", f"{snapshot}:{path}"))
        return done.stdout if done.returncode == 0 else None

    def digests(self, snapshot: str) -> dict[str, str]:
        """Return git's digest of each file."""
        listing = self._git("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", snapshot)
        return {
            path: digest
            for digest, _, path in (each.partition(" ") for each in listing.split("\0") if each)
        }

    def restore(self, snapshot: str) -> Changes:
        """Put every file back as it was; what was made since is removed. Return what was changed by it."""
        now = self.take("before-restore")
        changes = self.compare(now, snapshot)
        if changes.changed:
            self._git("read-tree", "--reset", "-u", snapshot)
        return changes

    def restore_files(self, snapshot: str, changes: Changes) -> None:
        """Put the files back that have changed since a snapshot; others stay as they are."""
        for path in changes.new:
            (self._root / path).unlink(missing_ok=True)
        there = [path for path in changes.changed if path not in changes.new]
        for start in range(0, len(there), _MOST_ARGUMENTS):
            some = there[start : start + _MOST_ARGUMENTS]
            self._git("--literal-pathspecs", "checkout", "--quiet", snapshot, "--", *some)

    def _git(self, *words: str, bare: bool = False) -> str:
        done = self._run(words, bare=bare)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise SnapshotError(
                f"{self._root}: git {words[0]} failed ({said[-1] if said else done.returncode}); "
                "the files of a turn cannot be kept"
            )
        return os.fsdecode(done.stdout)

    def _run(self, words: Sequence[str], *, bare: bool = False) -> subprocess.CompletedProcess[bytes]:
        where = () if bare else (f"--git-dir={self._store}", f"--work-tree={self._root}")
        try:
            return subprocess.run(
                ["git", *where, *_PLAIN, *words],
                cwd=self._root,
                env=surroundings(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except OSError as error:
            raise SnapshotError(f"git cannot be run ({error.strerror}); install git") from None
        except subprocess.TimeoutExpired:
            raise SnapshotError(f"git {words[0]} did not answer within {TIMEOUT_SECONDS} s") from None
