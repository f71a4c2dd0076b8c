"""Asks git about a folder, and has it keep what the code under test should not reach by a plain write."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

TIMEOUT_SECONDS = 120

_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "gc.auto=0")
"""Neither a hook nor a monitor of the repository has a part in what is asked here."""


class GitFailed(Exception):
    """git said no; ``str()`` is its last line, with the reason in front of a remedy."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository that holds a folder."""

    folder: Path
    """Every path that is asked for is relative to it."""
    top: Path
    prefix: str
    """Where the folder lies below the top: ``packages/a/``, or nothing."""
    linked: bool
    """A further work tree of a repository whose own is elsewhere."""

    @classmethod
    def around(cls, folder: Path) -> Repository | None:
        """The repository of a folder that it does not ignore; ``None`` where there is none, or no git."""
        if top_of(folder) is None:
            return None
        words = ("rev-parse", "--show-toplevel", "--show-prefix", "--absolute-git-dir", "--git-common-dir")
        try:
            lines = os.fsdecode(git(folder, *words)).split("\n")
            top, prefix, own, common = lines[:4]
        except (GitFailed, ValueError):
            return None
        linked = os.path.realpath(own) != os.path.realpath(os.path.join(folder, common))
        found = cls(folder, Path(top), prefix, linked)
        is_ignored = prefix and found._ask("check-ignore", "-q", "--", ".") is not None
        return None if is_ignored else found

    def commit(self, revision: str) -> str | None:
        """The id of the commit that a revision names."""
        found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return None if found is None else found.decode().strip() or None

    def files(self, *kinds: str) -> tuple[str, ...]:
        """The paths of files below the folder: ``--cached``, ``--others`` and such say which."""
        found = self._ask("ls-files", "-z", *kinds, "--", ".") or b""
        return tuple(os.fsdecode(name) for name in found.split(b"\0") if name)

    def blobs(self, commit: str, *paths: str) -> dict[str, str]:
        """The object ids of a commit's files below the folder, and of those paths elsewhere."""
        found = self._ask("ls-tree", "-r", "-z", commit, "--", ".", *paths) or b""
        return dict(_entries(found, b"blob"))

    def differing(self, commit: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files below the folder that are not as a commit has them, and those that it does not have."""
        options = ("--name-status", "-z", "--no-renames", "--no-ext-diff", "--relative")
        words = ("diff", *options, commit, "--", ".")
        fields = [os.fsdecode(name) for name in (self._ask(*words) or b"").split(b"\0") if name]
        changed = dict(zip(fields[1::2], fields[::2], strict=False))
        added = {name: None for name, how in changed.items() if how == "A"}
        added |= dict.fromkeys(self.files("--others", "--exclude-standard"))
        return tuple(changed), tuple(added)

    def submodules(self, commit: str) -> dict[str, str]:
        """By its path, which commit of another repository a commit has there."""
        found = self._ask("ls-tree", "-r", "-z", commit, "--", ".") or b""
        return dict(_entries(found, b"commit"))

    def content(self, commit: str, path: str) -> bytes | None:
        """Return what a commit has under a path."""
        return self._ask("cat-file", "blob", f"{commit}:./{path}")

    def last_commit_of(self, path: str, line: int) -> str | None:
        """Return the commit that made a line, from 1, and its subject; ``None`` where it is in none."""
        answer = self._ask("blame", "--porcelain", f"-L{line},{line}", "--", path)
        lines = (answer or b"").decode("utf-8", "replace").splitlines()
        subject = next((each.removeprefix("summary ") for each in lines if each.startswith("summary ")), "")
        return f"{lines[0][:10]} {subject}" if lines and lines[0].strip("0")[:1] not in ("", " ") else None

    def keep(self, ref: str, content: bytes) -> None:
        """Keep a content under a name. Raises :class:`GitFailed`."""
        held = git(self.folder, "hash-object", "-w", "--stdin", stdin=content).decode().strip()
        git(self.folder, "update-ref", ref, held)

    def kept(self, ref: str) -> bytes | None:
        """Return what is kept under a name."""
        return self._ask("cat-file", "blob", ref)

    def _ask(self, *words: str) -> bytes | None:
        try:
            return git(self.folder, *words)
        except GitFailed:
            return None


def git(
    folder: Path,
    *words: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
    accepted: Collection[int] = (0,),
) -> bytes:
    """Return what git answers there, where it ends with an accepted status. Raises :class:`GitFailed`."""
    try:
        done = subprocess.run(
            ["git", *_QUIET, "--no-optional-locks", *words],
            cwd=folder,
            env={**surroundings(), **env},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise GitFailed(f"git cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {words[0]} did not answer within {TIMEOUT_SECONDS} s") from None
    if done.returncode not in accepted:
        said = [line.strip() for line in done.stderr.decode("utf-8", "replace").strip().splitlines()]
        reasons = [line for line in said if line.startswith("fatal: ")]
        told = dict.fromkeys([*reasons[:1], *said[-1:]])
        raise GitFailed("; ".join(told) or f"git {words[0]} ended with {done.returncode}")
    return done.stdout


def surroundings() -> dict[str, str]:
    """The environment without what a hook of git sets for its own repository, and without questions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def may_keep(folder: Path, names: str) -> bool:
    """Return whether a repository around the folder has refs below ``names``, as far as its files tell.

    It starts no process: most runs have no baseline, and need not wait for git to learn so.
    """
    for place in _git_folders(folder):
        if (place / names).is_dir() or (place / "reftable").is_dir():
            return True
        try:
            if names.encode() + b"/" in (place / "packed-refs").read_bytes():
                return True
        except OSError:
            continue
    return False


def top_of(folder: Path) -> Path | None:
    """The top folder of the work tree around a folder, by its files alone."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def head_of(folder: Path) -> tuple[str, str] | None:
    """Return the branch and the commit that are checked out; ``None`` where there is no repository.

    The branch is ``HEAD`` where there is none, and both are empty before the first commit.
    """
    if top_of(folder) is None:
        return None
    try:
        commit, branch = git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").decode().split()
    except (GitFailed, ValueError):
        return "", ""
    return branch, commit


def _git_folders(folder: Path) -> Iterator[Path]:
    """The folder where git keeps a work tree's own, and the one that all work trees share."""
    top = top_of(folder)
    if top is None:
        return
    held = top / ".git"
    try:
        if held.is_file():
            pointed = held.read_text("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
            held = held.parent / pointed
        yield held
        common = held / "commondir"
        if common.is_file():
            yield held / common.read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return


def _entries(listing: bytes, kind: bytes) -> Iterator[tuple[str, str]]:
    for entry in listing.split(b"\0"):
        facts, _, path = entry.partition(b"\t")
        words = facts.split()
        if len(words) == 3 and words[1] == kind:
            yield os.fsdecode(path), words[2].decode()
