"""Tampering signals in the sessions of a run, compared with the baseline.

The comparison of trees (:mod:`pytest_planverify.guards.hygiene`) reads source code. This module evaluates
what happened: hooks that were registered, judging functions that were replaced, tests that were no longer
collected, sessions that contradict themselves. Facts that the baseline shows as well are no signal.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.model.verdicts import Hardness, TestOutcome
from planner.text.display import listed
from pytest_planverify.baseline import below
from pytest_planverify.guards.hygiene.changes import SERVES_TESTS
from pytest_planverify.guards.hygiene.grants import Permission
from pytest_planverify.guards.tamper_observer import environment_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.baseline import SessionInventory
    from planner.model.outcome import Check
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.checks.result import CheckRun
    from pytest_planverify.guards.hygiene.grants import Grants

_EQUIVALENT = {
    "hook-added": ("outcome-hook", "judge-changed"),
    "patches-judge": ("fixture-overridden", "outcome-hook"),
    "test-vanished": ("test-deleted", "test-deselected", "judge-removed"),
    "test-skipped-since": ("test-skipped", "test-xfailed", "test-deleted"),
}
"""Signs of the tree comparison that report the same act as a sign of the run.

If both are reported for the same file, the signal of the run is dropped.
"""
_DECIDING = re.compile(
    r"pytest_(runtest|pyfunc_call|collect|ignore_collect|pycollect|make_collect_report|deselected|itemcollected"
    r"|generate_tests|fixture|sessionfinish|report_teststatus|report_to_|report_from_|assertrepr_compare"
    r"|exception_interact|internalerror|keyboard_interrupt|cmdline_main|load_initial_conftests|plugin_registered)"
    r"\w*"
)
"""Hooks that can change which tests run, or how they are reported."""


class SessionSeen(Protocol):
    """Observations of a finished session."""

    inventories: list[dict[str, Any]]
    """``session_inventory`` records that its processes wrote at their end."""
    forged: int
    """Number of lines in its journal that it did not write itself."""
    collected: bool
    """Whether its collection was finished."""
    exit_status: int | None
    collection_failures: dict[str, Any]
    results: dict[str, Any]
    """Finished tests by node id."""

    @property
    def journal_lost(self) -> bool: ...


class RunResult(Protocol):
    """Observations of the run of one plan."""

    @property
    def records(self) -> Sequence[SessionSeen]: ...

    @property
    def checks(self) -> Mapping[str, Mapping[str, CheckRun]]:
        """By todo id, then check id."""
        ...


class Shown(NamedTuple):
    """Observations of a run that are searched for signals."""

    sessions: Sequence[SessionSeen]
    checks: Mapping[str, Iterable[Check]]
    """By todo id."""
    inventory: SessionInventory
    """Inventories of all sessions, merged."""
    narrowed: bool = False
    """Whether the user excluded tests, so that missing ones are no signal."""


class FileGround:
    """Facts about files: their changes since the baseline, and the permissions to change them.

    Paths are relative to the root.
    """

    def __init__(self, kept: KeptBaseline, grants: Grants, digests: Mapping[str, str]) -> None:
        self.kept, self._grants, self._digests = kept, grants, digests
        self.inventory = kept.document.inventory

    def permission(self, path: str) -> Permission:
        """Return the permission of the plan's todos to change a file."""
        return self._grants.permission(path)

    def is_accepted(self, path: str) -> bool:
        """Return whether a person has accepted the file's current content."""
        digest = self._digests.get(path)
        return digest is not None and self.kept.accepted(path, digest)

    def is_settled(self, path: str) -> bool:
        """Return whether a file is as in the baseline, or accepted by a person."""
        before = self.kept.document.files.get(path)
        is_unchanged = before is not None and before.sha256 == self._digests.get(path)
        return is_unchanged or self.is_accepted(path)

    def is_off_limits(self, path: str) -> bool:
        """Return whether an effect on the tests of a file cannot be legitimate work.

        This is so if no todo may change the file, or if it is unchanged and no todo's allowlist names it. A
        file whose change a person accepted does not count.
        """
        permission = self.permission(path)
        if permission is Permission.GRANTED or self.is_accepted(path):
            return False
        return permission is Permission.FORBIDDEN or self.is_settled(path)

    def was_red(self, nodeid: str) -> bool:
        """Return whether a test failed at the baseline, and was not flaky."""
        was = self.kept.test(nodeid)
        return was is not None and was.outcome.is_red and not was.flaky

    def selection_was_accepted(self) -> bool:
        """Return whether a person has accepted a change of a file that decides which tests exist."""
        return any(
            self.kept.kind_of(path) in (JudgeKind.CONFTEST, JudgeKind.CONFIG)
            and self._digests.get(path) == digest
            for each in self.kept.document.accepted
            for path, digest in each.files.items()
        )


