"""What the work tree has that its last commit has not, where the plan's root is under git."""

from __future__ import annotations

import hashlib
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.rules.glob_patterns import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TIMEOUT_SECONDS = 20
_OWN = (".planverify/", "diagnostics/")
_LARGEST_HASHED = 1 << 20
_PLAN_SUFFIXES = (".yaml", ".yml", ".json")
_NAMES_PLAN = re.compile(rb"^\W*todo_list_id\W*:", re.MULTILINE)
_MOST_PLANS = 200
_HEAD_BYTES = 1 << 16


class Changes:
    """The changed files below a root, and a digest of what changed. Starts looking when made."""

    def __init__(self, root: Path, apart: Sequence[Path] = ()) -> None:
        """What lies ``apart``, the plan files of the run and its reports, is no change of the product."""
        self._root = root
        self._apart: tuple[str, ...] = ()
        self._status: subprocess.Popen[bytes] | None = None
        self._diff: subprocess.Popen[bytes] | None = None
        if any((folder / ".git").exists() for folder in (root, *root.parents)):
            self._apart = tuple(sorted(_below(root, apart)))
            self._status = self._start(
                "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", "."
            )
            self._diff = self._start(
                "diff",
                "HEAD",
                "--no-ext-diff",
                "--no-textconv",
                "--binary",
                "--relative",
                "--",
                ".",
                *(f":(exclude,literal){name}" for name in self._apart),
            )
        self._found: tuple[tuple[str, ...], bytes] | None = None

    def of(self, allowed_files: Sequence[str] | None) -> tuple[tuple[str, ...], str | None]:
        """The changed files that a todo may touch, all where it names none, and the digest of the tree."""
        files, diff = self._read()
        if self._status is None:
            return (), None
        kept = files
        if allowed_files is not None:
            kept = tuple(file for file in files if allowed(file, allowed_files))
        product = tuple(
            file for file in files if not any(_is_at_or_below(file, name) for name in self._apart)
        )
        return kept, "sha256:" + _digest(diff, product, self._root)

    def _start(self, *args: str) -> subprocess.Popen[bytes] | None:
        command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", *args]
        try:
            return subprocess.Popen(
                command,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None

    def _read(self) -> tuple[tuple[str, ...], bytes]:
        if self._found is None:
            status, diff = _output(self._status), _output(self._diff)
            self._found = (tuple(self._paths(status)), diff)
        return self._found

    def _paths(self, status: bytes) -> list[str]:
        top = _top(self._root)
        prefix = self._root.relative_to(top).as_posix() + "/" if top and top != self._root else ""
        names = [entry[3:].decode("utf-8", "replace") for entry in status.split(b"\0") if len(entry) > 3]
        relative = [name.removeprefix(prefix) for name in names]
        return sorted(name for name in relative if not name.startswith(_OWN))


def _below(root: Path, paths: Sequence[Path]) -> Iterator[str]:
    """Those of the paths that lie below the root, relative to it, and the other plans beside a plan.

    A plan that is written anew under another name is no change of the product either.
    """
    folders = {path.parent: None for path in paths if path.suffix in _PLAN_SUFFIXES}
    beside = (plan for folder in folders for plan in _plans_in(folder))
    for path in dict.fromkeys((*paths, *beside)):
        if path.is_relative_to(root) and path != root:
            yield path.relative_to(root).as_posix()


def _plans_in(folder: Path) -> Iterator[Path]:
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in _PLAN_SUFFIXES)
    except OSError:
        return
    for path in files[:_MOST_PLANS]:
        try:
            if path.is_file() and _NAMES_PLAN.search(path.read_bytes()[:_HEAD_BYTES]):
                yield path
        except OSError:
            continue


def _is_at_or_below(file: str, name: str) -> bool:
    return file == name or file.startswith(name + "/")


def _top(root: Path) -> Path | None:
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)


def _output(process: subprocess.Popen[bytes] | None) -> bytes:
    if process is None:
        return b""
    try:
        out, _ = process.communicate(timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return b""
    return out if process.returncode == 0 else b""


def _digest(diff: bytes, files: tuple[str, ...], root: Path) -> str:
    return _cached_digest(diff, files, str(root))


@lru_cache(maxsize=8)
def _cached_digest(diff: bytes, files: tuple[str, ...], root: str) -> str:
    digest = hashlib.sha256(diff)
    for name in files:
        path = Path(root) / name
        digest.update(name.encode("utf-8", "replace") + b"\0")
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST_HASHED:
                digest.update(path.read_bytes())
        except OSError:
            continue
    return digest.hexdigest()
