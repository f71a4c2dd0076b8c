"""Changed files and hunks since the baseline or the last commit, and commits at which todos last passed.

:class:`Changes` provides the facts for outcomes and diagnoses. Without a caller that knows an earlier state
(:meth:`Changes.are`), git's last commit is the reference. :class:`GreenRevisions` records the last passing
state of each todo, so that a later failure can be attributed to the changes since then.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from planner.errors import FileWriteError
from planner.planfile.file_writer import replace_file
from planner.planfile.latest_outcomes import MOST_FILES
from planner.planfile.plan_folder import PlanFolder, make_home
from planner.planfile.project_files import (
    digest_of,
    is_cache_or_report,
    is_code,
    open_regular,
    read_regular,
    walk,
)
from planner.text.glob_patterns import allowed
from planner.text.sanitizing import without_surrogates
from pytest_planverify.baseline.repository import GitFailed, Repository, ask, git, top_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import Hunk
    from planner.model.verdicts import Side
    from pytest_planverify.baseline.work_tree import Snapshot


# Without renames each entry is one path: a rename would be followed by its former path as one more entry.
_STATUS = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", ".")
# Each option overrides a setting of the user that would change the form of the diff.
_DIFF = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--unified=3", "--src-prefix=a/",
    "--dst-prefix=b/", "--relative", "--find-renames",
)  # fmt: skip
_PLAN_SUFFIXES = (".yaml", ".yml", ".json")
_NAMES_PLAN = re.compile(rb"^[^\w\n]*todo_list_id[^\w\n]*:", re.MULTILINE)
"""The key that identifies a plan file."""
_LOG_SUFFIX = ".jsonl"
_LOG_START = b'{"n":0,"event":{"event":"plan_submitted"'
"""The beginning of a driver's log."""
_MOST_PLANS = 200
_HEAD_BYTES = 1 << 16
"""Bytes at the start of a file that are searched for that key."""


