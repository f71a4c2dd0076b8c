"""Tampering signals between two snapshots: which of them count, and which todos are responsible."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from planner.model.evidence import Evidence, HygieneSignal
from planner.model.verdicts import EvidenceKind, Hardness
from planner.planfile.loader import collector_paused, plan_as_it_stands
from planner.text.display import listed
from pytest_planverify.baseline.work_tree import START_UP
from pytest_planverify.guards import Guard, Violation
from pytest_planverify.guards.hygiene.changes import SignalFinding, TreeDifferences
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
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.baseline.work_tree import Snapshot

MOST_SIGNALS = 50
"""Limit of signals kept as evidence."""

_RED_LOSSES = frozenset({"test-deleted", "test-skipped", "test-xfailed", "assertions-fewer"})
"""Signs that are forbidden for failing tests even with permission, as these tests have to pass.
Changing what they assert is a legitimate edit.
"""
_UNGRANTED = _RED_LOSSES | {
    "judge-changed", "judge-removed", "judge-unreadable", "assertion-lost", "data-changed"
}  # fmt: skip
"""Signs that are acceptable if a todo may change the file; all others always count."""
_OF_WORKERS = TRICKS | {
    "start-up-file", "shadows-module", "records-touched", "patches-judge"
}  # fmt: skip
"""Signs held against todos that may have caused them, not against those that the file judges."""

_LONGEST_EXCERPT = 300


def compare(
    before: Snapshot,
    now: Snapshot,
    *,
    kinds: Mapping[str, JudgeKind],
    grants: Grants,
    accepted: Callable[[str, str | None], bool] | None = None,
    is_red: Callable[[str], bool] | None = None,
) -> tuple[HygieneSignal, ...]:
    """Return the tampering signals in the difference of two trees.

    ``kinds`` are the kinds of the earlier files; new files are classified by name. ``accepted(path,
    sha256)`` tells whether a person accepted a content, ``is_red`` whether a test (without parameters)
    failed before.
    """
    changes = TreeDifferences(before, now, kinds, grants, accepted)
    found: dict[tuple[str, str | None, int | None, str], HygieneSignal] = {}
    # Syntax trees are many small objects without cycles, so collections only cost time.
    with collector_paused(), room_for_deep_trees():
        for finding in _findings(changes) if changes.changed else ():
            if signal := _weighed(finding, grants.permission(finding.path), is_red):
                found[signal.sign, signal.path, signal.line, signal.message] = signal
    return tuple(found.values())


def _findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    yield from judge_findings(changes)
    yield from product_findings(changes)
    tests = [path for path in changes.old if path in changes.new and changes.kind(path) is JudgeKind.TEST]
    yield from configuration_findings(changes.before, changes.now, changes.changed, tests)
    yield from _path_findings(changes)
    for path in changes.of_kind(JudgeKind.PLAN):
        before, now = (
            plan_as_it_stands(content, posixpath.basename(path)) if content is not None else None
            for content in (changes.before.read(path), changes.now.read(path))
        )
        if before is not None and now is None:
            said = "The plan is gone or cannot be read"
            yield SignalFinding("judge-unreadable", said, path)
        elif before is not None and now is not None:
            yield from plan_findings(before, now, path)


def _path_findings(changes: TreeDifferences) -> Iterator[SignalFinding]:
    """Yield findings from the names of new and changed files."""
    for path in sorted(changes.changed & changes.new.keys()):
        if ".planverify" in path.split("/")[:-1]:
            said = f"{path} is a record of the verifier"
            yield SignalFinding("records-touched", said, path)
        elif posixpath.basename(path) in START_UP or path.endswith((".pth", ".start")):
            said = f"{path} runs when an interpreter starts"
            yield SignalFinding("start-up-file", said, path)


def _weighed(
    finding: SignalFinding, permission: Permission, is_red: Callable[[str], bool] | None
) -> HygieneSignal | None:
    """Return the signal of a finding; ``None`` if permission covers it."""
    if finding.sign in _UNGRANTED and permission is Permission.GRANTED:
        about = finding.nodeid if finding.sign in _RED_LOSSES else None
        if about is None or is_red is None or not is_red(about):
            return None
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    return HygieneSignal(
        sign=finding.sign,
        hardness=Hardness.HARD,
        message=f"{finding.message} ({where})",
        path=finding.path,
        line=finding.line,
        nodeid=finding.nodeid,
        before=_excerpt(finding.before),
        after=_excerpt(finding.after),
    )


def _excerpt(text: str | None) -> str | None:
    """Return at most two lines of a text."""
    if text is None:
        return None
    shown = "\n".join([line.strip() for line in text.strip().splitlines() if line.strip()][:2])
    return shown if len(shown) <= _LONGEST_EXCERPT else shown[: _LONGEST_EXCERPT - 1] + "…"


# -- who answers ---------------------------------------------------------------------------------------


def violations(
    signals: Iterable[HygieneSignal],
    *,
    grants: Grants,
    passed: Collection[str],
    present: Collection[str] | None = None,
) -> Iterator[Violation]:
    """Yield the violations that the signals mean for each todo; one signal suffices.

    ``passed`` todos are responsible for what nobody was permitted to do. ``present`` are the todos of
    the run, all if ``None``.
    """
    here = {reach.todo_id for reach in grants.todos} if present is None else set(present)
    held: dict[str, list[HygieneSignal]] = {reach.todo_id: [] for reach in grants.todos}
    for signal in signals:
        for todo_id in _answering(signal, grants, passed, here):
            held[todo_id].append(signal)
    for todo_id, found in held.items():
        if found:
            reason = found[0].message + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")
            evidence = Evidence(
                kind=EvidenceKind.HYGIENE, headline=reason, signals=tuple(found[:MOST_SIGNALS])
            )
            yield Violation(todo_id=todo_id, guard=Guard.HYGIENE, reason=reason, evidence=evidence)


def _answering(
    signal: HygieneSignal, grants: Grants, passed: Collection[str], present: Collection[str]
) -> tuple[str, ...]:
    """Return the todos of the run that a signal is held against.

    A changed judge concerns the todos that it judges and that may change it. A trick concerns its
    possible author, and if that is not part of the run, everyone who benefits.
    """
    named: tuple[str, ...] = ()
    if signal.path is not None and signal.sign in _OF_WORKERS:
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
    """Hygiene of the tree, read before the run, so that the run itself is not part of it."""

    def __init__(self, flat: FlatPlan, baseline: KeptBaseline, tree: Snapshot) -> None:
        self._baseline = baseline
        self.grants = Grants.of(flat, _plan_of(flat, baseline))
        tests = baseline.document.tests
        self._red = {
            nodeid.partition("[")[0]
            for nodeid, test in tests.items()
            if test.outcome.is_red and not test.flaky
        }
        self._collected = {nodeid.partition("::")[0] for nodeid in tests if "::" in nodeid}
        found = compare(
            baseline,
            tree,
            kinds={path: file.kind for path, file in baseline.document.files.items()},
            grants=self.grants,
            accepted=baseline.accepted,
            is_red=self._is_red,
        )
        self.notes = list(self._unknown(tree))
        files, root = tree.digests().keys(), flat.loaded.root
        self.signals = (*self._beside(files, root), *found)
        remove_young_caches(root, files, _since(baseline))

    @property
    def said(self) -> str:
        """Hygiene as written into the outcome file."""
        revision = self._baseline.document.revision
        return f"checked against the baseline of {self._baseline.document.made_at}" + (
            f" ({revision[:12]})" if revision else ""
        )

    def _beside(self, files: Collection[str], root: Path) -> Iterator[HygieneSignal]:
        """Yield what snapshots cannot show: a baseline file that differs from git's copy, and ignored
        packages.
        """
        for doubt in self._baseline.doubts:
            yield HygieneSignal(sign="records-touched", hardness=Hardness.HARD, message=doubt, after=doubt)
        for finding in ignored_packages(root, files):
            if signal := _weighed(finding, self.grants.permission(finding.path), None):
                yield signal

    def _is_red(self, nodeid: str) -> bool:
        """Return whether a test failed at the baseline, or its file could not be collected."""
        path = nodeid.partition("::")[0]
        return nodeid in self._red or (path not in self._collected and bool(self.grants.dependants(path)))

    def _unknown(self, tree: Snapshot) -> Iterator[str]:
        """Yield changed files whose earlier content is lost."""
        before, now = self._baseline, tree.digests()
        lost = [
            path
            for path, digest in before.digests().items()
            if now.get(path, digest) != digest and before.read(path) is None
        ]
        if lost:
            yield (
                f"what the baseline held is not known of {listed(lost)}: fetch the commit of the "
                "baseline, or make it again: planverify baseline PLAN"
            )


def ignored_packages(root: Path, known: Collection[str]) -> Iterator[SignalFinding]:
    """Yield git-ignored packages that shadow a module beside them.

    ``known`` are the files of the tree.
    """
    for path in sorted(known):
        if not path.endswith(".py") or path.startswith(("../", "/")):
            continue
        package = posixpath.join(path.removesuffix(".py"), "__init__.py")
        is_module = posixpath.basename(path) != "__init__.py"
        if is_module and package not in known and (root / package).is_file():
            said = f"{package} is ignored by git, and is imported instead of {path}"
            yield SignalFinding("shadows-module", said, package)


def remove_young_caches(root: Path, sources: Iterable[str], since: float) -> None:
    """Remove bytecode caches beside sources that were written after ``since`` (epoch seconds).

    Python and pytest execute a cache instead of its source, so a forged cache would be judged in its
    place. The next import recreates it.
    """
    for folder in {posixpath.dirname(path) for path in sources if path.endswith(".py")}:
        with suppress(OSError), os.scandir(root / folder / "__pycache__") as entries:
            for entry in entries:
                # All timestamps can be forged except the ctime.
                if entry.name.endswith(".pyc") and entry.stat(follow_symlinks=False).st_ctime >= since:
                    os.unlink(entry)


def _since(baseline: KeptBaseline) -> float:
    """Return the time after which caches count as work; for a baseline of a commit it is unknown."""
    document = baseline.document
    if document.revision and baseline.path.name.startswith(document.revision):
        return 0.0
    try:
        return datetime.fromisoformat(document.made_at).timestamp() + 1
    except ValueError:
        return 0.0


def _plan_of(flat: FlatPlan, baseline: KeptBaseline) -> Plan | None:
    """Return the plan as of the baseline."""
    path = flat.loaded.path
    if not path.is_relative_to(flat.loaded.root):
        return None
    name = path.relative_to(flat.loaded.root).as_posix()
    content = baseline.read(name)
    return plan_as_it_stands(content, name) if content is not None else None
