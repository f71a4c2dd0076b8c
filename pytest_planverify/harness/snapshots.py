"""Snapshots of a work tree, and the protected records of a run with a copy outside of the project.

The files that git does not ignore are committed to a repository of their own,
``.planverify/harness/objects.git``, before and after each turn. The user's repository, its index and its
branches are never touched, and the project need not be a repository at all. Snapshots are identified by
commit ids, and found again by labels, which are references of git.

The contents of the records are kept in memory (:meth:`Records.note`) and written back when they differ
(:meth:`Records.put_back`). The snapshots are too large for that. An agent that cleans the tree, for example
by ``git clean -fdx``, removes ``.planverify`` with all of them, so they are copied to a temporary folder:
git objects as hard links where the file system supports it, other files as copies.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from planner.planfile.file_writer import replace_file
from planner.planfile.plan_folder import HOME, make_home
from planner.planfile.project_files import digest_of, is_cache_or_report
from pytest_planverify.baseline.repository import GitFailed, ask, git
from pytest_planverify.baseline.worktrees import delete_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.store.session import RunSession

LOCK_SECONDS = 5.0
"""Time that a git process of a killed driver is given to finish."""
_MOST_ARGUMENTS = 200
"""Number of paths in one call of git; the length of command lines is limited."""
# Excluded in addition to what the project's own .gitignore files exclude.
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
# Contents are stored byte for byte, regardless of the project's attributes and the user's configuration.
_AS_BYTES = "* -text -filter -ident -working-tree-encoding\n"
_GIT_OPTIONS = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.quotePath=false"),
    *("-c", "advice.addEmbeddedRepo=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "user.name=planverify", "-c", "user.email=planverify@localhost"),
)
_EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""Id of an empty file in git."""
_LINK = "120000"
"""Mode of a symbolic link in git."""
_OF_A_REPOSITORY = ("HEAD", "objects", "refs")
"""Names without which git takes a folder for no repository."""
_WRITTEN_BY_TURNS = ("turns", "outcomes.json")
"""Names in the folder of the run that turns and verifications write; these are no protected records."""


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Differences between two snapshots, as paths relative to the root."""

    changed: tuple[str, ...] = ()
    """Edited, deleted and new files."""
    new: tuple[str, ...] = ()
    """New files; also part of ``changed``."""
    escaping: tuple[str, ...] = ()
    """Links out of the root in the place of files or folders; also part of ``changed``."""


class Snapshots:
    """Snapshots of one work tree.

    Methods raise :class:`planner.errors.PlannerError` if git fails, or return ``None``.
    """

    def __init__(
        self, root: Path, name: str, *, store: Path | None = None, index: Path | None = None
    ) -> None:
        """Create the store of the work tree ``root``, unless it exists.

        ``name`` separates the labels of a project's runs. A temporary work tree shares the ``store`` of the
        project and needs an ``index`` file of its own.
        """
        self._root = root
        self._refs = f"refs/planverify/{name}"
        self._index = index
        self._last = ("", "")
        self.store = store or _home_store(root)
        """Git repository that stores the snapshots."""
        if not (self.store / "HEAD").exists():
            self._git("init", "--quiet", "--bare", str(self.store), bare=True)
        for name, content in (("exclude", _IGNORED), ("attributes", _AS_BYTES)):
            path = self.store / "info" / name
            if digest_of(path) != f"sha256:{sha256(content.encode()).hexdigest()}":
                replace_file(path, content)
                # The index knows files as they were stored by the former rules.
                (self.store / "index").unlink(missing_ok=True)

    def take(self, label: str, *parents: str, since: str | None = None) -> str:
        """Store the current files under a label; return the snapshot's id.

        If nothing has changed since this object's previous snapshot, its id is returned again. ``parents``
        are snapshots to record as predecessors, which always makes a new one. With an earlier snapshot
        ``since``, its ``.gitignore`` files decide which files are ignored, not the current ones.
        """
        tree = self._add_all()
        if since is not None:
            tree = self._as_ignored_by(since, tree)
        if self._last[0] != tree or parents:
            self._last = (tree, self._commit(tree, label, *parents))
        self._git("update-ref", f"{self._refs}/{label}", self._last[1])
        return self._last[1]

    def include_tracked(self) -> None:
        """Store from now on also files that the project's repository tracks although its rules ignore them.

        Only before a run: later, an agent could add files of the user that undo would then remove.
        """
        listing = ask(self._root, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard") or b""
        paths = [path for path in os.fsdecode(listing).split("\0") if path and not is_cache_or_report(path)]
        if paths := [path for path in paths if os.path.lexists(self._root / path)]:
            words = ("add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
            self._git("--literal-pathspecs", *words, stdin=os.fsencode("\0".join(paths)))

    def _add_all(self) -> str:
        """Update the index from the work tree; return the id of its tree."""
        self._enter_nested_repositories()
        # --ignore-errors skips unreadable files instead of failing.
        self._git("add", "--all", "--ignore-errors", ".")
        # A .gitignore beside known files may ignore itself, too. In other folders it marks a tool's cache.
        known = {path for path in self._git("ls-files", "-z").split("\0") if path}
        folders = {"."}
        for path in known:
            folder = path
            while (folder := os.path.dirname(folder)) and folder not in folders:
                folders.add(folder)
        hiding = {os.path.normpath(f"{folder}/.gitignore") for folder in folders} - known
        if forced := [path for path in sorted(hiding) if (self._root / path).is_file()]:
            self._git("--literal-pathspecs", "add", "--force", "--", *forced)
        return self._git("write-tree").strip()

    def _as_ignored_by(self, since: str, tree: str) -> str:
        """Return the tree of the current files that the ``.gitignore`` files of ``since`` do not ignore.

        ``tree`` has the files according to the current rules. Otherwise an agent that edits these could
        hide new files, and files that were ignored before would be removed with a turn as its new ones.
        """
        changes = self.compare(since, tree)
        rules = tuple(path for path in changes.changed if path.rpartition("/")[2] == ".gitignore")
        if not rules:
            return tree
        self.restore_files(since, FileChanges(rules, tuple(path for path in rules if path in changes.new)))
        self._git("read-tree", since)  # git keeps what is in the index, whatever the rules are
        self._add_all()
        removed = {*rules} - self.files(tree)
        self.restore_files(tree, FileChanges(rules, tuple(removed)))
        return self._git("write-tree").strip()

    def _enter_nested_repositories(self) -> None:
        """Make git store the files of nested repositories, such as submodules, instead of their commits.

        Git reads a folder like any other if the index has an entry in it. No file has the name of this
        entry, so that ``git add`` removes it again.
        """
        listing = ("ls-files", "--others", "--exclude-standard", "-z")
        entered: set[str] = set()
        # Only nested repositories are listed as folders; those inside of them are listed in the next round.
        while folders := {each for each in self._git(*listing).split("\0") if each.endswith("/")} - entered:
            entered |= folders
            for folder in folders:
                entry = f"100644,{_EMPTY_BLOB},{folder}.planverify-placeholder"
                self._git("update-index", "--add", "--cacheinfo", entry)

    def unlock(self) -> None:
        """Remove the lock that git left when the driver was killed.

        Waits up to ``LOCK_SECONDS`` first, because git itself may still be alive and finish its work.
        """
        lock = self.store / "index.lock"
        give_up = time.monotonic() + LOCK_SECONDS
        while lock.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        lock.unlink(missing_ok=True)

    def find(self, label: str) -> str | None:
        """Return the id of the snapshot with that label, or ``None``."""
        return self.resolve(f"{self._refs}/{label}")

    def resolve(self, name: str) -> str | None:
        """Return the full id for a ref or an id prefix, or ``None``."""
        with suppress(PlannerError):
            return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
        return None

    def forget(self, label: str) -> None:
        """Remove a label, if it exists."""
        self._git("update-ref", "-d", f"{self._refs}/{label}")

    def keep(self, label: str, content: bytes) -> None:
        """Store a content under a label."""
        blob = self._git("hash-object", "-w", "--stdin", stdin=content).strip()
        self._git("update-ref", f"{self._refs}/{label}", blob)

    def kept(self, label: str) -> bytes | None:
        """Return the content that was stored under a label, or ``None``."""
        return ask(self._root, f"--git-dir={self.store}", "cat-file", "blob", f"{self._refs}/{label}")

    def compare(self, before: str, after: str) -> FileChanges:
        """Return the files that differ between two snapshots; a renamed file is a deleted and a new one."""
        fields = self._git("diff-tree", "-r", "-z", "--no-renames", "--raw", before, after).split("\0")
        # Each path follows its facts: old mode, new mode, old blob, new blob, kind of the change.
        pairs = [(facts.split(), path) for facts, path in zip(fields[::2], fields[1::2], strict=False)]
        new = tuple(path for facts, path in pairs if facts[4] == "A")
        changed = tuple(path for _, path in pairs)
        # Other links may lead out of the root, such as that of a virtual environment to its interpreter.
        known = [path for facts, path in pairs if facts[4] != "A"]
        replaced = {*known, *(parent.as_posix() for path in known for parent in Path(path).parents)}
        # The old mode follows a colon.
        links = ((path, facts[3]) for facts, path in pairs if facts[1] == _LINK != facts[0][1:])
        escaping = (path for path, blob in links if path in replaced and self._escapes(path, blob))
        return FileChanges(changed=changed, new=new, escaping=tuple(escaping))

    def _escapes(self, path: str, blob: str) -> bool:
        """Return whether a link leads out of the root; ``blob`` has its target."""
        target = self._root / Path(path).parent / self._git("cat-file", "blob", blob)
        shown, real = Path(os.path.normpath(target)), Path(os.path.realpath(target))
        return not (shown.is_relative_to(self._root) or real.is_relative_to(os.path.realpath(self._root)))

    def diff(self, before: str, after: str) -> str:
        """Return the unified diff between two snapshots."""
        return self._git("diff-tree", "-p", "--no-color", "--no-renames", before, after)

    def files(self, snapshot: str) -> frozenset[str]:
        """Return the paths of all files of a snapshot."""
        listing = self._git("ls-tree", "-r", "-z", "--name-only", snapshot)
        return frozenset(path for path in listing.split("\0") if path)

    def restore(self, snapshot: str) -> None:
        """Restore all files of a snapshot, and remove files created since.

        The current files are stored first, under the label ``before-restore``.
        """
        if self.take("before-restore", since=snapshot) != snapshot:
            self.lay_out(snapshot)

    def lay_out(self, snapshot: str) -> None:
        """Write a snapshot's files into the work tree.

        The tree must equal the latest snapshot, or be empty: git only removes files that are in its index.
        """
        self._git("read-tree", "--reset", "-u", snapshot)

    def merge(self, before: str, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Merge two snapshots that started from ``before``; return the result and the conflicting files.

        The work tree is not changed. Raises :class:`planner.errors.PlannerError`, also for git before 2.38.
        """
        # Commits with `before` as their only parent, so that git takes it as the base of the merge.
        sides = [self._commit(f"{side}^{{tree}}", "side", before) for side in (ours, theirs)]
        try:
            # Status 1 means conflicts; the files of them follow the id of the tree.
            output = self._git(
                "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *sides, accepted=(0, 1)
            )
        except PlannerError as error:
            raise PlannerError(f"{error}; parallel turns need git 2.38") from None
        tree, *files = output.rstrip("\0").split("\0")
        return self._commit(tree, "merged"), tuple(dict.fromkeys(files))

    def bundle(self, snapshot: str, *without: str) -> bytes:
        """Return a snapshot as a git bundle; the receiver must have the snapshots ``without``."""
        # Git makes no bundle of a mere id: it must contain a reference.
        ref = f"{self._refs}/bundle-{snapshot[:12]}"
        self._git("update-ref", ref, snapshot)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bundle")
            self._git("bundle", "create", "--quiet", str(path), ref, *(f"^{each}" for each in without))
            return path.read_bytes()

    def unbundle(self, content: bytes) -> None:
        """Import the content of a bundle."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bundle")
            path.write_bytes(content)
            self._git("bundle", "unbundle", str(path))

    def _commit(self, tree: str, label: str, *parents: str) -> str:
        """Commit a tree of git without touching the work tree; return the id."""
        named = [word for parent in parents for word in ("-p", parent)]
        return self._git("commit-tree", tree, *named, stdin=label.encode()).strip()

    def restore_files(self, snapshot: str, changes: FileChanges) -> None:
        """Restore the files of ``changes`` to their state in a snapshot; all others stay as they are.

        The tree must equal the latest snapshot: git only removes files that are in its index.
        """
        # By git, as there may be a folder now in place of a new file, or a file in place of its folder.
        remove = ("rm", "-r", "--force", "--quiet", "--ignore-unmatch")
        existing = [path for path in changes.changed if path not in changes.new]
        for words, paths in ((remove, changes.new), (("checkout", "--quiet", snapshot), existing)):
            for start in range(0, len(paths), _MOST_ARGUMENTS):
                batch = paths[start : start + _MOST_ARGUMENTS]
                self._git("--literal-pathspecs", *words, "--", *batch)

    def _git(
        self, *words: str, accepted: Sequence[int] = (0,), bare: bool = False, stdin: bytes | None = None
    ) -> str:
        """Run git on the store and the work tree; return its output.

        ``accepted`` are the exit statuses of success; ``bare`` omits store and work tree. Raises
        :class:`planner.errors.PlannerError`.
        """
        own = {} if self._index is None else {"GIT_INDEX_FILE": str(self._index)}
        where = () if bare else (f"--git-dir={self.store}", f"--work-tree={self._root}")
        try:
            output = git(self._root, *where, *_GIT_OPTIONS, *words, stdin=stdin, env=own, accepted=accepted)
        except GitFailed as error:
            raise PlannerError(
                f"{self._root}: git {words[0]} failed ({error}); the files of a turn cannot be kept; if "
                f"{self.store} is damaged, delete it, and with it the files that undo needs"
            ) from None
        return os.fsdecode(output)


def _home_store(root: Path) -> Path:
    """Return the path of the project's store, and create its folder."""
    try:
        folder = make_home(root) / "harness"
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise PlannerError(f"{root}: it is not writable ({error.strerror}); make it writable") from None
    return folder / "objects.git"