class Changes:
    """Changed files below a root, and a digest of the changes.

    Starts ``git status`` in a background thread on creation, as the run can start meanwhile; properties and
    methods wait for it if they need its result.
    """

    def __init__(self, root: Path, apart: Sequence[Path] = (), *, revision: str = "HEAD") -> None:
        """Start the comparison of the files below ``root`` with ``revision``.

        Files and folders in ``apart`` (plan files, reports) are not counted as changes of the product.
        """
        self._root = root
        self._revision = revision
        self._given_apart = apart
        self._status: bytes | GitFailed | None = None  # ``None`` without a repository
        # A daemon, so that a git that hangs does not keep this process from ending.
        self._thread = threading.Thread(target=self._read_status, name="planverify-git", daemon=True)
        if top_of(root) is not None:
            self._thread.start()
        self._given: tuple[str, ...] | None = None  # changed files, by the caller
        self._digest: str | None = None

    def since_revision(self, revision: str) -> Changes:
        """Return the changes below the same root since another revision."""
        return Changes(self._root, self._given_apart, revision=revision)

    @property
    def under_git(self) -> bool:
        """Return whether the root is in a repository that git can read. Waits for git."""
        return isinstance(self._awaited_status(), bytes)

    def refusal(self) -> str | None:
        """Return git's error message if it refuses to read the root's repository, else ``None``."""
        status = self._awaited_status()
        return str(status) if isinstance(status, GitFailed) else None

    def of(self, allowed_files: Sequence[str] | None) -> tuple[tuple[str, ...], str | None]:
        """Return the changed files that a todo may touch, and a digest of the tree.

        All changed files if ``allowed_files`` is ``None``. The digest is of all changes of the product,
        whatever the todo may touch; ``None`` for a tree without git that is too large.
        """
        kept = _printable(self._changed) if self._given is None else self._given
        if allowed_files is not None:
            kept = tuple(file for file in kept if allowed(file, allowed_files))
        if self._digest is None:
            # Without git and baseline nothing is known to be changed, so all code is digested: attempts
            # that changed something have to differ from those that did not.
            known = self._given if self._given is not None else self._all_code()
            changed = self._changed if self.under_git else known
            if changed is not None:
                self._digest = self._digest_of(changed)
        return kept, self._digest

    def files(self) -> tuple[str, ...] | None:
        """Return all changed files; ``None`` if there is no commit to compare with."""
        if self._given is not None:
            return self._given
        # ``HEAD:./`` resolves only if the commit contains the root's folder.
        if not self.under_git or not ask(self._root, "rev-parse", "--verify", "--quiet", "HEAD:./"):
            return None
        if self._revision == "HEAD":
            return _printable(self._changed)
        repository = Repository.around(self._root)
        changed, added = ((), ()) if repository is None else repository.differing(self._revision)
        return _printable(_sorted_of_project({*changed, *added}))

    @property
    def since(self) -> str:
        """Reference of :meth:`files`: ``baseline``, ``commit``, or ``green`` for another commit."""
        if self._revision != "HEAD":
            return "green"
        return "commit" if self._given is None else "baseline"

    def new_files(self) -> tuple[str, ...]:
        """Return the untracked files as they are now; git is asked anew."""
        if top_of(self._root) is None:
            return ()
        status = ask(self._root, *_STATUS) or b""
        return _printable(self._paths(entry for entry in status.split(b"\0") if entry.startswith(b"??")))

    def files_of_work(self) -> tuple[str, ...] | None:
        """Return the changed files without plans and earlier reports; ``None`` as for :meth:`files`."""
        files = self.files()
        return None if files is None else tuple(file for file in files if not self._is_apart(file))

    def hunks(self, sides: Mapping[str, Side | None], before: Snapshot | None = None) -> tuple[Hunk, ...]:
        """Return the changed hunks of the files in ``sides``, at most ``hunks.MOST_HUNKS``.

        ``sides`` maps paths to the side that each hunk gets. ``before`` is the baseline's snapshot; for
        files whose former content it lacks git's diff is used, which has no hunks of binary files. Without
        git such files have no hunks, unless the baseline shows that they are new.
        """
        from pytest_planverify.baseline import hunks

        then = before if self._given is not None else None
        former: Mapping[str, str] = {} if then is None else then.digests()
        under_git = self.under_git
        asked = (self._root, "diff", self._revision, *_DIFF)
        diff = ask(*asked, "--", ".") if under_git else None
        diffs = hunks.parts_of_diff(diff or b"")
        if b"\r\n" in (diff or b""):  # other line ends in a whole file hide which of its lines are others
            diffs |= hunks.parts_of_diff(ask(*asked, "--ignore-cr-at-eol", "--", ".") or b"")
        found: list[Hunk] = []
        for path, side in sides.items():
            text = _text_of(self._root / path, hunks.LARGEST)
            content = then.read(path) if then is not None and path in former else None
            earlier = None if content is None else _decoded(content, hunks.LARGEST)
            # Of a file that is binary or too large now, not every former line was removed.
            if earlier is not None and (text is not None or not (self._root / path).exists()):
                lines = hunks.compare(earlier, text or "")
            elif path in diffs:
                lines = diffs[path]
            # Neither in the baseline nor in git's diff, so the whole file is new.
            elif text is not None and (path not in former if then is not None else under_git):
                lines = hunks.compare("", text)
            else:
                continue
            found += hunks.hunks_of(path, lines, text or "", side)
            if len(found) >= hunks.MOST_HUNKS:
                break
        return tuple(found[: hunks.MOST_HUNKS])

    @cached_property
    def apart(self) -> tuple[str, ...]:
        """Files and folders below the root, relative to it, that do not count as changes of the product."""
        # Other plans in the root and in the folder of a plan, too: editing one changes no product. Nor does
        # the log that a driver keeps there.
        folders = {self._root} | {
            path.parent for path in self._given_apart if path.suffix in _PLAN_SUFFIXES
        }
        paths = {*self._given_apart, *(plan for folder in folders for plan in _plans_in(folder))}
        below = (path for path in paths if path.is_relative_to(self._root) and path != self._root)
        return tuple(sorted(path.relative_to(self._root).as_posix() for path in below))

    def are(self, files: Collection[str]) -> None:
        """Set the changed files, for a caller that knows an earlier state than the last commit."""
        self._given = _printable(_sorted_of_project(files))

    def _all_code(self) -> list[str] | None:
        """Return the paths of all code; ``None`` if it is too much."""
        paths = sorted(islice((path for path in walk(self._root) if is_code(path)), MOST_FILES + 1))
        return None if len(paths) > MOST_FILES else paths

    def _digest_of(self, paths: Iterable[str]) -> str:
        """Return a digest of the paths, contents and executable bits of files of the product."""
        digest = hashlib.sha256()
        for path in paths:
            if not self._is_apart(path):
                file = self._root / path
                state = f"{path}\0{digest_of(file)}:{os.access(file, os.X_OK)}\0"
                digest.update(state.encode("utf-8", "surrogateescape"))
        return "sha256:" + digest.hexdigest()

    def _is_apart(self, file: str) -> bool:
        return any(file == name or file.startswith(name + "/") for name in self.apart)

    def _read_status(self) -> None:
        try:
            self._status = git(self._root, *_STATUS)
        except GitFailed as failed:
            self._status = failed

    def _awaited_status(self) -> bytes | GitFailed | None:
        if self._thread.ident is not None:  # a thread that was never started cannot be joined
            self._thread.join()
        return self._status

    @cached_property
    def _changed(self) -> tuple[str, ...]:
        """The changed files by git; none without git."""
        status = self._awaited_status()
        return self._paths(status.split(b"\0")) if isinstance(status, bytes) else ()

    def _paths(self, entries: Iterable[bytes]) -> tuple[str, ...]:
        """Return the paths in ``git status``, relative to the root, without caches and our records."""
        # Porcelain output names paths relative to the top of the work tree, wherever git was started.
        top = top_of(self._root)
        prefix = self._root.relative_to(top).as_posix() + "/" if top and top != self._root else ""
        # Two letters of state and a blank precede each path.
        names = (os.fsdecode(entry[3:]) for entry in entries if len(entry) > 3)
        return _sorted_of_project(name.removeprefix(prefix) for name in names)


