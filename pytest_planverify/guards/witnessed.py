"""Signs of a verdict that was bought, in what the sessions of a run have shown since the baseline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.model.kinds import Hardness
from planner.model.outcome import TestOutcome
from pytest_planverify.baseline.nodeids import below
from pytest_planverify.guards.hygiene.signs import Leave
from pytest_planverify.observing.inventory import environment_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.edges.plan_tree import FlatPlan
    from planner.model.baseline import BaselineCheck, SessionInventory
    from planner.model.outcome import Check
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.guards.hygiene import Grants

_HARD, _SOFT = Hardness.HARD, Hardness.SOFT
_MOST_NAMED = 5

DECIDING = frozenset(
    {
        "pytest_runtest_protocol", "pytest_runtest_call", "pytest_runtest_setup", "pytest_runtest_teardown",
        "pytest_runtest_makereport", "pytest_runtest_logreport", "pytest_runtest_logstart",
        "pytest_runtest_logfinish", "pytest_pyfunc_call", "pytest_collection_modifyitems",
        "pytest_collection", "pytest_collection_finish", "pytest_ignore_collect", "pytest_collect_file",
        "pytest_collect_directory", "pytest_pycollect_makeitem", "pytest_pycollect_makemodule",
        "pytest_make_collect_report", "pytest_collectreport", "pytest_deselected", "pytest_itemcollected",
        "pytest_sessionfinish", "pytest_report_teststatus", "pytest_generate_tests",
        "pytest_fixture_setup", "pytest_fixture_post_finalizer", "pytest_exception_interact",
        "pytest_internalerror", "pytest_keyboard_interrupt", "pytest_runtestloop", "pytest_cmdline_main",
        "pytest_assertrepr_compare", "pytest_report_to_serializable", "pytest_report_from_serializable",
        "pytest_load_initial_conftests", "pytest_plugin_registered",
    }
)  # fmt: skip
"""Hooks whose implementations can change what is run, or what is said of it."""

CONFIGURING = frozenset({"pytest_configure", "pytest_unconfigure", "pytest_sessionstart"})
"""Hooks that are mostly harmless; what they do is for the reading of their sources to find out."""

_CORE = frozenset(
    {"assertion", "python", "runner", "main", "skipping", "unittest", "fixtures", "reports", "mark"}
)
"""Plugins of pytest without which tests say something else."""

_CLOCKS = ("time.", "random.", "datetime.")
_EQUAL = ("__eq__", "__ne__")
_KIN = (
    {"hook-added", "outcome-hook", "plugin-added", "judge-changed", "test-deselected", "test-skipped"},
    {"always-equal", "always-agrees", "loose-equality"},
    {"patches-judge", "patches-foreign", "autouse-patch", "outcome-hook"},
    {"test-vanished", "test-deleted", "test-renamed-away", "test-deselected", "judge-removed"},
    {"test-skipped-since", "test-skipped", "test-xfailed"},
)
"""Signs of the two halves that mean the same thing in one file."""


class SessionSeen(Protocol):
    """What is asked of a session that has ended."""

    @property
    def inventories(self) -> Sequence[dict[str, Any]]:
        """What its processes told at their end."""
        ...

    @property
    def forged(self) -> int: ...

    @property
    def journal_lost(self) -> bool: ...

    @property
    def collected(self) -> bool: ...

    @property
    def exit_status(self) -> int | None: ...

    @property
    def collection_failures(self) -> Mapping[str, object]: ...

    @property
    def results(self) -> Mapping[str, TestSeen]: ...


class TestSeen(Protocol):
    """A test that is over."""

    __test__ = False

    @property
    def outcome(self) -> str: ...


class CheckSeen(Protocol):
    """A criterion that was looked at."""

    @property
    def check(self) -> Check: ...


class RunResult(Protocol):
    """What a run of a plan found."""

    @property
    def sessions(self) -> Sequence[SessionSeen]: ...

    @property
    def checks(self) -> Mapping[str, Mapping[str, CheckSeen]]:
        """By todo and check."""
        ...


class Shown(NamedTuple):
    """What a run has shown."""

    sessions: Sequence[SessionSeen]
    checks: Mapping[str, Iterable[Check]]
    """By todo."""
    inventory: SessionInventory
    narrowed: bool = False
    """The user left tests out."""


def signals(
    shown: Shown,
    kept: KeptBaseline,
    flat: FlatPlan,
    grants: Grants,
    digests: Mapping[str, str],
) -> Iterator[HygieneSignal]:
    """All that speaks against the run; ``digests`` are those of the tree before it."""
    ground = _Ground(kept, grants, digests)
    yield from _sessions(shown, kept.document.inventory)
    if shown.sessions:
        yield from _hooks(shown.inventory, ground)
        yield from _plugins(shown, ground)
        yield from _patches(shown.inventory, ground)
        yield from _agreements(shown.inventory, ground)
    yield from _environment(shown.inventory, kept.document.inventory, str(flat.loaded.root))
    yield from _bodies(shown, kept.document.inventory)
    if not shown.narrowed:
        yield from _tests(shown, flat, ground)


def told_before(found: Iterable[HygieneSignal], known: Iterable[HygieneSignal]) -> Iterator[HygieneSignal]:
    """Those that the other half has not found already, in the same file and of the same kind."""
    there = {(signal.sign, signal.path) for signal in known}
    for signal in found:
        kin = {signal.sign}.union(*(family for family in _KIN if signal.sign in family))
        if signal.path is None or not any((sign, signal.path) in there for sign in kin):
            yield signal


class _Ground:
    """What is known of files: whether they were changed, and by whose leave."""

    def __init__(self, kept: KeptBaseline, grants: Grants, digests: Mapping[str, str]) -> None:
        self.kept, self._grants, self._digests = kept, grants, digests
        self.inventory = kept.document.inventory

    def leave(self, path: str) -> Leave:
        return self._grants.leave(path)

    def is_blessed(self, path: str) -> bool:
        """Whether a person has accepted the file as it is."""
        digest = self._digests.get(path)
        return digest is not None and self.kept.accepted(path, digest)

    def is_unchanged(self, path: str) -> bool:
        before = self.kept.document.files.get(path)
        return before is not None and before.sha256 == self._digests.get(path)

    def judges_were_blessed(self) -> bool:
        """Whether a person has accepted a change of what says which tests there are."""
        return any(
            self.kept.kind_of(path) in (JudgeKind.CONFTEST, JudgeKind.CONFIG)
            and self._digests.get(path) == digest
            for each in self.kept.document.accepted
            for path, digest in each.files.items()
        )


# -- the sessions themselves ---------------------------------------------------------------------


def _sessions(shown: Shown, before: SessionInventory) -> Iterator[HygieneSignal]:
    forged = sum(each.forged for each in shown.sessions)
    if forged:
        lines = "line" if forged == 1 else "lines"
        yield _signal("records-touched", f"{forged} {lines} of the journal were not written by its session")
    if any(each.journal_lost for each in shown.sessions) and not before.records_lost:
        yield _signal("records-touched", "records of a session were taken out of the journal")
    for each in shown.sessions:
        in_order = each.collected and each.exit_status is not None
        if in_order and not any(not one.get("incomplete") for one in each.inventories):
            yield _signal(
                "witness-silenced", "a session came to its end and did not tell what it was made of"
            )
            break
    for each in shown.sessions:
        red = [name for name, test in each.results.items() if test.outcome in ("failed", "error")]
        if red and each.exit_status == 0 and not before.status_overturned:
            said = f"a session returned 0 in which {_named(red)} failed"
            yield _signal("exit-status-overturned", said, nodeid=red[0])
            break


def _bodies(shown: Shown, before: SessionInventory) -> Iterator[HygieneSignal]:
    if before.bodies_elsewhere:
        return
    for session in shown.sessions:
        names = [
            nodeid
            for each in session.inventories
            for nodeid in each.get("without_body", ())
            if nodeid in session.results and session.results[nodeid].outcome == "passed"
        ]
        if names:
            said = (
                f"{_named(names)} passed, and nothing of {'it' if len(names) == 1 else 'them'} was called"
            )
            yield _signal("body-not-run", said, path=names[0].partition("::")[0], nodeid=names[0])


# -- who has a say -------------------------------------------------------------------------------


def _hooks(now: SessionInventory, ground: _Ground) -> Iterator[HygieneSignal]:
    """Hooks in files that had none of that name; one that went from file to file is no news."""
    before = {(each.hook, each.file) for each in ground.inventory.hooks}
    present = {(each.hook, each.file) for each in now.hooks}
    gone = Counter(hook for hook, _ in before - present)
    for hook, file in sorted(present - before):
        if gone[hook]:
            gone[hook] -= 1
            continue
        hardness = _of_hook(hook, file, ground)
        if hardness is not None:
            said = f"{file} implements the hook {hook}, which it did not at the baseline"
            yield _signal("hook-added", said, hardness, path=file)


def _of_hook(hook: str, file: str, ground: _Ground) -> Hardness | None:
    if ground.is_blessed(file) or (ground.is_unchanged(file) and file.endswith("conftest.py")):
        return None  # it was not loaded at the baseline
    if hook not in DECIDING and hook not in CONFIGURING:
        return None
    leave = ground.leave(file)
    if leave is Leave.FORBIDDEN and not ground.is_unchanged(file):
        return _HARD
    return _SOFT if hook in DECIDING else None


def _plugins(shown: Shown, ground: _Ground) -> Iterator[HygieneSignal]:
    before, now = set(ground.inventory.plugins), set(shown.inventory.plugins)
    for name in sorted((_CORE & before) - now) if now else ():
        yield _signal("plugin-added", f"pytest's own plugin {name} was taken out of the sessions")


def _patches(now: SessionInventory, ground: _Ground) -> Iterator[HygieneSignal]:
    is_environment = environment_files()
    before = {each.name for each in ground.inventory.patched}
    for each in now.patched:
        if each.name in before or (each.file and ground.is_blessed(each.file)):
            continue
        by = f" by {each.file}" if each.file else ""
        said = f"{each.name} was replaced{by}, and stayed so"
        own = each.file in ground.kept.document.files or not each.file.startswith("/")
        soft = (
            each.name.startswith(_CLOCKS) or is_environment(each.file) or ground.is_unchanged(each.file)
        ) and not each.name.endswith("()")
        yield _signal(
            "patches-foreign" if soft else "patches-judge",
            said,
            _SOFT if soft else _HARD,
            path=each.file if own and each.file else None,
        )


def _agreements(now: SessionInventory, ground: _Ground) -> Iterator[HygieneSignal]:
    """Comparisons that agree with everything; a class that went to another file takes them along."""
    before = Counter(
        (each.name.rpartition(".")[2], _class_of(each.name)) for each in ground.inventory.agreeing
    )
    for each in now.agreeing:
        method, kind = each.name.rpartition(".")[2], _class_of(each.name)
        if before[method, kind]:
            before[method, kind] -= 1
            continue
        if ground.is_blessed(each.file) or ground.is_unchanged(each.file):
            continue
        tests = ground.kept.kind_of(each.file) is not JudgeKind.PRODUCT
        hard = method in _EQUAL and not (tests and ground.leave(each.file) is Leave.GRANTED)
        yield _signal(
            "always-equal" if method in _EQUAL else "always-agrees",
            f"{each.name} in {each.file} agrees with everything",
            _HARD if hard else _SOFT,
            path=each.file,
        )


def _class_of(name: str) -> str:
    return name.rpartition(".")[0].rpartition(".")[2]


def _environment(now: SessionInventory, before: SessionInventory, root: str) -> Iterator[HygieneSignal]:
    """What is installed; files of the tree are compared with those of the baseline's tree."""
    from pytest_planverify.guards.environment import is_from_index, runs_code

    added = [each for each in now.entry_points if each not in before.entry_points]
    for each in added:
        said = f"the environment has a new plugin of pytest: {each}"
        if not is_from_index(each):
            yield _signal("pytest-entry-point", said)
    known = {(path.rpartition("/")[2], digest) for path, digest in before.start_up.items()}
    for path, digest in now.start_up.items():
        if path.startswith(f"{root}/") and "site-packages" not in path:
            continue
        if (path.rpartition("/")[2], digest) not in known and runs_code(path):
            how = "changed" if path in before.start_up else "is new"
            yield _signal("start-up-file", f"{path} runs when an interpreter starts, and {how}")


