"""Differences between two snapshots of a tree, and the signals in one of its files."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from pytest_planverify.baseline.work_tree import Judges
from pytest_planverify.guards.hygiene.source import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_planverify.baseline.work_tree import Snapshot
    from pytest_planverify.guards.hygiene.grants import Grants
    from pytest_planverify.guards.hygiene.source import Module

PYTHON_JUDGES = (JudgeKind.TEST, JudgeKind.CONFTEST, JudgeKind.TEST_SUPPORT)
# Kinds of files that are the product of work, in contrast to those that judge it.
WORK = (JudgeKind.PRODUCT, JudgeKind.START_UP, JudgeKind.ARTIFACT)
SERVES_TESTS = re.compile(r"pytest|testing|plugin|fixture|conftest|(^|/)tests?[_/]|_tests?[./]")
"""Paths of files that serve the tests of other projects, such as plugins and fixtures."""

_SCRIPT_FOLDERS = frozenset(
    {"tools", "bin", "scripts", "script", "examples", "benchmarks", "docs", "doc", "ci"}
)
_SCRIPTS = frozenset({"setup.py", "noxfile.py", "tasks.py", "fabfile.py", "conf.py", "dodo.py"})
_LONGEST_EXCERPT = 300


class TreeDifferences:
    """Differences between two snapshots; contents are read and parsed on demand, once each."""

    def __init__(
        self,
        before: Snapshot,
        now: Snapshot,
        kinds: Mapping[str, JudgeKind],
        grants: Grants,
        accepted: Callable[[str, str | None], bool] | None = None,
    ) -> None:
        """Compare the digests of the snapshots ``before`` and ``now``.

        ``kinds`` are the kinds of the earlier files by path; other files are classified by their names.
        ``accepted(path, sha256)`` returns whether a person has accepted a content, which is no change then.
        """
        self.before, self.now, self.grants = before, now, grants
        self._kinds = kinds
        self.old, self.new = before.digests(), now.digests()
        self.changed = frozenset(
            path
            for path in self.old.keys() | self.new.keys()
            if self.old.get(path) != self.new.get(path)
            and not (accepted is not None and accepted(path, self.new.get(path)))
        )
        self._parsed: dict[tuple[str, bool], Module | None] = {}

    def kind(self, path: str) -> JudgeKind:
        """Return the role of a file in verdicts, such as test, conftest or product."""
        known = self._kinds.get(path)
        return known if known is not None else self._judges_by_name.kind_of(path)

    def of_kind(self, *kinds: JudgeKind) -> list[str]:
        """Return the changed files of these kinds, sorted."""
        return sorted(path for path in self.changed if self.kind(path) in kinds)

    def module(self, path: str, *, now: bool) -> Module | None:
        """Return a parsed source file of the current or the earlier tree.

        Returns ``None`` if the file does not exist there or cannot be parsed.
        """
        key = path, now
        if key not in self._parsed:
            self._parsed[key] = parse(path, (self.now if now else self.before).read(path))
        return self._parsed[key]

    def python(self, *kinds: JudgeKind) -> list[tuple[Module | None, Module | None]]:
        """Return the changed Python files of these kinds, as pairs of the earlier and the current one."""
        paths = [path for path in self.of_kind(*kinds) if path.endswith(".py")]
        return [(self.module(path, now=False), self.module(path, now=True)) for path in paths]

    def runs_alone(self, path: str) -> bool:
        """Return whether a source file is a program that is executed and that no test imports."""
        return is_script(path) or any(path in reach.scripts for reach in self.grants.todos)

    @cached_property
    def data(self) -> frozenset[str]:
        """Data files of criteria and of tests, in the current tree."""
        named = {path for reach in self.grants.todos for path in reach.data}
        return frozenset(named | {path for path in self.new if self.kind(path) is JudgeKind.FIXTURE})

    @cached_property
    def _judges_by_name(self) -> Judges:
        todos = self.grants.todos
        return Judges(
            plans=frozenset(self.grants.plans),
            contracts=frozenset(reach.contract for reach in todos if reach.contract),
            data=frozenset(path for reach in todos for path in reach.data),
            artifacts=tuple(path for reach in todos for path in reach.artifacts),
        )


def is_script(path: str) -> bool:
    """Return whether a source file is usually executed rather than imported, judged by its path."""
    *folders, name = path.split("/")
    return name in _SCRIPTS or any(folder in _SCRIPT_FOLDERS for folder in folders)


def file_signal(
    sign: str,
    message: str,
    path: str,
    *,
    line: int | None = None,
    before: str | None = None,
    after: str | None = None,
    nodeid: str | None = None,
) -> HygieneSignal:
    """Return a signal in one file; ``before`` and ``after`` are the contents to show excerpts of.

    ``nodeid`` is the affected test, by its earlier node id.
    """
    return HygieneSignal(
        sign=sign,
        message=f"{message} ({path}:{line})" if line else f"{message} ({path})",
        path=path,
        line=line,
        nodeid=nodeid,
        before=_excerpt(before),
        after=_excerpt(after),
    )


def _excerpt(text: str | None) -> str | None:
    """Return the first two lines of a text that are not blank, in limited length."""
    if text is None:
        return None
    shown = "\n".join([line.strip() for line in text.strip().splitlines() if line.strip()][:2])
    return shown if len(shown) <= _LONGEST_EXCERPT else shown[: _LONGEST_EXCERPT - 1] + "…"