def signals(
    shown: Shown,
    kept: KeptBaseline,
    flat: FlatPlan,
    grants: Grants,
    digests: Mapping[str, str],
) -> Iterator[HygieneSignal]:
    """Yield all tampering signals of a run.

    ``digests`` are those of the tree before the run, by path. One act may cause several signals; see
    :func:`without_known`.
    """
    ground = FileGround(kept, grants, digests)
    yield from _sessions(shown, ground.inventory)
    yield from _hooks(shown.inventory, ground)
    yield from _patches(shown.inventory, ground)
    if not shown.narrowed:
        yield from _missing_tests(shown, flat, ground)


def without_known(
    found: Iterable[HygieneSignal], known: Iterable[HygieneSignal]
) -> Iterator[HygieneSignal]:
    """Yield the signals of ``found`` that report nothing which ``known`` reports of the same file.

    ``known`` are the signals of the comparison of trees.
    """
    reported = {(each.sign, each.path) for each in known}
    for each in found:
        signs = (each.sign, *_EQUIVALENT.get(each.sign, ()))
        if each.path is None or not any((sign, each.path) in reported for sign in signs):
            yield each


def _sessions(shown: Shown, before: SessionInventory) -> Iterator[HygieneSignal]:
    """Yield contradictions in what sessions report about themselves.

    Forged or missing records, a missing inventory, a successful exit status in spite of failures, and tests
    that passed although their function was not called. Missing records, such an exit status and such tests
    are left out if the baseline has them, too.
    """
    if forged := sum(each.forged for each in shown.sessions):
        yield _signal("records-touched", f"lines of the journal ({forged}) were not written by its session")
    if any(each.journal_lost for each in shown.sessions) and not before.records_lost:
        yield _signal("records-touched", "records of a session were removed from the journal")
    # A session that came to its end has written an inventory; all() is also true if there is none.
    if any(
        each.collected
        and each.exit_status is not None
        and all(one.get("incomplete") for one in each.inventories)
        for each in shown.sessions
    ):
        yield _signal("witness-silenced", "a session ended without reporting its plugins and hooks")
    for each in shown.sessions if not before.status_overturned else ():
        red = [name for name, test in each.results.items() if test.outcome in ("failed", "error")]
        if red and each.exit_status == 0:
            message = f"a session returned 0 although {listed(red)} failed"
            yield _signal("exit-status-overturned", message, nodeid=red[0])
            break
    # Some plugins run test bodies in other processes, where calls cannot be observed. The baseline shows
    # whether the project uses such a plugin.
    for session in shown.sessions if not before.bodies_elsewhere else ():
        without_body = (nodeid for each in session.inventories for nodeid in each.get("without_body", ()))
        green = {nodeid for nodeid, test in session.results.items() if test.outcome == "passed"}
        if names := [nodeid for nodeid in without_body if nodeid in green]:
            message = f"passed without being called: {listed(names)}"
            yield _signal("body-not-run", message, path=names[0].partition("::")[0], nodeid=names[0])


def _hooks(now: SessionInventory, ground: FileGround) -> Iterator[HygieneSignal]:
    """Yield hooks that can decide results, in product or forbidden files that did not implement them.

    A hook that moved from another file is no signal, nor is one in a file that is unchanged or accepted.
    Files outside of the root are ignored, because users may load plugins from anywhere.
    """
    before = {(each.hook, _without_location(each.file)) for each in ground.inventory.hooks}
    files = {(each.hook, _without_location(each.file)): each.file for each in now.hooks}
    # A hook that moved is missing in its old file: as many new implementations are no signal.
    moved = Counter(hook for hook, _ in before - files.keys())
    for hook, place in sorted(files.keys() - before):
        file = files[hook, place]
        if moved[hook]:
            moved[hook] -= 1
        elif _DECIDING.fullmatch(hook) and not file.startswith("/") and not ground.is_settled(file):
            is_product = ground.kept.kind_of(file) is JudgeKind.PRODUCT and not SERVES_TESTS.search(file)
            if is_product or ground.permission(file) is Permission.FORBIDDEN:
                message = f"{file} implements the hook {hook}, unlike at the baseline"
                yield _signal("hook-added", message, path=file)


