"""Files that runs and commands left in the tree, so that no todo is blamed for them.

Tests may write files, such as reports or downloaded data, and ``planverify`` writes some itself; the next
run finds them as changes. A file counts as left only while its content is what was left. The record is
``.planverify/left_by_runs.json``: digests by root and path.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.errors import FileWriteError
from planner.planfile.file_writer import is_stream, replace_file
from planner.planfile.plan_folder import HOME, make_home
from planner.planfile.project_files import digest_of, is_code, read_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

RECORD = "left_by_runs.json"
MOST_FILES = 10_000
"""Limit of the files that are recorded for one root; the newest are kept."""

_CLOCK_STEP = 0.02
"""Seconds by which the file system's clock may be behind ``time.time``."""


def left_by_runs(home: Path, root: Path, files: Iterable[str]) -> set[str]:
    """Return those of ``files`` (relative to ``root``) that are unchanged since they were left.

    ``home`` is the ``.planverify`` folder with the record of these files.
    """
    known = _read(home).get(str(root), {})
    return {file for file in files if file in known and known[file] == _digest(root / file)}


def remember_run(
    home: Path,
    root: Path,
    before: Collection[str],
    after: Iterable[str],
    *,
    left: Collection[str] = (),
    started: float = 0.0,
) -> None:
    """Store the files that a run left, together with earlier ones that are unchanged.

    ``before`` are the changed files before the run, ``after`` the new files after it, and ``left`` those of
    ``before`` that earlier runs had left: the run itself may have written them again. Changes that it made
    to other files count like any other change, as they cannot be told from work. ``started`` is the start
    of the run in epoch seconds; a file that has not changed since then was there before.
    """
    found = _read(home)
    new = [
        file
        for file in after
        if file not in before and not _is_work(file) and _changed_at(root / file) >= started - _CLOCK_STEP
    ]
    known = found.get(str(root), {})
    # Only that many new ones are hashed, as a run may leave a tree of downloaded data.
    digests = {file: _digest(root / file) for file in (*left, *new[-MOST_FILES:])}
    kept = {file: digest for file, digest in known.items() if digest == _digest(root / file)}
    kept |= {file: digest for file, digest in digests.items() if digest is not None}
    # In the order of recording, so that the oldest ones are dropped.
    kept = dict(list(kept.items())[-MOST_FILES:])
    if kept != known:
        _write(home, found | {str(root): kept})


def remember_written(path: Path) -> None:
    """Store that a command has written this file, unless it may be source or configuration.

    Nothing is stored for a file outside of the project. The root is the nearest folder above the file that
    has a ``.planverify``, else the current folder. The record is a convenience: without it, the file counts
    as work. So a failure to write it is ignored.
    """
    file = Path.cwd() / path
    root = next((folder for folder in file.parents if (folder / HOME).is_dir()), Path.cwd())
    if is_stream(path) or not file.is_relative_to(root) or _is_work(file.name):
        return
    digest = _digest(file)
    if digest is not None:
        with suppress(OSError, FileWriteError):
            home = make_home(root)
            found = _read(home)
            name = file.relative_to(root).as_posix()
            _write(home, found | {str(root): found.get(str(root), {}) | {name: digest}})


def _is_work(name: str) -> bool:
    """Return whether a file affects a project's behaviour: it counts as work even if a run wrote it."""
    return is_code(name) or name.endswith((".yaml", ".yml"))


def _changed_at(path: Path) -> float:
    """Return the time of a file's last change in epoch seconds; unlike ``st_mtime`` nobody can set it."""
    try:
        return path.lstat().st_ctime
    except OSError:
        return 0.0


def _read(home: Path) -> dict[str, dict[str, str]]:
    """Return the digests of left files by root and path; empty if the record is missing or malformed."""
    # Code under test can write there; without the record, the files just count as work.
    try:
        data: Any = json.loads(read_regular(home / RECORD))
        roots = cast("dict[str, Any]", dict(data["roots"]))
        return {root: dict(files) for root, files in roots.items()}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _write(home: Path, roots: dict[str, dict[str, str]]) -> None:
    replace_file(home / RECORD, json.dumps({"version": 1, "roots": roots}, indent=1))


def _digest(path: Path) -> str | None:
    """Return a text that changes with the content; a symbolic link never counts as left by a run."""
    digest = digest_of(path)
    return digest if digest.startswith(("sha256:", "size:")) else None