def tree_prefix(run: Path) -> str:
    """Return the prefix of a run's temporary folders, by which they are found after a kill."""
    return f"planverify-tree-{sha256(os.fsencode(run)).hexdigest()[:12]}-"


def delete_trees(run: Path) -> None:
    """Delete the temporary folders that a killed run left on this machine."""
    for path in Path(tempfile.gettempdir()).glob(f"{tree_prefix(run)}*"):
        delete_folder(path)


class Records:
    """Protected records of one run: its plan, the logs, the baselines, and the answers of people."""

    def __init__(self, root: Path, run: Path, session: RunSession, logs: Sequence[Path] = ()) -> None:
        """Create the records below ``root``, with an empty copy; ``run`` is the folder of the run.

        ``logs`` are those of the plan's earlier runs: the newest log is found only if none is missing.
        """
        self._root, self._run, self._session, self._logs = root, run, session, (*logs, session.log)
        self._harness = run.parent
        self._place = os.path.realpath(self._harness)
        # The prefix identifies the run: if this process is killed, its successor deletes the folder.
        self._copy = Path(tempfile.mkdtemp(prefix=tree_prefix(run)))
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

    def restore_store(self) -> None:
        """Restore what a turn removed from the store of snapshots, or changed in it.

        Only while no other turn is running, whose snapshots are newer than the copy.
        """
        _copy_files(self._copy / "objects.git", self._harness / "objects.git")

    def put_back(self, *, by_people: bool = True) -> tuple[list[str], bool]:
        """Restore the records that changed since they were accepted.

        Returns their names relative to the root, and whether the store of snapshots was removed. Records
        that were removed together with the store are restored, but not named. The log and the answers are
        included only with ``by_people``: while no agent works, people may add to them.
        """
        store = self._harness / "objects.git"
        was_removed = not all((store / name).exists() for name in _OF_A_REPOSITORY)
        # Moved behind a link, the store would be a part of the files that it has to restore.
        was_removed = was_removed or os.path.realpath(self._harness) != self._place
        if was_removed:
            self._make_way(store / "HEAD")
            _copy_files(self._copy, self._harness)
        now, log = self._read(), self._session.log
        spared = () if by_people else (log, self._root / HOME / "answers.json")
        changed = [path for path in {**now, **self._accepted} if now.get(path) != self._accepted.get(path)]
        changed = [path for path in changed if path not in spared]
        for path in changed:
            self._make_way(path)
            content = self._accepted.get(path)
            if content is None:
                path.unlink(missing_ok=True)
            elif path == log:
                self._session.restore_log(content)
            else:
                replace_file(path, content, mode=0o644)
        altered = changed if not was_removed else [path for path in changed if path in now]
        return [path.relative_to(self._root).as_posix() for path in sorted(altered)], was_removed

    def _make_way(self, path: Path) -> None:
        """Remove a folder that has taken the place of a record, or a file in place of a folder above it."""
        is_moved = os.path.realpath(self._harness) != self._place
        for folder in (self._root / each for each in reversed(path.relative_to(self._root).parents)):
            if not folder.is_dir() or (is_moved and folder != self._root and folder.is_symlink()):
                folder.unlink(missing_ok=True)
        if path.is_dir() and not path.is_symlink():
            delete_folder(path)

    def close(self) -> None:
        """Delete the copy outside of the project."""
        delete_folder(self._copy)

    def _read(self) -> dict[Path, bytes]:
        """Return the current contents of all records."""
        home = self._root / HOME
        of_run = [path for path in self._run.glob("*") if path.name not in _WRITTEN_BY_TURNS]
        below = [file for path in of_run for file in (path, *path.rglob("*"))]
        paths = [*home.glob("plans/*/*baseline*.json"), home / "answers.json", *self._logs, *below]
        return {path: path.read_bytes() for path in paths if path.is_file()}


def _copy_files(source: Path, target: Path) -> None:
    """Copy the files that are missing in the target, or have another modification time there."""
    for folder, folders, names in os.walk(source):
        below = Path(folder).relative_to(source)
        place = target / below
        if not place.is_dir():
            place.unlink(missing_ok=True)
        place.mkdir(parents=True, exist_ok=True)
        folders[:] = [name for name in folders if not (place / name).is_symlink()]
        for name in names:
            original, copy = Path(folder, name), place / name
            with suppress(OSError):  # the file was removed in the meantime
                # Git never changes an object after it is written, so a link is as good as a copy.
                if "objects" in below.parts and not copy.exists():
                    with suppress(OSError):  # another file system, or one without hard links
                        os.link(original, copy)
                if not copy.exists() or copy.stat().st_mtime_ns != original.stat().st_mtime_ns:
                    shutil.copy2(original, copy)