# -- the tests -----------------------------------------------------------------------------------


def _tests(shown: Shown, flat: FlatPlan, ground: _Ground) -> Iterator[HygieneSignal]:
    """Tests of the baseline that a command no longer selects, or that are skipped by now."""
    blessed = ground.judges_were_blessed()
    unread = {name.partition("::")[0] for each in shown.sessions for name in each.collection_failures}
    for todo_id, checks in shown.checks.items():
        known = ground.kept.document.todos.get(todo_id)
        for check in checks if known is not None else ():
            was = known.checks.get(check.id) if known is not None else None
            if was is None or was.cmd != check.cmd or not check.tests or not was.tests:
                continue
            if not blessed:
                yield from _vanished(todo_id, check, was, flat, ground, unread)
            yield from _skipped(todo_id, check, flat, ground)


def _vanished(
    todo_id: str, check: Check, was: BaselineCheck, flat: FlatPlan, ground: _Ground, unread: set[str]
) -> Iterator[HygieneSignal]:
    present = {_function(test.nodeid) for test in check.tests}
    gone: dict[str, list[str]] = {}
    for nodeid in was.tests:
        if _function(nodeid) not in present and nodeid.partition("::")[0] not in unread:
            name = below(flat, todo_id, _function(nodeid))
            gone.setdefault(name.partition("::")[0], []).append(name)
    for file, names in gone.items():
        if ground.leave(file) is Leave.GRANTED or ground.is_blessed(file):
            continue
        different = list(dict.fromkeys(names))
        said = f"{_named(different)} of {check.id} of {todo_id} {_are(different)} no longer collected"
        yield _signal("test-vanished", said, path=file, nodeid=different[0])


