"""Allowlist guard: changed files that no todo may change, and the todos that are blamed for them.

All functions are pure; :mod:`pytest_planverify.guards.plan_guards` determines the changed files.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import EvidenceKind
from planner.planfile.project_files import is_cache_or_report
from planner.text.display import listed
from planner.text.glob_patterns import allowed, matches
from pytest_planverify.guards import Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

SHOWN = 3
"""Number of files that a reason names."""

_REPORTS = ("coverage.xml", "coverage.json", "coverage.lcov", ".report.json")
"""Names of files that test tools write, beside the caches of all tools."""


class Author(NamedTuple):
    """A todo that may have done work."""

    todo_id: str
    root: Path
    """Root of its paths."""
    allowed_files: tuple[str, ...] | None
    """Globs of the files that it may change; ``None`` if it has no allowlist."""


class Ground(NamedTuple):
    """One root of the plan, with its protected files and the files that are nobody's work."""

    root: Path
    expected: tuple[str, ...] = ()
    """Globs of files that are nobody's work, such as the artifacts that todos have to create."""
    protected: tuple[str, ...] = ()
    """Globs of files that nobody may change."""


def violations(
    authors: Sequence[Author], grounds: Iterable[Ground], touched: Mapping[Path, Collection[str]]
) -> Iterator[Violation]:
    """Yield the violations; all of them have the same reason, on all files together.

    ``touched`` are the changed files by root, relative to it. A file that no allowlist grants may be the
    work of any author, so each author with an allowlist is blamed, or each author if none has one.
    """
    from planner.model.evidence import Evidence

    outside: dict[str, None] = {}
    protected: dict[str, None] = {}
    for ground in grounds:
        for file in touched.get(ground.root, ()):
            above = os.path.relpath(ground.root, authors[0].root) if authors else "."
            shown = posixpath.normpath(f"{above}/{file}".replace(os.sep, "/"))
            if ground.protected and allowed(file, ground.protected):
                protected[shown] = None
            elif not is_expected(file, ground.expected) and not _is_granted(ground.root / file, authors):
                outside[shown] = None
    parts = (
        (outside, "changed, but not in the allowed_files of any todo"),
        (protected, "changed, but protected by the plan"),
    )
    reason = "; ".join(f"{listed(files, SHOWN)} {suffix}" for files, suffix in parts if files)
    limited = [author for author in authors if author.allowed_files is not None]
    for author in (limited or authors) if reason else ():
        evidence = Evidence(
            kind=EvidenceKind.ALLOWLIST,
            headline=reason,
            outside=(*protected, *outside),
            granted=author.allowed_files or (),
        )
        yield Violation(author.todo_id, evidence)


def is_expected(file: str, expected: Iterable[str]) -> bool:
    """Return whether a file is nobody's work: a tool's cache or report, or an artifact of the plan."""
    return (
        is_cache_or_report(file)
        or ".egg-info/" in f"{file}/"
        or file.rpartition("/")[2] in _REPORTS
        or any(matches(file, pattern) for pattern in expected)
    )


def _is_granted(file: Path, authors: Iterable[Author]) -> bool:
    """Return whether any author may change a file; one without an allowlist may change every file."""
    return any(
        author.allowed_files is None
        or (
            file.is_relative_to(author.root)
            and allowed(file.relative_to(author.root).as_posix(), author.allowed_files)
        )
        for author in authors
    )
