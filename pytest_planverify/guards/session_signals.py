"""Signals of tampering in what the sessions of a run have shown, compared with the baseline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from planner.model.baseline import JudgeKind
from planner.model.evidence import HygieneSignal
from planner.model.verdicts import Hardness, TestOutcome
from pytest_planverify.baseline.nodeids import below
from pytest_planverify.guards.hygiene.files import SERVES_TESTS
from pytest_planverify.guards.hygiene.grants import Permission
from pytest_planverify.guards.tampering.code_files import environment_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.baseline import BaselineCheck, SessionInventory
    from planner.model.outcome import Check
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.guards.hygiene import Grants

MOST_NAMED = 5
_SAME = {
    "hook-added": ("outcome-hook", "judge-changed"),
    "always-equal": ("loose-equality",),
    "patches-judge": ("fixture-overridden", "outcome-hook"),
    "test-vanished": ("test-deleted", "test-deselected", "judge-removed"),
    "test-skipped-since": ("test-skipped", "test-xfailed", "test-deselected"),
}
"""Signs of the comparison that mean the same as one of the run."""
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

_CORE = frozenset(
    {"assertion", "python", "runner", "main", "skipping", "unittest", "fixtures", "reports", "mark"}
)
"""Plugins of pytest without which tests say something else."""

_CLOCKS = ("time.", "random.", "datetime.")
_EQUAL = ("__eq__", "__ne__")


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
    def records(self) -> Sequence[SessionSeen]: ...

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


class Ground:
    """What is known of files: whether they were changed, and who may change them."""

    def __init__(self, kept: KeptBaseline, grants: Grants, digests: Mapping[str, str]) -> None:
        self.kept, self._grants, self._digests = kept, grants, digests
        self.inventory = kept.document.inventory

    def permission(self, path: str) -> Permission:
        """Whether somebody may change a file."""
        return self._grants.permission(path)

    def is_blessed(self, path: str) -> bool:
        """Whether a person has accepted the file as it is."""
        digest = self._digests.get(path)
        return digest is not None and self.kept.accepted(path, digest)

    def is_unchanged(self, path: str) -> bool:
        """Whether a file is what it was at the baseline."""
        before = self.kept.document.files.get(path)
        return before is not None and before.sha256 == self._digests.get(path)

    def is_kept_from_change(self, path: str) -> bool:
        """Whether what happens to a file's tests is no work on the file, which is read in its source."""
        permission = self.permission(path)
        if permission is Permission.GRANTED or self.is_blessed(path):
            return False
        return permission is Permission.FORBIDDEN or self.is_unchanged(path)

    def judges_were_blessed(self) -> bool:
        """Whether a person has accepted a change of what says which tests there are."""
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
    """All that speaks against the run; ``digests`` are those of the tree before it."""
    denied = _denied(shown)
    for each in _all(shown, kept, flat, Ground(kept, grants, digests)):
        # What the sandbox refused is told there.
        if not any(target == each.path or each.message.startswith(f"{target} ") for target in denied):
            yield each


def _all(shown: Shown, kept: KeptBaseline, flat: FlatPlan, ground: Ground) -> Iterator[HygieneSignal]:
    yield from _sessions(shown, kept.document.inventory)
    if shown.sessions:
        yield from _hooks(shown.inventory, ground)
        yield from _plugins(shown, ground)
        yield from _patches(shown.inventory, ground)
        yield from _agreements(shown.inventory, ground)
    yield from _environment(shown.inventory, kept.document.inventory, str(flat.loaded.root))
    yield from _bodies(shown, kept.document.inventory)
    if not shown.narrowed:
        yield from _missed(shown, flat, ground)


def _denied(shown: Shown) -> frozenset[str]:
    """What tests reached for and the plan denies."""
    return frozenset(
        event.target
        for checks in shown.checks.values()
        for check in checks
        for event in check.events
        if event.denied
    )


def without_known(
    found: Iterable[HygieneSignal], known: Iterable[HygieneSignal]
) -> Iterator[HygieneSignal]:
    """Yield those that the comparison of trees has not found already, in the same file."""
    told = {(each.sign, each.path) for each in known}
    for each in found:
        signs = (each.sign, *_SAME.get(each.sign, ()))
        if each.path is None or not any((sign, each.path) in told for sign in signs):
            yield each


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
            said = f"a session returned 0 in which {named(red)} failed"
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
            said = f"{named(names)} passed, and nothing of {'it' if len(names) == 1 else 'them'} was called"
            yield _signal("body-not-run", said, path=names[0].partition("::")[0], nodeid=names[0])


# -- who has a say -------------------------------------------------------------------------------