def _sorted_of_project(files: Iterable[str]) -> tuple[str, ...]:
    """Return the files without caches and our own records, sorted."""
    return tuple(sorted(file for file in files if not is_cache_or_report(file)))


def _printable(files: Iterable[str]) -> tuple[str, ...]:
    """Return file names for outcomes and evidence; those that are not UTF-8 could not be written."""
    return tuple(map(without_surrogates, files))


def _plans_in(folder: Path) -> Iterator[Path]:
    """Yield the plan files of a folder, recognized by the key of their id, and the logs of runs of plans.

    None if the folder is unreadable.
    """
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return
    plans, logs = (
        [path for path in files if path.suffix in suffixes] for suffixes in (_PLAN_SUFFIXES, (_LOG_SUFFIX,))
    )
    for path in (*plans[:_MOST_PLANS], *logs[:_MOST_PLANS]):
        # Not parsed: large data files may be beside a plan, and this is done in every run.
        with suppress(OSError), open_regular(path) as file:
            start = file.read(_HEAD_BYTES)
            if start.startswith(_LOG_START) if path.suffix == _LOG_SUFFIX else _NAMES_PLAN.search(start):
                yield path


def _text_of(path: Path, largest: int) -> str | None:
    """Return the text of a file; ``None`` if it is missing, unreadable, larger than that, or binary."""
    try:
        return _decoded(read_regular(path, largest), largest)  # which a pipe does not block
    except (OSError, ValueError):
        return None


def _decoded(data: bytes, largest: int) -> str | None:
    """Return the text of a file's content; ``None`` if it is larger than that, or binary."""
    # As git does, take a file with a null byte for binary.
    return None if len(data) > largest or b"\0" in data else data.decode("utf-8", "replace")


# -- when todos were green last ----------------------------------------------------------------------

MOST_NOTED_FILES = 200
"""Limit of uncommitted files of a recorded state; a state with more is not recorded."""

MOST_COMMITS = 50
"""Limit of later commits that are searched for the uncommitted work of a passing run."""


class GreenRevisions:
    """Record of the commit at which each todo last passed, so that a failure is due to changes since then.

    A pass with uncommitted work is recorded with that work's blob ids, and belongs to the first later
    commit that contains exactly them.
    """

    def __init__(self, root: Path, plan_id: str) -> None:
        self._path = PlanFolder(root, plan_id).green
        self._root = root
        self._commit_of = cache(self.revision_of)
        # Todos that passed at the same commit share the queries of git.
        self._since = cache(Changes.since_revision)

    def note(self, todo_ids: Collection[str], changes: Changes) -> None:
        """Record that todos pass now. Does nothing without a commit or with too many changed files."""
        files = changes.files_of_work()
        repository = None if files is None or not todo_ids else Repository.around(self._root)
        commit = None if repository is None else repository.commit("HEAD")
        if files is None or repository is None or commit is None or len(files) > MOST_NOTED_FILES:
            return
        existing = [path for path in files if (self._root / path).is_file()]
        hashed = ask(self._root, "hash-object", "--", *existing) if existing else b""
        if hashed is None:
            return
        blobs = dict(zip(existing, hashed.decode().split(), strict=True))
        # A deleted file has ``None`` instead of a blob id.
        state = {"commit": commit, "files": dict.fromkeys(files) | blobs}
        known = self._read()
        now = known | dict.fromkeys(todo_ids, state)
        if now != known:
            with suppress(OSError, FileWriteError):  # then the earlier record stays
                make_home(self._root)
                replace_file(self._path, json.dumps({"schema_version": 1, "todos": now}))

    def changes_since(self, todo_id: str, changes: Changes) -> Changes | None:
        """Return the changes of a root since a todo last passed; ``None`` if that state is unknown."""
        commit = self._commit_of(todo_id)
        return None if commit is None else self._since(changes, commit)

    def revision_of(self, todo_id: str) -> str | None:
        """Return the commit at which a todo last passed; ``None`` if no known commit has that state."""
        state = self._read().get(todo_id)
        repository = Repository.around(self._root) if isinstance(state, dict) else None
        if repository is None:
            return None
        record = cast("dict[str, Any]", state)
        held = record.get("files")
        files = cast("dict[str, str | None]", held) if isinstance(held, dict) else {}
        commit = repository.commit(str(record.get("commit")))
        if commit is None or not files:
            return commit
        # The pass included uncommitted work: find the commit that contains it.
        later = ask(self._root, "rev-list", "--reverse", "--ancestry-path", f"{commit}..HEAD") or b""
        # Not limited by git, whose --max-count applies before --reverse and so selects the newest.
        for each in later.decode().split()[:MOST_COMMITS]:
            blobs = repository.blobs(each)
            # Files that were never committed, such as notes, are ignored, but one has to match.
            if all(blobs.get(path) in (blob, None) for path, blob in files.items()) and any(
                blobs.get(path) == blob for path, blob in files.items()
            ):
                return each
        return None

    def _read(self) -> dict[str, Any]:
        """Return the recorded states by todo; empty if the file is missing or malformed."""
        try:
            content: Any = json.loads(read_regular(self._path))
            return dict(content["todos"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}