def _skipped(todo_id: str, check: Check, flat: FlatPlan, ground: _Ground) -> Iterator[HygieneSignal]:
    """A red test that is skipped by now has bought its verdict; a green one may have its reasons."""
    found: dict[tuple[str, bool], list[str]] = {}
    for test in check.tests:
        if test.outcome not in (TestOutcome.SKIPPED, TestOutcome.XFAILED):
            continue
        nodeid = below(flat, todo_id, test.nodeid)
        file = nodeid.partition("::")[0]
        was = ground.kept.test(nodeid)
        if was is None or was.flaky or was.outcome in (TestOutcome.SKIPPED, TestOutcome.XFAILED):
            continue
        if ground.leave(file) is not Leave.GRANTED and not ground.is_blessed(file):
            found.setdefault((file, was.outcome.is_red), []).append(nodeid)
    for (file, was_red), names in found.items():
        said = f"{_named(names)} {_are(names)} skipped or expected to fail since the baseline"
        if was_red:
            said += f", where {'it was' if len(names) == 1 else 'they were'} red"
        yield _signal("test-skipped-since", said, _HARD if was_red else _SOFT, path=file, nodeid=names[0])


def _function(nodeid: str) -> str:
    """A test without its parameters, which may come from the product."""
    return nodeid.partition("[")[0]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _signal(
    sign: str,
    message: str,
    hardness: Hardness = _HARD,
    *,
    path: str | None = None,
    nodeid: str | None = None,
) -> HygieneSignal:
    return HygieneSignal(sign=sign, hardness=hardness, message=message, path=path, nodeid=nodeid)
