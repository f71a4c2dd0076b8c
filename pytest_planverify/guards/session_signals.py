"""Tampering signals in the sessions of a run, compared with the baseline.

The comparison of trees (:mod:`pytest_planverify.guards.hygiene`) reads source code. This module evaluates
what happened: hooks that were registered, judging functions that were replaced, tests that were no longer
collected, sessions that contradict themselves. Facts that the baseline shows as well are no signal.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.model.verdicts import TestOutcome
from planner.text.display import listed
from pytest_planverify.baseline import below
from pytest_planverify.baseline.record import inventory_of
from pytest_planverify.guards.hygiene.changes import SERVES_TESTS
from pytest_planverify.guards.hygiene.grants import Permission
from pytest_planverify.guards.tamper_observer import environment_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.baseline import SessionInventory
    from planner.model.journal import CheckRun
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.guards.hygiene.grants import Grants

_DECIDING = re.compile(
    r"pytest_(runtest|pyfunc_call|collect|ignore_collect|pycollect|make_collect_report|deselected|itemcollected"
    r"|generate_tests|fixture|sessionfinish|report_teststatus|report_to_|report_from_|assertrepr_compare"
    r"|exception_interact|internalerror|keyboard_interrupt|cmdline_main|load_initial_conftests|plugin_registered)"
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


class SessionComparison:
    """Compares the observations of a run with the baseline of its plan.

    Paths are relative to the root. ``digests`` are those of the tree before the run, by path. One act may
    cause several signals, also beside those of the comparison of trees.
    """

    def __init__(
        self, flat: FlatPlan, kept: KeptBaseline, grants: Grants, digests: Mapping[str, str]
    ) -> None:
        self._flat, self._kept, self._grants, self._digests = flat, kept, grants, digests

    def signals(self, result: RunResult, *, narrowed: bool = False) -> Iterator[HygieneSignal]:
        """Yield all tampering signals of a run.

        With ``narrowed`` the user excluded tests, so that missing ones are no signal.
        """
        records = [each for session in result.records for each in session.inventories]
        now = inventory_of(records, self._flat.loaded.root)
        yield from _contradictions(result.records, self._kept.document.inventory)
        yield from self._hooks(now)
        yield from self._patches(now)
        if not narrowed:
            yield from self._missing_tests(result)

    # -- facts about files -----------------------------------------------------------------------

    def _is_accepted(self, path: str) -> bool:
        """Return whether a person has accepted the file's current content."""
        digest = self._digests.get(path)
        return digest is not None and self._kept.accepted(path, digest)

    def _is_settled(self, path: str) -> bool:
        """Return whether a file is as in the baseline, or accepted by a person."""
        before = self._kept.document.files.get(path)
        is_unchanged = before is not None and before.sha256 == self._digests.get(path)
        return is_unchanged or self._is_accepted(path)

    def _is_off_limits(self, path: str) -> bool:
        """Return whether an effect on the tests of a file cannot be legitimate work.

        This is so if no todo may change the file, or if it is unchanged and no todo's allowlist names it. A
        file whose change a person accepted does not count.
        """
        permission = self._grants.permission(path)
        if permission is Permission.GRANTED or self._is_accepted(path):
            return False
        return permission is Permission.FORBIDDEN or self._is_settled(path)

    def _selection_was_accepted(self) -> bool:
        """Return whether a person has accepted a change of a file that decides which tests exist."""
        return any(
            self._kept.kind_of(path) in (JudgeKind.CONFTEST, JudgeKind.CONFIG)
            and self._digests.get(path) == digest
            for each in self._kept.document.accepted
            for path, digest in each.files.items()
        )

    def _defines(self, nodeid: str) -> bool:
        """Return whether the file of a test, as of the baseline, has a function of its name."""
        path, *_, name = nodeid.split("::")
        content = self._kept.read(path)
        return content is None or f"def {name}(".encode() in content

    # -- signals ---------------------------------------------------------------------------------

    def _hooks(self, now: SessionInventory) -> Iterator[HygieneSignal]:
        """Yield hooks that can decide results, in product or forbidden files that did not implement them.

        A hook that moved from another file is no signal, nor is one in a file that is unchanged or
        accepted. Files outside of the root are ignored, because users may load plugins from anywhere.
        """
        before, after = (
            {(each.hook, each.file) for each in found.hooks if not each.file.startswith("/")}
            for found in (self._kept.document.inventory, now)
        )
        # A hook that moved is missing in its old file: as many new implementations are no signal.
        moved = Counter(hook for hook, _ in before - after)
        for hook, file in sorted(after - before):
            if moved[hook]:
                moved[hook] -= 1
            elif _DECIDING.match(hook) and not self._is_settled(file):
                is_product = self._kept.kind_of(file) is JudgeKind.PRODUCT and not SERVES_TESTS.search(file)
                if is_product or self._grants.permission(file) is Permission.FORBIDDEN:
                    message = f"{file} implements the hook {hook}, unlike at the baseline"
                    yield _signal("hook-added", message, path=file)

    def _patches(self, now: SessionInventory) -> Iterator[HygieneSignal]:
        """Yield judging functions that were replaced.

        Those that were replaced at the baseline, too, are left out, and replacements by an installed
        library or by a file that is unchanged or accepted.
        """
        is_environment = environment_files()
        before = {each.name for each in self._kept.document.inventory.patched}
        for each in now.patched:
            # Libraries may replace functions when they are imported. Names with parentheses are functions
            # whose code was changed, for which the file is that of the function and not of the culprit.
            by_library = is_environment(each.file) and not each.name.endswith("()")
            if each.name not in before and not by_library and not self._is_settled(each.file):
                message = (
                    f"{each.name} was replaced{f' by {each.file}' if each.file else ''} and not restored"
                )
                is_own = each.file in self._kept.document.files or not each.file.startswith("/")
                yield _signal("patches-judge", message, path=(each.file or None) if is_own else None)

    def _missing_tests(self, result: RunResult) -> Iterator[HygieneSignal]:
        """Yield tests of the baseline that a command no longer collects, and failing ones now skipped.

        Tests of files that could not be collected are left out, and missing tests of files that may have
        been changed legitimately. If a person has accepted a change of the selection, no missing test is a
        signal.
        """
        accepted = self._selection_was_accepted()
        unread = {name.partition("::")[0] for each in result.records for name in each.collection_failures}
        for todo_id, runs in result.checks.items():
            for check_id, run in runs.items():
                check, was = run.check, self._kept.check(todo_id, check_id)
                if was is None or was.cmd != check.cmd or not check.tests or not was.tests:
                    # A changed command is judged by the comparison of plans. Without tests on one of the
                    # sides there is nothing to compare.
                    continue
                present = {_function(test.nodeid) for test in check.tests}
                vanished = [
                    below(self._flat, todo_id, name)
                    for name in dict.fromkeys(map(_function, was.tests))
                    if not accepted and name not in present and name.partition("::")[0] not in unread
                ]
                # Fewer cases of a test that failed, whether its table, its data or a hook lists them.
                before, now = (
                    Counter(map(_function, tests)) for tests in (was.tests, (t.nodeid for t in check.tests))
                )
                standing = {
                    name: self._kept.standing(below(self._flat, todo_id, name)) for name in was.tests
                }
                red = [name for name, then in standing.items() if then == "red"]
                fewer = (
                    below(self._flat, todo_id, name)
                    for name in dict.fromkeys(map(_function, red))
                    if not accepted and 0 < now[name] < before[name]
                )
                for file, names in _by_file(fewer):
                    message = f"{_are(names, f' of {check.id} of {todo_id}')} collected with fewer cases"
                    yield _signal("test-vanished", message, path=file, nodeid=names[0])
                idle = (
                    below(self._flat, todo_id, test.nodeid)
                    for test in check.tests
                    if test.outcome in (TestOutcome.SKIPPED, TestOutcome.XFAILED)
                )
                # A class that no longer inherits a test has not deleted it, and it may be renamed there.
                inherited = {below(self._flat, todo_id, _function(name)) for name in red}
                inherited = {name for name in inherited.intersection(vanished) if not self._defines(name)}
                if sum(before[_function(test.nodeid)] == 0 for test in check.tests) >= len(inherited):
                    inherited.clear()
                for file, names in _by_file(vanished):
                    if not self._is_off_limits(file):
                        names = [
                            each for each in names if each in inherited and not self._is_accepted(file)
                        ]
                    if names:
                        message = f"{_are(names, f' of {check.id} of {todo_id}')} no longer collected"
                        yield _signal("test-vanished", message, path=file, nodeid=names[0])
                for file, names in _by_file(name for name in idle if self._kept.standing(name) == "red"):
                    if not self._is_accepted(file):
                        were = "it was red" if len(names) == 1 else "they were red"
                        message = (
                            f"{_are(names)} skipped or expected to fail since the baseline, where {were}"
                        )
                        yield _signal("test-skipped-since", message, path=file, nodeid=names[0])