def _without_location(file: str) -> str:
    """Return a path below the root unchanged, of another file the name only."""
    # The location of other files depends on the machine, and a baseline may be from another one.
    return file.rpartition("/")[2] if file.startswith(("/", "../")) else file


def _patches(now: SessionInventory, ground: FileGround) -> Iterator[HygieneSignal]:
    """Yield judging functions that were replaced.

    Those that were replaced at the baseline, too, are left out, and replacements by an installed library or
    by a file that is unchanged or accepted.
    """
    is_environment = environment_files()
    before = {each.name for each in ground.inventory.patched}
    for each in now.patched:
        # Libraries may replace functions when they are imported. Names with parentheses are functions whose
        # code was changed, for which the file is that of the function and not of the culprit.
        by_library = is_environment(each.file) and not each.name.endswith("()")
        if each.name not in before and not by_library and not ground.is_settled(each.file):
            message = f"{each.name} was replaced{f' by {each.file}' if each.file else ''} and not restored"
            is_own = each.file in ground.kept.document.files or not each.file.startswith("/")
            yield _signal("patches-judge", message, path=(each.file or None) if is_own else None)


def _missing_tests(shown: Shown, flat: FlatPlan, ground: FileGround) -> Iterator[HygieneSignal]:
    """Yield tests of the baseline that a command no longer collects, and failing ones that are now skipped.

    Tests of files that could not be collected are left out, and missing tests of files that may have been
    changed legitimately. If a person has accepted a change of the selection, no missing test is a signal.
    """
    accepted = ground.selection_was_accepted()
    unread = {name.partition("::")[0] for each in shown.sessions for name in each.collection_failures}
    for todo_id, checks in shown.checks.items():
        known = ground.kept.document.todos.get(todo_id)
        for check in checks:
            was = known.checks.get(check.id) if known is not None else None
            if was is None or was.cmd != check.cmd or not check.tests or not was.tests:
                # A changed command is judged by the comparison of plans. Without tests on one of the sides
                # there is nothing to compare.
                continue
            present = {_function(test.nodeid) for test in check.tests}
            vanished = (
                below(flat, todo_id, name)
                for name in dict.fromkeys(map(_function, was.tests))
                if not accepted and name not in present and name.partition("::")[0] not in unread
            )
            idle = (
                below(flat, todo_id, test.nodeid)
                for test in check.tests
                if test.outcome in (TestOutcome.SKIPPED, TestOutcome.XFAILED)
            )
            for file, names in _by_file(vanished):
                if ground.is_off_limits(file):
                    message = f"{_are(names, f' of {check.id} of {todo_id}')} no longer collected"
                    yield _signal("test-vanished", message, path=file, nodeid=names[0])
            for file, names in _by_file(filter(ground.was_red, idle)):
                if not ground.is_accepted(file):
                    were = "it was red" if len(names) == 1 else "they were red"
                    message = f"{_are(names)} skipped or expected to fail since the baseline, where {were}"
                    yield _signal("test-skipped-since", message, path=file, nodeid=names[0])


def _by_file(nodeids: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    """Group node ids by their file."""
    found: dict[str, list[str]] = {}
    for nodeid in nodeids:
        found.setdefault(nodeid.partition("::")[0], []).append(nodeid)
    return found.items()


def _function(nodeid: str) -> str:
    """Return a node id without parameters."""
    # Parameters may be computed by the product, so that honest work changes them.
    return nodeid.partition("[")[0]


def _are(names: Sequence[str], where: str = "") -> str:
    """Return the start of a sentence: ``names`` and the verb that agrees with their number."""
    return f"{listed(names)}{where} {'is' if len(names) == 1 else 'are'}"


def _signal(
    sign: str, message: str, *, path: str | None = None, nodeid: str | None = None
) -> HygieneSignal:
    return HygieneSignal(sign=sign, hardness=Hardness.HARD, message=message, path=path, nodeid=nodeid)
