"""Signs of a verdict that was bought, in what the sessions of a run have shown since the baseline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.signs import Leave
from pytest_planverify.guards.missed_tests import missed
from pytest_planverify.guards.shown import HARD, SOFT, Ground, Shown, named, signal
from pytest_planverify.guards.tampering.code_files import environment_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.model.baseline import SessionInventory
    from planner.model.evidence import HygieneSignal
    from planner.model.kinds import Hardness
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline import KeptBaseline
    from pytest_planverify.guards.hygiene import Grants


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
        yield from missed(shown, flat, ground)


def _denied(shown: Shown) -> frozenset[str]:
    """What tests reached for and the plan denies."""
    return frozenset(
        event.target
        for checks in shown.checks.values()
        for check in checks
        for event in check.events
        if event.denied
    )


def told_before(found: Iterable[HygieneSignal], known: Iterable[HygieneSignal]) -> Iterator[HygieneSignal]:
    """Those that the other half has not found already, in the same file and of the same kind.

    A hard sign is not covered by a soft one.
    """
    there = {(each.sign, each.path, each.hardness) for each in known}
    for each in found:
        kin = {each.sign}.union(*(family for family in _KIN if each.sign in family))
        weights = (HARD,) if each.hardness is HARD else (HARD, SOFT)
        covered = any((sign, each.path, weight) in there for sign in kin for weight in weights)
        if each.path is None or not covered:
            yield each


# -- the sessions themselves ---------------------------------------------------------------------


def _sessions(shown: Shown, before: SessionInventory) -> Iterator[HygieneSignal]:
    forged = sum(each.forged for each in shown.sessions)
    if forged:
        lines = "line" if forged == 1 else "lines"
        yield signal("records-touched", f"{forged} {lines} of the journal were not written by its session")
    if any(each.journal_lost for each in shown.sessions) and not before.records_lost:
        yield signal("records-touched", "records of a session were taken out of the journal")
    for each in shown.sessions:
        in_order = each.collected and each.exit_status is not None
        if in_order and not any(not one.get("incomplete") for one in each.inventories):
            yield signal(
                "witness-silenced", "a session came to its end and did not tell what it was made of"
            )
            break
    for each in shown.sessions:
        red = [name for name, test in each.results.items() if test.outcome in ("failed", "error")]
        if red and each.exit_status == 0 and not before.status_overturned:
            said = f"a session returned 0 in which {named(red)} failed"
            yield signal("exit-status-overturned", said, nodeid=red[0])
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
            yield signal("body-not-run", said, path=names[0].partition("::")[0], nodeid=names[0])


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
        hardness = _of_hook(hook, file, ground)
        if hardness is not None:
            said = f"{file} implements the hook {hook}, which it did not at the baseline"
            yield signal("hook-added", said, hardness, path=file)


def _wherever(file: str) -> str:
    """A file outside the root by its name: where it lies depends on the machine and the work tree."""
    return file.rpartition("/")[2] if file.startswith(("/", "../")) else file


def _of_hook(hook: str, file: str, ground: Ground) -> Hardness | None:
    if ground.is_blessed(file) or (ground.is_unchanged(file) and file.endswith("conftest.py")):
        return None  # it was not loaded at the baseline
    if hook not in DECIDING and hook not in CONFIGURING:
        return None
    leave = ground.leave(file)
    # The user of the run may load a plugin that lies anywhere.
    if leave is Leave.FORBIDDEN and not ground.is_unchanged(file) and not file.startswith("/"):
        return HARD
    return SOFT if hook in DECIDING else None


def _plugins(shown: Shown, ground: Ground) -> Iterator[HygieneSignal]:
    before, now = set(ground.inventory.plugins), set(shown.inventory.plugins)
    for name in sorted((_CORE & before) - now) if now else ():
        yield signal("plugin-added", f"pytest's own plugin {name} was taken out of the sessions")


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
        soft = each.name.startswith(_CLOCKS) or ground.is_unchanged(each.file)
        yield signal(
            "patches-foreign" if soft else "patches-judge",
            said,
            SOFT if soft else HARD,
            path=each.file if own and each.file else None,
        )


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
        hard = method in _EQUAL and not (tests and ground.leave(each.file) is Leave.GRANTED)
        yield signal(
            "always-equal" if method in _EQUAL else "always-agrees",
            f"{each.name} in {each.file} agrees with everything",
            HARD if hard else SOFT,
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
            yield signal("pytest-entry-point", said)
    known = {(path.rpartition("/")[2], digest) for path, digest in before.start_up.items()}
    for path, digest in now.start_up.items():
        if path.startswith(f"{root}/") and "site-packages" not in path:
            continue
        if (path.rpartition("/")[2], digest) not in known and runs_code(path):
            how = "changed" if path in before.start_up else "is new"
            yield signal("start-up-file", f"{path} runs when an interpreter starts, and {how}")