def _contradictions(sessions: Sequence[SessionSeen], before: SessionInventory) -> Iterator[HygieneSignal]:
    """Yield contradictions in what sessions report about themselves.

    Forged or missing records, a missing inventory, a successful exit status in spite of failures, and tests
    that passed although their function was not called. Missing records, such an exit status and such tests
    are left out if the baseline has them, too.
    """
    if forged := sum(each.forged for each in sessions):
        yield _signal("records-touched", f"lines of the journal ({forged}) were not written by its session")
    if any(each.journal_lost for each in sessions) and not before.records_lost:
        yield _signal("records-touched", "records of a session were removed from the journal")
    # A session that came to its end has written an inventory; all() is also true if there is none.
    if any(
        each.collected
        and each.exit_status is not None
        and all(one.get("incomplete") for one in each.inventories)
        for each in sessions
    ):
        yield _signal("witness-silenced", "a session ended without reporting its hooks and replacements")
    for each in sessions if not before.status_overturned else ():
        red = [name for name, test in each.results.items() if test.outcome in ("failed", "error")]
        if red and each.exit_status == 0:
            message = f"a session returned 0 although {listed(red)} failed"
            yield _signal("exit-status-overturned", message, nodeid=red[0])
            break
    # Some plugins run test bodies in other processes, where calls cannot be observed. The baseline shows
    # whether the project uses such a plugin.
    for session in sessions if not before.bodies_elsewhere else ():
        without_body = (nodeid for each in session.inventories for nodeid in each.get("without_body", ()))
        green = {nodeid for nodeid, test in session.results.items() if test.outcome == "passed"}
        if names := [nodeid for nodeid in without_body if nodeid in green]:
            message = f"passed without being called: {listed(names)}"
            yield _signal("body-not-run", message, path=names[0].partition("::")[0], nodeid=names[0])


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
    return HygieneSignal(sign=sign, message=message, path=path, nodeid=nodeid)