def _hooks(now: SessionInventory, ground: Ground) -> Iterator[HygieneSignal]:
    """Hooks in files that had none of that name; one that went from file to file is no news."""
    before = {(each.hook, _wherever(each.file)) for each in ground.inventory.hooks}
    files = {(each.hook, _wherever(each.file)): each.file for each in now.hooks}
    gone = Counter(hook for hook, _ in before - files.keys())
    for hook, place in sorted(files.keys() - before):
        file = files[hook, place]
        if gone[hook]:
            gone[hook] -= 1
            continue
        if _is_unasked_hook(hook, file, ground):
            said = f"{file} implements the hook {hook}, which it did not at the baseline"
            yield _signal("hook-added", said, path=file)


def _wherever(file: str) -> str:
    """A file outside the root by its name: where it lies depends on the machine and the work tree."""
    return file.rpartition("/")[2] if file.startswith(("/", "../")) else file


def _is_unasked_hook(hook: str, file: str, ground: Ground) -> bool:
    """Return whether nobody may add the hook there, or the product does.

    The user of the run may load a plugin from anywhere.
    """
    if hook not in DECIDING or file.startswith("/") or ground.is_unchanged(file) or ground.is_blessed(file):
        return False
    is_product = ground.kept.kind_of(file) is JudgeKind.PRODUCT and not SERVES_TESTS.search(file)
    return is_product or ground.permission(file) is Permission.FORBIDDEN


def _plugins(shown: Shown, ground: Ground) -> Iterator[HygieneSignal]:
    before, now = set(ground.inventory.plugins), set(shown.inventory.plugins)
    for name in sorted((_CORE & before) - now) if now else ():
        yield _signal("plugin-added", f"pytest's own plugin {name} was taken out of the sessions")


def _patches(now: SessionInventory, ground: Ground) -> Iterator[HygieneSignal]:
    is_environment = environment_files()
    before = {each.name for each in ground.inventory.patched}
    for each in now.patched:
        if each.name in before or (each.file and ground.is_blessed(each.file)):
            continue
        if is_environment(each.file) and not each.name.endswith("()"):
            continue  # a library does so when it is imported
        by = f" by {each.file}" if each.file else ""
        said = f"{each.name} was replaced{by}, and stayed so"
        own = each.file in ground.kept.document.files or not each.file.startswith("/")
        if not each.name.startswith(_CLOCKS) and not ground.is_unchanged(each.file):
            yield _signal("patches-judge", said, path=each.file if own and each.file else None)


def _agreements(now: SessionInventory, ground: Ground) -> Iterator[HygieneSignal]:
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
        if method in _EQUAL and not (tests and ground.permission(each.file) is Permission.GRANTED):
            yield _signal(
                "always-equal", f"{each.name} in {each.file} agrees with everything", path=each.file
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


# -- tests that are missed ------------------------------------------------------------------------


def _missed(shown: Shown, flat: FlatPlan, ground: Ground) -> Iterator[HygieneSignal]:
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
    todo_id: str, check: Check, was: BaselineCheck, flat: FlatPlan, ground: Ground, unread: set[str]
) -> Iterator[HygieneSignal]:
    present = {_function(test.nodeid) for test in check.tests}
    gone: dict[str, list[str]] = {}
    for nodeid in was.tests:
        if _function(nodeid) not in present and nodeid.partition("::")[0] not in unread:
            name = below(flat, todo_id, _function(nodeid))
            gone.setdefault(name.partition("::")[0], []).append(name)
    for file, names in gone.items():
        if not ground.is_kept_from_change(file):
            continue
        different = list(dict.fromkeys(names))
        said = f"{named(different)} of {check.id} of {todo_id} {_are(different)} no longer collected"
        yield _signal("test-vanished", said, path=file, nodeid=different[0])


def _skipped(todo_id: str, check: Check, flat: FlatPlan, ground: Ground) -> Iterator[HygieneSignal]:
    """Yield red tests that are skipped by now, whoever may change them."""
    found: dict[str, list[str]] = {}
    for test in check.tests:
        nodeid = below(flat, todo_id, test.nodeid)
        file = nodeid.partition("::")[0]
        was = ground.kept.test(nodeid)
        if test.outcome in (TestOutcome.SKIPPED, TestOutcome.XFAILED) and not (
            was is None or was.flaky or not was.outcome.is_red or ground.is_blessed(file)
        ):
            found.setdefault(file, []).append(nodeid)
    for file, names in found.items():
        said = f"{named(names)} {_are(names)} skipped or expected to fail since the baseline, where "
        said += "it was red" if len(names) == 1 else "they were red"
        yield _signal("test-skipped-since", said, path=file, nodeid=names[0])


def _function(nodeid: str) -> str:
    """A test without its parameters, which may come from the product."""
    return nodeid.partition("[")[0]


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def named(names: Sequence[str]) -> str:
    """Return the first of many names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _signal(
    sign: str, message: str, *, path: str | None = None, nodeid: str | None = None
) -> HygieneSignal:
    return HygieneSignal(sign=sign, hardness=Hardness.HARD, message=message, path=path, nodeid=nodeid)
