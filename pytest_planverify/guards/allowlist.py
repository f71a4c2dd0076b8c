"""Allowlist: changed files that no todo may change, and the todo to blame. Pure."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from planner.model.verdicts import EvidenceKind
from planner.text.display import listed
from planner.text.glob_patterns import allowed, matches
from pytest_planverify.guards import Guard, Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

SHOWN = 3

_CACHES = frozenset(
    {".git", ".hg", ".planverify", "__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache"}
    | {".hypothesis", ".venv", ".tox", ".nox", ".benchmarks", "htmlcov"}
)
_CACHE_ENDINGS = (".pyc", ".pyo", ".egg-info")
_COVERAGE = ("coverage.xml", "coverage.json", "coverage.lcov", ".report.json")


class Author(NamedTuple):
    """A todo that can have done work."""

    todo_id: str
    root: Path
    """What its paths are relative to."""
    allowed_files: tuple[str, ...] | None


class Ground(NamedTuple):
    """One root of the plan, and what there is not anybody's work or nobody may touch."""

    root: Path
    expected: tuple[str, ...] = ()
    """Artifacts that todos are to make."""
    protected: tuple[str, ...] = ()


def violations(
    authors: Sequence[Author], grounds: Iterable[Ground], touched: Mapping[Path, Collection[str]]
) -> Iterator[Violation]:
    """Yield what is held against whom. ``touched`` are the changed files of each root, relative to it."""
    outside: dict[str, None] = {}
    protected: dict[str, None] = {}
    top = authors[0].root if authors else None
    for ground in grounds:
        for file in touched.get(ground.root, ()):
            if ground.protected and allowed(file, ground.protected):
                protected[_shown(ground.root, file, top)] = None
            elif not is_expected(file, ground.expected) and not _is_granted(ground.root / file, authors):
                outside[_shown(ground.root, file, top)] = None
    if not outside and not protected:
        return
    limited = [author for author in authors if author.allowed_files is not None]
    for author in limited or authors:
        yield _violation(author, tuple(outside), tuple(protected))


def is_cache(path: str) -> bool:
    """Return whether a tool keeps the file for itself."""
    parts = path.split("/")
    return (
        not _CACHES.isdisjoint(parts)
        or any(part.endswith(_CACHE_ENDINGS) for part in parts)
        or (parts[-1].startswith(".coverage") and parts[-1] != ".coveragerc")
        or parts[-1] in _COVERAGE
    )


def is_expected(file: str, expected: Iterable[str]) -> bool:
    """Return whether a file is nobody's work: a cache, or what the plan asks for."""
    return is_cache(file) or any(matches(file, pattern) for pattern in expected)


def _is_granted(file: Path, authors: Iterable[Author]) -> bool:
    return any(
        author.allowed_files is None
        or (
            file.is_relative_to(author.root)
            and allowed(file.relative_to(author.root).as_posix(), author.allowed_files)
        )
        for author in authors
    )


def _shown(root: Path, file: str, top: Path | None) -> str:
    if top is None or root == top:
        return file
    return posixpath.normpath(posixpath.relpath(f"{root.as_posix()}/{file}", top.as_posix()))


def _violation(author: Author, outside: tuple[str, ...], protected: tuple[str, ...]) -> Violation:
    from planner.model.evidence import Evidence

    parts: list[str] = []
    if outside:
        parts.append(f"{listed(outside, SHOWN)} changed, which no todo's allowed_files grants")
    if protected:
        parts.append(f"{listed(protected, SHOWN)} changed, which the plan protects")
    reason = "; ".join(parts)
    return Violation(
        todo_id=author.todo_id,
        guard=Guard.ALLOWLIST,
        reason=reason,
        evidence=Evidence(
            kind=EvidenceKind.ALLOWLIST,
            headline=reason,
            outside=(*protected, *outside),
            granted=author.allowed_files or (),
        ),
    )
