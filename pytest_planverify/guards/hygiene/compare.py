"""Tampering signals between two snapshots: which of them count, and which todos are responsible.

:func:`compare` collects the signals of the other modules of this package and drops those that a permission
covers. :func:`violations` assigns the others to todos. :class:`HygieneWatch` does both for the
tree of a run and its baseline.
"""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.model.evidence import Evidence, HygieneSignal
from planner.model.verdicts import EvidenceKind
from planner.planfile.loader import plan_as_it_stands
from planner.text.display import listed
from pytest_planverify.baseline.work_tree import START_UP, WorkTree, digest
from pytest_planverify.guards import Violation
from pytest_planverify.guards.hygiene.changes import PYTHON_JUDGES, TreeDifferences, file_signal
from pytest_planverify.guards.hygiene.configuration import configuration_findings
from pytest_planverify.guards.hygiene.grants import Grants, Permission
from pytest_planverify.guards.hygiene.judges import judge_findings
from pytest_planverify.guards.hygiene.plan_changes import plan_findings
from pytest_planverify.guards.hygiene.product import TRICKS, product_findings
from pytest_planverify.guards.hygiene.source import room_for_deep_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from planner.model.plan import Plan
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.baseline.work_tree import Snapshot

MOST_SIGNALS = 50
"""Limit of the signals that are stored as evidence of one violation."""

_RED_LOSSES = frozenset({"test-deleted", "test-skipped", "test-xfailed", "assertions-fewer"})
"""Signs that count even with permission if the test failed at the baseline: the work has to make it pass.
Changing what such a test asserts is a legitimate edit.
"""
_UNGRANTED = _RED_LOSSES | {
    "judge-changed", "judge-removed", "judge-unreadable", "assertion-lost", "data-changed"
}  # fmt: skip
"""Signs that are no signal if a todo may change the file; all others always count."""
_HELD_AGAINST_AUTHORS = TRICKS | {
    "start-up-file", "shadows-module", "records-touched", "patches-judge"
}  # fmt: skip
"""Signs that count against the todos that may have caused them, not those that the file judges."""


def compare(
    before: Snapshot,
    now: Snapshot,
    *,
    kinds: Mapping[str, JudgeKind],
    grants: Grants,
    accepted: Callable[[str, str | None], bool] | None = None,
    is_red: Callable[[str], bool] | None = None,
) -> tuple[HygieneSignal, ...]:
    """Return the tampering signals in the difference of two trees, each once.

    ``kinds`` are the kinds of the earlier files; new files are classified by name. ``accepted(path,
    sha256)`` returns whether a person has accepted a content. ``is_red(nodeid)`` returns whether a test,
    without parameters, failed before.
    """
    changes = TreeDifferences(before, now, kinds, grants, accepted)
    found: dict[tuple[str, str | None, int | None, str], HygieneSignal] = {}
    with room_for_deep_trees():
        for signal in _all_signals(changes) if changes.changed else ():
            if not _is_permitted(signal, grants, is_red):
                found[signal.sign, signal.path, signal.line, signal.message] = signal
    return tuple(found.values())


