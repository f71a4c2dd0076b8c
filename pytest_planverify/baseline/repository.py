"""Access to git: queries about a folder, and contents stored under refs.

:func:`git` runs the program with the repository's hooks and file monitor disabled, and raises
:class:`GitFailed`; the queries of :class:`Repository` return ``None`` or nothing if git fails. Functions
that judge by files alone start no process. A ref, unlike a file, cannot be changed by code under test with
a plain file write.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

TIMEOUT_SECONDS = 120
"""Time limit of one call of git."""

# Hooks and file monitors are programs of the repository, which must not run in a mere query.
_SETTINGS = (
    "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "gc.auto=0",
    "-c", "core.quotePath=false",
)  # fmt: skip
"""No file monitor, hooks and automatic garbage collection of the repository; paths are not quoted."""


class GitFailed(Exception):
    """git failed or could not be run; ``str()`` is the reason, its first fatal and its last line."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository that contains a folder."""

    folder: Path
    """Folder to which all paths of the methods are relative."""
    top: Path
    """Top folder of the work tree."""
    prefix: str
    """The folder's path below the top of the work tree: ``packages/a/``, or empty."""
    linked: bool
    """The folder is in a linked work tree."""

    @classmethod
    def around(cls, folder: Path) -> Repository | None:
        """Return the repository of a folder; ``None`` without git or repository, or if it is ignored."""
        if top_of(folder) is None:
            return None
        words = ("rev-parse", "--show-toplevel", "--show-prefix", "--absolute-git-dir", "--git-common-dir")
        try:
            lines = os.fsdecode(git(folder, *words)).split("\n")
            top, prefix, own, common = lines[:4]
        except (GitFailed, ValueError):
            return None
        # A linked work tree has a git directory of its own inside of the common one.
        linked = os.path.realpath(own) != os.path.realpath(os.path.join(folder, common))
        found = cls(folder, Path(top), prefix, linked)
        # git lists no file below an ignored folder, so such a root is read as if there were no git.
        is_ignored = prefix and ask(folder, "check-ignore", "-q", "--", ".") is not None
        return None if is_ignored else found

    def commit(self, revision: str) -> str | None:
        """Return the commit id of a revision; ``None`` if there is no such revision."""
        # The revision comes from the command line: one that begins with a dash is no option of git.
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return (ask(self.folder, *words) or b"").decode().strip() or None

    def files(self, *kinds: str) -> tuple[str, ...]:
        """Return the files below the folder of the given ``git ls-files`` kinds, such as ``--cached``."""
        return tuple(_names(ask(self.folder, "ls-files", "-z", *kinds, "--", ".")))

    def blobs(self, commit: str, *paths: str) -> dict[str, str]:
        """Return the object ids of a commit's files below the folder and at further paths, by path."""
        return _listed(ask(self.folder, "ls-tree", "-r", "-z", commit, "--", ".", *paths), "blob")

    def differing(self, commit: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the tracked files that differ from a commit, and the files that it does not contain.

        Files that were added to the index since the commit are in both.
        """
        options = ("--name-status", "-z", "--no-renames", "--no-ext-diff", "--relative")
        fields = _names(ask(self.folder, "diff", *options, commit, "--", "."))
        changed = dict(zip(fields[1::2], fields[::2], strict=False))  # status and path alternate
        # ``git diff`` does not show untracked files.
        added = {name: None for name, how in changed.items() if how == "A"}
        added |= dict.fromkeys(self.files("--others", "--exclude-standard"))
        return tuple(changed), tuple(added)

    def submodules(self, commit: str) -> tuple[str, ...]:
        """Return the paths of a commit's submodules in the whole repository, relative to its top."""
        return tuple(_listed(ask(self.top, "ls-tree", "-r", "-z", commit), "commit"))

    def content(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file in a commit; ``None`` if the commit lacks it."""
        return ask(self.folder, "cat-file", "blob", f"{commit}:./{path}")

    def keep(self, ref: str, content: bytes) -> None:
        """Store content as a blob under a ref, replacing what is there. Raises :class:`GitFailed`."""
        blob = git(self.folder, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
        git(self.folder, "update-ref", ref, blob)

    def kept(self, ref: str) -> bytes | None:
        """Return the content stored under a ref, or ``None``."""
        return ask(self.folder, "cat-file", "blob", ref)


def ask(folder: Path, *words: str) -> bytes | None:
    """Return git's output in a folder, or ``None`` if git fails."""
    with suppress(GitFailed):
        return git(folder, *words)
    return None


def git(
    folder: Path,
    *words: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
    accepted: Collection[int] = (0,),
) -> bytes:
    """Run git in a folder and return its standard output.

    ``env`` is added to git's environment. Raises :class:`GitFailed` if git cannot be run, exceeds
    :data:`TIMEOUT_SECONDS`, or ends with an exit status that is not ``accepted``.
    """
    try:
        done = subprocess.run(
            # Without optional locks, so that a ``git commit`` of the user at the same time does not fail.
            ["git", *_SETTINGS, "--no-optional-locks", *words],
            cwd=folder,
            env={**surroundings(), **env},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, ValueError) as error:  # a null byte, or a lone surrogate, in a name
        raise GitFailed(f"git cannot be run: {getattr(error, 'strerror', error)}") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {words[0]} did not answer within {TIMEOUT_SECONDS} s") from None
    if done.returncode not in accepted:
        lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").strip().splitlines()]
        reasons = [line for line in lines if line.startswith("fatal: ")]
        shown = dict.fromkeys([*reasons[:1], *lines[-1:]])
        raise GitFailed("; ".join(shown) or f"git {words[0]} ended with {done.returncode}")
    return done.stdout


def surroundings() -> dict[str, str]:
    """Return the environment for git: without ``GIT_*`` variables, prompts and translated messages."""
    # In a hook git sets variables such as GIT_DIR, which would redirect calls to another repository.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def has_refs(folder: Path, *prefixes: str) -> bool:
    """Return whether the repository of a folder has refs below one of the prefixes."""
    # Outside of repositories git need not be started.
    return top_of(folder) is not None and bool(ask(folder, "for-each-ref", "--count=1", *prefixes))


def top_of(folder: Path) -> Path | None:
    """Return the top folder of the work tree around a folder, or ``None``, judged by files alone."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _names(output: bytes | None) -> list[str]:
    """Return the entries of output with ``-z``; none if git failed."""
    return [os.fsdecode(name) for name in (output or b"").split(b"\0") if name]


def _listed(output: bytes | None, kind: str) -> dict[str, str]:
    """Return the object ids of the entries of a kind in output of ``ls-tree``, by path."""
    found: dict[str, str] = {}
    for entry in _names(output):
        facts, _, path = entry.partition("\t")
        _mode, its_kind, object_id = facts.split()
        if its_kind == kind:
            found[path] = object_id
    return found