def _all_signals(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield the signals of all modules: judges, product, configuration, paths and plans."""
    yield from judge_findings(changes)
    yield from product_findings(changes)
    yield from configuration_findings(changes)
    yield from _path_findings(changes)
    for path in changes.of_kind(JudgeKind.PLAN):
        before, now = (
            plan_as_it_stands(content, posixpath.basename(path)) if content is not None else None
            for content in (changes.before.read(path), changes.now.read(path))
        )
        if before is not None and now is None:
            yield file_signal("judge-unreadable", "The plan is gone or cannot be read", path)
        elif before is not None and now is not None:
            yield from plan_findings(before, now, path)


def _path_findings(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield new and changed files whose name alone is a signal."""
    for path in sorted(changes.changed & changes.new.keys()):
        if ".planverify" in path.split("/")[:-1]:
            yield file_signal("records-touched", f"{path} is a record of the verifier", path)
        elif posixpath.basename(path) in START_UP or path.endswith((".pth", ".start")):
            yield file_signal("start-up-file", f"{path} runs when an interpreter starts", path)


def _is_permitted(signal: HygieneSignal, grants: Grants, is_red: Callable[[str], bool] | None) -> bool:
    """Return whether the permission to change its file covers a signal."""
    if signal.sign not in _UNGRANTED or grants.permission(signal.path or "") is not Permission.GRANTED:
        return False
    test = signal.nodeid if signal.sign in _RED_LOSSES else None
    return test is None or is_red is None or not is_red(test)


# -- who answers ---------------------------------------------------------------------------------------


def violations(
    signals: Iterable[HygieneSignal], *, grants: Grants, passed: Collection[str], present: Collection[str]
) -> Iterator[Violation]:
    """Yield a violation for each todo that is responsible for at least one signal.

    ``passed`` are the ids of the todos that are responsible if no todo of the run can be identified,
    ``present`` those of the run's todos.
    """
    by_todo: dict[str, list[HygieneSignal]] = {reach.todo_id: [] for reach in grants.todos}
    for signal in signals:
        for todo_id in _responsible(signal, grants, passed, present):
            by_todo[todo_id].append(signal)
    for todo_id, found in by_todo.items():
        if found:
            reason = found[0].message + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")
            evidence = Evidence(
                kind=EvidenceKind.HYGIENE, headline=reason, signals=tuple(found[:MOST_SIGNALS])
            )
            yield Violation(todo_id, evidence)


def _responsible(
    signal: HygieneSignal, grants: Grants, passed: Collection[str], present: Collection[str]
) -> tuple[str, ...]:
    """Return the ids of the run's todos that are responsible for a signal.

    For a changed judge these are the todos that may change it and those that it judges, as far as they are
    part of the run. For a trick it is its possible author. If that is not part of the run, or nobody is
    identified, all ``passed`` todos are responsible.
    """
    named: tuple[str, ...] = ()
    if signal.path is not None and signal.sign in _HELD_AGAINST_AUTHORS:
        named = grants.owners(signal.path)
    elif signal.path is not None:
        owners = (reach.todo_id for reach in grants.todos if reach.may_change(signal.path))
        named = tuple(dict.fromkeys((*owners, *grants.dependants(signal.path))))
        if named:
            return tuple(each for each in named if each in present)
    found = tuple(each for each in named if each in present)
    return found or tuple(reach.todo_id for reach in grants.todos if reach.todo_id in passed)


# -- the tree of a run ---------------------------------------------------------------------------------


class HygieneWatch:
    """Hygiene of the tree, compared before the run, so that files written by tests are not part of it.

    Only the tests themselves must not change during the run either, see :meth:`meanwhile`.
    """

    def __init__(self, flat: FlatPlan, baseline: KeptBaseline, tree: Snapshot) -> None:
        """Compare ``tree``, a snapshot of the current files, with the baseline.

        Also removes bytecode caches that may be forged, see :func:`remove_young_caches`.
        """
        self._baseline, self._start, self._root = baseline, tree.digests(), flat.loaded.root
        self.grants = Grants.of(flat, _plan_of(flat, baseline))
        tests = baseline.document.tests
        # Without parameters, as in the node ids of the comparison, which reads the source only.
        self._red = {
            nodeid.partition("[")[0]
            for nodeid, test in tests.items()
            if test.outcome.is_red and not test.flaky
        }
        self._collected = {
            part
            for nodeid in tests
            if "::" in nodeid
            for part in (nodeid.partition("::")[0], nodeid.partition("[")[0])
        }
        self.notes = list(self._unchecked(tree))
        files, root = self._start.keys(), self._root
        # A comparison of snapshots finds neither baseline files that differ from the copy in git, nor
        # packages that git ignores.
        doubts = (
            HygieneSignal(sign="records-touched", message=doubt, after=doubt) for doubt in baseline.doubts
        )
        self.signals = (*doubts, *ignored_packages(root, files), *self._compared(tree))
        remove_young_caches(root, files, _since(baseline))

    def meanwhile(self) -> Iterator[HygieneSignal]:
        """Yield the signals of tests and conftests that code under test changed during the run."""
        tests = {path for path in self._start if self._baseline.kind_of(path) in PYTHON_JUDGES}
        tests |= {posixpath.join(posixpath.dirname(path), "conftest.py") for path in tests}
        tree = WorkTree(self._root)
        written = {path for path in tests if self._start.get(path) != digest(tree.read(path))}
        for signal in self._compared(tree) if written else ():
            if signal.path in written and signal not in self.signals:
                yield signal.model_copy(update={"message": f"{signal.message}, during the run"})

    def _compared(self, tree: Snapshot) -> tuple[HygieneSignal, ...]:
        kinds = {path: file.kind for path, file in self._baseline.document.files.items()}
        return compare(
            self._baseline,
            tree,
            kinds=kinds,
            grants=self.grants,
            accepted=self._baseline.accepted,
            is_red=self._is_red,
        )

    @property
    def summary(self) -> str:
        """Sentence on the comparison for the outcome file: the baseline's time and revision."""
        revision = self._baseline.document.revision
        # A later run has not lost a baseline that only one run was to use: see ``lost_baseline``.
        which = "the" if self._baseline.path.name == "baseline.json" else "a temporary"
        return f"checked against {which} baseline of {self._baseline.document.made_at}" + (
            f" ({revision[:12]})" if revision else ""
        )

    def _is_red(self, nodeid: str) -> bool:
        """Return whether a test failed at the baseline, or no test of its file is recorded there."""
        # A file that judges a todo and has no recorded test may not have been collectable.
        path = nodeid.partition("::")[0]
        if path not in self._collected:
            return bool(self.grants.dependants(path)) and bool(self._red or not self._collected)
        # What is in a test file and no test itself may be a helper that its tests call, or the method of a
        # base class that is a test of each subclass.
        name = nodeid.rpartition("::")[2]
        end = f"::{name}" if name.startswith("test") else ""
        return nodeid in self._red or (
            nodeid not in self._collected
            and any(each.startswith(f"{path}::") and each.endswith(end) for each in self._red)
        )

    def _unchecked(self, tree: Snapshot) -> Iterator[str]:
        """Yield a note on changed files whose earlier content is not stored, so that they are unchecked."""
        before, now = self._baseline, tree.digests()
        lost = [
            path
            for path, digest in before.digests().items()
            if now.get(path, digest) != digest and before.read(path) is None
        ]
        if lost:
            yield (
                f"the baseline of {listed(lost)} is unknown: fetch the commit of the baseline, or "
                "record it again: planverify baseline PLAN"
            )


def ignored_packages(root: Path, known: Collection[str]) -> Iterator[HygieneSignal]:
    """Yield packages that git ignores and that shadow a module: Python prefers ``x/`` to ``x.py``.

    ``known`` are the files of the tree, in which ignored files are missing.
    """
    for path in sorted(known):
        if not path.endswith(".py") or path.startswith(("../", "/")):
            continue
        package = posixpath.join(path.removesuffix(".py"), "__init__.py")
        is_module = posixpath.basename(path) != "__init__.py"
        if is_module and package not in known and (root / package).is_file():
            message = f"{package} is ignored by git, and imported instead of {path}"
            yield file_signal("shadows-module", message, package)


def remove_young_caches(root: Path, sources: Iterable[str], since: float) -> None:
    """Remove the bytecode caches of ``sources`` that were written after ``since`` (epoch seconds)."""
    # Python and pytest execute a cache instead of its source: a forged one would run in place of the source
    # that was compared. The next import writes it again.
    for folder in {posixpath.dirname(path) for path in sources if path.endswith(".py")}:
        with suppress(OSError), os.scandir(root / folder / "__pycache__") as entries:
            for entry in entries:
                # The ctime is the only timestamp that a program cannot set.
                if entry.name.endswith(".pyc") and entry.stat(follow_symlinks=False).st_ctime >= since:
                    os.unlink(entry)


def _since(baseline: KeptBaseline) -> float:
    """Return the time, in epoch seconds, after which a cache may be forged.

    Returns 0, for any time, if it is unknown, as for the baseline of a commit.
    """
    document = baseline.document
    if document.revision and baseline.path.name.startswith(document.revision):
        return 0.0
    try:
        # The time is cut off to whole seconds: what the recording itself wrote in this second may stay.
        return datetime.fromisoformat(document.made_at).timestamp() + 1
    except ValueError:
        return 0.0


def _plan_of(flat: FlatPlan, baseline: KeptBaseline) -> Plan | None:
    """Return the plan as it was at the baseline; ``None`` if its file is not part of it."""
    path = flat.loaded.path
    if not path.is_relative_to(flat.loaded.root):
        return None
    name = path.relative_to(flat.loaded.root).as_posix()
    content = baseline.read(name)
    return plan_as_it_stands(content, name) if content is not None else None
